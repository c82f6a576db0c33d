"""Figures over time: one run after the other, and the windows of a whole sweep."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Look
from cwnd.plots.layout import at, points_of, title
from cwnd.plots.limits import OWN_AXES, shared_ends
from cwnd.plots.parts import MAX_FLOWS, views
from cwnd.plots.timeseries import (
    Curve,
    curves,
    has_quenches,
    least_estimates,
    mean_windows,
    parts_over_time,
    queue_look,
    sampled_runs,
    thresholds_in_sight,
    window_label,
    window_panels,
    windows_at,
)
from cwnd.report.figures import (
    DASHES,
    VIEWS,
    Choice,
    Figure,
    Panel,
    axis,
    colour,
    dash,
    has_own_axes,
    line,
    sentence,
)
from cwnd.report.thin import envelope, points_per_line
from cwnd.results import ALL, main_link

if TYPE_CHECKING:
    from cwnd.plots.parts import Parts
    from cwnd.plots.timeseries import OneRun, Windows
    from cwnd.results import By, Run

#: Points of one figure, over all of its lines: what keeps a page below a few megabytes.
_BUDGET = 90_000
#: Runs to choose from.
_MAX_RUNS = 60
#: Which colour the slow-start threshold has, as in `cwnd plot`.
_THRESHOLD = Look.of(3)


def runs_figure(run: Run) -> Figure | None:
    """Window, round-trip time and queue of one run, to be chosen."""
    points = points_of(run.axes)
    link = main_link(run)
    runs = [
        (title(point, run.remarks.axes), one)
        for point, one in zip(points, sampled_runs(run, points[:_MAX_RUNS]), strict=False)
        if not one.flows.is_empty()
    ]
    shown = [
        (view, label, one, _rows(run, one, parts, link))
        for label, one in runs
        for view, parts in _views_over_time(run, one, runs)
    ]
    if not shown:
        return None
    lengths = [curve.frame.height for *_, rows in shown for row in rows for curve in row.curves]
    most = points_per_line(_BUDGET, len(lengths))
    choices = [
        Choice(label, [_panel(row, one.name, most) for row in rows], 1, view)
        for view, label, one, rows in shown
    ]
    banded = any("low" in c.frame.columns for *_, rows in shown for row in rows for c in row.curves)
    about = [
        f"Seed {run.manifest.seeds[0]}." if len(run.manifest.seeds) > 1 else "",
        f"{'By group: m' if choices[0].view else 'M'}edian and middle 80 % of the flows."
        if banded
        else "",
        f"The first {_MAX_RUNS} of {len(points)} points." if len(points) > _MAX_RUNS else "",
        _thinned(max(lengths), most),
    ]
    return Figure(
        kind="timeseries",
        title="Over time",
        caption=" ".join(filter(None, about)),
        choices=choices,
        chooses="Run" if len(runs) > 1 else "",
        linked=True,
    )


def _views_over_time(
    run: Run, one: OneRun, runs: list[tuple[str, OneRun]]
) -> list[tuple[str, Parts]]:
    """Whose lines can be chosen over time: the same for all runs."""
    usual = parts_over_time(run, one.flows)
    if len(run.groups) < 2:  # noqa: PLR2004 - nothing to choose from
        return [("", usual)]
    most = max(each.flows["flow_id"].n_unique() for _, each in runs)
    kinds: list[By] = ["group"] if most > MAX_FLOWS else ["flow", "group"]
    kinds.sort(key=lambda by: by != parts_over_time(run, runs[0][1].flows).by)
    return [(VIEWS[by], parts_over_time(run, one.flows, by)) for by in kinds]


def windows_figure(run: Run) -> Figure | None:
    """The windows at all points of a sweep."""
    if all(len(axis.labels) < 2 for axis in run.axes):  # noqa: PLR2004 - no sweep
        return None
    drawn = [each for by in views(run) if (each := _windows(run, by)) is not None]
    if not drawn:
        return None
    lengths = [curve.frame.height for *_, means in drawn for each in means for curve in each]
    most = points_per_line(_BUDGET, len(lengths))
    first = drawn[0][1]
    choices = [
        Choice(
            "",
            _window_panels(shown, means, most),
            shown.grid.columns,
            VIEWS[by] if len(drawn) > 1 else "",
        )
        for by, shown, means in drawn
    ]
    about = [
        f"Seed {run.manifest.seeds[0]}." if len(run.manifest.seeds) > 1 else "",
        sentence(first.grid.left_out.removeprefix("; ")) if first.grid.left_out else "",
        sentence(OWN_AXES) if has_own_axes(choices) else "",
        _thinned(max(lengths), most),
    ]
    return Figure(
        kind="windows",
        title="Windows over time",
        caption=" ".join(filter(None, about)),
        choices=choices,
        linked=True,
    )


def _windows(run: Run, by: By) -> tuple[By, Windows, list[list[Curve]]] | None:
    shown = window_panels(run, group=ALL) if by == "all" else window_panels(run, by)
    series = windows_at(run, shown)
    if series.is_empty():
        return None
    return by, shown, [list(mean_windows(at(series, p), shown.layout)) for p in shown.grid.points]


def _window_panels(shown: Windows, means: list[list[Curve]], most: int) -> list[Panel]:
    columns = shown.grid.columns
    values = [
        [value for curve in each for value in curve.frame["value"].drop_nulls()] for each in means
    ]
    rows = [values[start : start + columns] for start in range(0, len(values), columns)]
    limits = chain.from_iterable(shared_ends(rows, from_zero=True))
    label = window_label(shown.parts)
    panels = []
    for point, curves_here, ends in zip(shown.grid.points, means, limits, strict=True):
        dashed = shown.parts.dashed
        traces = [
            trace
            for curve in curves_here
            for trace in _curve(curve, most, dash(curve.look) if dashed else DASHES[0])
        ]
        name = title(point, shown.grid.axes)
        alt = f"{label} over time{f' at {name}' if name else ''}."
        panels.append(
            Panel(
                name,
                alt,
                traces,
                axis("Time (s)", rangemode="tozero"),
                axis(label, range=list(ends)),
                hover="x unified",
            )
        )
    return panels


def _thinned(longest: int, most: int) -> str:
    if longest <= most:
        return ""
    return (
        f"Lines of more than {most} samples are thinned: of each of {most // 2} spans of time the"
        " least and the greatest sample are drawn. All samples are in the Parquet files."
    )


@dataclass(frozen=True)
class _Row:
    """One of the panels that stand under each other."""

    label: str
    curves: list[Curve]
    height: int
    #: More about its y axis.
    yaxis: dict[str, Any]
    #: The dashes of its curves.
    dashes: list[str]


def _rows(run: Run, one: OneRun, parts: Parts, link: str | None) -> list[_Row]:
    windows = list(curves(one.flows, pl.col("snd_cwnd_pkts"), parts))
    rtts = list(curves(one.flows, pl.col("srtt_us") / 1e3, parts))
    dashes = [dash(each.look) if parts.dashed else DASHES[0] for each in windows]
    from_zero = {"rangemode": "tozero"}
    of_windows = of_rtts = dashes
    if one.flows["flow_id"].n_unique() == 1:
        threshold, called = thresholds_in_sight(one.flows)
        windows = [
            *(Curve(each.look, "cwnd", each.frame) for each in windows),
            Curve(_THRESHOLD, called, threshold),
        ]
        of_windows = [DASHES[0], DASHES[1]]
        least = least_estimates(one.flows)
        name = "smoothed RTT" if least.height else ""
        rtts = [Curve(each.look, name, each.frame) for each in rtts]
        if least.height:
            rtts.append(Curve(_THRESHOLD, "minRTT of the controller", least))
            of_rtts = [DASHES[0], DASHES[1]]
    rows = [
        _Row("Window (packets)", windows, 280, from_zero, of_windows),
        _Row("Smoothed RTT (ms)", rtts, 210, {}, of_rtts),
    ]
    queue = one.links.filter(pl.col("link") == link) if link is not None else one.links.clear()
    if queue.height:
        delay = queue.select("time_s", (pl.col("sojourn_us") / 1e3).alias("value"))
        label = f"Queueing delay, of {link} (ms)"
        rows.append(_Row(label, [Curve(queue_look(run), "", delay)], 210, from_zero, [DASHES[0]]))
    if has_quenches(one.flows):
        told = list(curves(one.flows, pl.col("quenches"), parts))
        if len(told) == 1:
            told = [Curve(each.look, "", each.frame) for each in told]
        rows.append(_Row("Source quenches so far", told, 210, from_zero, dashes))
    return rows


def _panel(row: _Row, run_name: str, most: int) -> Panel:
    traces = [
        trace
        for curve, dashes in zip(row.curves, row.dashes, strict=True)
        for trace in _curve(curve, most, dashes)
    ]
    time = axis("Time (s)", rangemode="tozero")
    alt = f"{row.label} over time, {run_name}."
    own = axis(row.label, **row.yaxis)
    return Panel("", alt, traces, time, own, row.height, hover="x unified")


def _curve(curve: Curve, most: int, dashes: str = DASHES[0]) -> list[dict[str, Any]]:
    banded = "low" in curve.frame.columns
    columns = ["value", "low", "high"] if banded else ["value"]
    frame = envelope(curve.frame, "time_s", columns, most)
    time = frame["time_s"].to_list()
    template = (
        "%{y:.4~g}<extra>%{fullData.name}</extra>" if curve.label else "%{y:.4~g}<extra></extra>"
    )
    main = line(curve.label, curve.look, time, frame["value"].to_list(), hovertemplate=template)
    main["line"]["width"] = 1.3
    if not banded:
        main["line"]["dash"] = dashes
        return [main]
    edge = {"line": {"width": 0, "color": colour(curve.look)}, "hoverinfo": "skip"}
    low = line(curve.label, curve.look, time, frame["low"].to_list(), **edge)
    high = line(curve.label, curve.look, time, frame["high"].to_list(), **edge)
    high |= {"fill": "tonexty", "fillcolor": f"{colour(curve.look)}/25"}
    return [low, high, main]
