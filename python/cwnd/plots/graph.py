"""Maps of a scenario's graph: utilisation and loss of each link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.plots.layout import at, points_of, title
from cwnd.topology import node_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results import Run

#: Half the distance between the two directions of a link, as a fraction of the figure.
_OFFSET = 0.006
#: Margin around the graph, as a fraction of it.
_MARGIN = 0.04
#: Maximum number of nodes that get a marker; more would hide the links.
_MARKED = 200
#: Width of a panel in points: half of the figure.
_PANEL_PT = 245.0
#: Limits of a panel's ratio of height to width.
_FLATTEST, _STEEPEST = 0.4, 1.3
#: Height of the texts above and below the panels, in points.
_WRITTEN_PT = 62.0


@dataclass(frozen=True)
class Band:
    """A range of values whose links have the same colour and width."""

    name: str
    #: Upper end of the range, exclusive; the lower end is that of the band before.
    below: float
    #: Index into `line_style.COLOURS`.
    colour: int
    #: Width of the lines in points.
    width: float


@dataclass(frozen=True)
class Quantity:
    """A quantity of links that a map shows in bands."""

    title: str
    bands: tuple[Band, ...]


#: Colour and width of each band: from cold to warm and from thin to thick, which colour-blind
#: readers can distinguish.
_BAND_STYLES = ((4, 0.5), (0, 0.9), (2, 1.3), (1, 1.8), (3, 2.4))


def _bands(*named: tuple[str, float]) -> tuple[Band, ...]:
    return tuple(
        Band(name, below, *own) for (name, below), own in zip(named, _BAND_STYLES, strict=True)
    )


UTILISATION = Quantity(
    "Utilisation",
    _bands(
        *(("below 1 %", 0.01), ("1–50 %", 0.5), ("50–80 %", 0.8), ("80–95 %", 0.95)),
        ("above 95 %", math.inf),
    ),
)
LOSS = Quantity(
    "Loss",
    _bands(
        *(("none", 1e-12), ("below 0.1 %", 0.001), ("0.1–1 %", 0.01), ("1–5 %", 0.05)),
        ("above 5 %", math.inf),
    ),
)


@dataclass(frozen=True)
class DrawnLink:
    """One direction of a link, with means over all seeds."""

    name: str
    source: str
    target: str
    #: Mean utilisation; `None` without a rate.
    utilisation: float | None
    #: Fraction of the packets that were dropped or lost; `None` without packets.
    loss: float | None
    #: Start and end of the line.
    ends: tuple[tuple[float, float], tuple[float, float]]

    @property
    def about(self) -> str:
        """Text with the link's name, its ends and its values."""
        known = [f"{self.name}: {self.source} → {self.target}"]
        if self.utilisation is not None:
            known.append(f"utilisation {self.utilisation:.1%}")
        if self.loss is not None:
            known.append(f"loss {self.loss:.3%}")
        return "\n".join(known)

    def value(self, quantity: Quantity) -> float:
        """Value that determines the band; 0 if it is unknown."""
        return (self.utilisation if quantity is UTILISATION else self.loss) or 0.0


