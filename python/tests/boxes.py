"""Where the texts of a figure are: boxes that must lie inside of it, and apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from matplotlib.text import Text

from cwnd.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Less than this is rounding, in points.
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
        """Whether they share more than an edge."""
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


def of_figure(figure: Figure) -> tuple[list[Box], float, float]:
    """The texts that a figure of matplotlib shows; its size."""
    # As the PNG is written: letters are moved to its pixels.
    figure.dpi = style.DPI
    figure.draw_without_rendering()
    points = 72 / figure.dpi
    width, height = figure.get_size_inches() * 72
    found = []
    for text in figure.findobj(Text):
        if not text.get_visible() or not text.get_text().strip() or not _is_shown(text, figure):
            continue
        box = text.get_window_extent()
        edges = (box.x0, figure.bbox.height - box.y1, box.x1, figure.bbox.height - box.y0)
        found.append(Box(text.get_text(), *(float(edge * points) for edge in edges)))
    return found, width, height


def _is_shown(text: Text, figure: Figure) -> bool:
    """Whether a label of a tick is: axes keep ticks that they do not draw."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for tick in (*axis.majorTicks, *axis.minorTicks):
                if text in (tick.label1, tick.label2):
                    return tick in axis._update_ticks()  # type: ignore[attr-defined]
    return True
