"""Traces of cellular links; goodput, mean queueing delay and its 99th percentile over them.

Packets pass as a Poisson process of a rate in Brownian motion: Winstein, Sivaraman, Balakrishnan,
*Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks*, NSDI 2013,
§ 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run


#: Interval between changes of the rate, as in § 3.2, s.
STEP_S = 0.02
#: The trace repeats after this time, s.
TRACE_S = 60
#: Rate of recovery from an outage, a second (λ_z of § 3.1).
OUTAGE_ENDS_PER_S = 1.0


@dataclass(frozen=True)
class Link:
    """A cellular link, in packets of 1500 bytes."""

    #: Packets a second, at the most and at first.
    most: float
    first: float
    #: Standard deviation of the change in a second, packets a second.
    sigma: float
    seed: int

    def rate(self) -> dict[str, object]:
        """Returns the rate of a scenario's link that follows this one's trace."""
        return {"trace_ms": self.trace(TRACE_S)}

    def trace(self, duration_s: float) -> list[int]:
        """The milliseconds at which a packet may pass: a mahimahi trace."""
        draw = Random(self.seed)  # noqa: S311 - a link, no secret
        rate, passes = self.first, []
        for step in range(round(duration_s / STEP_S)):
            change = draw.gauss(0, self.sigma * STEP_S**0.5)
            if rate > 0:
                rate = max(min(rate + change, self.most), 0)
            elif draw.random() < OUTAGE_ENDS_PER_S * STEP_S:
                rate = min(abs(change), self.most)
            at = step * STEP_S
            while rate > 0 and (at := at + draw.expovariate(rate)) < (step + 1) * STEP_S:
                passes.append(round(at * 1000))
        return passes


#: σ and the most are of the paper, § 3.1; and of a slower link a quarter of them.
LINKS = {
    "fast": Link(most=1000, first=500, sigma=200, seed=1),
    "slow": Link(most=250, first=125, sigma=50, seed=2),
}


def cellular(*runs: Run) -> list[str]:
    """Controllers by links and queues: goodput in Mbit/s, delays in ms."""
    texts: dict[str, dict[str, str]] = {}
    for name, run in zip(LINKS, runs, strict=True):
        kind, queue = (axis.column for axis in run.axes)
        ours = run.links.filter(pl.col("link") == "bottleneck")
        rows = run.flows.join(ours, on="run_id", maintain_order="left")
        for row in rows.with_columns(pl.col(kind, queue).cast(pl.String)).iter_rows(named=True):
            delays = (row[f"qdelay_{what}_us"] / 1e3 for what in ("mean", "p99"))
            cell = ", ".join(f"{delay:.0f}" for delay in delays)
            by_column = texts.setdefault(row[kind], {})
            by_column[f"{name}, {row[queue]}"] = f"{row['goodput_bit_s'] / 1e6:.1f}, {cell}"
    columns = list(next(iter(texts.values())))
    return table(
        ["controller", *columns], ([name, *cells.values()] for name, cells in texts.items())
    )


TABLES = {"cellular": cellular}
OVERRIDES = {name: lambda link=link: {"dumbbell.rate": link.rate()} for name, link in LINKS.items()}
