"""The x axis of a sweep's figure: positions of points, scale and ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cwnd.plots.layout import display_unit

if TYPE_CHECKING:
    import polars as pl

    from cwnd.results import Axis

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
