"""Description of a figure: panels of marks, with axes, ticks and labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd.figures import line_style

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Points in an inch.
_POINTS = 72.0

#: Both ends of an axis; an end that is `None` follows from the data.
Limits: TypeAlias = "tuple[float | None, float | None]"
#: A number or `None` for each point.
Values: TypeAlias = "Sequence[float | None]"
#: Lower and upper ends of intervals, or edges of a band.
Ends: TypeAlias = "tuple[Values, Values]"


@dataclass
class Line:
    """A line, points, or both."""

    x: Sequence[float]
    #: Values along y; `None` interrupts the line.
    y: Values
    colour: str
    #: Width in points.
    width: float = 1.2
    #: Lengths of dashes and gaps, in widths of the line.
    dashes: tuple[float, ...] = ()
    #: `True` if the points are joined by a line.
    joined: bool = True
    #: `True` if each value lasts until the next point.
    steps: bool = False
    #: Shape of the markers, as a letter of `line_style.MARKERS`, or `x`, which is a cross of two
    #: strokes if hollow; `None` for no markers.
    marker: str | None = None
    label: str | None = None
    #: Interval along y around each point; `None` for points without one.
    interval: Ends | None = None
    #: Edges of a band around the line; `None` interrupts it.
    band: Ends | None = None
    #: Interval along x around each point; `None` for points without one.
    x_interval: Ends | None = None
    #: `True` if markers are outlines.
    hollow: bool = False
    #: Diameter of a marker in points.
    size: float = 4.0
    #: Text of each point, which a page shows under the pointer.
    texts: Sequence[str] = ()


@dataclass
class Bars:
    """Bars that start at zero."""

    #: Middles of the bars.
    at: Sequence[float]
    values: Values
    colour: str
    #: Width of a bar in units of the axis on which the bars stand.
    width: float = 0.8
    label: str | None = None
    #: `True` if bars stand on x; else they lie along x with their middles on y.
    upright: bool = True


@dataclass
class Image:
    """A heat map with cells centred at integers; colours go from red below zero to blue."""

    #: Rows from below; a cell without a value stays empty.
    rows: Sequence[Values]
    #: Magnitude from which values have the darkest colours.
    limit: float
    #: Text of each cell.
    texts: Sequence[Sequence[str]] | None = None
    #: Title of the colour bar beside the panel; `None` draws no bar.
    key: str | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Number of cells along x and along y."""
        return max(map(len, self.rows), default=0), len(self.rows)


@dataclass
class Rule:
    """A reference line across the panel, at a position along x or along y."""

    x: float | None = None
    y: float | None = None
    colour: str = "#666666"
    width: float = 0.8
    dashes: tuple[float, ...] = line_style.DASHES[1]
    label: str | None = None


@dataclass
class Span:
    """A shaded part of the panel, between two positions along y."""

    y: tuple[float, float]
    colour: str = "#E6E6E6"
    label: str | None = None


@dataclass
class Note:
    """A text that starts at a point."""

    x: float
    y: float
    text: str


Mark: TypeAlias = Line | Bars | Image | Rule | Span | Note


@dataclass
class Panel:
    """A pair of axes with their marks."""

    marks: Sequence[Mark]
    title: str = ""
    #: `True` if the title starts at the left end of the axis instead of being centred.
    title_left: bool = False
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_log: bool = False
    #: `True` if x starts and ends with the data.
    x_tight: bool = False
    x_limits: Limits = (None, None)
    y_limits: Limits = (None, None)
    #: Ticks along x with labels; `None` chooses round numbers.
    ticks: list[tuple[float, str]] | None = None
    #: Ticks along y with labels, such as names of rows.
    y_ticks: list[tuple[float, str]] | None = None
    #: `True` if grid lines rise from the ticks along x.
    x_grid: bool = True
    #: `True` for a panel without axes, ticks and grid, such as a map.
    bare: bool = False
    #: `False` leaves the panel's place in the grid empty.
    shown: bool = True

    @property
    def lines(self) -> list[Line]:
        """Marks that are lines."""
        return [mark for mark in self.marks if isinstance(mark, Line)]


@dataclass
class Picture:
    """Description of a figure: panels in a grid, row by row."""

    panels: list[Panel]
    #: Height in inches if each text has one line; further lines extend the figure, not the panels.
    height: float
    width: float = line_style.WIDTH
    columns: int = 1
    #: Relative height of each row; equal heights if empty.
    heights: Sequence[float] = field(default_factory=list)
    #: Labels below and left of all panels.
    x_label: str = ""
    y_label: str = ""
    #: Remark on the whole figure, after the label below it; a page puts it in the caption.
    note: str = ""
    #: Panels that share an axis.
    shared_x: Literal["all", "row", "col", "none"] = "all"
    shared_y: Literal["all", "row", "col", "none"] = "all"
    #: `True` for one legend above all panels, `False` for a legend beside each panel's title.
    legend_above: bool = True

    @property
    def below(self) -> str:
        """Text below all panels."""
        return "; ".join(filter(None, (self.x_label, self.note)))

    @property
    def rows(self) -> int:
        """Number of rows of panels."""
        return -(-len(self.panels) // self.columns)

    @property
    def width_pt(self) -> float:
        """Width in points."""
        return self.width * _POINTS

    @property
    def height_pt(self) -> float:
        """Height in points."""
        return self.height * _POINTS
