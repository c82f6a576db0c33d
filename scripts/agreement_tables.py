"""The tables of the page that compares the worlds, from rows as `cwnd agree` leaves them."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from cwnd.results import METRICS
from cwnd.study.agreement import ARM_SEPARATOR, COMPLETION, GAIN_OVER, GOODPUT, TIMEOUTS
from page_tables import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

#: Names of the metrics in the tables.
GOODPUT_CALLED, COMPLETION_CALLED, TIMEOUTS_CALLED = (
    METRICS[name].label for name in (GOODPUT, COMPLETION, TIMEOUTS)
)


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a file; none if there is no such file."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def deciding(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of what decides: goodput or completion time."""
    return list(filter(decides, rows))


def decides(row: dict[str, str], by: str | None = None) -> bool:
    """`true` if a row has a tolerance and the metric `by`, or else goodput or completion time."""
    names = (GOODPUT_CALLED, COMPLETION_CALLED) if by is None else (by,)
    return bool(row["within"]) and row["metric"] in names


def is_timeouts(row: dict[str, str]) -> bool:
    """`true` if a row counts timeouts."""
    return row["metric"] == TIMEOUTS_CALLED


def within(rows: Iterable[dict[str, str]], *, share: bool = False) -> str:
    """Counts rows within their tolerances; with `share` also in per cent."""
    mine = list(rows)
    within = sum(row["within"] == "true" for row in mine)
    if not share:
        return f"{within} of {len(mine)}"
    return f"**{within} of {len(mine)}** ({_percent(within, mine)})"


def axes_of(rows: list[dict[str, str]]) -> list[str]:
    """The columns that say which point a row is of, and of which group where there are some."""
    first = rows[0]
    axes = list(first)[: list(first).index("metric")]
    return [name for name in axes if name != "group" or any(row["group"] != "*" for row in rows)]


def key_of(row: dict[str, str], axes: Sequence[str]) -> tuple[str, ...]:
    """Returns the labels of a row's point, with `all` for `*`."""
    return tuple("all" if row[axis] == "*" else row[axis] for axis in axes)


#: Columns beside the deciding metric: the metric, its head, its decimals. The first are for
#: comparisons with gains, the second for others, the last for all.
_BESIDE_GAINS = (("Queueing delay, mean", "delay, ms", 1), ("Marks", "marks", 0))
_BESIDE = (("Retransmissions", "retransmissions", 0),)
_LAST = (("Drops", "drops", 0),)


def points(rows: list[dict[str, str]]) -> str:
    """Returns a table: the deciding metric and further ones at each point."""
    what, axes = deciding(rows)[0], axes_of(rows)
    gains = any(map(is_gain, rows))
    beside = (*(_BESIDE_GAINS if gains else _BESIDE), *_LAST)
    if any(map(is_timeouts, rows)):
        beside = ((TIMEOUTS_CALLED, "timeouts", 1), *beside)
    lines = [
        f"| {' | '.join(axes)} | simulator, {what['unit']} | Linux, {what['unit']} | difference |"
        f" {' | '.join(heading for _, heading, _ in beside)} |",
        "|" + "---|" * len(axes) + "---:|" * (3 + len(beside)),
    ]
    points: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for row in rows:
        if not is_gain(row):
            points.setdefault(key_of(row, axes), {})[row["metric"]] = row
    for key, metrics in points.items():
        (decides,) = deciding(list(metrics.values()))
        others = (
            f"{_both(metrics.get(name), places)}{_off(metrics.get(name))}"
            for name, _, places in beside
        )
        lines.append(
            f"| {' | '.join(key)} | {_pm(decides, 'simulator')} | {_pm(decides, 'linux')} |"
            f" {_difference(decides)}{_off(decides)} | {' | '.join(others)} |"
        )
    names = ", ".join(heading.partition(",")[0] for _, heading, _ in beside)
    lines.append(
        f"\n{names[:1].upper()}{names[1:]}: simulator → Linux, means of a run."
        + (" Timeouts of SYNs count.\n" if beside[0][0] == TIMEOUTS_CALLED else "\n")
    )
    return "\n".join(lines)


