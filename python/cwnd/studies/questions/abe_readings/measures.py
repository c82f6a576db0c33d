"""The deployed readings of ABE on one grid: docs/abe-readings.md, its figures and its numbers.

Four scenarios are run; what they give is written to docs/abe-readings/results.csv, and the page and
the figures are made from that file alone. `make docs` runs this; the tests run some points again.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cwnd
from cwnd.figures import Figure, Line, Panel, Picture, Rule, line_style
from cwnd.plots import save
from cwnd.results import Estimate, groups, interval_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from cwnd.figures import Mark

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RESULTS = DOCS / "abe-readings" / "results.csv"

#: Controllers, which prefix the labels of readings; and the suffix of a reading without ABE.
CONTROLLERS = ("NewReno", "CUBIC")
OFF = ", off"


@dataclass(frozen=True)
class Quantity:
    """A quantity of a point, as tables and figures show it."""

    name: str
    #: Head of a table's column and label of a figure's axis.
    label: str
    digits: int = 1
    #: `true` if it is a difference, which is written with its sign.
    signed: bool = False

    def written(self, estimate: Estimate) -> str:
        """The mean and its interval, as the tables have it."""
        sign = "+" if self.signed else ""
        mean = f"{estimate.mean:{sign}.{self.digits}f}".replace("-", "−")
        half = "" if estimate.half_width is None else f" ± {estimate.half_width:.{self.digits}f}"
        return mean + half


QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        Quantity("goodput", "goodput, Mbit/s", 2),
        Quantity("gain", "gain in goodput, %", signed=True),
        Quantity("p50", "median queueing delay, ms"),
        Quantity("dp50", "change of the median queueing delay, ms", signed=True),
        Quantity("p90", "90th percentile of queueing delay, ms"),
        Quantity("dp90", "change of the 90th percentile of queueing delay, ms", signed=True),
        Quantity("p99", "99th percentile of queueing delay, ms"),
        Quantity("dp99", "change of the 99th percentile of queueing delay, ms", signed=True),
        Quantity("drops", "packets dropped"),
        Quantity("share", "share of the reading's flow, %"),
        Quantity("taken", "change of the plain flow's goodput, %", signed=True),
        Quantity("dtotal", "change of both flows' goodput together, %", signed=True),
    )
}

#: A point: labels of the axes in order, the reading last.
Point = tuple[str, ...]
#: Results of one scenario: point → name of the quantity → estimate.
Table = dict[Point, dict[str, Estimate]]


# Measuring ---------------------------------------------------------------------------------------


def without(reading: str) -> str:
    """The reading with which a reading is compared: the same with ABE off."""
    reading = reading.removesuffix(OFF)
    # One decrease rule, when there is no factor for ECN.
    return ("NewReno: ns-3" if reading == "NewReno: PyTCP" else reading) + OFF


def plain(reading: str) -> str:
    """The controller of a reading, without ABE."""
    return f"{reading.partition(':')[0]}: off"


@dataclass(frozen=True)
class Study:
    """A scenario and how its runs are compared."""

    name: str
    #: Axes in the order of a point; the last is the reading.
    axes: tuple[str, ...]
    compared_with: Callable[[str], str]
    #: The two groups that share a bottleneck, if they do: with the reading, and plain.
    sharing: tuple[str, str] | None = None

    @property
    def path(self) -> Path:
        """The scenario."""
        return ROOT / "scenarios" / f"{self.name}.toml"

    def measure(self, overrides: Mapping[str, object] | None = None) -> Table:
        """Runs the scenario, or with overrides a part of it, and compares."""
        run = cwnd.run(self.path, set=dict(overrides or {}))
        columns = {axis.name: axis.column for axis in run.axes}
        by = [columns[name] for name in self.axes]
        rows = {
            tuple(str(label) for label in key.values()): part.sort("seed")
            for key, part in groups(self._rows(run), by)
        }
        return {
            point: self._estimates(part, rows[(*point[:-1], self.compared_with(point[-1]))])
            for point, part in rows.items()
        }

    def _rows(self, run: cwnd.Run) -> pl.DataFrame:
        rows = run.per_run()
        for group in self.sharing or ():
            mine = run.per_run(group=group)["goodput_bit_s"]
            rows = rows.with_columns(mine.alias(f"{group}_bit_s"))
        return rows

    def _estimates(self, on: pl.DataFrame, off: pl.DataFrame) -> dict[str, Estimate]:
        if on["seed"].to_list() != off["seed"].to_list():
            raise ValueError("runs are compared seed by seed")

        def values(frame: pl.DataFrame, column: str, scale: float = 1.0) -> list[float]:
            return [scale * float(value) for value in frame[column]]

        def change(column: str) -> list[float]:
            pairs = zip(values(on, column), values(off, column), strict=True)
            return [100 * (new / old - 1) for new, old in pairs]

        def difference(column: str) -> list[float]:
            pairs = zip(values(on, column, 1e-3), values(off, column, 1e-3), strict=True)
            return [new - old for new, old in pairs]

        found = {
            "goodput": values(on, "goodput_bit_s", 1e-6),
            "p50": values(on, "qdelay_p50_us", 1e-3),
            "p90": values(on, "qdelay_p90_us", 1e-3),
            "p99": values(on, "qdelay_p99_us", 1e-3),
            "drops": values(on, "drops"),
            "gain": change("goodput_bit_s"),
            "dp50": difference("qdelay_p50_us"),
            "dp90": difference("qdelay_p90_us"),
            "dp99": difference("qdelay_p99_us"),
        }
        if self.sharing is not None:
            mine, theirs = (values(on, f"{group}_bit_s") for group in self.sharing)
            shares = [100 * m / (m + t) for m, t in zip(mine, theirs, strict=True)]
            taken = change(f"{self.sharing[1]}_bit_s")
            found = {"share": shares, "taken": taken, "dtotal": found["gain"]} | {
                name: found[name] for name in ("p50", "dp50", "p90", "dp90", "drops")
            }
        return {name: estimated(numbers) for name, numbers in found.items()}


def estimated(values: Sequence[float]) -> Estimate:
    """The mean of what was measured, rounded as the file of results has it."""
    estimate = Estimate.of(values)
    if estimate is None:
        raise ValueError("a point without a run")
    half = estimate.half_width
    return Estimate(
        estimate.n, _rounded(estimate.mean), None, None if half is None else _rounded(half)
    )


def _rounded(value: float) -> float:
    # No minus before a zero.
    return round(value, DIGITS) + 0.0


#: Digits after the point in the file of results.
DIGITS = 4

GRID = Study("abe-readings", ("queue", "rtt", "reading"), without)
WHY = Study("abe-why", ("time", "rtt", "step"), plain)
SHARED = Study("abe-shared", ("queue", "rtt", "against", "reading"), plain, ("abe", "plain"))
GIGABIT = Study("abe-gigabit", ("queue", "rtt", "reading"), without)
STUDIES = {study.name: study for study in (GRID, WHY, SHARED, GIGABIT)}

# The file of results -----------------------------------------------------------------------------


def to_csv(results: Mapping[str, Table]) -> str:
    """All estimates, one a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["scenario", "point", "quantity", "n", "mean", "ci95_half_width"])
    for scenario, table in results.items():
        for point, estimates in table.items():
            for name, e in estimates.items():
                half = "" if e.half_width is None else f"{e.half_width:.{DIGITS}f}"
                row = [scenario, " / ".join(point), name, e.n, f"{e.mean:.{DIGITS}f}", half]
                writer.writerow(row)
    return text.getvalue()


