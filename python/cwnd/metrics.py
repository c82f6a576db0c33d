"""The numbers of a run that are compared: one row per run, one column per metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results import Run


@dataclass(frozen=True)
class Metric:
    """A metric: its column, and how people read it."""

    column: str
    label: str
    #: Unit that people read it in; empty for a count.
    unit: str = ""
    #: From the column's unit to that one.
    scale: float = 1.0

    @property
    def axis_label(self) -> str:
        """Its name with its unit, for the axis of a plot."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


#: All metrics of a run, by column.
METRICS: dict[str, Metric] = {
    metric.column: metric
    for metric in (
        Metric("goodput_bit_s", "Goodput", "Mbit/s", 1e-6),
        Metric("throughput_bit_s", "Throughput", "Mbit/s", 1e-6),
        Metric("utilisation", "Utilisation", "%", 100.0),
        Metric("qdelay_mean_us", "Queueing delay, mean", "ms", 1e-3),
        Metric("qdelay_p50_us", "Queueing delay, median", "ms", 1e-3),
        Metric("qdelay_p90_us", "Queueing delay, 90th percentile", "ms", 1e-3),
        Metric("qdelay_p99_us", "Queueing delay, 99th percentile", "ms", 1e-3),
        Metric("drop_ratio", "Packets dropped", "%", 100.0),
        Metric("mark_ratio", "Packets marked", "%", 100.0),
        Metric("drops", "Drops"),
        Metric("marks", "Marks"),
        Metric("rtt_p50_us", "RTT, median", "ms", 1e-3),
        Metric("rtt_p95_us", "RTT, 95th percentile", "ms", 1e-3),
        Metric("retrans", "Retransmissions"),
        Metric("rto_count", "Timeouts"),
        Metric("reductions_loss", "Reductions by loss"),
        Metric("reductions_ecn", "Reductions by ECN"),
        Metric("reductions_rto", "Reductions by timeout"),
        Metric("bytes_received", "Received", "MB", 1e-6),
        Metric("fct_s", "Completion time, mean", "s"),
        Metric("jain", "Jain's fairness index"),
    )
}


