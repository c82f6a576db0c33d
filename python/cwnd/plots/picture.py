"""What a figure shows, apart from how it is painted.

There are two painters: matplotlib (`paint`) for papers, notebooks and `cwnd plot`, and
`_core.draw_svg` for `cwnd run`, which is done before matplotlib would be imported. The attributes
are those of `crates/picture`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd.plots import look

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Points in an inch.
_POINTS = 72.0

#: From where to where an axis goes; `None` leaves it to the data.
Limits: TypeAlias = "tuple[float | None, float | None]"


@dataclass
class Line:
    """A line, points, or both."""

    x: Sequence[float]
    #: A line is broken where there is none.
    y: Sequence[float | None]
    colour: str
    #: In points.
    width: float = 1.2
    #: Lengths of dashes and gaps, in widths of the line.
    dashes: tuple[float, ...] = ()
    #: Points are joined.
    joined: bool = True
    #: Each value lasts until the next.
    steps: bool = False
    #: Shape of the points, as a letter of `look.MARKERS`.
    marker: str | None = None
    label: str | None = None
    #: The lower and the upper ends of an interval around each point that has one.
    interval: tuple[Sequence[float | None], Sequence[float | None]] | None = None
    #: The edges of a band around the line; it is broken where there is none.
    band: tuple[Sequence[float | None], Sequence[float | None]] | None = None


@dataclass
class Panel:
    """A pair of axes and what is drawn in it."""

    lines: list[Line]
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
    #: The marks along x and what is written there.
    ticks: list[tuple[float, str]] | None = None
    #: Lines of the grid rise from the marks along x.
    x_grid: bool = True
    #: Without axes, marks and grid: a map.
    bare: bool = False
    #: Else its place in the grid stays empty.
    shown: bool = True


@dataclass
class Picture:
    """A figure: panels in a grid, row by row."""

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
    #: Panels that have the same axis.
    shared_x: Literal["all", "row", "col", "none"] = "all"
    shared_y: Literal["all", "row", "col", "none"] = "all"
    #: One legend above all panels; else each has its own beside its title.
    legend_above: bool = True

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
