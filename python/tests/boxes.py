"""Boxes around the texts of a figure, which must lie inside it and must not overlap."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

#: Overlap that is rounding, in points.
_NOTHING = 0.6


@dataclass(frozen=True)
class Box:
    """A text and the rectangle around it, in points."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """`true` if the two boxes share more than an edge."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > _NOTHING
            and min(self.bottom, other.bottom) - max(self.top, other.top) > _NOTHING
        )


def complaints(boxes: list[Box], width: float, height: float) -> list[str]:
    """Texts that leave the figure or cover each other."""
    found = [
        f"{box} leaves {width:.0f} × {height:.0f}"
        for box in boxes
        if min(box.left, box.top, width - box.right, height - box.bottom) < -_NOTHING
    ]
    found += [f"{a} covers {b}" for a, b in combinations(boxes, 2) if a.overlaps(b)]
    return found
