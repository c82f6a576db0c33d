"""Tails and means of distributions: SciPy's, combined and integrated numerically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log
from typing import Any

from scipy import integrate, special, stats

Tail = Callable[[float], float]

DIGITS = 12


@dataclass
class Distribution:
    """The tail P(X > x), and the positions of its corners and steps."""

    tail: Tail
    corners: tuple[float, ...] = ()

    def limited_mean(self, most: float) -> float:
        """Returns the integral of the tail from zero to `most`."""
        edges = sorted({0.0, 1e-6, *(c for c in self.corners if 0 < c < most), most})
        return sum(self._piece(low, high) for low, high in pairwise(edges))

    def _piece(self, low: float, high: float) -> float:
        if low == 0.0:
            return integrate.quad(self.tail, low, high, epsrel=1e-13)[0]
        # Tails span many orders of magnitude: the steps are logarithmic, at most a factor e wide.
        total, start = 0.0, log(low)
        steps = max(1, int(log(high) - start) + 1)
        width = (log(high) - start) / steps
        for i in range(steps):
            a = start + i * width
            total += integrate.quad(
                lambda t: self.tail(exp(t)) * exp(t), a, a + width, epsabs=1e-9, epsrel=1e-12
            )[0]
        return total


def of(frozen: Any, *corners: float) -> Distribution:
    """Wraps a distribution of SciPy."""
    return Distribution(lambda x: float(frozen.sf(x)), corners)


def constant(value: float) -> Distribution:
    """Returns the distribution of a constant."""
    return Distribution(lambda x: float(x < value), (value,))


def uniform(low: int, high: int) -> Distribution:
    """Returns the uniform distribution over whole numbers."""
    frozen = stats.randint(low, high + 1)
    return of(frozen, *range(low, high + 2))


def pareto(shape: float, scale: float) -> Distribution:
    """Returns Pareto's first type."""
    return of(stats.pareto(shape, scale=scale), scale)


def lognormal(median: float, sigma: float) -> Distribution:
    """Returns the lognormal distribution with this median."""
    return of(stats.lognorm(sigma, scale=median))


def table(points: list[tuple[float, float]]) -> Distribution:
    """Interpolates linearly between points (value, probability of at most this value)."""

    def tail(x: float) -> float:
        below = [p for p in points if p[0] <= x]
        above = [p for p in points if p[0] > x]
        if not below:
            return 1.0
        if not above:
            return 0.0
        (v0, p0), (v1, p1) = below[-1], above[0]
        return 1 - (p0 + (p1 - p0) * (x - v0) / (v1 - v0))

    return Distribution(tail, tuple(v for v, _ in points))


def mix(*parts: tuple[float, Distribution]) -> Distribution:
    """Returns a mixture of several, with their shares."""
    corners = tuple(c for _, part in parts for c in part.corners)
    return Distribution(lambda x: sum(share * part.tail(x) for share, part in parts), corners)


def at_most(part: Distribution, most: float) -> Distribution:
    """Returns the distribution with larger values replaced by `most`."""
    return Distribution(lambda x: part.tail(x) if x < most else 0.0, (*part.corners, most))


def replaced(part: Distribution, below: float, share: float, by: Distribution) -> Distribution:
    """Replaces a share of the draws below a limit by draws of another distribution.

    Draws are rounded before the comparison.
    """
    edge = below - 0.5
    small = 1 - part.tail(edge)

    def tail(x: float) -> float:
        kept = part.tail(x) - share * max(0.0, part.tail(x) - part.tail(edge))
        return kept + share * small * by.tail(x)

    return Distribution(tail, (*part.corners, edge, *by.corners))


