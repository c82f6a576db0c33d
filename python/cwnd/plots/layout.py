"""Roles of a sweep's axes in a figure, groups and flows as lines, and limits of y axes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, product
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import LineStyle
from cwnd.results import ALL, Axis, known_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.figures import Line, Panel
    from cwnd.results import By, Run

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


#: Maximum number of flows that are drawn apart. Colour and dashes distinguish that many in one
#: group; in several, dashes and marker repeat after eight flows of a group.
MAX_FLOWS = 28
#: Name and style of the line of all flows beside those of groups.
ALL_FLOWS = "all flows"
ALL_FLOWS_STYLE = LineStyle(6, 0, 6)
_GROUP, _FLOW = "group", "flow_id"


@dataclass(frozen=True)
class Grouping:
    """Subject of a figure: all flows together, groups, or flows."""

    by: By
    #: Group to which the figure is restricted.
    group: str | None = None
    #: Groups or flows, as an axis beside those of the sweep.
    axis: Axis | None = None
    #: Style of each group or flow; that of a group is equal in all figures of a result.
    styles: dict[str, LineStyle] = field(default_factory=dict)
    #: Group and number of each flow, by its label.
    flows: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: `True` if a line may stand for several flows: not each group drawn has exactly one.
    several: bool = False
    #: `True` if lines of one colour are distinguished by dashes.
    dashed: bool = False

    @classmethod
    def of(
        cls,
        run: Run,
        *asked: str | None,
        group: str | None = None,
        by: By | None = None,
        only: pl.DataFrame | None = None,
    ) -> Grouping:
        """Chooses the subject: the one that the named axes ask for, or groups, or all flows.

        Without such an axis groups are chosen if there are 2 to `MAX_LINES`, or one is named.

        Args:
            run: The result.
            asked: Names of axes, "group" and "flow" among them.
            group: Only this group; "*" for all flows together.
            by: The subject, whatever the axes are.
            only: Flows, with `group` and `flow_id`; those of the result if not given.

        Raises:
            InputError: There is no such group, the choices exclude each other, or there are too
                many flows to distinguish.
        """
        chosen = known_group(run, group)
        names = {_part(run, name) for name in asked}
        if group == ALL and names & {_GROUP, _FLOW}:
            raise InputError("`*` is all flows together: they have neither groups nor flows apart")
        if {_GROUP, _FLOW} <= names:
            raise InputError("a flow is in one group: choose `group` or `flow`")
        if by is None and group != ALL:
            several = 1 < len(run.groups) <= MAX_LINES
            by = "flow" if _FLOW in names else "group"
            by = by if names & {_GROUP, _FLOW} or several or chosen else "all"
        numbers = _numbers(run.flows if only is None else only)
        if by == "flow":
            return _flows(run, numbers, chosen)
        if by == "group":
            return _groups(run, numbers, chosen, every=only is None)
        return cls("all", several=len(numbers) > 1)

    def layout(self, run: Run, x: str | None = None, lines: str | None = None) -> Layout:
        """Assigns roles to the axes of the sweep, and to the axis of groups or flows."""
        axes = run.remarks.axes
        return Layout.of(axes, _part(run, x), _part(run, lines), self.axis, self.styles)

    def labelled(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Selects the rows of these groups or flows, and labels them in the axis's column."""
        if self.axis is None:
            return rows
        if self.by == "group":
            rows = rows.with_columns(pl.col(_GROUP).cast(pl.String))
        else:
            # If a sweep varies the number of flows, a number belongs to different groups at
            # different points.
            of_group = [
                pl.when((pl.col(_GROUP).cast(pl.String) == group) & (pl.col(_FLOW) == number)).then(
                    pl.lit(label)
                )
                for label, (group, number) in self.flows.items()
            ]
            rows = rows.with_columns(pl.coalesce(pl.lit(None, pl.String), *of_group).alias(_FLOW))
        return rows.filter(pl.col(self.axis.column).is_in(self.axis.labels))


def views(run: Run) -> list[By]:
    """Subjects among which a reader can choose: groups, all flows, and flows if they are few.

    A result with a single group has all flows only.
    """
    if len(run.groups) < 2:  # noqa: PLR2004 - nothing to choose from
        return ["all"]
    by_flow: list[By] = ["flow"] if len(_numbers(run.flows)) <= MAX_FLOWS else []
    return ["group", "all", *by_flow]


def by_flow_or_group(run: Run, lines: str | None) -> By | None:
    """Subject that the name of an axis asks for; `None` for an axis of the sweep."""
    part = _part(run, lines)
    return "flow" if part == _FLOW else "group" if part == _GROUP else None


def _part(run: Run, name: str | None) -> str | None:
    """Column of a named axis: `flow` means that of flows unless an axis has this name."""
    return _FLOW if name == "flow" and name not in run.axis_columns else name


