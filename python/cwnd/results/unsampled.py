"""Flows without a row of their own, as the scenario asks for: their aggregates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results.data import Data

#: Metrics that are means over flows, and the columns that count these flows.
_MEANS = {
    "rtt_p50_us": "flows_with_rtt",
    "rtt_p95_us": "flows_with_rtt",
    "fct_s": "completed",
}
#: Metadata key of tables in which some flows or requests have no row.
METADATA = "cwnd"

#: Metrics that are sums, or become rates, and their columns.
_SUMS = {
    "goodput_bit_s": pl.col("delivered_bytes") * 8,
    "throughput_bit_s": pl.col("wire_bits"),
    "retrans": pl.col("retrans"),
    "rto_count": pl.col("rto_count"),
    "timeouts_under_way": pl.col("rto_under_way"),
    "duplicates": pl.col("duplicates"),
    "reductions_loss": pl.col("cwnd_reductions_loss"),
    "reductions_ecn": pl.col("cwnd_reductions_ecn"),
    "reductions_rto": pl.col("cwnd_reductions_rto"),
    "reductions_quench": pl.col("cwnd_reductions_quench"),
    "reductions_delay": pl.col("cwnd_reductions_delay"),
    "bytes_received": pl.col("bytes_received"),
    # Intermediate sums for shares and ratios: payload, goodputs of flows, and number of flows.
    "delivered": pl.col("delivered_bytes"),
    "rates": pl.col("goodput_bit_s"),
    "rated": pl.col("flows"),
}


def unsampled_flows(run: Data) -> pl.DataFrame:
    """Returns the table `unrecorded`, a row for each run and group with such flows."""
    key = ("unrecorded",)
    if key not in run.derived:
        ids = _runs(run)
        table = run.samples_of("unrecorded", ids).collect() if ids else pl.DataFrame()
        if not table.is_empty():
            table = table.with_columns(pl.col("group").cast(pl.String))
        run.derived[key] = table
    return run.derived[key]


def _runs(run: Data) -> list[str]:
    """Runs in which some flows have no row: the count of flows exceeds the number of rows."""
    if "activity_flows" not in run.runs.columns:
        return []
    rows = run.flows.group_by("run_id").len("rows")
    both = run.runs.select("run_id", "activity_flows").join(rows, on="run_id", how="left")
    some = both.filter(pl.col("activity_flows") > pl.col("rows").fill_null(0))
    return [str(run_id) for run_id in some["run_id"]]


def with_unsampled(run: Data, sums: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Extends sums and means over flows with rows to all flows.

    Args:
        run: The result.
        sums: A row for each of `by`, with `counted …` for the flows of each mean, and `sized`
            flows.
        by: `run_id`, and `group` if groups have rows of their own.
    """
    rest = unsampled_flows(run)
    if rest.is_empty():
        return sums
    unsampled = rest.group_by(list(by), maintain_order=True).agg(
        *(each.sum().cast(pl.Float64).alias(f"more {name}") for name, each in _SUMS.items()),
        *(pl.col(name).sum().alias(f"more {name}") for name in _MEANS),
        *(pl.col(n).sum().alias(f"more {n}") for n in {*_MEANS.values(), "sized"}),
        (pl.col("offered_bytes").sum() * 8.0).alias("more offered_bit_s"),
    )
    both = sums.join(unsampled, on=list(by), how="full", coalesce=True, maintain_order="left_right")
    columns = [
        (_some(name) + _some(f"more {name}")).alias(name) for name in _SUMS if name in sums.columns
    ]
    for name, count in _MEANS.items():
        known, more = _some(f"counted {name}"), _some(f"more {count}")
        weighted_sum = _some(name) * known + _some(f"more {name}")
        columns.append(pl.when(known + more > 0).then(weighted_sum / (known + more)).alias(name))
    offered = _some("offered_bit_s") + _some("more offered_bit_s")
    some_sized = _some("sized") + _some("more sized") > 0
    columns.append(pl.when(some_sized).then(offered).alias("offered_bit_s"))
    found = both.with_columns(columns)
    if "rate" in sums.columns:
        found = found.with_columns((pl.col("rates") / pl.col("rated")).alias("rate"))
    return found.select(sums.columns)


def _some(name: str) -> pl.Expr:
    return pl.col(name).fill_null(0)


def row_counts(run: Data, table: str) -> tuple[int, int] | None:
    """Number of rows of `flows` or `requests`, and of all such items; `None` if each has a row."""
    if table == "flows":
        rest = unsampled_flows(run)
        without = 0 if rest.is_empty() else int(rest["flows"].sum())
        return (run.flows.height, run.flows.height + without) if without else None
    if table == "requests" and "requests_without_row" in run.runs.columns:
        every, without = (
            int(run.runs[name].sum() or 0) for name in ("requests", "requests_without_row")
        )
        return (every - without, every) if without else None
    return None


def rows_metadata(rows: int, every: int) -> dict[str, str]:
    """Builds the metadata of a table's file in which some items have no row."""
    note = f"{rows} of {every} have a row, drawn at random"
    return {METADATA: json.dumps({"rows": rows, "of": every, "note": note})}


def flow_counts(run: Data) -> dict[tuple[str, ...], float]:
    """Mean number of flows of each group at a point of the sweep, with rows or without.

    The keys are the labels of the point and the group; the value is a mean over all seeds of the
    point, including those in which no flow of the group arrived.
    """
    counts = run.flows.group_by("run_id", pl.col("group").cast(pl.String)).len("count")
    rest = unsampled_flows(run)
    if not rest.is_empty():
        more = rest.select("run_id", "group", pl.col("flows").cast(pl.UInt32).alias("count"))
        counts = pl.concat([counts, more.select(counts.columns)], how="vertical_relaxed")
    keys = [pl.col(column).cast(pl.String) for column in run.axis_columns]
    points = run.runs.select("run_id", *keys)
    by = [*run.axis_columns, "group"]
    sums = counts.join(points, on="run_id").group_by(by).agg(pl.col("count").sum())
    return {
        (*point, group): count / len(run.rows_by_point[tuple(point)])
        for *point, group, count in sums.iter_rows()
    }
