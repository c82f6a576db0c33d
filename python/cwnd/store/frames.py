"""Key columns of all tables: the run of a row and the labels and values of its axes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cwnd.results import RESERVED, Axis
from cwnd.store.layout import CELL_ID, RESOLVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd import _core

#: Key columns at the start of every frame, besides the axes.
KEYS = ("run_id", "scenario", "seed")
#: Columns of `Run.runs` besides keys and counters.
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
#: Prefix for the column of an axis whose name is taken.
_AXIS_PREFIX = "axis_"
#: Prefix of the columns of counters.
_ACTIVITY_PREFIX = "activity_"


def axes_of(scenario: _core.Scenario, taken: set[str]) -> list[Axis]:
    """Builds the axes of a scenario with unused column names, which are added to `taken`."""
    shapes = [
        (name, labels, values is not None, unit) for name, labels, values, unit in scenario.axes
    ]
    axes = name_axes(shapes, taken)
    return [replace(axis, over=scenario.over.get(axis.name, {})) for axis in axes]


def renamed_axes(axes: list[Axis], columns: set[str]) -> list[Axis]:
    """Renames the columns of a plan's axes so that no table uses them otherwise."""
    shapes = [(a.name, a.labels, a.value_column is not None, a.unit) for a in axes]
    taken = columns | {*KEYS, *RUN_COLUMNS, *RESERVED, CELL_ID, RESOLVED}
    return [
        replace(new, over=old.over) for new, old in zip(name_axes(shapes, taken), axes, strict=True)
    ]


def name_axes(
    shapes: Iterable[tuple[str, list[str], bool, str | None]], taken: set[str]
) -> list[Axis]:
    """Chooses columns for axes, given name, labels, `True` for numeric values, and unit."""
    axes = []
    for name, labels, numeric, unit in shapes:
        column = _unused_name(name, taken)
        value_column = None
        if numeric:
            suffix = unit.replace("/", "_") if unit else "value"
            value_column = _unused_name(f"{name}_{suffix}", taken)
        axes.append(Axis(name, column, value_column, unit, labels))
    return axes


def _unused_name(name: str, taken: set[str]) -> str:
    # The names of counters are known only when the last run has ended.
    while name in taken or name.startswith(_ACTIVITY_PREFIX):
        name = _AXIS_PREFIX + name
    taken.add(name)
    return name
