"""Tables and figures of recorded comparisons, from the tables that `cwnd agree` wrote."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cwnd.results import METRICS
from cwnd.study.agreement.files import GAIN_OVER
from cwnd.study.agreement.verdict import ARM_SEPARATOR, COMPLETION, GOODPUT, TIMEOUTS
from cwnd.study.tables import interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from cwnd.figures import Picture

    #: A row of a recorded table, by column.
    Row = dict[str, Any]

#: Names of the metrics in the tables.
GOODPUT_LABEL, COMPLETION_LABEL, TIMEOUTS_LABEL = (
    METRICS[name].label for name in (GOODPUT, COMPLETION, TIMEOUTS)
)


def products(
    titles: Mapping[str, str],
) -> tuple[dict[str, Callable[..., list[str]]], dict[str, Callable[..., Picture]]]:
    """Returns `TABLES` and `FIGURES` of a study of comparisons, given their titles by name.

    The table of a comparison takes `NAME.csv` and `facts.json`, its figure `NAME.csv`; the table
    `verdict` takes the tables of all.
    """
    tables: dict[str, Callable[..., list[str]]] = {
        name: partial(comparison, name, title) for name, title in titles.items()
    }
    tables["verdict"] = partial(verdict, tuple(titles.values()))
    return tables, dict.fromkeys(titles, picture)


def split(table: pl.DataFrame) -> tuple[list[Row], list[Row]]:
    """Rows of a recorded table by the scenario's own runs, and of points that ran more often.

    The latter stand behind the former.
    """
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(place(row), []).append(row)
    each = found.values()
    return [rows[0] for rows in each], [row for rows in each for row in rows[1:]]


def best(table: pl.DataFrame) -> list[Row]:
    """Rows of a recorded table, each with all of its runs."""
    rows, again = split(table)
    more = {place(row): row for row in again}
    return [more.get(place(row), row) for row in rows]


def decides(row: Row, by: str | None = None) -> bool:
    """`True` if a row has a tolerance and the metric `by`, or else goodput or completion time."""
    names = (GOODPUT_LABEL, COMPLETION_LABEL) if by is None else (by,)
    return row["within"] is not None and row["metric"] in names


def is_timeouts(row: Row) -> bool:
    """`True` if a row counts timeouts."""
    return bool(row["metric"] == TIMEOUTS_LABEL)


def is_gain(row: Row) -> bool:
    """`True` if a row is the gain of an arm over its base."""
    return str(row["metric"]).startswith(GAIN_OVER)


def within(rows: Iterable[Row], *, share: bool = False) -> str:
    """Counts rows within their tolerances; with `share` also in per cent."""
    mine = list(rows)
    held = sum(bool(row["within"]) for row in mine)
    text = f"{held} of {len(mine)}"
    return f"**{text}** ({100 * held / len(mine):.0f} %)" if share else text


def axes_of(rows: Sequence[Row]) -> list[str]:
    """Columns that name a row's point, and the group if there are several."""
    first = rows[0]
    axes = list(first)[: list(first).index("metric")]
    return [name for name in axes if name != "group" or any(row["group"] != "*" for row in rows)]


def key_of(row: Row, axes: Sequence[str]) -> tuple[str, ...]:
    """Returns the labels of a row's point, with `all` for `*`."""
    return tuple("all" if row[axis] == "*" else str(row[axis]) for axis in axes)


def place(row: Row) -> tuple[Any, ...]:
    """Returns the identity of a row: its axes, group and metric."""
    return tuple(list(row.values())[: list(row).index("metric") + 1])


def verdict(titles: Sequence[str], *tables: pl.DataFrame) -> list[str]:
    """Counts rows within their tolerances in each comparison and in all.

    The counts are by the scenario's own runs of each point, and by all.
    """
    lines = [
        "| within their tolerances | three runs of each point | and more where three scatter |",
        "|---|---:|---:|",
    ]
    found = [(split(table)[0], best(table)) for table in tables]
    everything = [[row for rows in of for row in rows] for of in zip(*found, strict=True)]
    gain = f"gain of {arms(everything[0])}"
    questions: tuple[tuple[str, Callable[[Row], bool]], ...] = (
        ("goodput", partial(decides, by=GOODPUT_LABEL)),
        ("completion time", partial(decides, by=COMPLETION_LABEL)),
        ("timeouts", is_timeouts),
        (gain, is_gain),
    )
    for title, both in zip(titles, found, strict=True):
        for what, chosen in questions:
            if any(map(chosen, both[0])):
                cells = " | ".join(within(filter(chosen, of)) for of in both)
                lines.append(f"| {title}: {what} | {cells} |")
    for what, chosen in (("goodput or completion time", decides), *questions[2:]):
        if any(map(chosen, everything[0])):
            cells = " | ".join(within(filter(chosen, of), share=True) for of in everything)
            lines.append(f"| **all: {what}** | {cells} |")
    return lines


def picture(table: pl.DataFrame) -> Picture:
    """Draws the deciding metrics of a recorded comparison."""
    from cwnd.study.agreement import figure
    from cwnd.study.agreement.run import agreement

    return figure.figure(agreement(best(table)))


