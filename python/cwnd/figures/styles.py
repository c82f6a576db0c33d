"""Styles of all marks of a figure, as scales over their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cwnd.figures.description import Image, Line, Note, Span
from cwnd.figures.text import KEYWORD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.figures.description import Mark, Panel

#: Vega's shapes by the letters of `line_style.MARKERS`, and by `x`. Paths are scaled to look as
#: large as a circle with radius 1.
_SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "M0,-1.2L1.15,0.95L-1.15,0.95Z",
    "D": "M0,-1.35L1.35,0L0,1.35L-1.35,0Z",
    "v": "M0,1.2L1.15,-0.95L-1.15,-0.95Z",
    "P": "M-0.4,-1.2H0.4V-0.4H1.2V0.4H0.4V1.2H-0.4V0.4H-1.2V-0.4H-0.4Z",
    "X": "M-1.15,-0.6L-0.6,-1.15L0,-0.55L0.6,-1.15L1.15,-0.6L0.55,0L1.15,0.6L0.6,1.15L0,0.55"
    "L-0.6,1.15L-1.15,0.6L-0.55,0Z",
    # Two strokes, for outlines.
    "x": "M-1,-1L1,1M-1,1L1,-1",
    "<": "M-1.2,0L0.95,-1.15L0.95,1.15Z",
}
#: Dash pattern of a solid line.
_SOLID = [1, 0]


@dataclass(frozen=True)
class Style:
    """Colour, line and marker of a mark."""

    colour: str
    width: float = 1.0
    dashes: tuple[float, ...] = ()
    marker: str | None = None
    hollow: bool = False
    size: float = 4.0
    #: Keys of a legend: a line, a colour patch, or neither.
    joined: bool = False
    patch: bool = False

    @classmethod
    def of(cls, mark: Mark) -> Style:
        """Style of any mark that has a colour.

        Raises:
            ValueError: The mark is an image or a text.
        """
        match mark:
            case Line():
                return cls(
                    mark.colour,
                    mark.width,
                    mark.dashes,
                    mark.marker,
                    mark.hollow,
                    mark.size,
                    joined=mark.joined,
                    patch=mark.band is not None and not mark.joined and mark.marker is None,
                )
            case Image() | Note():
                raise ValueError("neither images nor texts are in a legend")
        dashes = getattr(mark, "dashes", None)
        if dashes is not None and not isinstance(mark, Span):
            return cls(mark.colour, mark.width, dashes, joined=True)
        return cls(mark.colour, patch=True)


@dataclass
class Styles:
    """Styles of all marks by name; different styles have different names."""

    by_name: dict[str, Style] = field(default_factory=dict)
    #: Name of the style that represents a label in the legend.
    by_label: dict[str, str] = field(default_factory=dict)

    def name(self, mark: Mark, taken: Iterable[str] = ()) -> str:
        """Registers a mark under its label, or as `line 1`, and returns the name.

        The name gets a number if another style has it, or if it is in `taken`.
        """
        style, label = Style.of(mark), getattr(mark, "label", None) or ""
        base, number = label or "line", 1
        name = base if label else "line 1"
        while name == KEYWORD or name in taken or self.by_name.get(name, style) != style:
            number += 1
            name = f"{base} {number}"
        self.by_name[name] = style
        if label:
            self.by_label.setdefault(label, name)
        return name

    def colour(self) -> dict[str, Any]:
        """Scale of colours by name."""
        return self._scale([style.colour for style in self.by_name.values()])

    def dash(self) -> dict[str, Any]:
        """Scale of dash patterns by name."""
        return self._scale(
            [
                [round(part * style.width, 2) for part in style.dashes] or _SOLID
                for style in self.by_name.values()
            ]
        )

    def width(self) -> dict[str, Any]:
        """Scale of line widths by name."""
        # Vega-Lite warns of widths for nominal fields.
        return self._scale([style.width for style in self.by_name.values()], "ordinal")

    def shape(self) -> dict[str, Any]:
        """Scale of marker shapes by name."""
        return self._scale([_SHAPES[style.marker or "o"] for style in self.by_name.values()])

    def _scale(self, values: list[Any], kind: str = "nominal") -> dict[str, Any]:
        if len({str(value) for value in values}) == 1:
            return {"value": values[0]}
        scale = {"type": "ordinal", "domain": list(self.by_name), "range": values}
        return {"field": "line", "type": kind, "scale": scale, "legend": None}


def collect_styles(panels: Iterable[Panel]) -> tuple[Styles, list[list[str | None]]]:
    """Collects the styles of all marks of a figure, and the name of each mark by panel."""
    styles = Styles()
    names: list[list[str | None]] = []
    for panel in panels:
        own: list[str | None] = []
        taken: set[str] = set()
        for mark in panel.marks:
            name = None if isinstance(mark, (Image, Note)) else styles.name(mark, taken)
            taken.update([name] if name else [])
            own.append(name)
        names.append(own)
    return styles, names
