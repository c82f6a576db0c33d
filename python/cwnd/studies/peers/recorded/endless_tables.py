"""Tables and figure of flows without end: rows that differ, experiments on them, Linux."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.studies.peers.recorded.ours import described
from cwnd.studies.peers.recorded.rows import TABLES, Measures, Row, load_runs
from cwnd.studies.peers.recorded.scenarios import TCP_LINUX_PARTS
from cwnd.study import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from cwnd.studies.peers.recorded.endless import Comparison
    from cwnd.studies.peers.recorded.ours import Ours, Overrides
    from cwnd.studies.peers.recorded.rows import Measures


@dataclass(frozen=True)
class Explanation:
    """Rows that differ for one reason."""

    rows: tuple[str, ...]
    #: Changes to the scenario of the first row.
    experiments: tuple[Overrides, ...]


CONTROLLER = "flow.main.controller"
ENDPOINT = "flow.main.endpoint"
STACK = "flow.main.stack.with"
DUMBBELL = "dumbbell.queue"
BOTTLENECK = "link.bottleneck.queue"


def _each(count: int, key: str, value: Any) -> Overrides:
    """A change to each of the flows, which have a group each."""
    return tuple((f"flow.from{i}.{key}", value) for i in range(count))


#: Explanations by the names of their tables on the page.
EXPLANATIONS = {
    "codel": Explanation(
        ("ns-3 50",),
        (
            (("flow.main.count", 1),),
            (("link.bottleneck.delay", "50 ms"),),
            (("flow.main.spacing", "50 ms"),),
        ),
    ),
    "pie": Explanation(
        ("ns-3 40", "ns-3 41"),
        (
            ((f"{ENDPOINT}.pipe_rule", "rfc6675"),),
            ((f"{BOTTLENECK}.burst_renewal", "calm"),),
        ),
    ),
    "slow-starts": Explanation(
        ("ns-3 72", "ns-3 36", "ns-3 66"),
        (
            ((f"{CONTROLLER}.slow_start", "hystart"),),
            (("flow.main.spacing", "90 ms"),),
            (("flow.main.spacing", "50 ms"),),
        ),
    ),
    "median": Explanation(
        ("ns-2 2", "ns-2 3", "ns-2 4"),
        (((f"{DUMBBELL}.idle", "emptied"),),),
    ),
    "sack1": Explanation(
        ("ns-2 9", "ns-2 10", "ns-2 11"),
        (
            ((f"{ENDPOINT}.pipe_rule", "rfc6675"),),
            ((f"{DUMBBELL}.idle", "emptied"),),
        ),
    ),
    "long-red": Explanation(
        ("ns-2 78", "ns-2 79", "ns-2 80"),
        ((("sweep.repeat", 40),),),
    ),
    "short-red": Explanation(
        ("ns-2 60", "ns-2 61", "ns-2 62"),
        (
            ((STACK, [part for part in TCP_LINUX_PARTS if part != "lost-retransmissions"]),),
            (
                (STACK, [part for part in TCP_LINUX_PARTS if part != "fack"]),
                (f"{ENDPOINT}.dup_thresh", 3),
            ),
        ),
    ),
    "vegas-median": Explanation(
        tuple(f"ns-2 Vegas {n}" for n in (1, 3, 19, 20, 21, 23, 24, 28, 29, 30)),
        (_each(2, "endpoint.initial_window", 30), _each(2, "controller.exit", "stay")),
    ),
    "vegas-linux": Explanation(
        tuple(f"ns-2 Vegas {n}" for n in (38, 10, 11, 12, 16, 17, 18, 34, 35, 36, 39, 43, 44, 45)),
        (_each(2, "controller.gamma", 0.5), _each(2, "controller.base_from_handshake", False)),
    ),
    "vegas-ten": Explanation(
        tuple(f"ns-2 Vegas {n}" for n in (47, 32, 41, 42, 48)),
        tuple(_each(10, "endpoint.initial_window", n) for n in (1, 3, 4)),
    ),
    "linux-20ms": Explanation(
        ("Linux 1", "Linux 48"),
        (
            (("flow.main.rtt", "20.2 ms"),),
            (("flow.main.rtt", "20.4 ms"),),
        ),
    ),
    "linux-stall": Explanation(
        ("Linux 9",),
        (
            (("dumbbell.jitter", "200 us"),),
            (("dumbbell.jitter", "1 ms"),),
        ),
    ),
}


def judged(found: Iterable[Comparison]) -> list[Comparison]:
    """Returns the rows that are judged by value and that a scenario can express."""
    return [c for c in found if c.row.by_value and not c.missing]


def summary(found: list[Comparison]) -> list[str]:
    """Returns the lines of the table of all peers, one for each file."""
    lines = []
    for table, name in TABLES.items():
        rows = [c for c in found if c.row.table == table]
        missing = sum(c.missing is not None for c in rows)
        shown = len(rows) - len(judged(rows)) - missing
        hold = sum(c.holds for c in judged(rows))
        lines.append(
            f"| {name} | {len(rows)} | {len(judged(rows))} | {hold} | {shown} | {missing} |"
        )
    return lines


def explained(name: str, found: list[Comparison], figures: Ours[Measures]) -> list[str]:
    """Rows that differ for one reason, and experiments on the first."""
    explanation = EXPLANATIONS[name]
    (here,) = (c for c in found if c.row.key == explanation.rows[0])
    row, theirs = here.row, here.theirs
    lines = [
        *(f"Rows: {', '.join(explanation.rows)}.", ""),
        *(f"Row {row.key} ({row.setting}):", ""),
        f"| | {_columns(theirs)} |",
        f"|---|{'---|' * _columns(theirs).count('|')}---|",
        f"| theirs | {_cells(theirs, theirs)} |",
        f"| ours | {_cells(here.ours, theirs)} |",
    ]
    for changed in map(described, explanation.experiments):
        (mine,) = figures[row.key, changed]
        lines.append(f"| with {changed} | {_cells(mine, theirs)} |")
    return lines


def differing(found: list[Comparison]) -> list[str]:
    """Table of the rows that do not hold."""
    lines = [
        "| row | setting | goodput Mbit/s | median delay ms | drops | marks | drops, whole run |"
        " marks, whole run | differs |",
        f"|{'---|' * 9}",
    ]
    for each in judged(found):
        if not each.holds and each.ours is not None:
            row, theirs = each.row, each.theirs
            pairs = zip(_values(each.ours, theirs), _values(theirs, theirs), strict=True)
            values = [f"{mine} / {peer}" for mine, peer in pairs]
            values += ["–"] * (6 - len(values))
            lines.append(line([row.key, row.setting, *values, ", ".join(each.differs)]))
    return lines


def _columns(theirs: Measures) -> str:
    """Returns the heads of the columns; counts of the whole run only if the peer's are recorded."""
    columns = ["goodput Mbit/s", "median delay ms", "drops", "marks"]
    whole = {"drops, whole run": theirs.drops_whole, "marks, whole run": theirs.marks_whole}
    return " | ".join([*columns, *(name for name, known in whole.items() if known is not None)])


