"""Summaries over the seeds of each point: means with intervals, and quartiles of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.results.metrics import ALL, METRICS, QUARTILES, known_group, metric, per_run
from cwnd.results.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results.data import Data
    from cwnd.results.metrics import By, Metric


def summarise(
    rows: pl.DataFrame,
    by: Sequence[str],
    metrics: Sequence[str | Metric] | None = None,
    all_flows: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Aggregates runs over seeds.

    The columns are `n`, `deterministic`, and for each metric the mean and the half-width of its 95
    % interval; for counts also the quartiles.

    Args:
        rows: A row per run, or per run and part of it.
        by: Columns of the points.
        metrics: Metrics, by column or as objects; all if not given.
        all_flows: All flows of the runs. A point is deterministic if at least two seeds gave the
            same in all metrics, here as well: a part may be the same by chance.
    """
    every = METRICS if metrics is None else metrics
    chosen = [METRICS[each] if isinstance(each, str) else each for each in every]
    # One pass aggregates all points, as a sweep may have tens of thousands.
    values = [pl.col(m.column).cast(pl.Float64).drop_nulls() for m in chosen]
    quartiles = [
        pl.col(m.column).cast(pl.Float64).quantile(q, "linear").alias(f"{m.column}{end}")
        for m in chosen
        if m.counts
        for end, q in QUARTILES.items()
    ]
    known = {*METRICS, *(m.column for m in chosen)} & set(rows.columns)
    same = pl.all_horizontal(pl.col(sorted(known)).n_unique() == 1)
    count = pl.len().cast(pl.Int64).alias("n")
    aggregates = (count, (same & (pl.len() > 1)).alias("deterministic"), *quartiles)
    if by:
        points = rows.group_by(list(by), maintain_order=True).agg(*aggregates, *values)
    else:
        lists = (each.implode() for each in values)
        points = rows.select(*aggregates, *lists).filter(pl.col("n") > 0)
    summary = points.select(*by, "n", "deterministic").to_dict()
    for m in chosen:
        estimates = [Estimate.of(each) for each in points[m.column].to_list()]
        means = [None if each is None else each.mean for each in estimates]
        widths = [None if each is None else each.half_width for each in estimates]
        summary[m.column] = pl.Series(means, dtype=pl.Float64)
        summary[f"{m.column}_ci95"] = pl.Series(widths, dtype=pl.Float64)
        for end in QUARTILES if m.counts else ():
            summary[f"{m.column}{end}"] = points[f"{m.column}{end}"]
    found = pl.DataFrame(summary)
    if all_flows is None:
        return found
    axes = [name for name in by if name in all_flows.columns]
    columns = [pl.col(name).n_unique() == 1 for name in METRICS]
    whole = all_flows.group_by(axes or pl.lit(0)).agg(pl.all_horizontal(columns).alias("whole"))
    found = (
        found.join(whole, on=axes, how="left", maintain_order="left")
        if axes
        else (found.with_columns(pl.lit(whole["whole"][0]).alias("whole")))
    )
    both = pl.col("deterministic") & pl.col("whole")
    return found.with_columns(both.alias("deterministic")).drop("whole")


def summary(
    run: Data,
    metrics: Sequence[str] | None = None,
    *,
    link: str | None = None,
    group: str | None = None,
    by: By | None = None,
    relative_to: str | None = None,
) -> pl.DataFrame:
    """Summarises the seeds of each point: all flows, and each group if there are several.

    The columns are the axes, `group`, for flows `flow_id`, `n` and `deterministic`. For each metric
    there are the mean over the seeds and the half-width of its 95 % interval, and for counts the
    quartiles. Rows of all flows have `*` as their group.

    Args:
        run: The result.
        metrics: Names, as `metric` finds them; all if not given.
        link: Link of utilisation, queueing delay, drops and marks; the busiest if not given.
        group: Only this group; `*` for all flows together.
        by: Only rows of all flows, of groups, or of flows.
        relative_to: Reference group of `goodput_ratio`; the first if not given.

    Raises:
        InputError: There is no such metric, link or group.
    """
    columns = None if metrics is None else [metric(name).column for name in metrics]
    known_group(run, relative_to)
    axes = run.axis_columns
    if by is None and group is None and len(run.groups) > 1:
        rows = all_and_groups(run, link, relative_to=relative_to)
        found = summarise(rows, [*axes, "group"], columns, per_run(run, link))
        if not axes:
            return found
        points = found.select(axes).unique(maintain_order=True).with_row_index("point")
        return (
            found.join(points, on=axes, maintain_order="left")
            .sort("point", maintain_order=True)
            .drop("point")
        )
    rows = per_run(run, link, group, by=by, relative_to=relative_to)
    if "group" in rows.columns:
        flow = ["flow_id"] if "flow_id" in rows.columns else []
        return summarise(rows, [*axes, "group", *flow], columns, per_run(run, link))
    found = summarise(rows, axes, columns)
    return found.insert_column(len(axes), pl.repeat(ALL, found.height, eager=True).alias("group"))


def all_and_groups(
    run: Data, link: str | None = None, *, relative_to: str | None = None
) -> pl.DataFrame:
    """Computes a row per run of all flows, with `*` as their `group`, then one per run and group.

    The columns are those of `per_run`; metrics of groups only are null in the rows of all flows.

    Raises:
        InputError: There is no such link or group.
    """
    all_flows = per_run(run, link, by="all").with_columns(pl.lit(ALL).alias("group"))
    parts = per_run(run, link, by="group", relative_to=relative_to)
    return pl.concat([all_flows, parts], how="diagonal_relaxed")