def from_csv(text: str) -> dict[str, Table]:
    """The estimates of such a file."""
    results: dict[str, Table] = {}
    for row in csv.DictReader(io.StringIO(text)):
        point = tuple(row["point"].split(" / "))
        half = float(row["ci95_half_width"]) if row["ci95_half_width"] else None
        estimate = Estimate(int(row["n"]), float(row["mean"]), None, half)
        results.setdefault(row["scenario"], {}).setdefault(point, {})[row["quantity"]] = estimate
    return results


# The page ----------------------------------------------------------------------------------------


def page(results: Mapping[str, Table]) -> str:
    """The page as Markdown: the template with tables and numbers at their places."""
    template = (DOCS / "abe-readings" / "template.md").read_text()

    def filled(match: re.Match[str]) -> str:
        words = [word.strip() for word in match[1].split("|")]
        if words[0] == "table":
            return TABLES[words[1]](results)
        if words[0] == "law":
            return f"{100 * share_of(float(words[1])):.0f}"
        scenario, *point, name = words
        return QUANTITIES[name].written(results[scenario][tuple(point)][name])

    return re.sub(r"\{\{(.+?)\}\}", filled, template)


def share_of(beta_ecn: float) -> float:
    """A Reno's share beside one that halves, where both see the same rate of marks.

    An AIMD flow's mean window is √(α (1 + β) / (2 (1 − β) p)) (RFC 9438 § 4.3, Fig. 3).
    """
    mine, theirs = (((1 + b) / (1 - b)) ** 0.5 for b in (beta_ecn, 0.5))
    return mine / (mine + theirs)


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    head = list(head)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def labels(table: Table, axis: int) -> list[str]:
    """The labels of an axis, in the order of the scenario."""
    return list(dict.fromkeys(point[axis] for point in table))


