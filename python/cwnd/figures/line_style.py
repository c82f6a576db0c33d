"""Colours, dashes and markers for print, greyscale, and colour-blind readers."""

from __future__ import annotations

from dataclasses import dataclass

#: Width of a figure over both columns of a paper, in inches.
WIDTH = 7.16
# Palette of Okabe & Ito, ordered so that neighbours differ in lightness, too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
# Dashes and markers distinguish lines in greyscale. There are fewer dashes than colours, so that a
# repeated colour has other dashes.
#: Lengths of dashes and gaps, in widths of the line.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.2, 1.2), (5, 1.5, 1.2, 1.5))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


def colour(index: int) -> str:
    """Colour of the line with this index."""
    return COLOURS[index % len(COLOURS)]


def dashes(index: int) -> tuple[float, ...]:
    """Dashes of the line with this index."""
    return DASHES[index % len(DASHES)]


def marker(index: int) -> str:
    """Marker of the line with this index."""
    return MARKERS[index % len(MARKERS)]


@dataclass(frozen=True)
class LineStyle:
    """Indices of a line's colour, dashes and marker."""

    colour: int
    dash: int
    marker: int

    @classmethod
    def of(cls, index: int) -> LineStyle:
        """Style of the line with this index."""
        return cls(index, index, index)