def _groups(
    run: Run, numbers: list[tuple[str, int]], chosen: str | None, *, every: bool
) -> Grouping:
    styles = {name: LineStyle.of(index) for index, name in enumerate(run.groups)}
    counts = Counter(group for group, _ in numbers)
    # A group may have flows without rows.
    with_flows = [name for name in run.groups if every or name in counts]
    labels = [name for name in with_flows if chosen in (None, name)]
    several = any(counts[label] != 1 for label in labels)
    axis = run.remarks.groups(Axis(_GROUP, _GROUP, None, None, labels))
    return Grouping("group", chosen, axis, styles, several=several)


def _flows(run: Run, numbers: list[tuple[str, int]], chosen: str | None) -> Grouping:
    mine = [(group, number) for group, number in numbers if chosen in (None, group)]
    if len(mine) > MAX_FLOWS:
        raise InputError(
            f"{len(mine)} flows are more than a figure tells apart ({MAX_FLOWS}):"
            " draw a line of each group, or the flows of one"
        )
    numbered = len(numbers) > len({group for group, _ in numbers})
    grouped = len(run.groups) > 1
    flows, styles = {}, {}
    positions: Counter[str] = Counter()
    for group, number in mine:
        label = f"{group}, flow {number}" if numbered else group
        place = positions[group]
        # All flows of a group have one colour in all figures.
        styles[label] = (
            LineStyle(run.groups.index(group), place, place) if grouped else LineStyle.of(place)
        )
        flows[label] = (group, number)
        positions[group] += 1
    axis = Axis("flow", _FLOW, None, None, list(flows))
    return Grouping("flow", chosen, axis, styles, flows, dashed=grouped)


def _numbers(flows: pl.DataFrame) -> list[tuple[str, int]]:
    """Group and number of each flow."""
    found = flows.select(pl.col("group").cast(pl.String), "flow_id").unique().sort("flow_id")
    return [(str(group), int(number)) for group, number in found.iter_rows()]


#: Ratio of panels' largest values from which they have separate axes: on a shared one the smaller
#: values would be a flat line.
_SEPARATE_AXES_RATIO = 10.0
#: Margin above and below the data, as a fraction of its range.
_Y_MARGIN = 0.05
#: Note on a figure whose panels have different y axes.
SEPARATE_AXES_NOTE = "panels whose values differ tenfold have y axes of their own"


def share(rows: Sequence[Sequence[Panel]], *, from_zero: bool = False) -> bool:
    """Sets the y limits of panels that show the same quantity.

    Returns `True` if they all have the same limits; see `shared_ends`.
    """
    values = [
        [list(chain.from_iterable(map(values_of, panel.lines))) for panel in row] for row in rows
    ]
    ends = shared_ends(values, from_zero=from_zero)
    for row, theirs in zip(rows, ends, strict=True):
        for panel, own in zip(row, theirs, strict=True):
            panel.y_limits = own
    return len({own for theirs in ends for own in theirs}) <= 1


def values_of(line: Line) -> Iterable[float]:
    """Yields all values of a line that its axis must cover."""
    parts = [line.y, *(line.interval or ()), *(line.band or ())]
    return (value for part in parts for value in part if value is not None)


def shared_ends(
    rows: Sequence[Sequence[Sequence[float]]], *, from_zero: bool = False
) -> list[list[tuple[float, float]]]:
    """Computes the lower and upper ends of axes that cover the values of panels.

    All panels share an axis unless their largest values differ tenfold. In this case the panels of
    a row share one, unless their largest values differ tenfold as well.

    Args:
        rows: The values of each panel, those side by side in a row.
        from_zero: Axes start at zero; otherwise only if that does not flatten the values.
    """
    every = [values for row in rows for values in row]
    if _alike(every):
        return [[_ends(every, from_zero)] * len(row) for row in rows]
    return [[_ends(row if _alike(row) else [values], from_zero) for values in row] for row in rows]


def _alike(panels: Iterable[Sequence[float]]) -> bool:
    """`True` if one axis suits all panels; zeros are readable on any."""
    largest = [top for values in panels if (top := max(map(abs, values), default=0.0)) > 0]
    return not largest or max(largest) < _SEPARATE_AXES_RATIO * min(largest)


def _ends(panels: Sequence[Sequence[float]], from_zero: bool) -> tuple[float, float]:
    values = [value for panel in panels for value in panel] or [0.0]
    low, high = min(values), max(values)
    room = _Y_MARGIN * (high - low or abs(high) or 1.0)
    # Zero is shown unless that would flatten values that are close to each other.
    near_zero = low >= 0 and (low < high / 2 or high == 0)
    return 0.0 if from_zero or near_zero else low - room, high + room
