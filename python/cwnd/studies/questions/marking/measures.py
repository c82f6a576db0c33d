"""Error of a number encoded in one mark per packet, by closed forms and random draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cwnd import models
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.study import table

Values = NDArray[np.float64]
#: The estimate after each packet, from the value at each packet.
Scheme = Callable[[Values, np.random.Generator], Values]

PACKETS = (1, 3, 10, 30, 100, 300, 1000, 10_000)
PERIODS = (100, 300, 1000, 3000, 10_000, 100_000)
#: Numbers of bits of static marking.
BITS = (4, 8, 16)
PHI = 10.0
#: Windows of random marking, packets; for each period the best of them counts.
WINDOWS = (3, 10, 30, 100, 300, 1000, 3000, 10_000)


def adpm(values: Values, rng: np.random.Generator) -> Values:
    """ADPM's update rule (BMCC § II-B), its thresholds uniform in (0, 1), from 1 on."""
    thresholds = rng.random(len(values)).tolist()
    estimate, estimates = 1.0, np.empty(len(values))
    for i, (value, threshold) in enumerate(zip(values.tolist(), thresholds, strict=True)):
        marked = value > threshold
        if (marked and threshold > estimate) or (not marked and threshold < estimate):
            estimate = threshold
        estimates[i] = estimate
    return estimates


def static(bits: int) -> Scheme:
    """Static marking: each packet carries one of so many bits of the value as it is then."""

    def estimate(values: Values, rng: np.random.Generator) -> Values:
        cut = np.minimum((values * 2**bits).astype(np.int64), 2**bits - 1)
        carried = rng.integers(bits, size=len(values))
        known = [0.5] * bits
        # Sums of powers of two are exact.
        found = sum(0.5 * 2.0 ** -(place + 1) for place in range(bits))
        estimates = np.empty(len(values))
        for i, (bit, value) in enumerate(zip(carried.tolist(), cut.tolist(), strict=True)):
            now = float(value >> (bits - 1 - bit) & 1)
            found += (now - known[bit]) * 2.0 ** -(bit + 1)
            known[bit] = now
            # The middle of what the bits leave open.
            estimates[i] = found + 2.0 ** -(bits + 1)
        return estimates

    return estimate


def _share(marks: Values, window: int) -> Values:
    """The mean of the last so many, or of all that there were."""
    total = np.concatenate([[0.0], np.cumsum(marks)])
    ends = np.arange(1, len(marks) + 1)
    begins = np.maximum(ends - window, 0)
    shares: Values = (total[ends] - total[begins]) / (ends - begins)
    return shares


def ram(window: int) -> Scheme:
    """Random additive marking over one link, from the last so many packets."""
    return lambda values, rng: _share((rng.random(len(values)) < values).astype(float), window)


def rem(window: int) -> Scheme:
    """Random exponential marking, from the last so many packets."""

    def estimate(values: Values, rng: np.random.Generator) -> Values:
        unmarked = (rng.random(len(values)) < PHI**-values).astype(float)
        with np.errstate(divide="ignore"):
            return np.minimum(-np.log(_share(unmarked, window)) / math.log(PHI), 1.0)

    return estimate


def wave(period: int, packets: int) -> Values:
    """A value that goes from 0.1 to 0.9 and back in so many packets."""
    return 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(packets) / period)


def moving_mse(scheme: Scheme, period: int, seed: int = 1, packets: int = 200_000) -> float:
    """Mean square error beside a wave, once a period and a tenth of the packets have passed."""
    values = wave(period, packets)
    begin = max(period, packets // 10)
    errors = scheme(values, np.random.default_rng(seed)) - values
    return float(np.mean(errors[begin:] ** 2))


def stays(packets: int) -> list[float]:
    """The closed forms over values that are uniform in (0, 1): ADPM, static ones, RAM, REM."""
    grid = (np.arange(200) + 0.5) / 200
    return [
        float(np.mean([models.adpm_mse(1 - value, packets) for value in grid])),
        *(models.static_mse(packets, bits) for bits in BITS),
        float(np.mean([models.ram_mse(value, packets) for value in grid])),
        float(np.mean([models.rem_mse(value, packets, PHI) for value in grid])),
    ]


def moves(period: int) -> list[float]:
    """Errors of all schemes for a value that follows a wave; RAM and REM with their best window."""
    return [
        moving_mse(adpm, period),
        *(moving_mse(static(bits), period) for bits in BITS),
        *(min(moving_mse(kind(window), period) for window in WINDOWS) for kind in (ram, rem)),
    ]


NAMES = ["ADPM", *(f"static, {bits} bits" for bits in BITS), "RAM", "REM"]


def _table(first: str, rows: dict[int, list[float]]) -> list[str]:
    cells = ([f"{n:,}", *(f"{error:.1e}" for error in errors)] for n, errors in rows.items())
    return table([first, *NAMES], cells)


@cache
def _static() -> dict[int, list[float]]:
    return {packets: stays(packets) for packets in PACKETS}


@cache
def _moving() -> dict[int, list[float]]:
    return {period: moves(period) for period in PERIODS}


def draw() -> Picture:
    """Both tables as panels beside each other."""
    panels = []
    for rows, title, label in (
        (_static(), "A value that stays", "Packets that came"),
        (_moving(), "A value that moves", "Packets in a period of the value"),
    ):
        lines = [
            Line(
                list(rows),
                errors,
                line_style.colour(index),
                marker=line_style.marker(index),
                label=name,
            )
            for index, (name, *errors) in enumerate(zip(NAMES, *rows.values(), strict=True))
        ]
        panels.append(Panel(lines, title, x_label=label, x_log=True, y_log=True))
    panels[0].y_label = "Mean square error"
    return Picture(panels, 3.2, columns=2, shared_x="none")


TABLES = {
    "stays": lambda: _table("packets", _static()),
    "moves": lambda: _table("packets in a period", _moving()),
}
FIGURES = {"marking": draw}
