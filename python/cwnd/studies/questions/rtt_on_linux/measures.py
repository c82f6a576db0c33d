"""Content of round-trip samples, on Linux and in the simulator: tables and figure of both.

`record.py` runs the scenarios of this folder in both worlds.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.figures import Panel, Picture, Rule
from cwnd.results import Estimate
from cwnd.study import across, head, interval, line, row_ticks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDER = Path(__file__).parent
#: World → the environment of its runs.
WORLDS = {"simulator": None, "Linux": "linux"}
EXPERIMENTS = ("cheat", "ack_noise", "chunks")
#: Experiments without runs of the simulator, which the manual shows elsewhere.
ONLY_ON_LINUX = ("chunks",)
#: Methods of sampling, in the order of the thesis.
WAYS = ("timestamps", "oldest segment", "newest segment", "newest, no lone ACKs")


def points(experiment: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The points of an experiment's sweep: their labels, and overrides that leave just that one."""
    text = (FOLDER / f"{experiment}.toml").read_text(encoding="utf-8")
    axes = _core.read_toml(text, name=f"{experiment}.toml")["sweep"]["axis"]
    for chosen in itertools.product(*(range(len(axis["values"])) for axis in axes.values())):
        overrides: dict[str, object] = {}
        labels = []
        for (name, axis), index in zip(axes.items(), chosen, strict=True):
            labels.append(axis["labels"][index])
            overrides[f"sweep.axis.{name}.values"] = [axis["values"][index]]
            overrides[f"sweep.axis.{name}.labels"] = [axis["labels"][index]]
        yield "; ".join(labels), overrides


#: An experiment, a point of it, and a world.
Place = tuple[str, str, str]


def of(rows: pl.DataFrame, place: Place, group: str, what: str) -> list[float]:
    """The values of a quantity, one a seed."""
    experiment, point, world = place
    found = rows.filter(
        pl.col("experiment") == experiment,
        pl.col("point") == point,
        pl.col("world") == world,
        pl.col("group") == group,
        pl.col("what") == what,
    )
    return [float(value) for values in found["values"] for value in values.split(" ")]


def shown(values: Sequence[float], digits: int = 1) -> str:
    """A mean with its 95 % confidence interval, or what there is."""
    found = Estimate.of(values)
    return "–" if found is None else interval(found.mean, found.half_width, digits)


def cheat(rows: pl.DataFrame) -> list[str]:
    """Shares, retransmissions and undone reductions by sender."""
    found = head(
        ["senders", "share, simulator", "share, Linux", "retransmitted, Linux", "undone, Linux"]
    )
    for label, _ in points("cheat"):
        places = [("cheat", label, world) for world in WORLDS]
        retransmitted = (
            shown(of(rows, places[1], group, "retransmitted")) for group in ("cheat", "honest")
        )
        cells = [
            label,
            *(shown(of(rows, place, "cheat", "share"), 0) for place in places),
            " / ".join(retransmitted),
            shown(of(rows, places[1], "*", "undone"), 0),
        ]
        found.append(line(cells))
    return found


def ack_noise(rows: pl.DataFrame) -> list[str]:
    """Goodput, backoffs and the noise of four methods by threshold."""
    found = head(["τ0; it goes by", "goodput", "backoffs a minute", "lone ACKs, %", *WAYS])
    for label, _ in points("ack_noise"):
        places = [("ack_noise", label, world) for world in WORLDS]
        cells = [label]
        for what, digits in (("goodput", 2), ("backoffs", 0)):
            cells.append(" / ".join(_mean(of(rows, one, "far", what), digits) for one in places))
        cells.append(_mean(of(rows, places[1], "far", "lone ACKs"), 0))
        for way in WAYS:
            pair = (of(rows, places[1], "far", f"{way}, {what}") for what in ("mean", "95th"))
            cells.append(", ".join(_mean(values, 1) for values in pair))
        found.append(line(cells))
    return found


def chunks(rows: pl.DataFrame) -> list[str]:
    """Goodput, swing of the round trip and segments at once by chunk."""
    found = head(
        ["controller; chunks", "goodput", "swing", "swing, 95th", "segments at once", "at most"]
    )
    for label, _ in points("chunks"):
        place = ("chunks", label, "Linux")
        cells = [label]
        for what, digits in (
            ("goodput", 2),
            ("swing, mean", 1),
            ("swing, 95th", 1),
            ("chunk", 1),
            ("largest chunk", 0),
        ):
            cells.append(_mean(of(rows, place, "main", what), digits))
        found.append(line(cells))
    return found


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{sum(values) / len(values):.{digits}f}" if values else "–"


#: Panels of the figure: an experiment, a group of flows, a quantity of it, the label of its axis.
PANELS = (
    ("cheat", "cheat", "share", "Share of the flow whose receiver cheats (%)"),
    ("ack_noise", "far", "backoffs", "Backoffs for delay a minute of the far flow"),
    ("chunks", "main", "swing, mean", "Swing of the round trip within 0.2 s (ms)"),
)


def draw(rows: pl.DataFrame) -> Picture:
    """Draws shares of misbehaving receivers, backoffs by ACK noise, and the saw-tooth of chunks."""
    panels = [_panel(rows, *asked) for asked in PANELS]
    share = panels[0]
    share.marks, share.x_limits = [Rule(x=50), *share.marks], (0, 100)
    heights = [len(panel.y_ticks or ()) for panel in panels]
    return Picture(panels, 6.5, 5.6, heights=heights, shared_x="none", shared_y="none")


def _panel(rows: pl.DataFrame, experiment: str, group: str, what: str, text: str) -> Panel:
    """Means over seeds with their intervals in both worlds; the first point is uppermost."""
    labels = [label for label, _ in points(experiment)]
    marks = []
    for index, world in enumerate(WORLDS):
        columns = [of(rows, (experiment, label, world), group, what) for label in labels]
        if any(columns):
            marks.append(across(columns, index, world, shift=0.3 * index))
    return Panel(marks, x_label=text, y_ticks=row_ticks(labels), x_limits=(0, None))


TABLES = {"cheat": cheat, "ack_noise": ack_noise, "chunks": chunks}
FIGURES = {"points": draw}
