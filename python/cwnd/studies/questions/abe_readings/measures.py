"""Gains and costs of the deployed readings of ABE, beside the same readings without ABE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Line, Panel, Picture, Rule, line_style
from cwnd.results import Estimate, groups, interval_ends
from cwnd.study import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cwnd.figures import Mark
    from cwnd.results import Run

#: Controllers, which prefix the labels of readings; and the suffix of a reading without ABE.
CONTROLLERS = ("NewReno", "CUBIC")
OFF = ", off"
#: Digits after the point in the records.
DIGITS = 4


@dataclass(frozen=True)
class Quantity:
    """A quantity of a point, as tables and figures show it."""

    #: Head of a table's column and label of a figure's axis.
    label: str
    digits: int = 1
    #: `True` if it is a difference, which is written with its sign.
    signed: bool = False

    def written(self, estimate: Estimate) -> str:
        """The mean and its interval, as the tables have it."""
        sign = "+" if self.signed else ""
        mean = f"{estimate.mean:{sign}.{self.digits}f}".replace("-", "−")
        half = "" if estimate.half_width is None else f" ± {estimate.half_width:.{self.digits}f}"
        return mean + half


QUANTITIES = {
    "goodput": Quantity("goodput, Mbit/s", 2),
    "gain": Quantity("gain in goodput, %", signed=True),
    "p50": Quantity("median queueing delay, ms"),
    "dp50": Quantity("change of the median queueing delay, ms", signed=True),
    "p90": Quantity("90th percentile of queueing delay, ms"),
    "dp90": Quantity("change of the 90th percentile of queueing delay, ms", signed=True),
    "p99": Quantity("99th percentile of queueing delay, ms"),
    "dp99": Quantity("change of the 99th percentile of queueing delay, ms", signed=True),
    "drops": Quantity("packets dropped"),
    "share": Quantity("share of the reading's flow, %"),
    "taken": Quantity("change of the plain flow's goodput, %", signed=True),
    "dtotal": Quantity("change of both flows' goodput together, %", signed=True),
}
ALONE = ("goodput", "p50", "p90", "p99", "drops", "gain", "dp50", "dp90", "dp99")
AXES = ("at", "rtt", "against", "reading")
#: Columns of the record; `at` is a queue, or a time.
COLUMNS = (
    "experiment",
    *AXES,
    "n",
    *(column for name in QUANTITIES for column in (name, f"{name}_ci95")),
)
SHARING = ("share", "taken", "dtotal", "p50", "dp50", "p90", "dp90", "drops")

# Records -----------------------------------------------------------------------------------------


def without(reading: str) -> str:
    """The reading without ABE with which a reading is compared."""
    reading = reading.removesuffix(OFF)
    # One decrease rule, when there is no factor for ECN.
    return ("NewReno: ns-3" if reading == "NewReno: PyTCP" else reading) + OFF


def plain(reading: str) -> str:
    """The controller of a reading, without ABE."""
    return f"{reading.partition(':')[0]}: off"


def estimates(
    name: str, run: Run, base: Callable[[str], str], quantities: Sequence[str] = ALONE
) -> pl.DataFrame:
    """Estimates of each point of a run, compared seed by seed with the base of its reading.

    Two groups `abe` and `plain` share the bottleneck if the quantities have a share.
    """
    rows = run.per_run()
    for group in ("abe", "plain") if "share" in quantities else ():
        goodput = run.per_run(group=group)["goodput_bit_s"]
        rows = rows.with_columns(goodput.alias(f"{group}_bit_s"))
    parts = {
        tuple(str(label) for label in key.values()): part.sort("seed")
        for key, part in groups(rows, [axis.column for axis in run.axes])
    }
    found = []
    for (at, rtt, *against, reading), part in parts.items():
        off = parts[(at, rtt, *against, base(reading))]
        if part["seed"].to_list() != off["seed"].to_list():
            raise ValueError("runs are compared seed by seed")
        row = dict.fromkeys(COLUMNS) | dict(zip(COLUMNS, (name, at, rtt), strict=False))
        row |= {"against": next(iter(against), None), "reading": reading, "n": str(part.height)}
        for quantity in quantities:
            estimate = Estimate.of(_values(quantity, part, off))
            assert estimate is not None
            row[quantity] = _written(estimate.mean)
            row[f"{quantity}_ci95"] = _written(estimate.half_width)
        found.append(row)
    return pl.DataFrame(found, schema=dict.fromkeys(COLUMNS, pl.String))


def _values(name: str, on: pl.DataFrame, off: pl.DataFrame) -> list[float]:
    """The values of a quantity, one a seed."""
    if name == "share":
        both = zip(on["abe_bit_s"], on["plain_bit_s"], strict=True)
        return [100 * mine / (mine + theirs) for mine, theirs in both]
    if name in ("gain", "dtotal", "taken"):
        column = "plain_bit_s" if name == "taken" else "goodput_bit_s"
        return [100 * (new / old - 1) for new, old in zip(on[column], off[column], strict=True)]
    if name.startswith("dp"):
        column = f"qdelay_{name[1:]}_us"
        pairs = zip(on[column], off[column], strict=True)
        return [1e-3 * float(new) - 1e-3 * float(old) for new, old in pairs]
    column, scale = {"goodput": ("goodput_bit_s", 1e-6), "drops": ("drops", 1.0)}.get(
        name, (f"qdelay_{name}_us", 1e-3)
    )
    return [scale * float(value) for value in on[column]]


def _written(value: float | None) -> str | None:
    # No minus before a zero.
    return None if value is None else f"{round(value, DIGITS) + 0.0:.12g}"


def results(readings: Run, why: Run, shared: Run, gigabit: Run) -> pl.DataFrame:
    """Estimates of all experiments, a row for each point."""
    return pl.concat(
        [
            estimates("readings", readings, without),
            estimates("why", why, plain),
            estimates("shared", shared, plain, SHARING),
            estimates("gigabit", gigabit, without),
        ]
    )


RECORDS = {"results.csv": results}

# Tables ------------------------------------------------------------------------------------------


class Grid:
    """The estimates of an experiment."""

    def __init__(self, rows: pl.DataFrame, experiment: str) -> None:
        """Reads the rows of an experiment."""
        of = rows.filter(pl.col("experiment") == experiment)
        #: Names of the axes and of the quantities.
        self.axes = [name for name in AXES if of[name].null_count() == 0]
        self.names = [name for name in QUANTITIES if of[name].null_count() == 0]
        self._rows = {tuple(row[axis] for axis in self.axes): row for row in of.to_dicts()}

    @property
    def points(self) -> list[tuple[str, ...]]:
        """The points: labels of the axes."""
        return list(self._rows)

    def at(self, point: Sequence[str], name: str) -> Estimate:
        """Returns the estimate of a quantity at a point."""
        row = self._rows[tuple(point)]
        return Estimate(int(row["n"]), float(row[name]), None, float(row[f"{name}_ci95"]))

    def written(self, point: Sequence[str], name: str) -> str:
        """Returns a quantity at a point, as tables show it; nothing if it was not measured."""
        known = tuple(point) in self._rows
        return QUANTITIES[name].written(self.at(point, name)) if known else ""

    def labels(self, axis: str) -> list[str]:
        """The labels of an axis, in the order of the scenario."""
        return list(dict.fromkeys(point[self.axes.index(axis)] for point in self._rows))

    @property
    def queues(self) -> list[str]:
        """The queues without FQ-CoDel: one flow alone does not see that there is fair queueing."""
        return [queue for queue in self.labels("at") if queue != "FQ-CoDel"]

    @property
    def readings(self) -> list[str]:
        """The readings with ABE."""
        return [label for label in self.labels("reading") if not label.endswith("off")]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table without the rows that have an empty cell, as in a sample."""
    return table(columns, (row for row in rows if "" not in row))


