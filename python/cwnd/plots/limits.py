"""Limits of y axes: shared by panels that are compared, and never inside the data."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd.figures import Line, Panel

#: Ratio of panels' largest values from which they have separate axes: on a shared one the smaller
#: values would be a flat line.
_SEPARATE_AXES_RATIO = 10.0
#: Margin above and below the data, as a fraction of its range.
_MARGIN = 0.05
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
    room = _MARGIN * (high - low or abs(high) or 1.0)
    # Zero is shown unless that would flatten values that are close to each other.
    near_zero = low >= 0 and (low < high / 2 or high == 0)
    return 0.0 if from_zero or near_zero else low - room, high + room
