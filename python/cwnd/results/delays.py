"""Delays of packets: quantiles of one-way and round-trip queueing delays, and jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results.data import Data

_PROBABILITIES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
#: Metrics that are quantiles, with the kind of delay and the probability.
QUANTILES = {
    f"{metric}_{name}_us": (what, q)
    for metric, what in (("delay", "queueing"), ("latency", "round_trip"))
    for name, q in _PROBABILITIES.items()
}


def metrics_of(run: Data, by_columns: Sequence[str] = ()) -> pl.DataFrame:
    """Computes metrics of delays, a row for each run, or each group of it, with packets.

    They are those of all packets of the row together; within 0.4 %, as delays are in buckets.

    Args:
        run: The result.
        by_columns: Columns that separate rows within a run: none, or `group`. There is no row for a
            single flow.
    """
    if "flow_id" in by_columns or "delays" not in run.samples:
        return pl.DataFrame()
    key = ("delays", *by_columns)
    if key not in run.derived:
        by = ["run_id", *by_columns]
        packets, delay = pl.col("packets"), pl.col("delay_us")
        rows = (
            run.samples["delays"]
            .with_columns(pl.col("what", "group").cast(pl.String))
            .join(_of_requests(run), on=["run_id", "group", "what"], how="anti")
            .group_by(*by, "what", "delay_us")
            .agg(packets.sum())
            .sort(*by, "what", "delay_us")
            .with_columns((packets.cum_sum() / packets.sum()).over(*by, "what").alias("part"))
        )
        what, jitter = pl.col("what"), pl.col("what") == "jitter"
        run.derived[key] = (
            rows.group_by(by, maintain_order=True)
            .agg(
                *(
                    delay.filter((what == kind) & (pl.col("part") >= q)).first().alias(name)
                    for name, (kind, q) in QUANTILES.items()
                ),
                ((delay * packets).filter(jitter).sum() / packets.filter(jitter).sum())
                .fill_nan(None)
                .alias("jitter_us"),
            )
            .collect()
        )
    return run.derived[key]


def _of_requests(run: Data) -> pl.LazyFrame:
    """Groups of requests: an ACK of so little data is late, and no part of the response time."""
    requests = run.samples["requests"].select("run_id", "group")
    sketches = run.samples["sketches"].filter(pl.col("what").cast(pl.String) != "completed")
    groups = (
        rows.select("run_id", pl.col("group").cast(pl.String), what=pl.lit("round_trip")).unique()
        for rows in (requests, sketches)
    )
    return pl.concat(groups)
