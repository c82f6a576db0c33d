"""Tables and figure of flows without end: every row, and experiments on those that differ."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.studies.peers.recorded.explain import EXPLANATIONS
from cwnd.studies.peers.recorded.ours import described
from cwnd.studies.peers.recorded.rows import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cwnd.studies.peers.recorded.endless import Comparison
    from cwnd.studies.peers.recorded.ours import Ours
    from cwnd.studies.peers.recorded.rows import Measures


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


def every(table: str, found: list[Comparison]) -> list[str]:
    """Table of the rows of a file."""
    rows = [c for c in found if c.row.table == table]
    columns = _columns(rows[0].theirs)
    return [
        f"| row | setting | {columns} | verdict |",
        f"|---|---|{'---|' * columns.count('|')}---|---|",
        *map(_line, rows),
    ]


def _line(comparison: Comparison) -> str:
    row, ours, theirs = comparison.row, comparison.ours, comparison.theirs
    if ours is None:
        values = " | ".join("– / " + value for value in _values(theirs, theirs))
        verdict = f"not expressible: {comparison.missing}"
    else:
        pairs = zip(_values(ours, theirs), _values(theirs, theirs), strict=True)
        values = " | ".join(f"{mine} / {peer}" for mine, peer in pairs)
        if not row.by_value:
            verdict = "shown"
        else:
            verdict = "holds" if comparison.holds else "differs: " + ", ".join(comparison.differs)
    return f"| {row.number} | {row.setting} | {values} | {verdict} |"


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
