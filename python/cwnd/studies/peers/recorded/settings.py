"""Settings that were recorded with several seeds: what comparisons by other measures share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.studies.peers.recorded.rows import Row


@dataclass(frozen=True, eq=False)
class Recorded:
    """Recorded runs that differ in their seeds only."""

    rows: tuple[Row, ...]

    #: File → name of its rows on the page.
    tables: ClassVar[Mapping[str, str]]

    @property
    def row(self) -> Row:
        """The first of the recorded runs."""
        return self.rows[0]

    @property
    def key(self) -> str:
        """Names it on the page and in tests, by the first of its rows."""
        return f"{self.tables[self.row.table]} {self.row.number}"

    @property
    def numbers(self) -> str:
        """Numbers of its rows in the file."""
        return ", ".join(str(row.number) for row in self.rows)

    @property
    def by_value(self) -> bool:
        """`true` if the setting is judged by bounds; otherwise it is only shown."""
        return True

    @property
    def missing(self) -> str | None:
        """Reason why no scenario can express the setting, if none can."""
        return None


class Beside(Protocol):
    """A setting, and ours beside it."""

    @property
    def setting(self) -> Recorded:
        """The recorded setting."""

    @property
    def holds(self) -> bool:
        """`true` if ours is within the bounds."""


B = TypeVar("B", bound=Beside)


def judged(found: Sequence[B]) -> list[B]:
    """Returns those that are judged by value."""
    return [c for c in found if c.setting.by_value]


def counts(found: Sequence[Beside]) -> tuple[int, int]:
    """Recorded rows that are judged by value, and that hold."""
    each = [(len(c.setting.rows), c.holds) for c in judged(found)]
    return sum(n for n, _ in each), sum(n for n, holds in each if holds)


def summary(found: Sequence[Beside]) -> list[str]:
    """Returns the lines of the table of all peers, one for each file."""
    tables: dict[str, list[Beside]] = {}
    for each in found:
        tables.setdefault(each.setting.row.table, []).append(each)
    lines = []
    for table, here in tables.items():
        rows = sum(len(c.setting.rows) for c in here)
        n, hold = counts(here)
        missing = sum(len(c.setting.rows) for c in here if c.setting.missing)
        name = here[0].setting.tables[table]
        lines.append(f"| {name} | {rows} | {n} | {hold} | {rows - n - missing} | {missing} |")
    return lines
