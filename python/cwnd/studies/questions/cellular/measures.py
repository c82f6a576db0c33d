"""Controllers over a cellular link: a table of docs/reference/controllers/delay-aimd.md.

The traces are drawn by the model of a cellular link of Winstein, Sivaraman, Balakrishnan,
*Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks*, NSDI 2013,
§ 3.1: packets pass as a Poisson process, whose rate is in Brownian motion.
`docs/controllers/delay-aimd/cellular.toml` runs over them; `make docs` writes the table again, a
test runs a part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "reference" / "controllers" / "delay-aimd.md"
SCENARIO = PAGE.with_suffix("") / "cellular.toml"
TABLE = "scripts/cellular.py"

#: The motion is looked at so often, as in § 3.2, s.
STEP_S = 0.02
#: The trace repeats after so long, s.
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


def measure(overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """Goodput, mean queueing delay and its 99th percentile.

    Returns:
        A row for each `link`, `queue` and `controller`, with `mbit_s`, `mean` and `p99` in ms.
    """
    found = []
    for name, link in LINKS.items():
        changes = {"dumbbell.rate": {"trace_ms": link.trace(TRACE_S)}, **(overrides or {})}
        run = cwnd.run(SCENARIO, set=changes)
        kind, queue = (axis.column for axis in run.axes)
        of = run.runs.select(
            "run_id", controller=pl.col(kind).cast(pl.String), queue=pl.col(queue).cast(pl.String)
        )
        ours = run.links.filter(pl.col("link") == "bottleneck").select(
            "run_id",
            mean=pl.col("qdelay_mean_us") / 1e3,
            p99=pl.col("qdelay_p99_us") / 1e3,
        )
        flows = run.flows.select("run_id", mbit_s=pl.col("goodput_bit_s") / 1e6)
        rows = of.join(flows, on="run_id", maintain_order="left").join(
            ours, on="run_id", maintain_order="left"
        )
        found.append(rows.select(pl.lit(name).alias("link"), pl.exclude("run_id")))
    return pl.concat(found)


def table(found: pl.DataFrame) -> list[str]:
    """The table of the page."""
    columns = list(dict.fromkeys(zip(found["link"], found["queue"], strict=True)))
    lines = page_tables.head(["controller", *(f"{link}, {queue}" for link, queue in columns)])
    for (controller,), rows in found.group_by("controller", maintain_order=True):
        texts = {
            (row["link"], row["queue"]): f"{row['mbit_s']:.1f}, {row['mean']:.0f}, {row['p99']:.0f}"
            for row in rows.iter_rows(named=True)
        }
        lines.append(page_tables.line([str(controller), *(texts[each] for each in columns)]))
    return lines


def main() -> None:
    """Writes the page's table."""
    page_tables.write(PAGE, TABLE, table(measure()))


if __name__ == "__main__":
    main()
