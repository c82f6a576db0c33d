"""Flows with less than a segment in flight: a table of docs/reference/controllers/delay-aimd.md.

`scenarios/delay-below-one.toml` is run; `make docs` writes the table again, a test runs a
part of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "delay-below-one.toml"
PAGE = ROOT / "docs" / "reference" / "controllers" / "delay-aimd.md"
TABLE = "scripts/delay_below_one.py"


def measure(overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """Mean queueing delay, Jain's index and timeouts, the means over seeds.

    Returns:
        A row for each `below`, `buffer` and `number` of flows, with `delay` in ms, `jain` and
        `timeouts` a flow and minute.
    """
    run = cwnd.run(SCENARIO, set=dict(overrides or {}))
    labels = ["below", "buffer", "number"]
    goodput = pl.col("goodput_bit_s")
    flows = run.flows.group_by("run_id").agg(
        jain=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum()),
        timeouts=(pl.col("rto_count") * 60 / pl.col("duration_s")).mean(),
    )
    bottleneck = run.links.filter(pl.col("link") == "bottleneck")
    delays = bottleneck.select("run_id", delay=pl.col("qdelay_mean_us") / 1e3)
    runs = run.runs.select("run_id", *(pl.col(name).cast(pl.String) for name in labels))
    all_of = runs.join(flows, on="run_id", maintain_order="left").join(delays, on="run_id")
    return all_of.group_by(labels, maintain_order=True).agg(
        pl.col("delay", "jain", "timeouts").mean()
    )


def table(found: pl.DataFrame) -> list[str]:
    """The table of the page."""
    counts = list(dict.fromkeys(found["number"]))
    lines = page_tables.head(["below one segment", "buffer", *(f"{n} flows" for n in counts)])
    for (below, buffer), rows in found.group_by("below", "buffer", maintain_order=True):
        cells = [
            f"{row['delay']:.0f} ms, {row['jain']:.2f}, {row['timeouts']:.1f}"
            for row in rows.iter_rows(named=True)
        ]
        lines.append(page_tables.line([str(below), str(buffer), *cells]))
    return lines


def main() -> None:
    """Writes the page's table."""
    page_tables.write(PAGE, TABLE, table(measure()))


if __name__ == "__main__":
    main()
