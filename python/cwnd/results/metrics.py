"""Metrics of runs: a row per run, group or flow, a column per metric."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from cwnd.errors import InputError
from cwnd.results import delays, responses, unsampled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results.data import Data


#: Group name of rows over all flows; no group can have it.
ALL = "*"
#: Aggregation of flows into a row: all flows of a run, each group, or each flow.
By: TypeAlias = Literal["all", "group", "flow"]


@dataclass(frozen=True)
class Metric:
    """A metric: its column, label and unit."""

    column: str
    label: str
    #: Unit for people; empty for a count.
    unit: str = ""
    #: Factor from the unit of the column to that unit.
    scale: float = 1.0
    #: Object that has the metric: flows (a group, or all), a link, or a group or flow as a part of
    #: all flows.
    of: Literal["flows", "link", "part"] = "flows"

    @property
    def counts(self) -> bool:
        """`True` for numbers of events.

        A mean and its t-interval are meaningless if few seeds have many events and many have few.
        Tables and figures therefore show the median and the quartiles of the seeds.
        """
        return not self.unit and self.column not in _INDICES

    @property
    def axis_label(self) -> str:
        """Label with its unit, for the axis of a plot."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


#: Metrics without a unit that are no counts.
_INDICES = frozenset({"jain", "goodput_ratio"})

#: All metrics of a run, by column.
METRICS: dict[str, Metric] = {
    metric.column: metric
    for metric in (
        Metric("goodput_bit_s", "Goodput", "Mbit/s", 1e-6),
        Metric("throughput_bit_s", "Throughput", "Mbit/s", 1e-6),
        Metric("offered_bit_s", "Offered by transfers", "Mbit/s", 1e-6),
        Metric("utilisation", "Utilisation", "%", 100.0, of="link"),
        Metric("qdelay_mean_us", "Queueing delay, mean", "ms", 1e-3, of="link"),
        Metric("qdelay_p50_us", "Queueing delay, median", "ms", 1e-3, of="link"),
        Metric("qdelay_p90_us", "Queueing delay, 90th percentile", "ms", 1e-3, of="link"),
        Metric("qdelay_p95_us", "Queueing delay, 95th percentile", "ms", 1e-3, of="link"),
        Metric("qdelay_p99_us", "Queueing delay, 99th percentile", "ms", 1e-3, of="link"),
        Metric("drop_ratio", "Packets dropped", "%", 100.0, of="link"),
        Metric("mark_ratio", "Packets marked", "%", 100.0, of="link"),
        Metric("drops", "Drops", of="link"),
        Metric("marks", "Marks", of="link"),
        Metric("dead_pkts", "Dead packets", of="link"),
        Metric("duplicate_pkts", "Duplicates carried", of="link"),
        Metric("delay_p50_us", "One-way queueing delay, median", "ms", 1e-3),
        Metric("delay_p95_us", "One-way queueing delay, 95th percentile", "ms", 1e-3),
        Metric("delay_p99_us", "One-way queueing delay, 99th percentile", "ms", 1e-3),
        Metric("jitter_us", "Jitter", "ms", 1e-3),
        Metric("lost_ratio", "Datagrams lost", "%", 100.0),
        Metric("latency_p50_us", "RTT above propagation, median", "ms", 1e-3),
        Metric("latency_p95_us", "RTT above propagation, 95th percentile", "ms", 1e-3),
        Metric("latency_p99_us", "RTT above propagation, 99th percentile", "ms", 1e-3),
        Metric("rtt_p50_us", "RTT, median", "ms", 1e-3),
        Metric("rtt_p95_us", "RTT, 95th percentile", "ms", 1e-3),
        Metric("retrans", "Retransmissions"),
        Metric("rto_count", "Timeouts"),
        Metric("timeouts_under_way", "Timeouts of segments under way"),
        Metric("duplicates", "Duplicates received"),
        Metric("reductions_loss", "Reductions by loss"),
        Metric("reductions_ecn", "Reductions by ECN"),
        Metric("reductions_rto", "Reductions by timeout"),
        Metric("reductions_quench", "Reductions by source quench"),
        Metric("reductions_delay", "Reductions by delay"),
        Metric("bytes_received", "Received", "MB", 1e-6),
        Metric("fct_s", "Completion time, mean", "s"),
        Metric("requests", "Requests"),
        Metric("given_up_ratio", "Requests given up", "%", 100.0),
        Metric("response_mean_s", "Response time, mean", "s"),
        Metric("response_p50_s", "Response time, median", "s"),
        Metric("response_p90_s", "Response time, 90th percentile", "s"),
        Metric("response_p99_s", "Response time, 99th percentile", "s"),
        Metric("response_max_s", "Response time, largest", "s"),
        Metric("acked_mean_s", "Time to the last ACK, mean", "s"),
        Metric("acked_p50_s", "Time to the last ACK, median", "s"),
        Metric("acked_p90_s", "Time to the last ACK, 90th percentile", "s"),
        Metric("acked_p99_s", "Time to the last ACK, 99th percentile", "s"),
        Metric("jain", "Jain's fairness index"),
        Metric("goodput_share", "Share of goodput", "%", 100.0, of="part"),
        Metric("goodput_ratio", "Goodput per flow, relative", of="part"),
    )
}