def quantity(rows: pl.DataFrame, name: str) -> list[str]:
    """Readings down, RTTs and queues across: one quantity."""
    grid = Grid(rows, "readings")
    places = [(queue, rtt) for rtt in grid.labels("rtt") for queue in grid.queues]
    cells = (
        [reading, *(grid.written((*place, reading), name) for place in places)]
        for reading in grid.readings
    )
    return _table(["Reading", *(f"{queue}, {rtt}" for queue, rtt in places)], cells)


def off(rows: pl.DataFrame) -> list[str]:
    """The references: the controllers without ABE."""
    grid = Grid(rows, "readings")
    shown = ("goodput", "p50", "p90")
    cells = (
        [
            name,
            rtt,
            queue,
            *(grid.written((queue, rtt, f"{name}: RFC 8511, off"), q) for q in shown),
        ]
        for name in CONTROLLERS
        for rtt in grid.labels("rtt")
        for queue in grid.queues
    )
    return _table(["Without ABE", "RTT", "Queue", *(QUANTITIES[q].label for q in shown)], cells)


#: Short heads for wide tables.
SHORT = {"gain": "gain %", "dp50": "median ms", "dp90": "90th ms", "dp99": "99th ms"}


def steps(rows: pl.DataFrame, time: str, names: Sequence[str]) -> list[str]:
    """Steps down, quantities and RTTs across."""
    grid = Grid(rows, "why")
    places = [(name, rtt) for name in names for rtt in grid.labels("rtt")]
    cells = (
        [step, *(grid.written((time, rtt, step), name) for name, rtt in places)]
        for step in grid.readings
    )
    return _table(["Step", *(f"{SHORT[name]}, {rtt}" for name, rtt in places)], cells)


