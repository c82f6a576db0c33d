"""Mean queueing delay, Jain's index and timeouts of flows with less than a segment in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run

_AXES = ["below", "buffer", "number"]


def means(run: Run) -> pl.DataFrame:
    """Means over seeds.

    Returns:
        A row for each `below`, `buffer` and `number` of flows, with `delay` in ms, `jain` and
        `timeouts` a flow and minute.
    """
    goodput = pl.col("goodput_bit_s")
    flows = run.flows.group_by("run_id").agg(
        jain=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum()),
        timeouts=(pl.col("rto_count") * 60 / pl.col("duration_s")).mean(),
    )
    bottleneck = run.links.filter(pl.col("link") == "bottleneck")
    delays = bottleneck.select("run_id", delay=pl.col("qdelay_mean_us") / 1e3)
    runs = run.runs.select("run_id", pl.col(_AXES).cast(pl.String))
    all_of = runs.join(flows, on="run_id", maintain_order="left").join(delays, on="run_id")
    return all_of.group_by(_AXES, maintain_order=True).agg(
        pl.col("delay", "jain", "timeouts").mean()
    )


def flows(run: Run) -> list[str]:
    """Kinds of windows and buffers by numbers of flows."""
    found = means(run)
    rows = (
        [
            *map(str, setting),
            *(
                f"{row['delay']:.0f} ms, {row['jain']:.2f}, {row['timeouts']:.1f}"
                for row in part.iter_rows(named=True)
            ),
        ]
        for setting, part in found.group_by("below", "buffer", maintain_order=True)
    )
    counts = found["number"].unique(maintain_order=True)
    return table(["below one segment", "buffer", *(f"{n} flows" for n in counts)], rows)


TABLES = {"delay-below-one": flows}
