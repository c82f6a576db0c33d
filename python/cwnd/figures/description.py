"""The contents of a figure: panels of marks, with axes, ticks and labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd.figures import look

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Points in an inch.
_POINTS = 72.0

#: Both ends of an axis; `None` leaves an end to the data.
Limits: TypeAlias = "tuple[float | None, float | None]"
#: A number for each point, or none.
Values: TypeAlias = "Sequence[float | None]"
#: The lower and the upper ends of intervals, or edges of a band.
Ends: TypeAlias = "tuple[Values, Values]"


@dataclass
class Line:
    """A line, points, or both."""

    x: Sequence[float]
    #: A line is broken where there is none.
    y: Values
    colour: str
    #: In points.
    width: float = 1.2
    #: Lengths of dashes and gaps, in widths of the line.
    dashes: tuple[float, ...] = ()
    #: Points are joined.
    joined: bool = True
    #: Each value lasts until the next.
    steps: bool = False
    #: Shape of the points, as a letter of `look.MARKERS`; a hollow `x` is a cross of two strokes.
    marker: str | None = None
    label: str | None = None
    #: An interval along y around each point that has one.
    interval: Ends | None = None
    #: The edges of a band around the line; it is broken where there is none.
    band: Ends | None = None
    #: An interval along x around each point that has one.
    x_interval: Ends | None = None
    #: Markers are outlines.
    hollow: bool = False
    #: Diameter of a marker in points.
    size: float = 4.0
    #: A text for each point, shown on a page to readers who point at it.
    texts: Sequence[str] = ()


@dataclass
class Bars:
    """Bars that begin at zero."""

    #: Their middles.
    at: Sequence[float]
    values: Values
    colour: str
    #: Their width in units of the axis that they stand on.
    width: float = 0.8
    label: str | None = None
    #: Bars stand on x, or lie along it with their middles on y.
    upright: bool = True


@dataclass
class Image:
    """Cells with their middles at whole numbers, from red below zero to blue; they fill a panel."""

    #: Rows from below; a cell without a value stays empty.
    rows: Sequence[Values]
    #: Values so far from zero, and further, have the darkest colours.
    limit: float
    #: A text in each cell.
    texts: Sequence[Sequence[str]] | None = None
    #: Title of a colour bar beside the panel; without one there is no bar.
    key: str | None = None

    @property
    def size(self) -> tuple[int, int]:
        """The number of cells along x and along y."""
        return max(map(len, self.rows), default=0), len(self.rows)


@dataclass
class Rule:
    """A reference line across the panel, at a place along x or along y."""

    x: float | None = None
    y: float | None = None
    colour: str = "#666666"
    width: float = 0.8
    dashes: tuple[float, ...] = look.DASHES[1]
    label: str | None = None


@dataclass
class Span:
    """A shaded part of the panel, between two places along y."""

    y: tuple[float, float]
    colour: str = "#E6E6E6"
    label: str | None = None


@dataclass
class Note:
    """A text that begins at a point."""

    x: float
    y: float
    text: str


Mark: TypeAlias = Line | Bars | Image | Rule | Span | Note


@dataclass
class Panel:
    """A pair of axes and the marks in it."""

    marks: Sequence[Mark]
    title: str = ""
    #: The title begins where the axis does, instead of in the middle.
    title_left: bool = False
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_log: bool = False
    #: x begins and ends with the data.
    x_tight: bool = False
    x_limits: Limits = (None, None)
    y_limits: Limits = (None, None)
    #: The ticks along x and their labels; the axis chooses round numbers if not given.
    ticks: list[tuple[float, str]] | None = None
    #: The ticks along y, as names of rows for instance.
    y_ticks: list[tuple[float, str]] | None = None
    #: Lines of the grid rise from the ticks along x.
    x_grid: bool = True
    #: Without axes, ticks and grid: a map.
    bare: bool = False
    #: Else its place in the grid stays empty.
    shown: bool = True

    @property
    def lines(self) -> list[Line]:
        """Its lines."""
        return [mark for mark in self.marks if isinstance(mark, Line)]


@dataclass
class Picture:
    """The description of a figure: panels in a grid, row by row."""

    panels: list[Panel]
    #: In inches, if each text has one line; more lines make it higher, and the panels keep theirs.
    height: float
    width: float = look.WIDTH
    columns: int = 1
    #: Height of each row in relation to the others; all the same if empty.
    heights: Sequence[float] = field(default_factory=list)
    #: Below, and left of, all panels.
    x_label: str = ""
    y_label: str = ""
    #: A remark on the whole figure, behind the label below it; a page has it in the caption.
    note: str = ""
    #: Panels that have the same axis.
    shared_x: Literal["all", "row", "col", "none"] = "all"
    shared_y: Literal["all", "row", "col", "none"] = "all"
    #: One legend above all panels; else each has its own beside its title.
    legend_above: bool = True

    @property
    def below(self) -> str:
        """The text below all panels."""
        return "; ".join(filter(None, (self.x_label, self.note)))

    @property
    def rows(self) -> int:
        """Rows of panels."""
        return -(-len(self.panels) // self.columns)

    @property
    def width_pt(self) -> float:
        """In points."""
        return self.width * _POINTS

    @property
    def height_pt(self) -> float:
        """In points."""
        return self.height * _POINTS
