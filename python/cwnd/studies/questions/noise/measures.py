"""The interval over ten seeds, held against 60 further seeds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from cwnd.results import Estimate
from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run

#: Seeds of the interval; the others give the mean that it should contain.
SEEDS = 10


@dataclass(frozen=True)
class Cell:
    """A queue, a rate and an RTT: goodputs in bit/s."""

    queue: str
    rate: str
    rtt: str
    #: Over ten seeds, with noise.
    estimate: Estimate
    #: The mean of the other seeds, with noise.
    others: float
    #: The range over RTTs within ±0.5 %, without noise, in parts of the mean.
    spread: float

    @property
    def half_width(self) -> float:
        """Half the interval, in parts of the mean."""
        return (self.estimate.half_width or 0.0) / self.estimate.mean

    @property
    def error(self) -> float:
        """The mean of ten seeds beside that of the others, in parts of it."""
        return self.estimate.mean / self.others - 1

    @property
    def contained(self) -> bool:
        """`True` if the interval contains the mean of the others."""
        return abs(self.estimate.mean - self.others) <= (self.estimate.half_width or 0.0)

    @property
    def shown(self) -> str:
        """The cell of the table."""
        # Adding zero takes the sign from what rounds to nothing.
        error = f"{round(self.error, 3) + 0.0:+.1%}"
        shown = error if self.contained else f"**{error}**"
        return f"±{self.half_width:.1%}, {shown}, {self.spread:.1%}"


def cells(noise: Run, near: Run) -> list[Cell]:
    """Compares seeds with noise, and neighbouring RTTs without it."""
    ranges: dict[tuple[str, str, str], list[float]] = {}
    rtts = _goodputs(noise)
    nominal = {float(rtt.split()[0]): rtt for _, _, rtt in rtts}
    for (queue, rate, rtt), values in _goodputs(near).items():
        ms = float(rtt.split()[0])
        closest = min(nominal, key=lambda each: abs(each / ms - 1))
        ranges.setdefault((queue, rate, nominal[closest]), []).extend(values)
    found = []
    for key, values in rtts.items():
        estimate, still = Estimate.of(values[:SEEDS]), ranges[key]
        if estimate is not None:
            spread = (max(still) - min(still)) / fmean(still)
            found.append(Cell(*key, estimate, fmean(values[SEEDS:]), spread))
    return found


def _goodputs(run: Run) -> dict[tuple[str, str, str], list[float]]:
    """Goodputs by queue, rate and RTT, in the order of the seeds."""
    labels = [pl.col(name).cast(pl.String) for name in ("queue", "rate", "rtt")]
    rows = run.runs.select("run_id", *labels).join(
        run.flows.select("run_id", "goodput_bit_s"), on="run_id", maintain_order="left"
    )
    found: dict[tuple[str, str, str], list[float]] = {}
    for _, queue, rate, rtt, goodput in rows.iter_rows():
        found.setdefault((queue, rate, rtt), []).append(goodput)
    return found


def noise(noise: Run, near: Run) -> list[str]:
    """By queue and rate, a column for each RTT."""
    found = {(cell.queue, cell.rate, cell.rtt): cell for cell in cells(noise, near)}
    rtts = list(dict.fromkeys(rtt for _, _, rtt in found))
    rows = (
        [queue, rate, *(found[queue, rate, rtt].shown for rtt in rtts)]
        for queue, rate in dict.fromkeys((queue, rate) for queue, rate, _ in found)
    )
    return table(["queue", "rate", *rtts], rows)


TABLES = {"noise": noise}