def _values(m: Measures, theirs: Measures) -> list[str]:
    counts = [m.drops, m.marks]
    whole = ((m.drops_whole, theirs.drops_whole), (m.marks_whole, theirs.marks_whole))
    counts += [mine for mine, peer in whole if mine is not None and peer is not None]
    told = [f"{m.goodput_mbit_s:.2f}", f"{m.qdelay_p50_ms:.1f}"]
    return told + [f"{count:.0f}" for count in counts]


def _cells(m: Measures | None, theirs: Measures) -> str:
    return " | ".join(_values(m, theirs)) if m else ""


def draw(found: Iterable[Comparison]) -> Picture:
    """The figure: ours against theirs, with crosses where they differ."""
    judged = [(c.row.table, c.holds, c.theirs, c.ours) for c in found if c.row.by_value and c.ours]
    tables = [table for table in TABLES if any(table == each for each, *_ in judged)]

    def panel(label: str, value: Callable[[Measures], float]) -> Panel:
        pairs = [(table, holds, value(x), value(y)) for table, holds, x, y in judged]
        ends = [end(v for *_, x, y in pairs for v in (x, y)) for end in (min, max)]
        marks = [Line(ends, ends, "#B3B3B3", width=0.8)]
        for (index, table), (holds, shape) in product(enumerate(tables), _SHAPES):
            own = [(x, y) for each, held, x, y in pairs if (each, held) == (table, holds)]
            points = Line([x for x, _ in own], [y for _, y in own], line_style.colour(index))
            points.joined, points.marker, points.hollow = False, shape, True
            points.label = TABLES[table]
            marks.append(points)
        return Panel(marks, x_label=f"theirs: {label}", y_label=f"ours: {label}")

    goodput = panel("goodput, Mbit/s", lambda of: of.goodput_mbit_s)
    delay = panel("median queueing delay, ms", lambda of: max(of.qdelay_p50_ms, _LEAST_MS))
    delay.x_log = delay.y_log = True
    powers = [(10.0**power, f"{10**power}") for power in range(3)]
    delay.ticks = delay.y_ticks = [(_LEAST_MS, f"≤ {_LEAST_MS}"), *powers]
    return Picture([goodput, delay], 4.0, columns=2, shared_x="none", shared_y="none")


