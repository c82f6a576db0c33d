"""Names that fit the panels of a page: in lines, upright, or last with their middle left out."""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

#: Pixels: the width of a letter, the height of a line, and the narrowest panel that a page has.
_LETTER, _LINE, _PANEL = 7.0, 15, 200
#: Letters in a line of the name of an axis, and of what is written at a mark upright.
_AXIS, _UPRIGHT = 30, 22
#: Lines of the name of an axis, and of what is written at a mark.
_AXIS_LINES, _MARK_LINES = 3, 4


def broken(text: str) -> str:
    """The name of an axis in lines; a comma is the first place to break it."""
    first, comma, rest = text.partition(", ")
    parts = [f"{first},", rest] if comma else [text]
    lines = [line for part in parts for line in textwrap.wrap(part, _AXIS) or [""]]
    if len(lines) > _AXIS_LINES:
        lines = textwrap.wrap(shortened(text, _AXIS * _AXIS_LINES - 12), _AXIS)
    return "<br>".join(map(escape, lines))


def shortened(text: str, most: int) -> str:
    """A text of at most so many letters, its middle left out."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def marks(names: list[str]) -> tuple[dict[str, Any], int]:
    """What is written at the marks 0, 1, … of an axis; pixels that it has more than one line."""
    each = _PANEL / max(len(names), 1)
    letters = int(each / _LETTER) - 1
    level = [_lines(name, letters, _MARK_LINES) for name in names] if letters > 0 else []
    words = max((len(word) for name in names for word in name.split()), default=0)
    if level and words <= letters and all(lines is not None for lines in level):
        written = [lines or [""] for lines in level]
        more, angle = _LINE * (max(map(len, written), default=1) - 1), 0
    else:
        count = max(1, min(_MARK_LINES, int(each / _LINE)))
        cut = [shortened(name, _UPRIGHT * count - 4 * (count - 1)) for name in names]
        written = [textwrap.wrap(name, _UPRIGHT)[:count] or [""] for name in cut]
        longest = max((len(line) for lines in written for line in lines), default=0)
        more, angle = int(_LETTER * longest), -90
    # Marks that are closer than a line have no name but every so many.
    every = max(1, round(_LINE / each + 0.5)) if angle else 1
    texts = [
        "<br>".join(map(escape, lines)) if index % every == 0 else ""
        for index, lines in enumerate(written)
    ]
    ticks = {"tickvals": list(range(len(names))), "ticktext": texts, "tickangle": angle}
    return ticks, more


def _lines(text: str, letters: int, most: int) -> list[str] | None:
    lines = textwrap.wrap(text, letters)
    return lines if len(lines) <= most else None
