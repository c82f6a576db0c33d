"""Reads figures back from their SVG: markers, intervals and lines of each panel, in its numbers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from cwnd import _core

if TYPE_CHECKING:
    from cwnd.figures import Picture

#: Units of the document in a point.
_UNITS = 10.0
#: No marker is larger, in points; the centre of a triangle's box is this far from its own.
_MARKER, OFF_CENTRE = 6.0, 0.3
#: Markers without an area are drawn with lines of this width.
_CROSS = "20"

Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Points of a figure as numbers of an axis."""

    start: float
    length: float
    limits: tuple[float, float]
    log: bool

    def of(self, value: float) -> float:
        """The place of a number."""
        low, high, value = (
            (math.log10(each) if self.log else each) for each in (*self.limits, value)
        )
        return self.start + (value - low) / (high - low) * self.length

    def number(self, at: float) -> float:
        """The number at a place."""
        low, high = (math.log10(each) if self.log else each for each in self.limits)
        found = low + (at - self.start) / self.length * (high - low)
        return float(10**found) if self.log else found


@dataclass
class Read:
    """The contents of a panel, by colour."""

    x: Scale
    y: Scale
    markers: dict[str, list[Place]] = field(default_factory=dict)
    #: x, lower and upper end.
    bars: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)
    paths: dict[str, list[list[Place]]] = field(default_factory=dict)

    def holds(self, place: Place) -> bool:
        """`True` if a place is in the panel, edges included."""
        (x, y), free = place, 0.3
        top, bottom = self.y.start + self.y.length, self.y.start
        across = self.x.start - free <= x <= self.x.start + self.x.length + free
        return across and top - free <= y <= bottom + free

    def distance(self, colour: str, place: Place) -> float:
        """From a place to the nearest line of a colour, in points."""
        pieces = [
            piece for path in self.paths.get(colour, []) for piece in pairwise([path[0], *path])
        ]
        return min((_distance(place, *piece) for piece in pieces), default=math.inf)


def read(picture: Picture) -> list[Read]:
    """Reads the panels of a figure."""
    laid = _core.lay_out(picture)
    panels = [
        Read(
            Scale(place["left"], place["width"], place["x_limits"], panel.x_log),
            Scale(place["top"] + place["height"], -place["height"], place["y_limits"], panel.y_log),
        )
        for panel, place in zip(picture.panels, laid["panels"], strict=True)
    ]
    document = ET.fromstring(_core.draw_svg(picture))
    lines: list[tuple[str, str, list[Place]]] = []
    for node in document.iter():
        kind = node.tag.rpartition("}")[2]
        if kind == "circle":
            centre = float(node.get("cx", "")) / _UNITS, float(node.get("cy", "")) / _UNITS
            _add(panels, "markers", node.get("fill", ""), centre, centre)
        elif kind == "polygon":
            xs, ys = zip(*_corners(node), strict=True)
            if max(max(xs) - min(xs), max(ys) - min(ys)) <= _MARKER:
                centre = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
                _add(panels, "markers", node.get("fill", ""), centre, centre)
        elif kind == "polyline":
            lines.append((node.get("stroke", ""), node.get("stroke-width", ""), _corners(node)))
    while lines:
        colour, width, path = lines.pop(0)
        middle = (path[0][0] + path[-1][0]) / 2, (path[0][1] + path[-1][1]) / 2
        if width == _CROSS:
            lines.pop(0)
            _add(panels, "markers", colour, middle, middle)
        elif _is_bar(path, [each for *_, each in lines[:2]]):
            del lines[:2]
            (x, low), (_, high) = path
            _add(panels, "bars", colour, (x, low), (x, low, high))
        else:
            _add(panels, "paths", colour, path[0], path)
    return panels


def _add(panels: list[Read], kind: str, colour: str, place: Place, what: object) -> None:
    # What is in no panel is of a legend.
    for panel in panels:
        if panel.holds(place):
            getattr(panel, kind).setdefault(colour, []).append(what)


def _is_bar(path: list[Place], caps: list[list[Place]]) -> bool:
    """`True` of an upright stroke that is followed by those at its ends."""
    if len(path) != 2 or path[0][0] != path[1][0] or [len(cap) for cap in caps] != [2, 2]:
        return False
    return all(
        abs((cap[0][0] + cap[1][0]) / 2 - end[0]) < 0.2 and cap[0][1] == cap[1][1] == end[1]
        for cap, end in zip(caps, path, strict=True)
    )


def _corners(node: ET.Element) -> list[Place]:
    pairs = (pair.split(",") for pair in node.get("points", "").split())
    return [(float(x) / _UNITS, float(y) / _UNITS) for x, y in pairs]


def _distance(place: Place, start: Place, end: Place) -> float:
    (x, y), (x1, y1), (x2, y2) = place, start, end
    length = (x2 - x1) ** 2 + (y2 - y1) ** 2
    along = 0.0 if length == 0 else ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length
    along = min(max(along, 0.0), 1.0)
    return math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1))
