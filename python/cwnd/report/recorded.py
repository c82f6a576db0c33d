"""Results of `cwnd link`, `cwnd infer` and `cwnd agree` as a part of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.report.figures import Choice, Figure
from cwnd.results import TextTable, number
from cwnd.store import numbers

if TYPE_CHECKING:
    from cwnd.figures import Picture
    from cwnd.store import Records


@dataclass(frozen=True)
class Recorded:
    """A result of another command than `cwnd run`, with its figure."""

    records: Records
    #: Title of the figure, and the figure; `None` if there is nothing to draw.
    title: str
    picture: Picture | None

    @property
    def name(self) -> str:
        """Name of the scenario, or of the measured object."""
        return self.records.name or self.records.path.name

    @property
    def text_table(self) -> TextTable:
        """Table of its numbers in SI units."""
        rows: list[tuple[str, ...]] = [
            (of, quantity, "–" if value is None else number(value))
            for (of, quantity), value in numbers(self.records)
        ]
        return TextTable("Numbers", ["SI units"], 2, ["of", "quantity", "value"], rows)

    @property
    def figure(self) -> Figure | None:
        """Figure on the page; `None` if there is nothing to draw."""
        if self.picture is None:
            return None
        choice = Choice("", self.picture, self.picture.columns)
        return Figure(self.records.kind, self.title, "", [choice])
