"""Whose numbers a figure shows, those of all flows, groups or flows, and how they look."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import Look
from cwnd.plots.layout import MAX_LINES, Layout
from cwnd.results import ALL, Axis, known_group

if TYPE_CHECKING:
    from cwnd.results import By, Run

#: As many flows look different: by colour and dashes in one group, by dashes and marker in several.
MAX_FLOWS = 28
#: What the line of all flows is called beside those of groups, and its look.
TOGETHER = "all flows"
TOGETHER_LOOK = Look(6, 0, 6)
_GROUP, _FLOW = "group", "flow_id"


@dataclass(frozen=True)
class Parts:
    """Whose numbers a figure shows."""

    by: By
    #: Only this group of flows.
    group: str | None = None
    #: The groups or the flows, as an axis beside those of the sweep.
    axis: Axis | None = None
    #: How each of them looks, in all figures of a result.
    looks: dict[str, Look] = field(default_factory=dict)
    #: Of flows: group and number, for each label.
    flows: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: Some have more than one flow.
    several: bool = False
    #: Lines of one colour are told apart by their dashes.
    dashed: bool = False

    @classmethod
    def of(
        cls,
        run: Run,
        *asked: str | None,
        group: str | None = None,
        by: By | None = None,
        only: pl.DataFrame | None = None,
    ) -> Parts:
        """Chooses: what the axes that are asked for name; groups where there are several.

        Args:
            run: The result.
            asked: Names of axes, "group" and "flow" among them.
            group: Only this group; "*" for all flows together.
            by: What is apart, whatever the axes are.
            only: Flows, with `group` and `flow_id`; those of the result if not given.

        Raises:
            InputError: There is no such group, or there are too many flows to be told apart.
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
        """The parts that the axes play, groups or flows among them."""
        axes = run.remarks.axes
        return Layout.of(axes, _part(run, x), _part(run, lines), self.axis, self.looks)

    def labelled(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Only the rows of these parts, with their labels in the column of the axis."""
        if self.axis is None:
            return rows
        if self.by == "group":
            rows = rows.with_columns(pl.col(_GROUP).cast(pl.String))
        else:
            # Where a sweep varies how many flows there are, a number is of one group here and of
            # another there.
            of_group = [
                pl.when((pl.col(_GROUP).cast(pl.String) == group) & (pl.col(_FLOW) == number)).then(
                    pl.lit(label)
                )
                for label, (group, number) in self.flows.items()
            ]
            rows = rows.with_columns(pl.coalesce(pl.lit(None, pl.String), *of_group).alias(_FLOW))
        return rows.filter(pl.col(self.axis.column).is_in(self.axis.labels))


def views(run: Run) -> list[By]:
    """What can be chosen where several groups are drawn: groups, all flows, and flows if few."""
    if len(run.groups) < 2:  # noqa: PLR2004 - nothing to choose from
        return ["all"]
    apart: list[By] = ["flow"] if len(_numbers(run.flows)) <= MAX_FLOWS else []
    return ["group", "all", *apart]


def by_flow_or_group(run: Run, lines: str | None) -> By | None:
    """What a name asks to be apart; `None` if it is an axis of the sweep."""
    part = _part(run, lines)
    return "flow" if part == _FLOW else "group" if part == _GROUP else None


def _part(run: Run, name: str | None) -> str | None:
    """The column of what a name asks for: `flow` is that of flows unless an axis has it."""
    return _FLOW if name == "flow" and name not in run.axis_columns else name


def _groups(run: Run, numbers: list[tuple[str, int]], chosen: str | None, *, every: bool) -> Parts:
    looks = {name: Look.of(index) for index, name in enumerate(run.groups)}
    counts = Counter(group for group, _ in numbers)
    # The flows of a group need not have rows.
    there = [name for name in run.groups if every or name in counts]
    labels = [name for name in there if chosen in (None, name)]
    several = any(counts[label] != 1 for label in labels)
    axis = run.remarks.groups(Axis(_GROUP, _GROUP, None, None, labels))
    return Parts("group", chosen, axis, looks, several=several)


def _flows(run: Run, numbers: list[tuple[str, int]], chosen: str | None) -> Parts:
    mine = [(group, number) for group, number in numbers if chosen in (None, group)]
    if len(mine) > MAX_FLOWS:
        raise InputError(
            f"{len(mine)} flows are more than a figure tells apart ({MAX_FLOWS}):"
            " draw a line of each group, or the flows of one"
        )
    numbered = len(numbers) > len({group for group, _ in numbers})
    grouped = len(run.groups) > 1
    flows, looks = {}, {}
    places: Counter[str] = Counter()
    for group, number in mine:
        label = f"{group}, flow {number}" if numbered else group
        place = places[group]
        # One colour for a group, wherever it is drawn.
        looks[label] = Look(run.groups.index(group), place, place) if grouped else Look.of(place)
        flows[label] = (group, number)
        places[group] += 1
    axis = Axis("flow", _FLOW, None, None, list(flows))
    return Parts("flow", chosen, axis, looks, flows, dashed=grouped)


def _numbers(flows: pl.DataFrame) -> list[tuple[str, int]]:
    """Group and number of each flow."""
    found = flows.select(pl.col("group").cast(pl.String), "flow_id").unique().sort("flow_id")
    return [(str(group), int(number)) for group, number in found.iter_rows()]
