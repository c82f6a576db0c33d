"""Runs the worlds against each other: docs/agreement/*.csv, docs/agreement.md and its figures.

`make agreement` runs this, as root and in real time. With `--simulator` only the simulator's side
is made again, beside what docs/agreement has of Linux; with `--page` only the page is written, from
the numbers there.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.agreement import (
    COMPLETION,
    DOCUMENT,
    FIGURE,
    GAIN_OVER,
    GAIN_TOLERANCE,
    GOODPUT,
    REPEATED,
    SHARE,
    SIMULATOR,
    TABLE,
    TIMEOUTS,
    TIMEOUTS_LEAST,
    TIMEOUTS_TOLERANCE,
    TOLERANCE,
    Agreement,
    agree,
    renew,
    table,
)
from cwnd.agreement import figure as drawing
from cwnd.plots import write
from cwnd.reproduce import reproduce_on_linux
from cwnd.reproduce.linux import draw
from cwnd.reproduce.shelf import PAPERS
from cwnd.results import METRICS
from cwnd.running import LINUX, bar
from cwnd.sweeps import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from cwnd.running import OnProgress

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "scenarios" / "agree"
DATA, IMAGES, PAGE = ROOT / "docs" / "agreement", ROOT / "docs" / "images", "agreement.md"
#: What the numbers of points that were run more often are called after.
AGAIN = "-repeated"
#: Where runs stay, so that an interrupted comparison goes on.
RESULTS = ROOT / "out" / "agree"

#: Runs of each world at points where the scenario's three scatter too far to tell.
UP_TO = 30

#: The paper whose figures are run as well.
PAPER = "abe"
FIGURES = IMAGES / "papers" / PAPER / "linux"

#: What the page says of the differences; written by hand.
NOTES = DATA / "notes.md"

PAPER_HEAD = """\
## The figures of the ABE paper

