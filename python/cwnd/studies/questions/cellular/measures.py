"""Goodput, mean queueing delay and its 99th percentile over cellular links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.studies.questions.cellular.traces import LINKS
from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run


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