#: Suffixes of the columns with the quartiles of a count, and their quantiles.
QUARTILES = {"_p25": 0.25, "_p50": 0.5, "_p75": 0.75}
#: Columns that no axis of a sweep may have, so that tables of metrics can hold both.
RESERVED = frozenset(
    {
        *("point", "n", "deterministic", "group", "flow_id", *METRICS),
        *(f"{column}_ci95" for column in METRICS),
        *(f"{name}{end}" for name, metric in METRICS.items() if metric.counts for end in QUARTILES),
    }
)
#: Columns of the links that are metrics.
_OF_LINK = {
    column: {"drops": "dropped_pkts", "marks": "marked_pkts"}.get(column, column)
    for column, metric in METRICS.items()
    if metric.of == "link"
}


def _sum(values: pl.Expr) -> pl.Expr:
    """Sums values; null if one is null, as for counts that Linux does not report."""
    return pl.when(values.null_count() == 0).then(values.sum())


# Fairness compares flows that share the link for as long as they run. Finite transfers do not, nor
# do flows without congestion control.
_FAIR = pl.col("goodput_bit_s").filter(
    pl.col("size_bytes").is_null() & (pl.col("controller") != "none")
)
_LOST, _SENT = pl.col("lost_ratio"), pl.col("segments_sent")
#: Metrics that aggregate bits over flows, which then become rates.
_RATES = ("goodput_bit_s", "throughput_bit_s", "offered_bit_s")
# Bits offered by transfers that begin after the warm-up; flows without a size offer none.
_OFFERED = pl.col("size_bytes").filter(pl.col("start_s") >= pl.col("warmup_s")).sum() * 8
_OF_FLOWS = (
    (pl.col("delivered_bytes").sum() * 8).alias("goodput_bit_s"),
    _sum(pl.col("throughput_bit_s") * pl.col("duration_s")),
    pl.when(pl.col("size_bytes").count() > 0)
    .then(_OFFERED)
    .cast(pl.Float64)
    .alias("offered_bit_s"),
    pl.col("rtt_p50_us").mean(),
    pl.col("rtt_p95_us").mean(),
    _sum(pl.col("retrans")),
    _sum(pl.col("rto_count")),
    _sum(pl.col("rto_under_way")).alias("timeouts_under_way"),
    _sum(pl.col("duplicates")),
    # Numbers of flows that have a value of each mean.
    pl.col("rtt_p50_us").count().alias("counted rtt_p50_us"),
    pl.col("rtt_p95_us").count().alias("counted rtt_p95_us"),
    pl.col("fct_s").count().alias("counted fct_s"),
    pl.col("size_bytes").count().alias("sized"),
    _sum(pl.col("cwnd_reductions_loss")).alias("reductions_loss"),
    _sum(pl.col("cwnd_reductions_ecn")).alias("reductions_ecn"),
    _sum(pl.col("cwnd_reductions_rto")).alias("reductions_rto"),
    _sum(pl.col("cwnd_reductions_quench")).alias("reductions_quench"),
    _sum(pl.col("cwnd_reductions_delay")).alias("reductions_delay"),
    pl.col("bytes_received").sum(),
    pl.col("fct_s").mean(),
    ((_SENT * _LOST).sum() / _SENT.filter(_LOST.is_not_null()).sum())
    .fill_nan(None)
    .alias("lost_ratio"),
    # Jain, Chiu & Hawe 1984: (Σx)² / (n Σx²). The index of one flow is always 1 and has no
    # information.
    pl.when(_FAIR.len() > 1)
    .then(_FAIR.sum() ** 2 / (_FAIR.len() * (_FAIR**2).sum()))
    .otherwise(None)
    .fill_nan(None)
    .alias("jain"),
)
#: Columns of flows and links that older results lack.
_LATER_COLUMNS = (
    "rto_under_way",
    "duplicates",
    "cwnd_reductions_quench",
    "cwnd_reductions_delay",
    "dead_pkts",
    "duplicate_pkts",
    "qdelay_p95_us",
    "lost_ratio",
)
#: Suffixes of columns that are units.
_UNIT_ENDS = ("_bit_s", "_us", "_s")


