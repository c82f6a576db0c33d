"""The axis along x of a sweep: places of the points, scale and marks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cwnd.plots.layout import human

if TYPE_CHECKING:
    import polars as pl

    from cwnd.results import Axis

#: From this ratio of the largest to the smallest value on, x is logarithmic.
_LOG_FROM = 20.0
#: Part of the distance of two neighbours that the points of all lines are spread over at most.
_SPREAD = 0.5
#: Lines are moved apart by this part of the x range, so that intervals do not hide each other.
_NUDGE = 0.012
#: As many values along x as have room for a tick each.
_MAX_TICKS = 8


@dataclass(frozen=True)
class Along:
    """An axis of a sweep along x."""

    axis: Axis
    #: The values that are drawn, rising, in the shown unit; empty for labels.
    values: list[float]
    unit: str
    #: From the column of values to the shown unit.
    factor: float

    @classmethod
    def of(cls, axis: Axis, summary: pl.DataFrame) -> Along:
        """The axis of all panels of a row, whose points `summary` holds."""
        if axis.value_column is None:
            return cls(axis, [], "", 1.0)
        values = summary[axis.value_column].drop_nulls().unique().sort().to_list()
        unit, factor = human(axis.unit, values)
        return cls(axis, [value * factor for value in values], unit, factor)

    @property
    def label(self) -> str:
        """Its name with its unit."""
        name = self.axis.name.upper() if self.axis.name.lower() == "rtt" else self.axis.name
        return f"{name} ({self.unit})" if self.unit else name

    @property
    def numeric(self) -> bool:
        """`True` if its labels are numbers."""
        return self.axis.value_column is not None

    @property
    def logarithmic(self) -> bool:
        """`True` if its values are told apart on a logarithmic axis only."""
        return bool(self.values) and 0 < self.values[0] * _LOG_FROM <= self.values[-1]

    @property
    def ticks(self) -> list[tuple[float, str]] | None:
        """Its marks; `None` leaves them to the painter."""
        if not self.numeric:
            return list(enumerate(map(self.axis.shown, self.axis.labels)))
        if len(self.values) > _MAX_TICKS:
            return None
        return [(value, f"{value:g}") for value in self.values]

    def places(self, rows: pl.DataFrame, line: int, lines: int) -> list[float]:
        """The places of the points of one of several lines, equally far from their values.

        The distance is as it is drawn, a ratio on a logarithmic axis, and so short that each point
        is nearest to its own value.
        """
        aside = (line + 0.5) / lines - 0.5
        if self.axis.value_column is None:
            labels = self.axis.labels
            return [labels.index(each) + _SPREAD * aside for each in rows[self.axis.column]]
        drawn = [math.log(value) if self.logarithmic else value for value in self.values]
        least = min((b - a for a, b in pairwise(drawn)), default=0.0)
        span = drawn[-1] - drawn[0] if drawn else 0.0
        shift = aside * min(_NUDGE * span * lines, _SPREAD * least)
        values = [value * self.factor for value in rows[self.axis.value_column]]
        if self.logarithmic:
            return [value * math.exp(shift) for value in values]
        return [value + shift for value in values]