#: Markers of rows that hold, and of others.
_SHAPES = ((True, "o"), (False, "x"))
#: Shorter delays are drawn here.
_LEAST_MS = 0.1


NEW, OLD = "linux-testbed.csv", "linux-kernel.csv"


#: Links of the router, and the shares of packets whose lateness is recorded.
LINKS, LATE = ("bottleneck", "reverse"), ("p50", "p99", "max")


def recordings(found: Sequence[Comparison]) -> list[str]:
    """Table of both recordings, and ours."""
    ours = {c.row.setting: c for c in found if c.row.table == NEW}
    before = _by_setting(load_runs(OLD))
    after = _by_setting(load_runs(NEW))
    lines = [
        "| setting | | goodput Mbit/s | median delay ms | drops | marks |",
        "|---|---|---|---|---|---|",
    ]
    for setting, old in before.items():
        lines += [
            f"| {setting} | whole milliseconds | {_recorded_cells([r.measured for r in old])} |",
            f"| | our router | {_recorded_cells([r.measured for r in after[setting]])} |",
        ]
        mine = ours[setting].ours
        if mine is not None:
            lines.append(f"| | simulator | {_recorded_cells([mine])} |")
    return lines


def accuracy(table: pl.DataFrame) -> list[str]:
    """Describes the runs and the accuracy of the router."""
    runs = table.to_dicts()
    late = {q: [max(run[f"{link}_late_{q}_us"] for link in LINKS) for run in runs] for q in LATE}
    kernels = sorted({run["kernel"] for run in runs})
    rates = [
        abs(run[f"{link}_rate_measured"] / run[f"{link}_rate_set"] - 1)
        for run in runs
        for link in LINKS
    ]
    settings = len(_by_setting(load_runs(NEW)))
    return [
        f"{settings} settings, {len(runs)} runs (Linux {', '.join(kernels)}). Packets were late by "
        f"{statistics.median(late['p50']):.0f} µs (median of the runs' medians), by "
        f"{statistics.median(late['p99']):.0f} µs at the 99th percentile ({max(late['p99']):.0f} "
        f"µs in the worst run), and by {max(late['max']) / 1000:.1f} ms at most. "
        f"Rates were within {max(rates):.1%} of what was set."
    ]


def _by_setting(runs: Sequence[Row]) -> dict[str, list[Row]]:
    alike: dict[str, list[Row]] = {}
    for run in runs:
        alike.setdefault(run.setting, []).append(run)
    return alike


def _recorded_cells(each: list[Measures]) -> str:
    told = (
        ([m.goodput_mbit_s for m in each], 2),
        ([m.qdelay_p50_ms for m in each], 1),
        ([m.drops for m in each], 0),
        ([m.marks for m in each], 0),
    )
    return " | ".join(_span(values, digits) for values, digits in told)


def _span(values: list[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} – {high}"
