"""Where the texts of a figure are: boxes that must lie inside of it, and apart."""

from __future__ import annotations

import functools
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from fontTools.ttLib import TTFont
from matplotlib.text import Text

from cwnd.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Less than this is rounding, in points.
_NOTHING = 0.6
#: Of letters that the font lacks: a square.
_SQUARE = 1.0


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


@functools.cache
def _font() -> tuple[dict[int, float], float, float]:
    """Advances by letter, ascent and descent of DejaVu Sans, in relation to its size."""
    font = TTFont(Path(mpl.get_data_path()) / "fonts/ttf/DejaVuSans.ttf")
    em = font["head"].unitsPerEm
    widths = font["hmtx"]
    advances = {code: widths[name][0] / em for code, name in font.getBestCmap().items()}
    # What has ink: capitals with accents, and letters with a tail.
    return advances, 0.93, 0.24


def of_svg(document: str) -> tuple[list[Box], float, float]:
    """The texts of an SVG that `_core.draw_svg` made, measured in DejaVu Sans; its size."""
    root = ET.fromstring(document)
    units = float(root.get("viewBox", "").split()[2]) / float(root.get("width", "").rstrip("pt"))
    advances, ascent, descent = _font()
    found = []
    for node in root.iter("{*}text"):
        text = node.text or ""
        size, x, y = (float(node.get(key, "")) / units for key in ("font-size", "x", "y"))
        width = sum(advances.get(ord(letter), _SQUARE) for letter in text) * size
        before = {"start": 0.0, "middle": width / 2, "end": width}[node.get("text-anchor", "")]
        along, after = -before, width - before
        if "rotate(270" in node.get("transform", ""):
            box = (x - ascent * size, y - after, x + descent * size, y - along)
        else:
            box = (x + along, y - ascent * size, x + after, y + descent * size)
        found.append(Box(text, *box))
    width, height = (float(root.get(key, "").rstrip("pt")) for key in ("width", "height"))
    return found, width, height


def numbers_of_svg(document: str) -> list[str]:
    """What is no number where an SVG has coordinates."""
    return re.findall(r'="[^"]*(?:NaN|inf|2147483)[^"]*"', document)


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
