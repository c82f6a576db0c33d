"""Figures of the distribution of the queueing delay, of a link and of groups of flows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.plots.layout import Grid, Grouping, Layout, at, by_flow_or_group, title
from cwnd.results import main_link

if TYPE_CHECKING:
    from cwnd.results import Run

#: Left end of the axis in ms, unless many packets wait less.
_FROM_MS = 0.1
#: Fraction of the delayed packets that may lie at the left edge.
_AT_EDGE = 0.01


def qdelay_cdf(run: Run, *, link: str | None = None) -> Picture:
    """Describes the cumulative distribution over all packets of all seeds.

    Raises:
        InputError: No packet passed the queue of the link.
    """
    link, histogram = packets_of(run, link)
    layout, grid = panels_of(run)
    return _picture(histogram, layout, grid, f"Queueing delay of {link}")


def delay_cdf(run: Run, *, lines: str | None = None, group: str | None = None) -> Picture:
    """Describes the cumulative distribution of one-way queueing delays.

    There is a curve for each group, of up to seven; more are one curve unless they are the `lines`.

    Args:
        run: The result.
        lines: Subject of the curves: "group", or an axis of the sweep.
        group: Only this group of flows; "*" for all flows together.

    Raises:
        InputError: No packet was delivered, or there is no such group or axis.
    """
    if by_flow_or_group(run, lines) == "flow":
        raise InputError("delays are recorded for groups of flows, not for each flow")
    grouping = Grouping.of(run, lines, group=group)
    layout = grouping.layout(run, None, lines).without_x()
    if layout.x is layout.lines:
        layout = replace(layout, x=None)
    every = [*run.remarks.axes, *([grouping.axis] if grouping.axis is not None else [])]
    rows = run.samples["delays"].filter(pl.col("what").cast(pl.String) == "queueing")
    if grouping.group is not None:
        rows = rows.filter(pl.col("group").cast(pl.String) == grouping.group)
    histogram = (
        rows.group_by(*run.axis_columns, "group", pl.col("delay_us").alias("qdelay_us"))
        .agg(pl.col("packets").sum())
        .collect()
    )
    if histogram.is_empty():
        raise InputError("no packet of the flows was delivered after the warm-up")
    grid = Grid.of(layout, every)
    picture = _picture(grouping.labelled(histogram), layout, grid, "One-way queueing delay")
    if grouping.by == "all" and group is None and len(run.groups) > 1:
        note = f"all {len(run.groups)} groups together"
        picture.note = "; ".join(filter(None, (note, picture.note)))
    return picture


def _picture(histogram: pl.DataFrame, layout: Layout, grid: Grid, what: str) -> Picture:
    shortest = shortest_ms(histogram, layout)
    rows = math.ceil(len(grid.points) / grid.columns)
    single = len(grid.points) == 1
    return Picture(
        [
            Panel(
                _lines(at(histogram, point), layout, shortest),
                title=title(point, grid.axes),
                x_log=True,
                x_limits=(shortest, None),
                y_limits=(0, 1),
            )
            for point in grid.points
        ],
        height=2.6 if single else 0.7 + 1.6 * rows,
        width=4.5 if single else line_style.WIDTH,
        columns=grid.columns,
        x_label=f"{what} (ms; below {shortest:g} ms at the left edge)",
        note=grid.left_out,
        y_label="Fraction of packets",
    )


def packets_of(run: Run, link: str | None) -> tuple[str, pl.DataFrame]:
    """Returns the link, the busiest if not given, and the histogram of its packets at each point.

    Raises:
        InputError: No packet passed its queue.
    """
    link = link if link is not None else main_link(run)
    histogram = (
        run.samples["qdelay"]
        .filter((pl.col("link") == link) & (pl.col("packets") > 0))
        .group_by(*run.axis_columns, "qdelay_us")
        .agg(pl.col("packets").sum())
        .collect()
    )
    if link is None or histogram.is_empty():
        raise InputError(f"no packet went through the queue of link `{link}`")
    return link, histogram


def panels_of(run: Run) -> tuple[Layout, Grid]:
    """Chooses the roles of the axes, and the points that get a panel."""
    layout = Layout.of(run.remarks.axes).without_x()
    return layout, Grid.of(layout, run.remarks.axes)


def shortest_ms(histogram: pl.DataFrame, layout: Layout) -> float:
    """Left end of the logarithmic axis, in ms, on which zero delay has no position.

    It is a power of ten, at most 0.1, below the delay of almost all delayed packets of each curve.
    """
    curves = [axis.column for axis in (*layout.panels, layout.lines, layout.x) if axis is not None]
    waiting = histogram.filter(pl.col("qdelay_us") > 0).sort("qdelay_us")
    part = pl.col("packets").cum_sum() / pl.col("packets").sum()
    part = part.over(curves) if curves else part
    usual = waiting.filter(part > _AT_EDGE)["qdelay_us"].min()
    if not isinstance(usual, (int, float)):
        return _FROM_MS
    return min(_FROM_MS, float(10.0 ** math.floor(math.log10(usual / 1e3))))


def distribution(histogram: pl.DataFrame, shortest: float) -> tuple[list[float], list[float]]:
    """Steps of the cumulative distribution: delays in ms, and the fraction that waits no longer."""
    counts = histogram.group_by("qdelay_us").agg(pl.col("packets").sum()).sort("qdelay_us")
    part = (counts["packets"].cum_sum() / counts["packets"].sum()).to_list()
    delay = (counts["qdelay_us"] / 1e3).clip(lower_bound=shortest).to_list()
    return [delay[0], *delay], [0.0, *part]


def _lines(histogram: pl.DataFrame, layout: Layout, shortest: float) -> list[Line]:
    lines = []
    for index, label in enumerate(layout.line_labels()):
        mine = histogram
        if layout.lines is not None:
            mine = histogram.filter(pl.col(layout.lines.column) == label)
        if mine.is_empty():
            continue
        delay, part = distribution(mine, shortest)
        style = layout.line_style(index, label)
        lines.append(
            Line(
                delay,
                part,
                colour=line_style.colour(style.colour),
                dashes=line_style.dashes(style.dash),
                steps=True,
                label=layout.line_name(label),
            )
        )
    return lines