KB = 1e3
TRACE_2 = mix(
    (0.335, lognormal(145, 0.3)),
    (0.565, lognormal(1600, 1.3)),
    (0.1, pareto(1.23, 9 * KB)),
)
TRACE_2_MEAN = (
    0.335 * 145 * exp(0.3**2 / 2) + 0.565 * 1600 * exp(1.3**2 / 2) + 0.1 * 9000 * 1.23 / 0.23
)
TRACE_3 = replaced(TRACE_2, 5 * KB, 0.01, of(stats.expon(scale=10e6)))
# E[X; X < 5 kB], of which one in a hundred is removed, and P(X < 5 kB) / 100 draws of 10 MB.
TRACE_3_MEAN = (
    TRACE_2_MEAN
    - 0.01 * (TRACE_2.limited_mean(4999.5) - 4999.5 * TRACE_2.tail(4999.5))
    + 0.01 * (1 - TRACE_2.tail(4999.5)) * 10e6
)
MONDAL = "Mondal & Kuzmanovic 2008 (TCP*) § 3.2"
POINTS = [(40.0, 0.1), (1e3, 0.5), (1e3, 0.6), (5e3, 0.6), (1e6, 1.0)]
CDF = "cdf(40 B: 0.1, 1 kB: 0.5, 1 kB: 0.6, 5 kB: 0.6, 1 MB: 1)"
SCIPY = "scipy.stats"
CASES: list[tuple[str, str, Distribution, float]] = [
    ("30 kB", "a step", constant(30e3), 30e3),
    ("uniform(20 B, 30 B)", f"{SCIPY}.randint", uniform(20, 30), 25.0),
    ("exponential(30 kB)", f"{SCIPY}.expon", of(stats.expon(scale=30e3)), 30e3),
    ("pareto(1.2, 30 kB)", f"{SCIPY}.pareto", pareto(1.2, 30e3 * 0.2 / 1.2), 30e3),
    ("pareto(1.1, scale 133 kB)", f"{SCIPY}.pareto", pareto(1.1, 133e3), 133e3 * 11),
    ("pareto(1, scale 1 kB)", f"{SCIPY}.pareto", pareto(1, 1e3), inf),
    ("pareto(0.7, scale 1 kB)", f"{SCIPY}.pareto", pareto(0.7, 1e3), inf),
    (
        "lomax(1.5, 20 kB)",
        f"{SCIPY}.lomax",
        of(stats.lomax(1.5, scale=10e3)),
        20e3,
    ),
    ("lomax(1, scale 5 kB)", f"{SCIPY}.lomax", of(stats.lomax(1, scale=5e3)), inf),
    (
        "weibull(0.5, 10 kB)",
        f"{SCIPY}.weibull_min",
        of(stats.weibull_min(0.5, scale=5e3)),
        10e3,
    ),
    (
        "weibull(2.5, scale 10 kB)",
        f"{SCIPY}.weibull_min",
        of(stats.weibull_min(2.5, scale=10e3)),
        10e3 * float(special.gamma(1.4)),
    ),
    (
        "lognormal(30 kB, 1.5)",
        f"{SCIPY}.lognorm",
        lognormal(30e3, 1.5),
        30e3 * exp(1.5**2 / 2),
    ),
    (
        CDF,
        "straight lines",
        table(POINTS),
        40 * 0.1 + 0.4 * 520 + 0.1 * 1e3 + 0.4 * (5e3 + 1e6) / 2,
    ),
    (
        "mix(0.25 exponential(1 kB), 0.75 uniform(10 B, 20 B))",
        f"{SCIPY}, added up",
        mix((0.25, of(stats.expon(scale=1e3))), (0.75, uniform(10, 20))),
        250 + 0.75 * 15,
    ),
    (
        "min(lomax(0.9, scale 2 kB), 1 MB)",
        f"{SCIPY}.lomax, cut",
        at_most(of(stats.lomax(0.9, scale=2e3)), 1e6),
        at_most(of(stats.lomax(0.9, scale=2e3)), 1e6).limited_mean(1e6),
    ),
    (
        "mondal-trace-1",
        f"{MONDAL}, Trace-I",
        at_most(TRACE_2, 10e3),
        TRACE_2.limited_mean(10e3),
    ),
    ("mondal-trace-2", f"{MONDAL}, Trace-II", TRACE_2, TRACE_2_MEAN),
    ("mondal-trace-3", f"{MONDAL}, Trace-III", TRACE_3, TRACE_3_MEAN),
]
AT = [10, 24, 145, 1e3, 4999, 5e3, 12345, 100e3, 10e6, 1e9]


def short(x: float) -> float | None:
    """Returns twelve digits, or None for infinity."""
    return None if x == inf else float(f"{x:.{DIGITS}g}")


def distributions() -> list[dict[str, Any]]:
    """Returns all cases of distributions."""
    cases = []
    for text, source, distribution, mean in CASES:
        events: list[dict[str, Any]] = [{"event": "mean", "mean": short(mean)}]
        for x in AT:
            tail, limited = distribution.tail(x), distribution.limited_mean(x)
            events.append(
                {"event": "tail", "x": x, "ccdf": short(tail), "limited_mean": short(limited)}
            )
        cases.append(
            {
                "name": text,
                "source": source,
                "parameters": {"size": text},
                "events": events,
            }
        )
    return cases