def _difference(row: dict[str, str]) -> str:
    """Difference of Linux, per cent; with its interval from `_MANY` runs on."""
    many = int(row["runs"]) >= _MANY
    half = float(row["difference_ci95"]) * 100 / float(row["simulator"]) if many else None
    return f"{interval(float(row['difference_percent']), half, 1, '+')} %"


#: Least number of runs for which an interval is shown.
_MANY = 10


def ran(rows: list[dict[str, str]]) -> str:
    """Returns a sentence with the number of runs of points that scatter."""
    runs = max(int(row["runs"]) for row in rows)
    return (
        "Where the 95 % confidence interval of a difference is wider than its tolerance after three"
        f" runs, both worlds ran {runs} seeds:\n"
    )


def overlaid(rows: list[dict[str, str]], again: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """The rows, in place of which stand those of points that ran more often."""
    better = {place(row): row for row in again}
    for row in rows:
        yield better.get(place(row), row)


def place(row: dict[str, str]) -> tuple[str, ...]:
    """Returns the identity of a row: its axes, group and metric."""
    return tuple(list(row.values())[: list(row).index("metric") + 1])


def _off(row: dict[str, str] | None) -> str:
    return " **✗**" if row is not None and row["within"] == "false" else ""


def _percent(part: int, whole: Sequence[object]) -> str:
    return f"{100 * part / len(whole):.0f} %" if whole else "–"


def about(world: dict[str, Any], engine: str | None = None) -> str:
    """Describes the kernel, the timing of the router, and the simulator."""
    rows = world.get("calibration", [])
    worst = max(
        (abs(r["measured"] / r["set"] - 1) for r in rows if r["unit"] == "Mbit/s"), default=0.0
    )
    return (
        f"Linux {', '.join(world['kernel'])}; controllers {', '.join(world['controllers'])}."
        f" Invalid runs: {world['invalid_runs']}."
        f" In the worst run 1 % of the packets left the router more than"
        f" {world['lateness_p99_us'] / 1000:.2f} ms late; rates, measured before each run, were"
        f" {100 * worst:.2f} % off at most."
        f"{f' Simulator {engine}.' if engine else ''}\n"
    )


def is_gain(row: dict[str, str]) -> bool:
    """`true` if a row is the gain of an arm over its base."""
    return row["metric"].startswith(GAIN_OVER)


def arms(rows: list[dict[str, str]]) -> str:
    """Returns the names of arms with gains, without the names of their bases."""
    gains = list(filter(is_gain, rows))
    names = dict.fromkeys(
        next(
            value.removeprefix(f"{base}{ARM_SEPARATOR}")
            for axis, value in row.items()
            # The axis of the arms is the one that the base is a label of.
            if value != base and any(other.get(axis) == base for other in rows)
        )
        for row in gains
        for base in [row["metric"].removeprefix(GAIN_OVER)]
    )
    return ", ".join(names)


def _pm(row: dict[str, str], world: str) -> str:
    half = row[f"{world}_ci95"]
    return interval(float(row[world]), float(half) if half else None, 3)


def _both(row: dict[str, str] | None, places: int) -> str:
    if row is None:
        return "–"
    return f"{float(row['simulator']):.{places}f} → {float(row['linux']):.{places}f}"


def gains(rows: list[dict[str, str]]) -> str:
    """Returns the table of the arms' gains over their bases."""
    axes = axes_of(rows)
    lines = [
        f"| {' | '.join(axes)} | over | simulator | Linux | difference |",
        "|" + "---|" * (len(axes) + 1) + "---:|" * 3,
    ]
    for row in filter(is_gain, rows):
        base = row["metric"].removeprefix(GAIN_OVER)
        many = int(row["runs"]) >= _MANY
        cells = (
            interval(float(row[name]), float(row[f"{name}_ci95"]) if many else None, 1, "+")
            for name in ("simulator", "linux", "difference")
        )
        ours, theirs, difference = cells
        lines.append(
            f"| {' | '.join(key_of(row, axes))} | {base} | {ours} % | {theirs} % |"
            f" {difference} pp{_off(row)} |"
        )
    return "\n".join(lines) + "\n"
