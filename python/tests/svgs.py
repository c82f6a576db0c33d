"""Reads figures back from their SVG: the marks of each panel, and all texts with their boxes."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd.figures import Figure
from cwnd.figures.layout import lay_out
from cwnd.figures.text import width as text_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from cwnd.figures import Picture
    from cwnd.figures.axes import Scale

#: Overlap that is rounding, in points.
_OVERLAP = 0.6


@dataclass(frozen=True)
class Box:
    """A text and the rectangle around it, in points."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """`True` if the two boxes share more than an edge."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > _OVERLAP
            and min(self.bottom, other.bottom) - max(self.top, other.top) > _OVERLAP
        )


def complaints(boxes: list[Box], width: float, height: float) -> list[str]:
    """Texts that leave the figure or cover each other."""
    found = [
        f"{box} leaves {width:.0f} × {height:.0f}"
        for box in boxes
        if min(box.left, box.top, width - box.right, height - box.bottom) < -_OVERLAP
    ]
    found += [f"{a} covers {b}" for a, b in combinations(boxes, 2) if a.overlaps(b)]
    return found


#: The widths of texts have this factor as a margin.
_TEXT_MARGIN = 1.01
#: Ink above the baseline (accented capitals) and below it (descenders), in font sizes.
_ASCENT, _DESCENT = 0.93, 0.24
#: Tolerance of places, in points; Vega rounds paths to less.
NEAR = 0.05
_NUMBER = r"-?[0-9.]+(?:e-?[0-9]+)?"

Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """Points of a figure as numbers of an axis."""

    start: float
    length: float
    scale: Scale

    def of(self, value: float) -> float:
        """The place of a number."""
        return self.start + self.scale.place(value) * self.length

    def number(self, at: float) -> float:
        """The number at a place."""
        low, high = self.scale.low, self.scale.high
        return self.scale.value(low + (at - self.start) / self.length * (high - low))


@dataclass
class Read:
    """The contents of a panel, by colour; places are points of the figure."""

    x: Axis
    y: Axis
    markers: dict[str, list[Place]] = field(default_factory=dict)
    #: Strokes from one place to another: intervals, references, boxes.
    strokes: dict[str, list[tuple[Place, Place]]] = field(default_factory=dict)
    paths: dict[str, list[list[Place]]] = field(default_factory=dict)
    #: Edges of a band, there and back.
    bands: dict[str, list[list[Place]]] = field(default_factory=dict)
    #: Left, upper, right and lower edge.
    rectangles: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    _pieces: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)

    @property
    def bars(self) -> dict[str, list[tuple[float, float, float]]]:
        """Upright intervals: x, lower and upper end."""
        return {
            colour: [
                (x, max(a, b), min(a, b)) for (x, a), (other, b) in strokes if abs(x - other) < NEAR
            ]
            for colour, strokes in self.strokes.items()
        }

    def holds(self, place: Place) -> bool:
        """`True` if a place is in the panel, edges included."""
        (x, y), free = place, 0.3
        top, bottom = self.y.start + self.y.length, self.y.start
        across = self.x.start - free <= x <= self.x.start + self.x.length + free
        return across and top - free <= y <= bottom + free

    def at(self, place: Place) -> Place:
        """The numbers of the axes at a place."""
        return self.x.number(place[0]), self.y.number(place[1])

    def distance(self, colour: str, place: Place) -> float:
        """Distance from a place to the nearest line of a colour, in points."""
        if colour not in self._pieces:
            ends = [
                end for path in self.paths.get(colour, []) for end in pairwise([path[0], *path])
            ]
            self._pieces[colour] = np.asarray(ends, dtype=float).reshape(-1, 2, 2)
        start, end = self._pieces[colour][:, 0], self._pieces[colour][:, 1]
        way, length = end - start, ((end - start) ** 2).sum(axis=1)
        along = ((place - start) * way).sum(axis=1) / np.where(length == 0, 1, length)
        nearest = start + np.clip(along, 0, 1)[:, None] * way
        return float(np.hypot(*(place - nearest).T).min(initial=math.inf))


