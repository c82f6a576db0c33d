"""Columns that the tables of all runs have: the run that a row belongs to, and the axes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cwnd.results import RESERVED, Axis
from cwnd.store.layout import CELL_ID, RESOLVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd import _core

#: Columns that every frame starts with, besides the axes.
KEYS = ("run_id", "scenario", "seed")
#: Columns of `Run.runs` besides those and the activity.
RUN_COLUMNS = (
    "cell",
    "cell_sha",
    "duration_s",
    "warmup_s",
    "events",
    "delivered_packets",
    "requests",
    "requests_without_row",
    "digest",
    "facts",
    "n",
)
#: What keeps an axis apart from a column that has its name.
_AXIS_PREFIX = "axis_"
#: What columns of the activity begin with.
_ACTIVITY_PREFIX = "activity_"


def axes_of(scenario: _core.Scenario, taken: set[str]) -> list[Axis]:
    """The axes of a scenario with their columns, none of which is taken; it takes them."""
    shapes = [
        (name, labels, values is not None, unit) for name, labels, values, unit in scenario.axes
    ]
    axes = name_axes(shapes, taken)
    return [replace(axis, over=scenario.over.get(axis.name, {})) for axis in axes]


def renamed_axes(axes: list[Axis], columns: set[str]) -> list[Axis]:
    """The axes of a plan with columns that are apart from those of all tables."""
    shapes = [(a.name, a.labels, a.value_column is not None, a.unit) for a in axes]
    taken = columns | {*KEYS, *RUN_COLUMNS, *RESERVED, CELL_ID, RESOLVED}
    return [
        replace(new, over=old.over) for new, old in zip(name_axes(shapes, taken), axes, strict=True)
    ]


def name_axes(
    shapes: Iterable[tuple[str, list[str], bool, str | None]], taken: set[str]
) -> list[Axis]:
    """Names columns from name, labels, whether the values are numbers, and their unit."""
    axes = []
    for name, labels, numeric, unit in shapes:
        column = _free(name, taken)
        value_column = None
        if numeric:
            suffix = unit.replace("/", "_") if unit else "value"
            value_column = _free(f"{name}_{suffix}", taken)
        axes.append(Axis(name, column, value_column, unit, labels))
    return axes


def _free(name: str, taken: set[str]) -> str:
    # What is counted has columns that are known only when the last run has ended.
    while name in taken or name.startswith(_ACTIVITY_PREFIX):
        name = _AXIS_PREFIX + name
    taken.add(name)
    return name
