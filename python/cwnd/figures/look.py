"""Colours, dashes and markers: for print, for grey, and for readers who do not see all colours."""

from __future__ import annotations

from dataclasses import dataclass

#: Width of a figure over both columns of a paper, in inches.
WIDTH = 7.16
# The palette of Okabe & Ito, ordered so that neighbours differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
# Dashes and markers tell the lines apart in grey; there are fewer dashes than colours, so that
# a colour that comes again has other dashes.
#: Lengths of dashes and gaps, in widths of the line.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.2, 1.2), (5, 1.5, 1.2, 1.5))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


def colour(index: int) -> str:
    """The colour of the line with this index."""
    return COLOURS[index % len(COLOURS)]


def dashes(index: int) -> tuple[float, ...]:
    """The dashes of the line with this index."""
    return DASHES[index % len(DASHES)]


def marker(index: int) -> str:
    """The shape of the points of the line with this index."""
    return MARKERS[index % len(MARKERS)]


@dataclass(frozen=True)
class Look:
    """Colour, dashes and marker of a line, by their index."""

    colour: int
    dash: int
    marker: int

    @classmethod
    def of(cls, index: int) -> Look:
        """The look of the line with this index."""
        return cls(index, index, index)