`cwnd reproduce abe --on linux`: the paper's figures with Linux's own Reno and CUBIC, ABE loaded
into the kernel, beside the same scenarios in the simulator; one run a point and world, so what
differs may be chance. [The paper's page](../papers/abe/README.md) has the simulator's, with more
seeds.
"""

HEAD = """\
# Do the worlds agree?

*Written by `make agreement`; its numbers are in [docs/agreement](agreement).*

The same scenario in the simulator (`endpoint = "linux"`) and with real Linux TCP around our router
([the testbed](testbed.md)), three runs of each point in each world, and more where three say too
little (`cwnd agree --up-to`). The goal: at {share:g} % of the points goodput within {tolerance:g} %
of the simulator's, or the mean completion time where flows are transfers that end, and timeouts
within {timeouts:g} % or {least:g} a run; and what ABE wins within {gain:g} percentage points. Where
there are several groups of flows, each is a point besides all flows together.

The simulator's side is of this version. Linux's is as it was recorded, by the kernels that are
named below.
"""

#: The comparisons, in the order of the page: their titles, and what they are about.
SETS = {
    "10mbit": (
        "10 Mbit/s",
        "Reno and CUBIC, each with and without ABE (β_ecn 0.8 and 0.85, also where a mark ends slow"
        " start), over a FIFO of one bandwidth-delay product, CoDel and PIE, all with ECN; one flow"
        " of 60 s.",
    ),
    "25mbit": (
        "25 Mbit/s",
        "Reno and CUBIC over five queues, with ECN; one flow of 30 s.",
    ),
    "50mbit": ("50 Mbit/s", "The same as at 10 Mbit/s."),
    "reordering": (
        "Reordering",
        "One flow of 40 s at 20 Mbit/s over a FIFO of one bandwidth-delay product. One packet in a"
        " thousand or a hundred is held back behind the queue, so that later ones pass it.",
    ),
    "on-off": (
        "Pauses",
        "One connection of 30 s at 10 Mbit/s and 100 ms: a transfer, a pause, the next transfer.",
    ),
    "transfers": (
        "Short transfers",
        "Connections arrive at random for 30 s, with transfers of four sizes, which together offer"
        " 45 % of 20 Mbit/s; packets are lost at random on the way of the data, SYNs among them.",
    ),
    "flows": (
        "Two and ten flows",
        "Flows of 30 s at 10 Mbit/s and 40 ms, without ECN.",
    ),
    "shares": (
        "Reno against CUBIC",
        "One and five flows of each for 60 s at 10 Mbit/s and 40 ms, without ECN.",
    ),
    "mixtures": (
        "Round-trip times that differ",
        "One and five flows with 20 ms beside as many with 100 ms for 40 s at 10 Mbit/s, without"
        " ECN.",
    ),
}
#: What the metrics are called in the tables.
_GOODPUT, _COMPLETION, _TIMEOUTS = (METRICS[name].label for name in (GOODPUT, COMPLETION, TIMEOUTS))


def main(arguments: Sequence[str]) -> None:
    """Runs what is missing, and writes the page."""
    DATA.mkdir(exist_ok=True)
    if "--simulator" in arguments:
        _simulate()
    elif "--page" not in arguments:
        for file in sorted(SCENARIOS.glob("*.toml")):
            _run(file)
        _run_figures()
    (ROOT / "docs" / PAGE).write_text(page(), encoding="utf-8")


def _simulate() -> None:
    """The simulator's side of all tables again."""
    for name in recorded_sets():
        scenario, runs = SCENARIOS / f"{name}.toml", RESULTS / name / SIMULATOR
        for recorded in (DATA / f"{name}.csv", DATA / f"{name}{AGAIN}.csv"):
            if recorded.exists():
                found = renew(scenario, recorded, runs)
                recorded.write_text(table(found), encoding="utf-8")
                if not recorded.stem.endswith(AGAIN):
                    _picture(found, name)
    for recorded in sorted(DATA.glob(f"{PAPER}-*.csv")):
        name = recorded.stem.removeprefix(f"{PAPER}-")
        runs = RESULTS / PAPER / name / SIMULATOR
        found = renew(PAPERS / PAPER / LINUX / f"{name}.toml", recorded, runs)
        recorded.write_text(table(found), encoding="utf-8")
        for file in draw(PAPER, name, {SIMULATOR: load(runs)}, runs):
            if file.suffix == ".png":
                shutil.copy(file, FIGURES / file.name)


def _picture(found: Agreement, name: str) -> None:
    files = write(drawing.figure(found), found.directory, FIGURE)
    (png,) = (file for file in files if file.suffix == ".png")
    shutil.copy(png, IMAGES / f"agreement-{name}.png")


def recorded_sets() -> list[str]:
    """The comparisons that there are numbers of."""
    return [name for name in SETS if (DATA / f"{name}.csv").exists()]


def _run(file: Path) -> None:
    def progress(name: str) -> AbstractContextManager[OnProgress]:
        return bar(f"{file.stem}, {name}")

    found = agree(file, RESULTS / file.stem, up_to=UP_TO, progress=progress)
    take_set(file.stem, found.directory)


def take_set(name: str, directory: Path) -> None:
    """Keeps the numbers and the figure of a comparison."""
    shutil.copy(directory / TABLE, DATA / f"{name}.csv")
    again = DATA / f"{name}{AGAIN}.csv"
    again.unlink(missing_ok=True)
    if (directory / REPEATED).exists():
        shutil.copy(directory / REPEATED, again)
    shutil.copy(directory / f"{FIGURE}.png", IMAGES / f"agreement-{name}.png")
    document = json.loads((directory / DOCUMENT).read_text(encoding="utf-8"))
    world = json.dumps(document["world"], indent=2, ensure_ascii=False) + "\n"
    (DATA / f"{name}.json").write_text(world, encoding="utf-8")


def _run_figures() -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    for figure in reproduce_on_linux(PAPER, directory=RESULTS / PAPER, progress=bar):
        take_figure(figure.name, figure.agreement.directory, figure.files)


def take_figure(name: str, directory: Path, files: Sequence[Path]) -> None:
    """Keeps the numbers and the pictures of one of the paper's figures."""
    shutil.copy(directory / TABLE, DATA / f"{PAPER}-{name}.csv")
    for file in files:
        if file.suffix == ".png":
            shutil.copy(file, FIGURES / file.name)


def page() -> str:
    """The page, from the numbers beside it."""
    parts = [
        HEAD.format(
            tolerance=100 * TOLERANCE,
            share=100 * SHARE,
            gain=GAIN_TOLERANCE,
            timeouts=100 * TIMEOUTS_TOLERANCE,
            least=TIMEOUTS_LEAST,
        )
    ]
    sets = {name: _rows(DATA / f"{name}.csv") for name in recorded_sets()}
    again = {name: _rows(DATA / f"{name}{AGAIN}.csv") for name in sets}
    parts.append(_verdict(sets, again))
    for name, rows in sets.items():
        world = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        title, about = SETS[name]
        parts += [f"## {title}\n", f"{about}\n", _about(world)]
        what = deciding(rows)[0]["metric"]
        parts.append(f"![{what} on Linux by that in the simulator](images/agreement-{name}.png)\n")
        parts.append(
            "*Each mark is a point of the sweep, with 95 % confidence intervals of both worlds;"
            f" inside the grey band the {what.lower()} is within 10 %.*\n"
        )
        if any(map(is_gain, rows)):
            parts += ["### Goodput and queue\n", _goodput(rows)]
            parts += ["### What ABE wins\n", _gains(rows)]
            if again[name]:
                parts += ["### Points whose runs scatter\n", _repeated(again[name])]
        else:
            parts.append(_plain(rows))
            if again[name]:
                parts += [f"### {title}: points whose runs scatter\n", _again(again[name])]
    parts.append(NOTES.read_text(encoding="utf-8"))
    figures = sorted(DATA.glob(f"{PAPER}-*.csv"))
    if figures:
        parts.append(PAPER_HEAD)
    parts += [_figure(file) for file in figures]
    return "\n".join(parts)


def _figure(file: Path) -> str:
    name = file.stem.removeprefix(f"{PAPER}-")
    goodput = [row for row in _rows(file) if row["metric"] == _GOODPUT]
    within = sum(row["within"] == "true" for row in goodput)
    worst = max(goodput, key=lambda row: abs(float(row["difference_percent"])))
    axes = list(worst)[: list(worst).index("group" if "group" in worst else "metric")]
    place = ", ".join(worst[axis] for axis in axes)
    number = int(name.removeprefix("fig"))
    pictures = " | ".join(
        f"![Fig. {number}, {world}](images/papers/{PAPER}/linux/{name}-{world}.png)"
        for world in ("simulator", "linux")
    )
    return (
        f"### Fig. {number}\n\nGoodput within 10 % at {within} of {len(goodput)} points; farthest"
        f" apart at {place}: {float(worst['difference_percent']):+.1f} %.\n\n"
        f"| simulator | Linux |\n|---|---|\n| {pictures} |\n"
    )


def _rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def _verdict(sets: dict[str, list[dict[str, str]]], again: dict[str, list[dict[str, str]]]) -> str:
    """What holds, by the three runs of each point, and by all runs."""
    best = {name: list(_overlaid(rows, again[name])) for name, rows in sets.items()}
    lines = [
        "| within their tolerances | three runs of each point | and more where three scatter |",
        "|---|---:|---:|",
    ]
    questions = (
        ("goodput", lambda row: bool(row["within"]) and row["metric"] == _GOODPUT),
        ("completion time", lambda row: bool(row["within"]) and row["metric"] == _COMPLETION),
        ("timeouts", lambda row: row["metric"] == _TIMEOUTS),
        ("gain of ABE", is_gain),
    )
    for name, rows in sets.items():
        for what, chosen in questions:
            if any(map(chosen, rows)):
                cells = " | ".join(_within(filter(chosen, of)) for of in (rows, best[name]))
                lines.append(f"| {SETS[name][0]}: {what} | {cells} |")
    everything = [[row for rows in of.values() for row in rows] for of in (sets, best)]
    for what, chosen in (
        ("goodput or completion time", _decides),
        *questions[2:],
    ):
        both = (_within(filter(chosen, rows), share=True) for rows in everything)
        lines.append(f"| **all: {what}** | {' | '.join(both)} |")
    return "\n".join(lines) + "\n"


def deciding(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of what decides: goodput or completion time."""
    return list(filter(_decides, rows))


def _decides(row: dict[str, str]) -> bool:
    return bool(row["within"]) and row["metric"] in (_GOODPUT, _COMPLETION)


def _within(rows: Iterable[dict[str, str]], *, share: bool = False) -> str:
    mine = list(rows)
    within = sum(row["within"] == "true" for row in mine)
    if not share:
        return f"{within} of {len(mine)}"
    return f"**{within} of {len(mine)}** ({_percent(within, mine)})"


def _plain(rows: list[dict[str, str]]) -> str:
    """The points of a comparison that has no arms with something besides."""
    what = deciding(rows)[0]
    axes = list(what)[: list(what).index("metric")]
    axes = [name for name in axes if name != "group" or any(row["group"] != "*" for row in rows)]
    lines = [
        f"| {' | '.join(axes)} | simulator, {what['unit']} | Linux, {what['unit']} | difference |"
        " timeouts | retransmissions | drops |",
        "|" + "---|" * len(axes) + "---:|" * 6,
    ]
    points: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for row in rows:
        key = tuple("all" if row[axis] == "*" else row[axis] for axis in axes)
        points.setdefault(key, {})[row["metric"]] = row
    for key, metrics in points.items():
        (decides,) = deciding(list(metrics.values()))
        timeouts = metrics.get(_TIMEOUTS)
        lines.append(
            f"| {' | '.join(key)} | {_pm(decides, 'simulator', 3)} | {_pm(decides, 'linux', 3)} |"
            f" {float(decides['difference_percent']):+.1f} %{_off(decides)} |"
            f" {_both(timeouts, 1)}{_off(timeouts) if timeouts else ''} |"
            f" {_both(metrics.get('Retransmissions'), 0)} | {_both(metrics.get('Drops'), 0)} |"
        )
    lines.append(
        "\nTimeouts, retransmissions and drops: simulator → Linux, means of a run; timeouts of SYNs"
        " count.\n"
    )
    return "\n".join(lines)


def _again(rows: list[dict[str, str]]) -> str:
    return f"{_ran(rows)}\n{_plain(rows)}"


def _ran(rows: list[dict[str, str]]) -> str:
    runs = max(int(row["runs"]) for row in rows)
    return (
        "Where the 95 % confidence interval of a difference is wider than its tolerance after three"
        f" runs, both worlds ran {runs} seeds:\n"
    )


def _overlaid(rows: list[dict[str, str]], again: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    better = {place(row): row for row in again}
    for row in rows:
        yield better.get(place(row), row)


def place(row: dict[str, str]) -> tuple[str, ...]:
    """What a row is of: its axes, group and metric."""
    return tuple(list(row.values())[: list(row).index("metric") + 1])


def _repeated(rows: list[dict[str, str]]) -> str:
    lines = [
        _ran(rows),
        "| queue | RTT | controller | simulator, Mbit/s | Linux, Mbit/s | difference |",
        "|---|---|---|---:|---:|---:|",
    ]
    for key, metrics in _points(rows):
        goodput = metrics[_GOODPUT]
        relative = 100 / float(goodput["simulator"])
        difference, half = float(goodput["difference"]), float(goodput["difference_ci95"])
        lines.append(
            f"| {' | '.join(key)} | {_pm(goodput, 'simulator', 2)} | {_pm(goodput, 'linux', 2)} |"
            f" {difference * relative:+.1f} ±{half * relative:.1f} %{_off(goodput)} |"
        )
    lines += [
        "\n| queue | RTT | ABE over | simulator | Linux | difference |",
        "|---|---|---|---:|---:|---:|",
    ]
    for row in filter(is_gain, rows):
        base = row["metric"].removeprefix(GAIN_OVER)
        worlds = (
            f"{float(row[world]):+.1f} ±{float(row[f'{world}_ci95']):.1f} %"
            for world in ("simulator", "linux")
        )
        lines.append(
            f"| {row['queue']} | {row['rtt']} | {base} | {' | '.join(worlds)} |"
            f" {float(row['difference']):+.1f} ±{float(row['difference_ci95']):.1f} pp{_off(row)} |"
        )
    return "\n".join(lines) + "\n"


def _off(row: dict[str, str]) -> str:
    return "" if row["within"] == "true" else " **✗**"


def _percent(part: int, whole: Sequence[object]) -> str:
    return f"{100 * part / len(whole):.0f} %" if whole else "–"


def _about(world: dict[str, Any]) -> str:
    rows = world.get("calibration", [])
    worst = max(
        (abs(r["measured"] / r["set"] - 1) for r in rows if r["unit"] == "Mbit/s"), default=0.0
    )
    return (
        f"Linux {', '.join(world['kernel'])}; controllers {', '.join(world['controllers'])}."
        f" Invalid runs: {world['invalid_runs']}."
        f" In the worst run 1 % of the packets left the router more than"
        f" {world['lateness_p99_us'] / 1000:.2f} ms late; rates, measured before each run, were"
        f" {100 * worst:.2f} % off at most.\n"
    )


def _points(
    rows: list[dict[str, str]],
) -> Iterator[tuple[tuple[str, ...], dict[str, dict[str, str]]]]:
    points: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for row in rows:
        if not is_gain(row):
            points.setdefault(_key(row), {})[row["metric"]] = row
    yield from points.items()


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(value for name, value in row.items() if name in ("queue", "rtt", "arm"))


def is_gain(row: dict[str, str]) -> bool:
    """Whether a row is of what an arm wins."""
    return row["metric"].startswith(GAIN_OVER)


def _goodput(rows: list[dict[str, str]]) -> str:
    lines = [
        "| queue | RTT | controller | simulator, Mbit/s | Linux, Mbit/s | difference |"
        " mean delay, ms | marks | drops |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for key, metrics in _points(rows):
        goodput = metrics[_GOODPUT]
        lines.append(
            f"| {' | '.join(key)} | {_pm(goodput, 'simulator', 2)} | {_pm(goodput, 'linux', 2)} |"
            f" {float(goodput['difference_percent']):+.1f} %{_off(goodput)} |"
            f" {_both(metrics.get('Queueing delay, mean'), 1)} |"
            f" {_both(metrics.get('Marks'), 0)} | {_both(metrics.get('Drops'), 0)} |"
        )
    lines.append("\nDelay, marks and drops: simulator → Linux, means; they have no tolerance.\n")
    return "\n".join(lines)


def _pm(row: dict[str, str], world: str, places: int) -> str:
    mean, half = row[world], row[f"{world}_ci95"]
    interval = f" ±{float(half):.{places}f}" if half else ""
    return f"{float(mean):.{places}f}{interval}"


def _both(row: dict[str, str] | None, places: int) -> str:
    if row is None:
        return "–"
    return f"{float(row['simulator']):.{places}f} → {float(row['linux']):.{places}f}"


def _gains(rows: list[dict[str, str]]) -> str:
    lines = [
        "| queue | RTT | over | simulator | Linux | difference |",
        "|---|---|---|---:|---:|---:|",
    ]
    for row in filter(is_gain, rows):
        base = row["metric"].removeprefix(GAIN_OVER)
        lines.append(
            f"| {row['queue']} | {row['rtt']} | {base} | {float(row['simulator']):+.1f} % |"
            f" {float(row['linux']):+.1f} % | {float(row['difference']):+.1f} pp{_off(row)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