def metric(name: str) -> Metric:
    """Finds a metric by its column, with or without its unit, or by an unambiguous prefix.

    Raises:
        InputError: There is none, or several; the message names them.
    """
    if name in METRICS:
        return METRICS[name]
    for end in _UNIT_ENDS:
        if name + end in METRICS:
            return METRICS[name + end]
    matches = [metric for column, metric in METRICS.items() if column.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        choice = ", ".join(m.column for m in matches)
        raise InputError(f"`{name}` begins several metrics; there are {choice}")
    near = _nearest(name)
    hint = f"did you mean `{near}`? " if near else ""
    raise InputError(f"`{name}` is not a metric; {hint}there are {', '.join(METRICS)}")


def without_unit(column: str) -> str:
    """Returns the name of a column without its unit."""
    return re.sub(f"({'|'.join(_UNIT_ENDS)})$", "", column)


def _nearest(name: str) -> str | None:
    """Finds the column closest to a misspelt name, ignoring units; `None` if none is close."""
    bare = {without_unit(column): column for column in METRICS}
    near = difflib.get_close_matches(name, bare, 1)
    return bare[near[0]] if near else None


def has_datagrams(run: Data) -> bool:
    """`True` if some flows are datagrams."""
    return bool((run.flows["controller"].cast(pl.String) == "none").any())


def main_link(run: Data) -> str | None:
    """Returns the link that tables show: the busiest with a rate, the first of equals.

    The result is `None` if no link has a rate.
    """
    rated = run.links.filter(pl.col("utilisation").is_not_null())
    if rated.is_empty():
        return None
    busiest = (
        rated.group_by("link", maintain_order=True)
        .agg(pl.col("utilisation").mean())
        .sort("utilisation", descending=True, maintain_order=True)
    )
    return str(busiest["link"][0])


def per_run(
    run: Data,
    link: str | None = None,
    group: str | None = None,
    *,
    by: By | None = None,
    relative_to: str | None = None,
) -> pl.DataFrame:
    """Computes one row per run, or per run and group or flow: its axes, its seed and every metric.

    Metrics that do not apply are null: those of a link apply to all flows together, shares and
    ratios to groups and flows. Shares and ratios are computed for each run: a summary has the mean
    of the seeds' ratios, not the ratio of their means. A share is null if nothing was delivered. A
    ratio is null if the reference group received nothing.

    Args:
        run: The result.
        link: Link of utilisation, queueing delay, drops and marks; the busiest if not given.
        group: Count only this group of flows; all if not given, or `*`.
        by: "all": all flows of a run in one row. "group": a row for each group, named in the column
            `group`. "flow": a row for each flow, named in `group` and `flow_id`, whose goodput and
            throughput are those of `flows`: over the lifetime of the flow. "group" if a group is
            given, else "all".
        relative_to: Reference group of `goodput_ratio`; the scenario's first if not given. Its own
            ratio is null.

    Raises:
        InputError: There is no such link or group, and the message names the existing ones; or a
            group is given with "all".
    """
    chosen = known_group(run, group)
    by = by or ("all" if chosen is None else "group")
    if by == "all" and chosen is not None:
        raise InputError(f'a row of all flows is not one of group `{chosen}`; by="group" is')
    link = _known_link(run, link)
    keys = ["run_id", *run.key_columns]
    runs = run.runs.select(keys)
    if by == "all":
        of_link = _with_missing_columns(
            run.links.filter(pl.col("link") == pl.lit(link, pl.String))
        ).select("run_id", *(pl.col(column).alias(name) for name, column in _OF_LINK.items()))
        rows = runs.join(_all_flows(run), on="run_id", how="left", maintain_order="left")
        rows = rows.join(of_link, on="run_id", how="left", maintain_order="left")
        return _filled(rows, keys)
    by_columns = ["group"] if by == "group" else ["group", "flow_id"]
    parts = _by_part(run, by_columns, _reference(run, relative_to))
    if by == "group":
        # A group without a flow in one of the runs has a row there, too.
        names = pl.DataFrame({"group": run.groups}, schema={"group": pl.String})
        rows = runs.join(names, how="cross", maintain_order="left_right")
        rows = rows.join(parts, on=["run_id", "group"], how="left", maintain_order="left")
    else:
        rows = runs.join(parts, on="run_id", maintain_order="left_right")
    rows = rows if chosen is None else rows.filter(pl.col("group") == chosen)
    return _filled(rows, [*keys, *by_columns])


def known_group(run: Data, group: str | None) -> str | None:
    """Returns the name of a group, or `None` for all flows.

    Raises:
        InputError: There is no such group; the message names the existing ones.
    """
    if group is None or group == ALL:
        return None
    if group not in run.groups:
        known = ", ".join(run.groups)
        raise InputError(f"there is no group `{group}` in this result; there are {known}")
    return group


def _known_link(run: Data, link: str | None) -> str | None:
    link = link if link is not None else main_link(run)
    links = run.links["link"].unique(maintain_order=True).to_list()
    if link is not None and link not in links:
        raise InputError(f"there is no link `{link}` in this result; there are {', '.join(links)}")
    return link


def _reference(run: Data, relative_to: str | None) -> str | None:
    chosen = known_group(run, relative_to)
    return chosen if chosen is not None else next(iter(run.groups), None)


def _all_flows(run: Data) -> pl.DataFrame:
    """Metrics of all flows of each run together."""
    # With one key, Polars adds in another order if the column is known to be sorted.
    sums = _flows(run).group_by("run_id", "warmup_s", maintain_order=True).agg(*_OF_FLOWS)
    sums = unsampled.with_unsampled(run, sums, ["run_id"])
    rows = _rates(run, sums)
    return _with_samples(run, rows, [])


def _flows(run: Data) -> pl.DataFrame:
    """The flows, each with the warm-up time of its run."""
    flows = _with_missing_columns(run.flows)
    warmup = run.runs.select("run_id", "warmup_s")
    # Polars adds chunk by chunk: sums of the same rows would differ in their last bits with the
    # number of threads that simulated.
    return flows.join(warmup, on="run_id", maintain_order="left").rechunk()


def _with_missing_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds columns that older results lack, filled with null."""
    missing = (name for name in _LATER_COLUMNS if name not in rows.columns)
    return rows.with_columns(
        pl.lit(None, pl.Float64 if name.endswith(("_us", "_ratio")) else pl.UInt64).alias(name)
        for name in missing
    )


def _with_samples(run: Data, rows: pl.DataFrame, by_columns: list[str]) -> pl.DataFrame:
    """Adds the metrics of requests, and those of delays."""
    for metrics_of in (responses.metrics_of, delays.metrics_of):
        found = metrics_of(run, by_columns)
        if not found.is_empty():
            by = ["run_id", *by_columns]
            rows = rows.join(found, on=by, how="left", maintain_order="left")
    return rows


def _by_part(run: Data, by_columns: list[str], reference: str | None) -> pl.DataFrame:
    """Metrics of each group, or each flow, of each run, with shares and ratios."""
    delivered, rate = pl.col("delivered_bytes"), pl.col("goodput_bit_s")
    parts = (
        _flows(run)
        .with_columns(pl.col("group").cast(pl.String))
        .group_by("run_id", *by_columns, maintain_order=True)
        .agg(
            *_OF_FLOWS,
            delivered.sum().alias("delivered"),
            rate.mean().alias("rate"),
            rate.sum().alias("rates"),
            rate.count().alias("rated"),
            pl.col("throughput_bit_s").mean().alias("wire_rate"),
        )
    )
    if "flow_id" not in by_columns:
        parts = unsampled.with_unsampled(run, parts, ["run_id", *by_columns])
    everything = pl.col("delivered").sum().over("run_id")
    theirs = pl.col("group") == reference
    total, count = (pl.col(c).filter(theirs).sum().over("run_id") for c in ("rates", "rated"))
    none = pl.lit(None, pl.Float64).alias("offered_bit_s")
    own = pl.col("rate").alias("goodput_bit_s"), pl.col("wire_rate").alias("throughput_bit_s"), none
    parts = parts.with_columns(
        pl.when(everything > 0).then(pl.col("delivered") / everything).alias("goodput_share"),
        pl.when(~theirs & (total > 0))
        .then(pl.col("rate") / (total / count))
        .alias("goodput_ratio"),
    )
    parts = parts.with_columns(own) if "flow_id" in by_columns else _rates(run, parts)
    parts = parts.drop("delivered", "rate", "rates", "rated", "wire_rate")
    return _with_samples(run, parts, by_columns)


def _rates(run: Data, sums: pl.DataFrame) -> pl.DataFrame:
    """Converts bits into rates over the measured time, from the end of the warm-up."""
    measured = pl.col("duration_s") - pl.col("warmup_s")
    seconds = run.runs.select("run_id", measured.alias("measured"))
    return (
        sums.join(seconds, on="run_id", maintain_order="left")
        .with_columns(pl.col(_RATES) / pl.col("measured"))
        .drop("measured")
    )


def _filled(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Selects keys and all metrics; metrics that the rows lack are null."""
    missing = [pl.lit(None, pl.Float64).alias(name) for name in METRICS if name not in rows.columns]
    return rows.with_columns(missing).select(*keys, *METRICS)


def values_of(rows: pl.DataFrame, column: str) -> list[float]:
    """Returns the values of a metric that are not null."""
    return [float(value) for value in rows[column].drop_nulls()]


def groups(rows: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, object], pl.DataFrame]]:
    """Splits rows by equal values of some columns, in order of first appearance."""
    if not by:
        return [({}, rows)] if rows.height else []
    return [
        (dict(zip(by, key, strict=True)), part)
        for key, part in rows.group_by(list(by), maintain_order=True)
    ]