def shares(rows: pl.DataFrame, against: str) -> list[str]:
    """Readings down, RTTs and queues across: the share beside one plain controller."""
    grid = Grid(rows, "shared")
    places = [(queue, rtt) for rtt in grid.labels("rtt") for queue in grid.labels("at")]
    cells = (
        [reading, *(grid.written((*place, against, reading), "share") for place in places)]
        for reading in grid.labels("reading")
    )
    return _table(["Reading", *(f"{queue}, {rtt}" for queue, rtt in places)], cells)


def gigabit(rows: pl.DataFrame) -> list[str]:
    """Goodputs and queueing delays at 1 Gbit/s, with their changes."""
    grid = Grid(rows, "gigabit")
    shown = ("goodput", "gain", "p50", "dp50", "p90", "dp90")
    cells = (
        [rtt, queue, reading, *(grid.written((queue, rtt, reading), name) for name in shown)]
        for rtt in grid.labels("rtt")
        for queue in grid.labels("at")
        for reading in grid.readings
    )
    return _table(["RTT", "Queue", "Reading", *(QUANTITIES[n].label for n in shown)], cells)


TABLES: Mapping[str, Callable[[pl.DataFrame], list[str]]] = {
    "off": off,
    "gain": lambda rows: quantity(rows, "gain"),
    "median": lambda rows: quantity(rows, "dp50"),
    "p90": lambda rows: quantity(rows, "dp90"),
    "first-minute": lambda rows: steps(rows, "first minute", ("gain", "dp99")),
    "later": lambda rows: steps(rows, "later", ("gain", "dp90")),
    "beside-newreno": lambda rows: shares(rows, "NewReno"),
    "beside-cubic": lambda rows: shares(rows, "CUBIC"),
    "gigabit": gigabit,
}

# Figures -----------------------------------------------------------------------------------------


def panel(
    queues: Sequence[str],
    series: Mapping[str, Sequence[Estimate]],
    title: str,
    shown: Sequence[str],
) -> Panel:
    """Groups of points with their intervals, one group a queue, with the look of their reading."""
    width = 0.7 / max(1, len(series) - 1)
    marks: list[Mark] = [Rule(y=0, colour="#777777", dashes=())]
    for place, (label, estimates) in enumerate(series.items()):
        xs = [queue - 0.35 + place * width for queue in range(len(queues))]
        index = shown.index(label)
        means = [each.mean for each in estimates]
        points = Line(
            xs, means, line_style.colour(index), joined=False, marker=line_style.marker(index)
        )
        points.label = label
        points.interval = interval_ends(estimates)
        marks.append(points)
    ticks = [(float(place), queue) for place, queue in enumerate(queues)]
    return Panel(marks, title, ticks=ticks, x_limits=(-0.5, len(queues) - 0.5))


def draw(rows: pl.DataFrame, name: str, left_out: Sequence[str] = ()) -> Picture:
    """Draws panels: one row per controller, one column per RTT."""
    grid = Grid(rows, "readings")
    # A reading looks the same for both controllers.
    shown = list(dict.fromkeys(reading.partition(": ")[2] for reading in grid.readings))
    panels = []
    for controller in CONTROLLERS:
        for rtt in grid.labels("rtt"):
            series = {
                reading.removeprefix(f"{controller}: "): [
                    grid.at((queue, rtt, reading), name) for queue in grid.queues
                ]
                for reading in grid.readings
                if reading.startswith(controller) and reading not in left_out
            }
            panels.append(panel(grid.queues, series, f"{controller}, RTT {rtt}", shown))
    label = QUANTITIES[name].label
    y_label = label[0].upper() + label[1:]
    columns = len(grid.labels("rtt"))
    return Picture(panels, 5.4, columns=columns, y_label=y_label, shared_y="none")


#: Readings left out of the figure of shares, which has eight markers.
LEFT_OUT = ("NewReno: ns-3 LinuxReno", "CUBIC: ns-3")


def draw_shared(rows: pl.DataFrame) -> Picture:
    """Draws the loss of the plain flow: one row per plain controller, one column per RTT."""
    grid = Grid(rows, "shared")
    queues = grid.labels("at")
    shown = [reading for reading in grid.readings if reading not in LEFT_OUT]
    panels = []
    for against in grid.labels("against"):
        for rtt in grid.labels("rtt"):
            series = {
                reading: [grid.at((queue, rtt, against, reading), "taken") for queue in queues]
                for reading in shown
            }
            panels.append(panel(queues, series, f"beside plain {against}, RTT {rtt}", shown))
    y_label = "Change of the plain flow's goodput (%)"
    columns = len(grid.labels("rtt"))
    return Picture(panels, 5.4, columns=columns, y_label=y_label, shared_y="none")


FIGURES = {
    "gain": lambda rows: draw(rows, "gain"),
    "p90": lambda rows: draw(rows, "dp90", ["CUBIC: PyTCP"]),
    "shared": draw_shared,
}