def readings(table: Table) -> list[str]:
    """The readings with ABE."""
    return [label for label in labels(table, -1) if not label.endswith("off")]


def grid_table(name: str) -> Callable[[Mapping[str, Table]], str]:
    """Readings down, RTTs and queues across: one quantity."""

    def write(results: Mapping[str, Table]) -> str:
        table = results[GRID.name]
        places = [(queue, rtt) for rtt in labels(table, 1) for queue in told(table)]
        head = ["Reading", *(f"{queue}, {rtt}" for queue, rtt in places)]
        rows = [
            [reading, *(written(table, (*place, reading), name) for place in places)]
            for reading in readings(table)
        ]
        return markdown(head, rows)

    return write


def written(table: Table, point: Point, name: str) -> str:
    """A quantity at a point."""
    return QUANTITIES[name].written(table[point][name])


def told(table: Table) -> list[str]:
    """The queues that tell something: one flow alone does not see that there is fair queueing."""
    return [queue for queue in labels(table, 0) if queue != "FQ-CoDel"]


def off_table(results: Mapping[str, Table]) -> str:
    """Returns the table of the references: the controllers without ABE."""
    table = results[GRID.name]
    shown = ("goodput", "p50", "p90")
    head = ["Without ABE", "RTT", "Queue", *(QUANTITIES[name].label for name in shown)]
    rows = [
        [
            reading.partition(":")[0],
            rtt,
            queue,
            *(written(table, (queue, rtt, reading), name) for name in shown),
        ]
        for reading in ("NewReno: RFC 8511, off", "CUBIC: RFC 8511, off")
        for rtt in labels(table, 1)
        for queue in told(table)
    ]
    return markdown(head, rows)


def why_table(time: str, names: Sequence[str]) -> Callable[[Mapping[str, Table]], str]:
    """Steps down, quantities and RTTs across."""

    def write(results: Mapping[str, Table]) -> str:
        table = results[WHY.name]
        places = [(name, rtt) for name in names for rtt in labels(table, 1)]
        head = ["Step", *(f"{SHORT[name]}, {rtt}" for name, rtt in places)]
        rows = [
            [step, *(written(table, (time, rtt, step), name) for name, rtt in places)]
            for step in readings(table)
        ]
        return markdown(head, rows)

    return write


#: Short heads for wide tables.
SHORT = {"gain": "gain %", "dp50": "median ms", "dp90": "90th ms", "dp99": "99th ms"}


def share_table(against: str) -> Callable[[Mapping[str, Table]], str]:
    """Readings down, RTTs and queues across: the share beside one plain controller."""

    def write(results: Mapping[str, Table]) -> str:
        table = results[SHARED.name]
        places = [(queue, rtt) for rtt in labels(table, 1) for queue in labels(table, 0)]
        head = ["Reading", *(f"{queue}, {rtt}" for queue, rtt in places)]
        rows = [
            [reading, *(written(table, (*place, against, reading), "share") for place in places)]
            for reading in labels(table, 3)
        ]
        return markdown(head, rows)

    return write


