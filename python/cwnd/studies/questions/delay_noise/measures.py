"""Goodput of all flows together, by controller and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run


def goodput(run: Run) -> list[str]:
    """Means over seeds in Mbit/s: a row per controller and correlation time."""
    labels = ["arm", "correlation", "noise"]
    flows = run.flows.group_by("run_id").agg((pl.col("goodput_bit_s").sum() / 1e6).alias("goodput"))
    runs = run.runs.select("run_id", *(pl.col(name).cast(pl.String) for name in labels))
    means = runs.join(flows, on="run_id", maintain_order="left").group_by(
        labels, maintain_order=True
    )
    found = means.agg(pl.col("goodput").mean()).pivot(
        "noise", index=["arm", "correlation"], values="goodput"
    )
    return table(
        ["controller", "correlation time", *found.columns[2:]],
        ([arm, time, *(f"{v:.1f}" for v in values)] for arm, time, *values in found.iter_rows()),
    )


TABLES = {"noise": goodput}
