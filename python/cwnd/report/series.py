"""Figures over time: one run after the other, and the windows of a whole sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.metrics import main_link
from cwnd.plots.layout import at, points_of, title
from cwnd.plots.timeseries import (
    Curve,
    curves,
    mean_windows,
    sampled_runs,
    thresholds_in_sight,
    window_label,
    window_panels,
    window_top,
    windows_at,
)
from cwnd.report.figures import Choice, Figure, Panel, axis, colour, dash, line
from cwnd.report.thin import envelope, points_per_line

if TYPE_CHECKING:
    from cwnd.plots.timeseries import OneRun
    from cwnd.results import Run

#: Points of one figure, over all of its lines: what keeps a page below a few megabytes.
_BUDGET = 90_000
#: Runs to choose from.
_MAX_RUNS = 60
#: Which colour the slow-start threshold has, as in `cwnd plot`.
_THRESHOLD = 3


def runs_figure(run: Run) -> Figure | None:
    """Window, round-trip time and queue of one run, to be chosen."""
    points = points_of(run.axes)
    link = main_link(run)
    runs = sampled_runs(run, points[:_MAX_RUNS])
    shown = [
        (title(point, run.axes), one, _rows(one, link))
        for point, one in zip(points, runs, strict=False)
        if not one.flows.is_empty()
    ]
    if not shown:
        return None
    lengths = [curve.frame.height for *_, rows in shown for row in rows for curve in row.curves]
    most = points_per_line(_BUDGET, len(lengths))
    choices = [
        Choice(label, [_panel(row, one.name, most) for row in rows], 1)
        for label, one, rows in shown
    ]
    about = [
        f"Seed {run.manifest.seeds[0]}." if len(run.manifest.seeds) > 1 else "",
        "Median and middle 80 % of the flows." if any(one.many for _, one, _ in shown) else "",
        f"The first {_MAX_RUNS} of {len(points)} points." if len(points) > _MAX_RUNS else "",
        _thinned(max(lengths), most),
    ]
    return Figure(
        kind="timeseries",
        title="Over time",
        caption=" ".join(filter(None, about)),
        choices=choices,
        chooses="Run" if len(choices) > 1 else "",
        linked=True,
    )


def windows_figure(run: Run) -> Figure | None:
    """The windows at all points of a sweep."""
    if all(len(axis.labels) < 2 for axis in run.axes):  # noqa: PLR2004 - no sweep
        return None
    layout, points, columns = window_panels(run)
    series = windows_at(run, points)
    if series.is_empty():
        return None
    drawn = [(point, list(mean_windows(at(series, point), layout))) for point in points]
    lengths = [curve.frame.height for _, means in drawn for curve in means]
    most = points_per_line(_BUDGET, len(lengths))
    tops = [
        window_top(
            [
                value
                for _, means in drawn[column::columns]
                for curve in means
                for value in curve.frame["value"]
            ]
        )
        for column in range(columns)
    ]
    label = window_label(run)
    panels = []
    for place, (point, means) in enumerate(drawn):
        traces = [trace for curve in means for trace in _curve(curve, most)]
        name = title(point, run.axes)
        alt = f"{label} over time{f' at {name}' if name else ''}."
        panels.append(
            Panel(
                name,
                alt,
                traces,
                axis("Time (s)", rangemode="tozero"),
                axis(label, range=[0, tops[place % columns]]),
                hover="x unified",
            )
        )
    every = len(points_of((*layout.panels, *([layout.x] if layout.x is not None else []))))
    about = [
        f"Seed {run.manifest.seeds[0]}." if len(run.manifest.seeds) > 1 else "",
        f"The first {len(points)} of {every} panels." if every > len(points) else "",
        "A slow start's overshoot may leave the panel.",
        _thinned(max(lengths), most),
    ]
    return Figure(
        kind="windows",
        title="Windows over time",
        caption=" ".join(filter(None, about)),
        choices=[Choice("", panels, columns)],
        linked=True,
    )


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
    #: Which of its curves are dashed.
    dashed: tuple[int, ...] = ()


def _rows(one: OneRun, link: str | None) -> list[_Row]:
    windows = list(curves(one.flows, pl.col("snd_cwnd_pkts")))
    rtts = list(curves(one.flows, pl.col("srtt_us") / 1e3))
    from_zero = {"rangemode": "tozero"}
    dashed: tuple[int, ...] = ()
    if one.flows["flow_id"].n_unique() == 1:
        threshold = thresholds_in_sight(one.flows)
        windows = [
            *(Curve(each.index, "cwnd", each.frame) for each in windows),
            Curve(_THRESHOLD, "ssthresh", threshold),
        ]
        dashed = (1,)
        rtts = [Curve(each.index, "", each.frame) for each in rtts]
    rows = [
        _Row("Window (packets)", windows, 280, from_zero, dashed),
        _Row("Smoothed RTT (ms)", rtts, 210, {}),
    ]
    queue = one.links.filter(pl.col("link") == link) if link is not None else one.links.clear()
    if queue.height:
        delay = queue.select("time_s", (pl.col("sojourn_us") / 1e3).alias("value"))
        label = f"Queueing delay, of {link} (ms)"
        rows.append(_Row(label, [Curve(0, "", delay)], 210, from_zero))
    return rows


def _panel(row: _Row, run_name: str, most: int) -> Panel:
    traces = [
        trace
        for place, curve in enumerate(row.curves)
        for trace in _curve(curve, most, dash(1) if place in row.dashed else dash(0))
    ]
    time = axis("Time (s)", rangemode="tozero")
    alt = f"{row.label} over time, {run_name}."
    own = axis(row.label, **row.yaxis)
    return Panel("", alt, traces, time, own, row.height, hover="x unified")


def _curve(curve: Curve, most: int, dashes: str = dash(0)) -> list[dict[str, Any]]:
    banded = "low" in curve.frame.columns
    columns = ["value", "low", "high"] if banded else ["value"]
    frame = envelope(curve.frame, "time_s", columns, most)
    time = frame["time_s"].to_list()
    template = (
        "%{y:.4~g}<extra>%{fullData.name}</extra>" if curve.label else "%{y:.4~g}<extra></extra>"
    )
    main = line(curve.label, curve.index, time, frame["value"].to_list(), hovertemplate=template)
    main["line"]["width"] = 1.3
    if not banded:
        main["line"]["dash"] = dashes
        return [main]
    edge = {"line": {"width": 0, "color": colour(curve.index)}, "hoverinfo": "skip"}
    low = line(curve.label, curve.index, time, frame["low"].to_list(), **edge)
    high = line(curve.label, curve.index, time, frame["high"].to_list(), **edge)
    high |= {"fill": "tonexty", "fillcolor": f"{colour(curve.index)}/25"}
    return [low, high, main]