def gigabit_table(results: Mapping[str, Table]) -> str:
    """Returns the table of all results at 1 Gbit/s."""
    table = results[GIGABIT.name]
    shown = ("goodput", "gain", "p50", "dp50", "p90", "dp90")
    head = ["RTT", "Queue", "Reading", *(QUANTITIES[name].label for name in shown)]
    rows = [
        [rtt, queue, reading, *(written(table, (queue, rtt, reading), name) for name in shown)]
        for rtt in labels(table, 1)
        for queue in labels(table, 0)
        for reading in readings(table)
    ]
    return markdown(head, rows)


TABLES: dict[str, Callable[[Mapping[str, Table]], str]] = {
    "gain": grid_table("gain"),
    "median": grid_table("dp50"),
    "p90": grid_table("dp90"),
    "off": off_table,
    "why, first minute": why_table("first minute", ("gain", "dp99")),
    "why, later": why_table("later", ("gain", "dp90")),
    "share beside NewReno": share_table("NewReno"),
    "share beside CUBIC": share_table("CUBIC"),
    "gigabit": gigabit_table,
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


def grid_figure(table: Table, name: str, left_out: Sequence[str] = ()) -> Picture:
    """Draws panels: one row per controller, one column per RTT."""
    queues, rtts = told(table), labels(table, 1)
    # A reading looks the same for both controllers.
    shown = list(dict.fromkeys(reading.partition(": ")[2] for reading in readings(table)))
    panels = []
    for controller in CONTROLLERS:
        for rtt in rtts:
            series = {
                reading.removeprefix(f"{controller}: "): [
                    table[(queue, rtt, reading)][name] for queue in queues
                ]
                for reading in readings(table)
                if reading.startswith(controller) and reading not in left_out
            }
            panels.append(panel(queues, series, f"{controller}, RTT {rtt}", shown))
    label = QUANTITIES[name].label
    y_label = label[0].upper() + label[1:]
    return Picture(panels, 5.4, columns=len(rtts), y_label=y_label, shared_y="none")


def shared_figure(table: Table) -> Picture:
    """Draws the loss of the plain flow: one row per plain controller, one column per RTT."""
    queues, rtts = labels(table, 0), labels(table, 1)
    shown = [reading for reading in readings(table) if reading not in LEFT_OUT]
    panels = []
    for against in labels(table, 2):
        for rtt in rtts:
            series = {
                reading: [table[(queue, rtt, against, reading)]["taken"] for queue in queues]
                for reading in shown
            }
            panels.append(panel(queues, series, f"beside plain {against}, RTT {rtt}", shown))
    y_label = "Change of the plain flow's goodput (%)"
    return Picture(panels, 5.4, columns=len(rtts), y_label=y_label, shared_y="none")


#: Readings left out of the figure of shares, which has eight markers.
LEFT_OUT = ("NewReno: ns-3 LinuxReno", "CUBIC: ns-3")


def figures(results: Mapping[str, Table]) -> dict[str, Picture]:
    """All figures by name."""
    return {
        "gain": grid_figure(results[GRID.name], "gain"),
        "p90": grid_figure(results[GRID.name], "dp90", ["CUBIC: PyTCP"]),
        "shared": shared_figure(results[SHARED.name]),
    }


def main() -> None:
    """Runs the scenarios; writes the results, the figures and the page."""
    RESULTS.write_text(to_csv({name: study.measure() for name, study in STUDIES.items()}))
    # From the file, so that nothing on the page is not in it.
    results = from_csv(RESULTS.read_text())
    images = DOCS / "images" / "abe-readings"
    for name, picture in figures(results).items():
        save(Figure(picture), images, name)
    (DOCS / "abe-readings.md").write_text(page(results))


if __name__ == "__main__":
    main()
