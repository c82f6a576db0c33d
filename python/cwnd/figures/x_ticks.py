"""Labels of the ticks along x: level, in lines, upright, or at some of the ticks only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from cwnd.figures.sizes import TICK_LINE_PT, TICK_TEXT_PT
from cwnd.figures.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Minimum gap between two labels.
_GAP_PT = 4.0
#: Maximum number of lines of level labels, and maximum length and number of lines of upright ones.
_MAX_LINES = 4
_UPRIGHT_PT = 120.0
_MAX_UPRIGHT_LINES = 3


@dataclass
class XTicks:
    """Ticks along x, by value, with their labels; the text is empty where there is no room."""

    ticks: list[tuple[float, Text]] = field(default_factory=list)
    #: `True` if labels are rotated to read from below.
    upright: bool = False
    #: Height of the labels in points.
    height: float = 0.0
    #: Reach of labels beyond the axis, left and right.
    overhang: tuple[float, float] = (0.0, 0.0)

    def width(self, text: Text) -> float:
        """Width of a label along the axis in points."""
        return text.height * TICK_LINE_PT if self.upright else text.width(TICK_TEXT_PT)


def labelled(
    ticks: Sequence[tuple[float, str]], positions: Sequence[float], width: float
) -> XTicks:
    """Chooses the form of the labels; `positions` are points from the start of the axis."""
    spacing = min((b - a for a, b in pairwise(sorted(positions))), default=width)
    spacing = min(spacing, width)

    def texts(max_width: float, max_lines: int) -> list[Text]:
        return [Text.fitted(text, max_width, TICK_TEXT_PT, max_lines) for _, text in ticks]

    def separate(texts: list[Text]) -> bool:
        return all(text.width(TICK_TEXT_PT) + _GAP_PT <= spacing for text in texts)

    values = [at for at, _ in ticks]
    level = texts(math.inf, 1)
    if all(_is_number(text) for _, text in ticks):
        return _placed(values, level, positions, width, upright=False)
    if separate(level) or (len(ticks) < 2 and width > _UPRIGHT_PT):  # noqa: PLR2004
        return _placed(
            values, texts(max(width, spacing), _MAX_LINES), positions, width, upright=False
        )
    # Words are broken only if all other forms fail.
    in_lines = texts(spacing - _GAP_PT, _MAX_LINES)
    whole_words = all(
        fitted.whole is None
        and sum(len(line.split()) for line in fitted.lines) == len(text.split())
        for (_, text), fitted in zip(ticks, in_lines, strict=True)
    )
    if whole_words and separate(in_lines):
        return _placed(values, in_lines, positions, width, upright=False)
    lines = min(max(int(spacing / TICK_LINE_PT), 1), _MAX_UPRIGHT_LINES)
    return _placed(values, texts(_UPRIGHT_PT, lines), positions, width, upright=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _placed(
    values: list[float],
    texts: list[Text],
    positions: Sequence[float],
    width: float,
    *,
    upright: bool,
) -> XTicks:
    """Leaves out labels that would touch the previous one."""
    found = XTicks(upright=upright)
    kept = [Text()] * len(values)
    end = -math.inf
    gap = 0.0 if upright else _GAP_PT
    left = right = 0.0
    for index in sorted(range(len(values)), key=lambda each: positions[each]):
        text, at = texts[index], positions[index]
        across = found.width(text)
        if not text.lines or at - across / 2 < end + gap:
            continue
        down = text.width(TICK_TEXT_PT) + 2.0 if upright else text.height * TICK_LINE_PT
        end = at + across / 2
        found.height = max(found.height, down)
        left, right = max(left, across / 2 - at), max(right, end - width)
        kept[index] = text
    found.overhang = left, right
    found.ticks = list(zip(values, kept, strict=True))
    return found
