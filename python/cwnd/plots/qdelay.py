"""Distribution of the queueing delay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.plots import look
from cwnd.plots.layout import Layout, at, points_of, title
from cwnd.plots.picture import Line, Panel, Picture
from cwnd.results import main_link

if TYPE_CHECKING:
    from cwnd.results import Run

#: Shorter delays are drawn at the left edge: no wait at all has no place on a logarithmic axis.
SHORTEST_MS = 0.1
_COLUMNS = 3
_MAX_PANELS = 24


def qdelay_cdf(run: Run, *, link: str | None = None) -> Picture:
    """Cumulative distribution over all packets of all seeds, a panel for each point."""
    link, histogram = packets_of(run, link)
    layout, points, columns = panels_of(run)
    rows = math.ceil(len(points) / columns)
    single = len(points) == 1
    return Picture(
        [
            Panel(
                _lines(at(histogram, point), layout),
                title=title(point, run.axes),
                x_log=True,
                x_limits=(SHORTEST_MS, None),
                y_limits=(0, 1),
            )
            for point in points
        ],
        height=2.6 if single else 0.7 + 1.6 * rows,
        width=4.5 if single else look.WIDTH,
        columns=columns,
        x_label=f"Queueing delay of {link} (ms){_left_out(run, len(points))}",
        y_label="Fraction of packets",
    )


def _left_out(run: Run, drawn: int) -> str:
    layout = Layout.of(run.axes).without_x()
    every = math.prod(len(axis.labels) for axis in (*layout.panels, layout.x) if axis is not None)
    return f"; the first {drawn} of {every} panels" if every > drawn else ""


def packets_of(run: Run, link: str | None) -> tuple[str, pl.DataFrame]:
    """The link, the busiest if not given, and for each point the histogram of its packets."""
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


def panels_of(run: Run) -> tuple[Layout, list[dict[str, str]], int]:
    """The layout, the points that get a panel, and the number of panels side by side."""
    layout = Layout.of(run.axes).without_x()
    axes = (*layout.panels, *([layout.x] if layout.x is not None else []))
    columns = len(layout.x.labels) if layout.x is not None else 1
    return layout, points_of(axes)[:_MAX_PANELS], columns if columns <= _COLUMNS + 1 else _COLUMNS


def distribution(histogram: pl.DataFrame) -> tuple[list[float], list[float]]:
    """The steps of the cumulative distribution: delays in ms, and the part that waits no longer."""
    counts = histogram.group_by("qdelay_us").agg(pl.col("packets").sum()).sort("qdelay_us")
    part = (counts["packets"].cum_sum() / counts["packets"].sum()).to_list()
    delay = (counts["qdelay_us"] / 1e3).clip(lower_bound=SHORTEST_MS).to_list()
    return [delay[0], *delay], [0.0, *part]


def _lines(histogram: pl.DataFrame, layout: Layout) -> list[Line]:
    lines = []
    for index, label in enumerate(layout.line_labels()):
        mine = histogram
        if layout.lines is not None:
            mine = histogram.filter(pl.col(layout.lines.column) == label)
        if mine.is_empty():
            continue
        delay, part = distribution(mine)
        lines.append(
            Line(
                delay,
                part,
                colour=look.colour(index),
                dashes=look.dashes(index),
                steps=True,
                label=layout.line_name(label),
            )
        )
    return lines
