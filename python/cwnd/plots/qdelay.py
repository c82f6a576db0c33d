"""Distribution of the queueing delay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.ticker import FuncFormatter

from cwnd.errors import InputError
from cwnd.metrics import main_link
from cwnd.plots import style
from cwnd.plots.layout import Layout, at, points_of, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.results import Run

#: Shorter delays are drawn at the left edge: no wait at all has no place on a logarithmic axis.
SHORTEST_MS = 0.1
_COLUMNS = 3
_MAX_PANELS = 24


def qdelay_cdf(run: Run, *, link: str | None = None) -> Figure:
    """Cumulative distribution over all packets of all seeds, a panel for each point."""
    link, histogram = packets_of(run, link)
    layout, points, columns = panels_of(run)
    rows = math.ceil(len(points) / columns)
    with style.styled():
        single = len(points) == 1
        figure = style.figure(2.6 if single else 0.7 + 1.6 * rows, 4.5 if single else style.WIDTH)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        panels = list(grid.flat)
        for panel, point in zip(panels, points, strict=False):
            _draw(panel, at(histogram, point), layout)
            panel.set_title(title(point, run.axes))
        for panel in panels[len(points) :]:
            panel.set_visible(False)
        figure.supxlabel(f"Queueing delay of {link} (ms)")
        figure.supylabel("Fraction of packets")
        style.legend(figure, panels[: len(points)])
    return figure


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


def _draw(panel: Axes, histogram: pl.DataFrame, layout: Layout) -> None:
    panel.set_xscale("log")
    panel.set_ylim(0, 1)
    for index, label in enumerate(layout.line_labels()):
        mine = histogram
        if layout.lines is not None:
            mine = histogram.filter(pl.col(layout.lines.column) == label)
        if mine.is_empty():
            continue
        delay, part = distribution(mine)
        look = style.line(index)
        look["label"] = layout.line_name(label)
        panel.plot(delay, part, drawstyle="steps-post", **look)
    panel.set_xlim(left=SHORTEST_MS)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