@dataclass(frozen=True)
class Map:
    """A graph at a point of the sweep."""

    #: Name of the point; empty without a sweep.
    name: str
    nodes: dict[str, tuple[float, float]]
    #: Nodes at which flows start.
    senders: set[str]
    links: list[DrawnLink]

    def band(self, quantity: Quantity, index: int) -> list[DrawnLink]:
        """Links whose value is in a band."""
        low = quantity.bands[index - 1].below if index else -math.inf
        high = quantity.bands[index].below
        return [link for link in self.links if low <= link.value(quantity) < high]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the map."""
        xs, ys = zip(*self.nodes.values(), strict=True)
        return max(xs), max(ys)


def graph(run: Run, *, at_point: dict[str, str] | None = None) -> Picture:
    """Describes two maps of the graph: utilisation and loss of each link after the warm-up.

    Args:
        run: The result.
        at_point: Column → label of the point of the sweep; its first if not given.

    Raises:
        InputError: The scenario has no graph, or there is no such point.
    """
    drawn = map_of(run, at_point)
    across, up = drawn.size
    ratio = min(max((up + 2 * _MARGIN) / (across + 2 * _MARGIN), _FLATTEST), _STEEPEST)
    wide = max(across + 2 * _MARGIN, (up + 2 * _MARGIN) / ratio)
    high = wide * ratio
    x_limits = (across / 2 - wide / 2, across / 2 + wide / 2)
    y_limits = (up / 2 - high / 2, up / 2 + high / 2)
    where = f", {drawn.name}" if drawn.name else ""
    return Picture(
        [
            Panel(
                [*_lines(drawn, quantity), _pointed(drawn)],
                title=f"{quantity.title}{where}",
                title_left=True,
                x_limits=x_limits,
                y_limits=y_limits,
                ticks=[],
                bare=True,
            )
            for quantity in (UTILISATION, LOSS)
        ],
        height=(_PANEL_PT * ratio + _WRITTEN_PT) / 72,
        columns=2,
        legend_above=False,
    )


def _lines(drawn: Map, quantity: Quantity) -> list[Line]:
    lines = []
    for index, band in enumerate(quantity.bands):
        x: list[float] = []
        y: list[float | None] = []
        for link in drawn.band(quantity, index):
            (x1, y1), (x2, y2) = link.ends
            x += [x1, x2, x2]
            y += [y1, y2, None]
        if x:
            lines.append(
                Line(x, y, colour=line_style.colour(band.colour), width=band.width, label=band.name)
            )
    if len(drawn.nodes) <= _MARKED:
        for marker, group in (("o", set(drawn.nodes) - drawn.senders), ("s", drawn.senders)):
            dots = [place for node, place in drawn.nodes.items() if node in group]
            if dots:
                xs, ys = zip(*dots, strict=True)
                label = "senders" if marker == "s" else None
                black = line_style.COLOURS[-1]
                lines.append(Line(xs, ys, colour=black, joined=False, marker=marker, label=label))
    return lines


def _pointed(drawn: Map) -> Line:
    """Builds an invisible line with texts at the nodes and at the middles of the links."""
    ends = [link.ends for link in drawn.links]
    middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in ends]
    xs, ys = zip(*middles, *drawn.nodes.values(), strict=True)
    texts = [*(link.about for link in drawn.links), *drawn.nodes]
    return Line(xs, ys, colour=line_style.COLOURS[-1], joined=False, texts=texts)


def map_of(run: Run, at_point: dict[str, str] | None = None) -> Map:
    """Builds the map at a point of the sweep, with means over its runs.

    Raises:
        InputError: There is no such point, or the scenario is a dumbbell.
    """
    point = points_of(run.axes)[0] | (at_point or {})
    runs = at(run.runs.with_row_index("place"), point)
    if runs.is_empty():
        raise InputError(f"this result has no point {title(point, run.axes)}")
    scenario = _core.read_toml(run.resolved[int(runs["place"][0])], name="resolved")
    directed = {name: (link["from"], link["to"]) for name, link in scenario.get("link", {}).items()}
    if not directed:
        raise InputError("a dumbbell has no graph to draw: its bottleneck is in the other figures")
    nodes = list(dict.fromkeys(node for ends in directed.values() for node in ends))
    given = {name: (place["x"], place["y"]) for name, place in scenario.get("node", {}).items()}
    placed = node_positions(nodes, list(directed.values()), given)
    links = (
        run.links.with_columns(pl.col("link").cast(pl.String))
        .filter(pl.col("run_id").cast(pl.String).is_in(runs["run_id"].cast(pl.String).to_list()))
        .group_by("link")
        .agg(pl.col("utilisation").mean(), pl.col("drop_ratio").mean())
    )
    did = {name: (used, lost) for name, used, lost in links.iter_rows()}
    drawn = [
        DrawnLink(name, *ends, *did.get(name, (None, None)), _beside(placed, *ends))
        for name, ends in directed.items()
    ]
    senders = {node for flow in scenario.get("flow", {}).values() for node in _senders(flow)}
    return Map(title(point, run.axes), placed, senders, drawn)


def _senders(flow: dict[str, object]) -> Sequence[str]:
    pairs, nodes = flow.get("pairs"), flow.get("from", [])
    if isinstance(pairs, list):
        return [pair["from"] for pair in pairs]
    return nodes if isinstance(nodes, list) else [str(nodes)]


def _beside(
    placed: dict[str, tuple[float, float]], source: str, target: str
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends of a direction's line, shifted to the right of the line between its nodes."""
    (x1, y1), (x2, y2) = placed[source], placed[target]
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    right, up = _OFFSET * (y2 - y1) / length, -_OFFSET * (x2 - x1) / length
    return (x1 + right, y1 + up), (x2 + right, y2 + up)
