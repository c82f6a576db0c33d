"""Flows, groups or their total as the lines of a figure, and their line styles."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import LineStyle
from cwnd.plots.layout import MAX_LINES, Layout
from cwnd.results import ALL, Axis, known_group

if TYPE_CHECKING:
    from cwnd.results import By, Run

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
    #: Style of each group or flow, equal in all figures of a result.
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