def read(picture: Picture) -> list[Read]:
    """Reads the panels of a figure."""
    panels = [
        Read(
            Axis(place.left, place.width, place.x),
            Axis(place.top + place.height, -place.height, place.y),
        )
        for place in lay_out(picture).places
    ]
    for kind, node, corner in elements(Figure(picture).svg()):
        colour = node.get("fill", "none")
        colour = node.get("stroke", "") if colour in ("none", "") else colour
        if kind == "symbol":
            _add(panels, "markers", colour, corner, corner)
        elif kind == "rule":
            end = corner[0] + float(node.get("x2", 0)), corner[1] + float(node.get("y2", 0))
            _add(panels, "strokes", colour, corner, (corner, end))
        elif kind in ("line", "area"):
            # Their origin is the panel's corner; they may begin beyond the panel.
            for path in paths(node.get("d", ""), corner):
                _add(panels, "paths" if kind == "line" else "bands", colour, corner, path)
        elif kind == "rect":
            x, y, w, h = _rectangle(node.get("d", ""), corner)
            _add(panels, "rectangles", colour, (x + w / 2, y + h / 2), (x, y, x + w, y + h))
    return panels


def texts(document: str) -> tuple[list[Box], float, float]:
    """The texts of a figure, measured in its font; the size of the figure."""
    found = []
    for kind, node, (x, y) in elements(document):
        if kind != "text":
            continue
        size = float(node.get("font-size", "").removesuffix("px"))
        anchor = node.get("text-anchor", "start")
        turned = re.search(
            r"rotate\((-?90|270)\)(?: translate\(0,([^)]*)\))?", node.get("transform", "")
        )
        to_baseline = float(turned[2] or 0) if turned else 0.0
        spans = list(node) or [node]
        for index, span in enumerate(spans):
            text, down = span.text or "", to_baseline + index * float(span.get("dy", 0.0))
            wide = text_width(text, size) / _TEXT_MARGIN
            before = {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            edges = -before, down - _ASCENT * size, wide - before, down + _DESCENT * size
            if turned and turned[1] != "90":
                edges = edges[1], -edges[2], edges[3], -edges[0]
            elif turned:
                edges = -edges[3], edges[0], -edges[1], edges[2]
            box = x + edges[0], y + edges[1], x + edges[2], y + edges[3]
            if text.strip():
                found.append(Box(text, *box))
    root = ET.fromstring(document)
    width, height = (float(root.get(key, "").removesuffix("pt")) for key in ("width", "height"))
    return found, width, height


def numbers(document: str) -> list[str]:
    """The attributes of an SVG that should be numbers and are none; descriptions hold any text."""
    return re.findall(r'(?<!aria-label)="[^"]*(?:NaN|Infinity|undefined|null)[^"]*"', document)


def elements(document: str) -> Iterator[tuple[str, ET.Element, Place]]:
    """The marks and texts of a document with the place of their origin on the figure."""
    root = ET.fromstring(document)
    left, top, *_ = map(float, root.get("viewBox", "").split())
    yield from _inside(root, (-left, -top), "")


def _inside(node: ET.Element, corner: Place, kind: str) -> Iterator[tuple[str, ET.Element, Place]]:
    for child in node:
        name, own = child.tag.rpartition("}")[2], child.get("class", "")
        moved = re.match(rf"translate\(({_NUMBER}),\s*({_NUMBER})\)", child.get("transform", ""))
        dx, dy = map(float, moved.groups()) if moved else (0.0, 0.0)
        at = corner[0] + dx, corner[1] + dy
        if name == "g":
            part = re.match(r"mark-(\w+) role-(\S+)", own)
            here = kind
            if part:
                # Axes, grids and colour bars are no marks; their texts are texts.
                here = part[1] if part[2] == "mark" or part[1] == "text" else ""
            yield from _inside(child, at, here)
        elif name in ("path", "line", "text") and kind and own not in ("background", "foreground"):
            yield kind, child, at


def paths(d: str, corner: Place) -> list[list[Place]]:
    found: list[list[Place]] = []
    for part in re.split("(?=M)", d)[1:]:
        numbers = list(map(float, re.findall(_NUMBER, part)))
        points = zip(numbers[::2], numbers[1::2], strict=True)
        found.append([(corner[0] + x, corner[1] + y) for x, y in points])
    return found


def _rectangle(d: str, corner: Place) -> tuple[float, float, float, float]:
    x, y, w, h, *_ = map(float, re.findall(_NUMBER, d))
    return corner[0] + min(x, x + w), corner[1] + min(y, y + h), abs(w), abs(h)


def _add(panels: list[Read], kind: str, colour: str, place: Place, what: object) -> None:
    # What is in no panel is of a legend.
    for panel in panels:
        if panel.holds(place):
            getattr(panel, kind).setdefault(colour, []).append(what)