def metric(name: str) -> Metric:
    """Finds a metric by its column, or by an unambiguous beginning of it."""
    if name in METRICS:
        return METRICS[name]
    matches = [metric for column, metric in METRICS.items() if column.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    choice = ", ".join(m.column for m in matches) if matches else ", ".join(METRICS)
    problem = "is not a metric" if not matches else "begins several metrics"
    raise InputError(f"`{name}` {problem}; there are {choice}")


def main_link(run: Run) -> str | None:
    """The link that the tables show: the busiest of those with a rate, the first among equals."""
    rated = run.links.filter(pl.col("utilisation").is_not_null())
    if rated.is_empty():
        return None
    busiest = (
        rated.group_by("link", maintain_order=True)
        .agg(pl.col("utilisation").mean())
        .sort("utilisation", descending=True, maintain_order=True)
    )
    return str(busiest["link"][0])


def per_run(run: Run, link: str | None = None, group: str | None = None) -> pl.DataFrame:
    """One row per run: its axes, its seed and every metric.

    Args:
        run: The result.
        link: Whose utilisation, queueing delay, drops and marks; the busiest if not given.
        group: Count only this group of flows; all if not given.
    """
    link = link if link is not None else main_link(run)
    links = run.links["link"].unique(maintain_order=True).to_list()
    if link is not None and link not in links:
        raise InputError(f"there is no link `{link}` in this result; there are {', '.join(links)}")
    flows = run.flows if group is None else run.flows.filter(pl.col("group") == group)
    keys = ["run_id", *run.key_columns]
    # Fairness is between flows that share for as long as they run; transfers that end do not, nor
    # do datagrams, which give way to nobody.
    shares = pl.col("goodput_bit_s").filter(
        pl.col("size_bytes").is_null() & (pl.col("controller") != "none")
    )
    of_flows = flows.group_by("run_id").agg(
        (pl.col("delivered_bytes").sum() * 8).alias("goodput_bit_s"),
        _sum(pl.col("throughput_bit_s") * pl.col("duration_s")),
        pl.col("rtt_p50_us").mean(),
        pl.col("rtt_p95_us").mean(),
        _sum(pl.col("retrans")),
        _sum(pl.col("rto_count")),
        _sum(pl.col("cwnd_reductions_loss")).alias("reductions_loss"),
        _sum(pl.col("cwnd_reductions_ecn")).alias("reductions_ecn"),
        _sum(pl.col("cwnd_reductions_rto")).alias("reductions_rto"),
        pl.col("bytes_received").sum(),
        pl.col("fct_s").mean(),
        # Jain, Chiu & Hawe 1984: (Σx)² / (n Σx²); one flow is trivially fair, so it says nothing.
        pl.when(shares.len() > 1)
        .then(shares.sum() ** 2 / (shares.len() * (shares**2).sum()))
        .otherwise(None)
        .fill_nan(None)
        .alias("jain"),
    )
    of_link = run.links.filter(pl.col("link") == link).select(
        "run_id",
        "utilisation",
        "qdelay_mean_us",
        "qdelay_p50_us",
        "qdelay_p90_us",
        "qdelay_p99_us",
        "drop_ratio",
        "mark_ratio",
        pl.col("dropped_pkts").alias("drops"),
        pl.col("marked_pkts").alias("marks"),
    )
    # What all flows delivered together, over the time that was measured.
    measured_s = pl.col("duration_s") - pl.col("warmup_s")
    rates = ("goodput_bit_s", "throughput_bit_s")
    return (
        run.runs.select(*keys, measured_s.alias("measured_s"))
        .join(of_flows, on="run_id", how="left", maintain_order="left")
        .join(of_link, on="run_id", how="left", maintain_order="left")
        .with_columns(pl.col(rates) / pl.col("measured_s"))
        .select(*keys, *METRICS)
    )


def _sum(values: pl.Expr) -> pl.Expr:
    """The sum; null where a summand is, which is one that Linux does not tell."""
    return pl.when(values.null_count() == 0).then(values.sum())


def values_of(rows: pl.DataFrame, column: str) -> list[float]:
    """The values of a metric that exist."""
    return [float(value) for value in rows[column].drop_nulls()]


def summarise(
    rows: pl.DataFrame, by: Sequence[str], metrics: Sequence[str] | None = None
) -> pl.DataFrame:
    """Aggregates runs over seeds: n, and of each metric the mean and the half-width of its CI."""
    columns = list(METRICS) if metrics is None else list(metrics)
    # One pass over all points: a sweep may have tens of thousands.
    values = [pl.col(column).cast(pl.Float64).drop_nulls() for column in columns]
    count = pl.len().cast(pl.Int64).alias("n")
    if by:
        points = rows.group_by(list(by), maintain_order=True).agg(count, *values)
    else:
        points = rows.select(count, *(each.implode() for each in values)).filter(pl.col("n") > 0)
    summary = points.select(*by, "n").to_dict()
    for column in columns:
        estimates = [Estimate.of(each) for each in points[column].to_list()]
        means = [None if each is None else each.mean for each in estimates]
        widths = [None if each is None else each.half_width for each in estimates]
        summary[column] = pl.Series(means, dtype=pl.Float64)
        summary[f"{column}_ci95"] = pl.Series(widths, dtype=pl.Float64)
    return pl.DataFrame(summary)


def groups(rows: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, object], pl.DataFrame]]:
    """The rows apart by what they have in common, in order of first appearance."""
    if not by:
        return [({}, rows)] if rows.height else []
    return [
        (dict(zip(by, key, strict=True)), part)
        for key, part in rows.group_by(list(by), maintain_order=True)
    ]
