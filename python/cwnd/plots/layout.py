"""Assignment of a sweep's axes to x, lines and panels."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import LineStyle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.results import Axis

#: Labels that are meaningless without the name of their axis.
_BARE = frozenset({"on", "off", "true", "false", "yes", "no", "none"})
#: Maximum number of distinguishable lines in a panel.
MAX_LINES = 7
#: Maximum number of panels in a figure, and of panels side by side.
MAX_PANELS = 36
MAX_COLUMNS = 6
#: Minimum number of columns, as fewer would waste the width of a page.
_MIN_COLUMNS = 3
#: Units of SI base units for people: smallest value, unit, and factor.
_HUMAN: dict[str, tuple[tuple[float, str, float], ...]] = {
    "s": ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6)),
    "bit/s": ((1e9, "Gbit/s", 1e-9), (1e6, "Mbit/s", 1e-6), (0.0, "kbit/s", 1e-3)),
    "bytes": ((1e6, "MB", 1e-6), (1e3, "kB", 1e-3), (0.0, "B", 1.0)),
}


@dataclass(frozen=True)
class Layout:
    """Roles of a sweep's axes in a figure."""

    x: Axis | None
    lines: Axis | None
    panels: tuple[Axis, ...]
    #: Styles of lines by label, for those with the same style in all figures.
    styles: Mapping[str, LineStyle] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        axes: Sequence[Axis],
        x: str | None = None,
        lines: str | None = None,
        grouping: Axis | None = None,
        styles: Mapping[str, LineStyle] | None = None,
    ) -> Layout:
        """Assigns roles to axes.

        By default x is the numeric axis with the most values, or the longest if none is numeric.
        Axes with a single label have no role unless they are named.

        Args:
            axes: Axes of the sweep.
            x: Name of the axis along x.
            lines: Name of the axis whose labels are lines; if not given, the longest remaining one
                with at most `MAX_LINES` labels.
            grouping: Axis of groups or flows, whose labels are lines if no other axis is left for
                them.
            styles: Styles of the lines of `grouping`.

        Raises:
            InputError: There is no axis of that name.
        """
        every = [*axes, *([grouping] if grouping is not None else [])]
        varied = [axis for axis in axes if len(axis.labels) > 1]
        asked = _named(every, lines) if lines is not None else None
        free = [axis for axis in varied if axis is not asked]
        x_axis = _named(every, x) if x is not None else _longest(free or varied)
        rest = [axis for axis in varied if axis is not x_axis]
        if asked is not None:
            drawn: Axis | None = asked
        else:
            fitting = [axis for axis in rest if len(axis.labels) <= MAX_LINES]
            drawn = max(fitting, key=lambda axis: len(axis.labels), default=None)
        if grouping is not None and grouping is not x_axis:
            if drawn is None:
                drawn = grouping
            elif drawn is not grouping:
                rest.append(grouping)
        own = styles if styles is not None and drawn is grouping else {}
        return cls(x_axis, drawn, tuple(axis for axis in rest if axis is not drawn), own)

    def without_x(self) -> Layout:
        """Returns roles for figures whose x is no axis.

        The axis becomes the lines if there are none, and if it has at most `MAX_LINES` labels.
        """
        if self.x is None or self.lines is not None or len(self.x.labels) > MAX_LINES:
            return self
        return Layout(None, self.x, self.panels)

    def without(self, axis: Axis | None) -> Layout:
        """Returns roles without an axis along which the values are constant."""
        return Layout(
            None if self.x is axis else self.x,
            None if self.lines is axis else self.lines,
            tuple(panel for panel in self.panels if panel is not axis),
        )

    def line_style(self, index: int, label: str | None) -> LineStyle:
        """Style of the line of a label."""
        return self.styles.get(label or "", LineStyle.of(index))

    def line_name(self, label: str | None) -> str | None:
        """Name of a line in the legend, with its axis if the label alone is meaningless."""
        if self.lines is None or label is None:
            return label
        shown = self.lines.shown(label)
        named = self.lines.value_column is None and _BARE.isdisjoint(self.lines.labels)
        return shown if named else f"{self.lines.name} = {shown}"

    def line_labels(self) -> list[str | None]:
        """Labels of the lines; `[None]` without an axis of lines."""
        return list(self.lines.labels) if self.lines is not None else [None]


@dataclass(frozen=True)
class Grid:
    """Points of a sweep that have a panel each."""

    #: Axes of the points' labels.
    axes: Sequence[Axis]
    every: list[dict[str, str]]

    @classmethod
    def of(cls, layout: Layout, axes: Sequence[Axis]) -> Grid:
        """Chooses the points: all combinations of the labels of the panels' axes and of x."""
        x = [layout.x] if layout.x is not None else []
        return cls(axes, points_of((*layout.panels, *x)))

    @property
    def points(self) -> list[dict[str, str]]:
        """Points that are drawn."""
        return self.every[:MAX_PANELS]

    @property
    def columns(self) -> int:
        """Number of panels side by side; labels of the last axis fill whole rows if possible."""
        count = len({tuple(point.values())[-1:] for point in self.every})
        if count <= MAX_COLUMNS:
            return count
        fitting = (n for n in range(MAX_COLUMNS, _MIN_COLUMNS - 1, -1) if count % n == 0)
        return next(fitting, -(-count // -(-count // MAX_COLUMNS)))

    @property
    def left_out(self) -> str:
        """Text on the points that are not drawn; empty if all are."""
        shown, every = len(self.points), len(self.every)
        if shown == every:
            return ""
        first, last = (title(self.every[index], self.axes) for index in (shown, -1))
        return f"the first {shown} of {every} panels, without {first} to {last}"


def points_of(axes: Sequence[Axis]) -> list[dict[str, str]]:
    """Combinations of the labels of axes, as column → label."""
    columns = [axis.column for axis in axes]
    return [
        dict(zip(columns, labels, strict=True))
        for labels in product(*(axis.labels for axis in axes))
    ]


def at(frame: pl.DataFrame, point: dict[str, str]) -> pl.DataFrame:
    """Selects the rows at one point of the sweep."""
    for column, label in point.items():
        frame = frame.filter(pl.col(column) == label)
    return frame


def title(point: dict[str, str], axes: Sequence[Axis]) -> str:
    """Name of a point of the sweep; numbers have the name of their axis before them."""
    by_column = {axis.column: axis for axis in axes}
    return ", ".join(
        f"{by_column[column].name} = {by_column[column].shown(label)}"
        if by_column[column].value_column
        else by_column[column].shown(label)
        for column, label in point.items()
    )


def display_unit(unit: str | None, values: Sequence[float]) -> tuple[str, float]:
    """Chooses the unit for people from the largest value; returns it and the factor to it."""
    steps = _HUMAN.get(unit or "")
    if steps is None:
        return unit or "", 1.0
    largest = max((abs(value) for value in values), default=0.0)
    for lowest, name, factor in steps:
        if largest >= lowest:
            return name, factor
    return unit or "", 1.0


def _longest(axes: Sequence[Axis]) -> Axis | None:
    numbers = [axis for axis in axes if axis.value_column is not None]
    return max(numbers or axes, key=lambda axis: len(axis.labels), default=None)


def _named(axes: Sequence[Axis], name: str) -> Axis:
    # The name of a column distinguishes two axes with one name.
    for axis in (*(a for a in axes if a.column == name), *(a for a in axes if a.name == name)):
        return axis
    known = ", ".join(axis.name for axis in axes) or "none"
    raise InputError(f"this result has no axis `{name}`; it has {known}")
