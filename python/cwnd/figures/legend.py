"""Legends: names of lines and other marks, in as many columns as fit."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cwnd.figures.sizes import LINE_PT, TEXT_PT
from cwnd.figures.text import Text, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd.figures.description import Panel

#: Width of a key (a dash or a marker).
KEY_PT = 20.0
#: Gap between two columns.
GAP_PT = 12.0
#: Maximum number of lines of a name.
_MAX_LINES = 3
#: Maximum number of names; further ones are counted, since so many lines are indistinguishable.
_MAX_ENTRIES = 60


@dataclass(frozen=True)
class Entry:
    """A name and its offset from the top left corner of the legend, in points."""

    #: Label of the marks; `None` for the number of names left out.
    label: str | None
    text: Text
    left: float = 0.0
    top: float = 0.0


@dataclass(frozen=True)
class Legend:
    """Names in columns, filled one after the other; sizes in points."""

    entries: Sequence[Entry] = ()
    columns: int = 0
    width: float = 0.0
    height: float = 0.0


def names(panels: Iterable[Panel]) -> list[str]:
    """Distinct labels of marks in shown panels; empty if there is only one."""
    labels = (getattr(mark, "label", None) for p in panels if p.shown for mark in p.marks)
    found = list(dict.fromkeys(label for label in labels if label and label.strip()))
    return found if len(found) > 1 else []


def row_width(labels: Sequence[str]) -> float:
    """Width of a legend in a single row."""
    each = sum(KEY_PT + width(label, TEXT_PT) for label in labels)
    return each + GAP_PT * max(len(labels) - 1, 0)


def legend(labels: Sequence[str], room: float) -> Legend:
    """Lays out names in as many columns as fit, and so in the fewest rows."""
    if not labels:
        return Legend()
    shown = labels if len(labels) <= _MAX_ENTRIES else labels[: _MAX_ENTRIES - 1]
    left_out = len(labels) - len(shown)

    def entry(label: str | None, text: str) -> Entry:
        return Entry(label, Text.fitted(text, room - KEY_PT, TEXT_PT, _MAX_LINES))

    entries = [entry(label, label) for label in shown]
    entries += [entry(None, f"… and {left_out} more")] if left_out else []
    count = len(entries)
    # Numbers of columns that are filled evenly.
    possible = [n for n in range(count, 0, -1) if n == -(-count // -(-count // n))]
    columns = next((n for n in possible if _widths(entries, n)[1] <= room), 1)
    widths, total = _widths(entries, columns)
    placed: list[Entry] = []
    height = left = 0.0
    for column, own in zip(_columns(entries, columns), widths, strict=True):
        top = 0.0
        for each in column:
            placed.append(replace(each, left=left, top=top))
            top += each.text.height * LINE_PT + 1.0
        height = max(height, top)
        left += own + GAP_PT
    return Legend(placed, columns, total, height)


def _columns(entries: Sequence[Entry], count: int) -> list[Sequence[Entry]]:
    """Splits entries into columns; the first ones have one more if the division leaves a rest."""
    each, more = divmod(len(entries), count)
    ends = [column * each + min(column, more) for column in range(count + 1)]
    return [entries[start:end] for start, end in itertools.pairwise(ends)]


def _widths(entries: Sequence[Entry], count: int) -> tuple[list[float], float]:
    """Widths of the columns, and of the whole legend."""
    widths = [
        max(KEY_PT + entry.text.width(TEXT_PT) for entry in column)
        for column in _columns(entries, count)
    ]
    return widths, sum(widths) + GAP_PT * (count - 1)