def comparison(
    name: str, title: str, table: pl.DataFrame, facts: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Tables of a recorded comparison: all points, gains, and points that ran more often."""
    rows, again = split(table)
    lines = [about(facts[name]), "", *points(rows)]
    if any(map(is_gain, rows)):
        lines += ["", f"#### {title}: gain of {arms(rows)}", "", *gains(rows)]
    if again:
        runs = max(row["runs"] for row in again)
        lines += [
            *("", f"#### {title}: points whose runs scatter", ""),
            "Where the 95 % confidence interval of a difference is wider than its tolerance after"
            f" three runs, both worlds ran {runs} seeds:",
            *("", *points(again)),
        ]
        if any(map(is_gain, again)):
            lines += ["", *gains(again)]
    return lines


#: Columns beside the deciding metric: the metric, its head, its decimals. The first are for
#: comparisons with gains, the second for others, the last for all.
_BESIDE_GAINS = (("Queueing delay, mean", "delay, ms", 1), ("Marks", "marks", 0))
_BESIDE = (("Retransmissions", "retransmissions", 0),)
_LAST = (("Drops", "drops", 0),)


def points(rows: list[Row]) -> list[str]:
    """Table of the deciding metric and further ones at each point."""
    what, axes = next(filter(decides, rows)), axes_of(rows)
    beside = (*(_BESIDE_GAINS if any(map(is_gain, rows)) else _BESIDE), *_LAST)
    if any(map(is_timeouts, rows)):
        beside = ((TIMEOUTS_LABEL, "timeouts", 1), *beside)
    lines = [
        f"| {' | '.join(axes)} | simulator, {what['unit']} | Linux, {what['unit']} | difference |"
        f" {' | '.join(heading for _, heading, _ in beside)} |",
        "|" + "---|" * len(axes) + "---:|" * (3 + len(beside)),
    ]
    by_point: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        if not is_gain(row):
            by_point.setdefault(key_of(row, axes), {})[row["metric"]] = row
    for key, metrics in by_point.items():
        (deciding,) = filter(decides, metrics.values())
        others = (
            f"{_both(metrics.get(name), places)}{_off(metrics.get(name))}"
            for name, _, places in beside
        )
        lines.append(
            f"| {' | '.join(key)} | {_pm(deciding, 'simulator')} | {_pm(deciding, 'linux')} |"
            f" {_difference(deciding)}{_off(deciding)} | {' | '.join(others)} |"
        )
    names = ", ".join(heading.partition(",")[0] for _, heading, _ in beside)
    counted = " Timeouts of SYNs count." if beside[0][0] == TIMEOUTS_LABEL else ""
    text = f"{names[:1].upper()}{names[1:]}: simulator → Linux, means of a run.{counted}"
    return [*lines, "", text]


def about(world: Mapping[str, Any]) -> str:
    """Describes the kernel, the timing of the router, and the simulator."""
    rates = (r for r in world.get("calibration", []) if r["unit"] == "Mbit/s")
    worst = max((abs(r["measured"] / r["set"] - 1) for r in rates), default=0.0)
    return (
        f"Linux {', '.join(world['kernel'])}; controllers {', '.join(world['controllers'])}."
        f" Invalid runs: {world['invalid_runs']}."
        f" In the worst run 1 % of the packets left the router more than"
        f" {world['lateness_p99_us'] / 1000:.2f} ms late; rates, measured before each run, were"
        f" {100 * worst:.2f} % off at most. Simulator {world['simulator']}."
    )


def arms(rows: Iterable[Row]) -> str:
    """Returns the names of arms with gains, without the names of their bases."""
    gains = list(filter(is_gain, rows))
    names = dict.fromkeys(
        next(
            str(value).removeprefix(f"{base}{ARM_SEPARATOR}")
            for axis, value in row.items()
            # The axis of the arms is the one that the base is a label of.
            if value != base and any(other.get(axis) == base for other in rows)
        )
        for row in gains
        for base in [row["metric"].removeprefix(GAIN_OVER)]
    )
    return ", ".join(names)


def gains(rows: list[Row]) -> list[str]:
    """Table of the arms' gains over their bases."""
    axes = axes_of(rows)
    lines = [
        f"| {' | '.join(axes)} | over | simulator | Linux | difference |",
        "|" + "---|" * (len(axes) + 1) + "---:|" * 3,
    ]
    for row in filter(is_gain, rows):
        many = row["runs"] >= _MANY
        ours, theirs, difference = (
            interval(row[name], row[f"{name}_ci95"] if many else None, 1, "+")
            for name in ("simulator", "linux", "difference")
        )
        lines.append(
            f"| {' | '.join(key_of(row, axes))} | {row['metric'].removeprefix(GAIN_OVER)} |"
            f" {ours} % | {theirs} % | {difference} pp{_off(row)} |"
        )
    return lines


#: Least number of runs for which the interval of a difference or of a gain is shown.
_MANY = 10


def _difference(row: Row) -> str:
    """Difference of Linux, per cent; with its interval from `_MANY` runs on."""
    many = row["runs"] >= _MANY
    half = row["difference_ci95"] * 100 / row["simulator"] if many else None
    return f"{interval(row['difference_percent'], half, 1, '+')} %"


def _pm(row: Row, world: str) -> str:
    return interval(row[world], row[f"{world}_ci95"], 3)


def _both(row: Row | None, places: int) -> str:
    return "–" if row is None else f"{row['simulator']:.{places}f} → {row['linux']:.{places}f}"


def _off(row: Row | None) -> str:
    return " **✗**" if row is not None and row["within"] is False else ""
