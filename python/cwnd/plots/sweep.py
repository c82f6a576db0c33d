"""Metrics against a parameter of the sweep, with their confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.metrics import metric, summarise
from cwnd.plots import look
from cwnd.plots.layout import Layout, at, human, title
from cwnd.plots.picture import Line, Panel, Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from cwnd.metrics import Metric
    from cwnd.results import Run

#: What is drawn when nothing is asked for.
DEFAULT_METRICS = ("goodput_bit_s", "qdelay_p50_us", "qdelay_p90_us")
#: Columns of panels that fit the width of a page.
_MAX_COLUMNS = 6
#: From this ratio of the largest to the smallest value on, x is logarithmic.
_LOG_FROM = 20.0
#: Part of the distance of two categories that the points of the lines are spread over.
SPREAD = 0.5
#: Lines are moved apart by this part of the x range, so that intervals do not hide each other.
NUDGE = 0.012
#: As many values along x as have room for a tick each.
MAX_TICKS = 8


@dataclass(frozen=True)
class Content:
    """What a figure of a sweep shows."""

    layout: Layout
    metrics: list[Metric]
    #: One row per point: the mean of each metric and the half-width of its interval.
    summary: pl.DataFrame


def sweep(
    run: Run,
    *,
    metrics: Sequence[str] = (),
    x: str | None = None,
    lines: str | None = None,
    link: str | None = None,
) -> Picture:
    """A grid: a row for each metric, a column for each point of the axes that are left.

    Args:
        run: The result.
        metrics: What to draw; goodput and queueing delay if not given.
        x: The axis along x; the one of numbers with the most values if not given.
        lines: The axis whose labels are the lines; the longest of the others if not given.
        link: Whose queue; the busiest link if not given.
    """
    content = prepare(run, metrics=metrics, x=x, lines=lines, link=link)
    layout, chosen, summary = content.layout, content.metrics, content.summary
    panels = layout.panel_points()
    if len(panels) > _MAX_COLUMNS:
        raise InputError(
            f"{len(panels)} columns of panels do not fit a page; choose --x and --lines"
        )
    drawn = []
    for metric_row, shown in enumerate(chosen):
        row = [_panel(at(summary, point), content, shown) for point in panels]
        for panel, point in zip(row, panels, strict=True):
            panel.title = title(point, run.axes) if metric_row == 0 else ""
            panel.x_label = x_label(layout, summary) if shown is chosen[-1] else ""
            panel.y_limits = (_bottom(row[0]), None)
        row[0].y_label = shown.axis_label.replace(", ", ",\n", 1)
        drawn += row
    return Picture(
        drawn,
        height=0.75 + 1.6 * len(chosen),
        width=4.5 if len(panels) == 1 else look.WIDTH,
        columns=len(panels),
        shared_y="row",
    )


def prepare(
    run: Run,
    *,
    metrics: Sequence[str] = (),
    x: str | None = None,
    lines: str | None = None,
    link: str | None = None,
) -> Content:
    """Chooses what a figure shows and computes it; `InputError` if there is nothing."""
    layout = Layout.of(run.axes, x, lines)
    if layout.x is None:
        raise InputError("this result has no sweep to draw: give its scenario a [sweep.axis.…]")
    rows = run.per_run(link)
    chosen = [metric(name) for name in metrics or DEFAULT_METRICS]
    missing = [m.column for m in chosen if rows[m.column].null_count() == rows.height]
    if metrics and missing:
        raise InputError(f"this result has no values of {', '.join(missing)}")
    chosen = [m for m in chosen if m.column not in missing]
    if not chosen:
        raise InputError("this result has none of the metrics that are drawn; choose with --metric")
    return Content(layout, chosen, summarise(rows, _by(layout), [m.column for m in chosen]))


def _by(layout: Layout) -> list[str]:
    assert layout.x is not None
    by = [axis.column for axis in layout.panels]
    by += [layout.lines.column] if layout.lines is not None else []
    by.append(layout.x.column)
    return by + ([layout.x.value_column] if layout.x.value_column is not None else [])


def _panel(summary: pl.DataFrame, content: Content, shown: Metric) -> Panel:
    layout = content.layout
    assert layout.x is not None
    labels = layout.line_labels()
    lines = []
    for index, label in enumerate(labels):
        mine = summary
        if layout.lines is not None:
            mine = at(summary, {layout.lines.column: label or ""})
        mine = mine.drop_nulls(shown.column)
        if layout.x.value_column is None:
            shift = SPREAD * ((index + 0.5) / len(labels) - 0.5)
            xs = [layout.x.labels.index(name) + shift for name in mine[layout.x.column]]
        else:
            unit_values = mine[layout.x.value_column].to_list()
            _, factor = human(layout.x.unit, summary[layout.x.value_column].to_list())
            shift = NUDGE * (index - (len(labels) - 1) / 2)
            span = max(unit_values, default=0.0) - min(unit_values, default=0.0)
            xs = [(value + shift * span) * factor for value in unit_values]
        lines.append(
            Line(
                xs,
                [value * shown.scale for value in mine[shown.column]],
                colour=look.colour(index),
                dashes=look.dashes(index),
                marker=look.marker(index),
                joined=layout.x.value_column is not None,
                label=layout.line_name(label),
                # No interval below two seeds.
                half_widths=(mine[f"{shown.column}_ci95"] * shown.scale).to_list(),
            )
        )
    panel = Panel(lines)
    if layout.x.value_column is None:
        panel.ticks = list(enumerate(layout.x.labels))
        panel.x_limits = (-0.5, len(layout.x.labels) - 0.5)
        panel.x_grid = False
        return panel
    values = summary[layout.x.value_column].unique().sort().to_list()
    _, factor = human(layout.x.unit, values)
    panel.x_log = is_logarithmic(values)
    if len(values) <= MAX_TICKS:
        panel.ticks = [(v * factor, f"{v * factor:g}") for v in values]
    return panel


def _bottom(panel: Panel) -> float | None:
    ends = [
        y + sign * (half or 0.0)
        for line in panel.lines
        for y, half in zip(line.y, line.half_widths or (), strict=True)
        if y is not None
        for sign in (-1, 1)
    ]
    return 0.0 if ends and shows_zero(min(ends), max(ends)) else None


def is_logarithmic(values: Sequence[float]) -> bool:
    """Whether these values along x, in order, are told apart on a logarithmic axis only."""
    return values[0] > 0 and values[-1] / values[0] >= _LOG_FROM


def shows_zero(low: float, high: float) -> bool:
    """Zero is shown unless it would press values that are close to each other into a line."""
    return low < high / 2


def x_label(layout: Layout, summary: pl.DataFrame) -> str:
    """The name of the axis along x, with its unit."""
    assert layout.x is not None
    if layout.x.value_column is None:
        return layout.x.name
    unit, _ = human(layout.x.unit, summary[layout.x.value_column].to_list())
    name = layout.x.name.upper() if layout.x.name.lower() == "rtt" else layout.x.name
    return f"{name} ({unit})" if unit else name


def available(run: Run) -> bool:
    """Whether there is a sweep that fits a figure."""
    layout = Layout.of(run.axes)
    return layout.x is not None and len(layout.panel_points()) <= _MAX_COLUMNS
