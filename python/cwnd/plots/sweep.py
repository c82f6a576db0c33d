"""Figure of metrics against a parameter of the sweep, with their spread over the seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.figures import Line, LineStyle, Panel, Picture, line_style
from cwnd.plots.layout import (
    ALL_FLOWS,
    ALL_FLOWS_STYLE,
    MAX_COLUMNS,
    SEPARATE_AXES_NOTE,
    Grouping,
    Layout,
    at,
    display_unit,
    points_of,
    share,
    title,
)
from cwnd.results import (
    IN_FIGURES,
    MetricUnit,
    describe_spreads,
    known_group,
    metric,
    spreads,
    summarise,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from cwnd.results import Axis, By, Metric, Run, Spread

#: Ratio of the largest to the smallest value from which x is logarithmic.
_LOG_FROM = 20.0
#: Maximum spread of the points of all lines, as a fraction of the distance to the next value.
_SPREAD = 0.5
#: Offset between lines as a fraction of the x range, which keeps intervals from hiding each other.
_OFFSET = 0.012
#: Maximum number of values along x with a tick each.
_MAX_TICKS = 8


@dataclass(frozen=True)
class XAxis:
    """An axis of a sweep along x."""

    axis: Axis
    #: Values to draw in ascending order, in the shown unit; empty for labels.
    values: list[float]
    unit: str
    #: Factor from the column of values to the shown unit.
    factor: float

    @classmethod
    def of(cls, axis: Axis, summary: pl.DataFrame) -> XAxis:
        """Builds the x axis of a row of panels, whose points are in `summary`."""
        if axis.value_column is None:
            return cls(axis, [], "", 1.0)
        values = summary[axis.value_column].drop_nulls().unique().sort().to_list()
        unit, factor = display_unit(axis.unit, values)
        return cls(axis, [value * factor for value in values], unit, factor)

    @property
    def label(self) -> str:
        """Name of the axis with its unit."""
        name = self.axis.name.upper() if self.axis.name.lower() == "rtt" else self.axis.name
        return f"{name} ({self.unit})" if self.unit else name

    @property
    def numeric(self) -> bool:
        """`True` if the labels are numbers."""
        return self.axis.value_column is not None

    @property
    def logarithmic(self) -> bool:
        """`True` if the range of values requires a logarithmic axis."""
        return bool(self.values) and 0 < self.values[0] * _LOG_FROM <= self.values[-1]

    @property
    def ticks(self) -> list[tuple[float, str]] | None:
        """Ticks with labels; `None` lets the figure choose round numbers."""
        if not self.numeric:
            return list(enumerate(map(self.axis.shown, self.axis.labels)))
        if len(self.values) > _MAX_TICKS:
            return None
        return [(value, f"{value:g}") for value in self.values]

    def positions(self, rows: pl.DataFrame, line: int, lines: int) -> list[float]:
        """Positions of the points of one of several lines, shifted by the same distance.

        The shift is a ratio on a logarithmic axis. It is small enough that each point is nearest to
        its own value.
        """
        offset = (line + 0.5) / lines - 0.5
        if self.axis.value_column is None:
            labels = self.axis.labels
            return [labels.index(each) + _SPREAD * offset for each in rows[self.axis.column]]
        drawn = [math.log(value) if self.logarithmic else value for value in self.values]
        min_step = min((b - a for a, b in pairwise(drawn)), default=0.0)
        span = drawn[-1] - drawn[0] if drawn else 0.0
        shift = offset * min(_OFFSET * span * lines, _SPREAD * min_step)
        values = [value * self.factor for value in rows[self.axis.value_column]]
        if self.logarithmic:
            return [value * math.exp(shift) for value in values]
        return [value + shift for value in values]


#: Metrics that are drawn by default.
DEFAULT_METRICS = ("goodput_bit_s", "qdelay_p50_us", "qdelay_p90_us")
#: Maximum number of rows of panels on a page.
_MAX_ROWS = 12


@dataclass(frozen=True)
class Row:
    """A row of panels: one metric, of one group if groups have separate rows."""

    metric: Metric
    layout: Layout
    #: One row per point, from `summarise`.
    summary: pl.DataFrame
    #: Group of the row; `None` unless groups have separate rows.
    group: str | None = None

    @property
    def name(self) -> str:
        """Label of the row with its unit."""
        return replace(self.metric, label=f"{self.metric.label}{self.of}").axis_label

    @cached_property
    def x_axis(self) -> XAxis:
        """Axis along x."""
        assert self.layout.x is not None
        return XAxis.of(self.layout.x, self.summary)

    @property
    def of(self) -> str:
        """Suffix with the group of the row."""
        return f" of {self.group}" if self.group is not None else ""


@dataclass(frozen=True)
class SweepData:
    """Contents of a figure of a sweep."""

    layout: Layout
    grouping: Grouping
    metrics: list[Metric]
    #: One row per point, and group or flow, from `summarise`.
    summary: pl.DataFrame
    #: Summary of all flows together, for metrics of a link.
    all_flows: pl.DataFrame

    def rows(self, metric: Metric) -> list[Row]:
        """Rows of panels of a metric: one, or one for each group."""
        axis = self.grouping.axis
        if axis is None or metric.of == "link":
            return [Row(metric, self.layout.without(axis), self.all_flows)]
        if axis not in self.layout.panels:
            return [Row(metric, self.layout, self.summary)]
        layout = self.layout.without(axis)
        return [
            Row(metric, layout, at(self.summary, {axis.column: label}), label)
            for label in axis.labels
        ]


def sweep(
    run: Run,
    *,
    metrics: Sequence[str] = (),
    x: str | None = None,
    lines: str | None = None,
    link: str | None = None,
    group: str | None = None,
    relative_to: str | None = None,
) -> Picture:
    """Describes a grid: a row for each metric, a column for each point of the remaining axes.

    Groups of flows are an axis like those of the sweep. If they are neither along x nor lines, each
    has a row of its own; metrics of a link have one row. Columns that exceed the width of a page
    are continued below, up to the length of a page.

    Args:
        run: The result.
        metrics: Metrics; goodput and queueing delay if not given.
        x: Axis along x, "group" and "flow" among them; the numeric one with the most values if not
            given.
        lines: Axis whose labels are the lines; the longest of the others if not given, groups if
            there is none.
        link: Link whose queue is shown; the busiest if not given.
        group: Only this group of flows; "*" for all flows together.
        relative_to: Reference group of ratios; the first if not given.

    Raises:
        InputError: There is nothing of the kind to draw.
    """
    content = prepare(
        run, metrics=metrics, x=x, lines=lines, link=link, group=group, relative_to=relative_to
    )
    panels = points_of(tuple(a for a in content.layout.panels if a is not content.grouping.axis))
    blocks = [content.rows(shown) for shown in content.metrics]
    every = sum(map(len, blocks))
    grid: list[tuple[Row, list[Panel]]] = []
    stacks = _stacks(panels, min(every, _MAX_ROWS))
    shown_points = [point for stack in stacks for point in stack]
    alike = True
    for block in blocks:
        drawn, same = panels_of(block, shown_points, content.grouping)
        alike &= same
        grid += zip(block, drawn, strict=True)
    about = [*describe_spreads(content.all_flows, content.metrics, IN_FIGURES)]
    about += run.remarks.rest
    about += [] if alike else [SEPARATE_AXES_NOTE]
    about += _left_out("rows", every, _MAX_ROWS)
    about += _left_out("columns", len(panels), len(shown_points))
    return Picture(
        _stacked(grid[:_MAX_ROWS], stacks, run.remarks.axes),
        height=0.75 + 1.6 * min(every, _MAX_ROWS) * len(stacks),
        width=4.5 if len(panels) == 1 else line_style.WIDTH,
        columns=len(stacks[0]),
        note="; ".join(about),
        shared_y="none",
    )


def panels_of(
    rows: Sequence[Row], points: Sequence[dict[str, str]], grouping: Grouping
) -> tuple[list[list[Panel]], bool]:
    """Builds a panel for each row and point of a metric; `True` if all have the same y axis."""
    means = [each.value for row in rows for each in spreads(row.summary, row.metric)]
    shown = MetricUnit.of(rows[0].metric, means)
    panels = [
        [_panel(at(row.summary, point), row, grouping, shown) for point in points] for row in rows
    ]
    return panels, share(panels)


def _stacks(points: list[dict[str, str]], rows: int) -> list[list[dict[str, str]]]:
    """Splits the points into stacks of panels side by side, as many as a page has room for."""
    max_stacks = max(1, _MAX_ROWS // rows)
    stacks = min(max_stacks, -(-len(points) // MAX_COLUMNS))
    columns = min(MAX_COLUMNS, -(-len(points) // stacks))
    return [points[n * columns : (n + 1) * columns] for n in range(stacks)]


def _stacked(
    grid: list[tuple[Row, list[Panel]]],
    stacks: list[list[dict[str, str]]],
    axes: Sequence[Axis],
) -> list[Panel]:
    """Arranges the panels row by row, and adds titles and labels of axes."""
    found, columns = [], len(stacks[0])
    for number, points in enumerate(stacks):
        place = number * columns
        for row, panels in grid:
            line = panels[place : place + len(points)]
            for panel, point in zip(line, points, strict=True):
                if row is grid[0][0]:
                    panel.title = title(point, axes)
                if row is grid[-1][0]:
                    panel.x_label = row.x_axis.label
            line[0].y_label = row.name.replace(", ", ",\n", 1)
            if row.group is not None and "\n" not in line[0].y_label:
                line[0].y_label = row.name.replace(" (", "\n(", 1)
            found += line
            found += [Panel([], shown=False) for _ in range(columns - len(points))]
    return found


def _left_out(what: str, every: int, most: int) -> list[str]:
    return [f"the first {most} of {every} {what}"] if every > most else []


def prepare(
    run: Run,
    *,
    metrics: Sequence[str] = (),
    x: str | None = None,
    lines: str | None = None,
    link: str | None = None,
    group: str | None = None,
    relative_to: str | None = None,
    by: By | None = None,
) -> SweepData:
    """Chooses and computes the contents of a figure.

    Raises:
        InputError: There is nothing to draw.
    """
    grouping = Grouping.of(run, x, lines, group=group, by=by)
    layout = grouping.layout(run, x, lines)
    if layout.x is None:
        raise InputError(
            "this result has no sweep to draw: give its scenario a [sweep.axis.…],"
            " or draw its groups along x (--x group)"
        )
    if layout.x is layout.lines:
        raise InputError(f"axis `{layout.x.name}` is along x and cannot be the lines as well")
    all_flows = run.per_run(link)
    rows = all_flows
    if grouping.axis is not None:
        rows = grouping.labelled(run.per_run(link, by=grouping.by, relative_to=relative_to))
    elif relative_to is not None:
        known_group(run, relative_to)
    chosen = [metric(name) for name in metrics or DEFAULT_METRICS]
    if grouping.axis is layout.x:
        # A queue has no groups along x.
        if metrics and any(m.of == "link" for m in chosen):
            names = ", ".join(m.column for m in chosen if m.of == "link")
            raise InputError(f"{names}: of a link, and has no values along {layout.x.name}")
        chosen = [m for m in chosen if m.of != "link"]
    sources = {m.column: all_flows if m.of == "link" else rows for m in chosen}
    missing = [name for name, has in sources.items() if has[name].null_count() == has.height]
    if metrics and missing:
        beside = any(metric(name).of == "part" for name in missing) and grouping.axis is None
        remedy = ": it is a number of groups or flows, draw these (--lines group)" if beside else ""
        raise InputError(f"this result has no values of {', '.join(missing)}{remedy}")
    chosen = [m for m in chosen if m.column not in missing]
    if not chosen:
        raise InputError("this result has none of the metrics that are drawn; choose with --metric")
    columns = [m.column for m in chosen]
    compared = relative_to if relative_to is not None else next(iter(run.groups), "")
    chosen = [
        replace(m, label=f"Goodput per flow, relative to {compared}")
        if m.column == "goodput_ratio"
        else m
        for m in chosen
    ]
    of_all = layout.without(grouping.axis)
    summary = summarise(rows, _by(layout), columns, all_flows)
    same = grouping.axis is None or of_all.x is None
    return SweepData(
        layout,
        grouping,
        chosen,
        summary,
        summary if same else summarise(all_flows, _by(of_all), columns),
    )


def _by(layout: Layout) -> list[str]:
    assert layout.x is not None
    by = [axis.column for axis in layout.panels]
    by += [layout.lines.column] if layout.lines is not None else []
    by.append(layout.x.column)
    return by + ([layout.x.value_column] if layout.x.value_column is not None else [])


def line_names(row: Row, grouping: Grouping) -> list[tuple[str | None, str | None, LineStyle]]:
    """Label, name and style of each line of a row of panels."""
    layout = row.layout
    if layout.lines is None and grouping.axis is not None:
        if row.metric.of == "link":
            return [(None, ALL_FLOWS, ALL_FLOWS_STYLE)]
        return [(None, row.group, grouping.styles.get(row.group or "", LineStyle.of(0)))]
    return [
        (label, layout.line_name(label), layout.line_style(index, label))
        for index, label in enumerate(layout.line_labels())
    ]


def _panel(summary: pl.DataFrame, row: Row, grouping: Grouping, exact: MetricUnit) -> Panel:
    layout, shown, x_axis = row.layout, row.metric, row.x_axis
    names = line_names(row, grouping)
    lines = []
    for index, (label, name, own) in enumerate(names):
        mine = summary
        if layout.lines is not None:
            mine = at(summary, {layout.lines.column: label or ""})
        mine = mine.drop_nulls(shown.column)
        found = spreads(mine, shown)
        values = [each.scaled(shown.scale) for each in found]
        ends = [(None, None) if each.ends is None else each.ends for each in values]
        lines.append(
            Line(
                x_axis.positions(mine, index, len(names)),
                [each.value for each in values],
                colour=line_style.colour(own.colour),
                dashes=line_style.dashes(own.dash),
                marker=line_style.marker(own.marker),
                joined=x_axis.numeric,
                label=name,
                interval=([low for low, _ in ends], [high for _, high in ends]),
                texts=[
                    "\n".join(
                        filter(None, (name, f"{x_axis.axis.name} {x}", _value(exact, each, n)))
                    )
                    for x, each, n in zip(mine[x_axis.axis.column], found, mine["n"], strict=True)
                ],
            )
        )
    panel = Panel(lines, x_log=x_axis.logarithmic, ticks=x_axis.ticks, x_grid=x_axis.numeric)
    if not x_axis.numeric:
        panel.x_limits = (-0.5, len(x_axis.axis.labels) - 0.5)
    return panel


def _value(shown: MetricUnit, each: Spread, n: int) -> str:
    unit = f" {shown.unit}" if shown.unit else ""
    seeds = f" ({n} seeds)" if n > 1 else ""
    return f"{shown.metric.label}: {shown.spread(each)}{unit}{seeds}"
