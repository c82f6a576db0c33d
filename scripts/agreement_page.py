"""Runs the worlds against each other: docs/agreement/*.csv, docs/agreement.md and its figures.

`make agreement` runs this, as root and in real time. With `--page` only the page is written again,
from the numbers in docs/agreement.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.agreement import (
    DOCUMENT,
    FIGURE,
    GAIN_TOLERANCE,
    REPEATED,
    SHARE,
    TABLE,
    TOLERANCE,
    agree,
)
from cwnd.reproduce import reproduce_on_linux
from cwnd.running import bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
([the testbed](testbed.md)): Reno and CUBIC, each with and without ABE (β_ecn 0.8 and 0.85, also
where a mark ends slow start), over a FIFO of one bandwidth-delay product, CoDel and PIE, all with
ECN; one flow of 60 s, three runs in each world, and more where three say too little (`cwnd agree
--up-to`). The goal: goodput within {tolerance:g} % of the simulator's at {share:g} % of the points,
and what ABE wins within {gain:g} percentage points.
"""


def main(arguments: Sequence[str]) -> None:
    """Runs what is missing, and writes the page."""
    DATA.mkdir(exist_ok=True)
    if "--page" not in arguments:
        for file in sorted(SCENARIOS.glob("*.toml")):
            _run(file)
        _run_figures()
    (ROOT / "docs" / PAGE).write_text(_page(), encoding="utf-8")


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


def _page() -> str:
    parts = [HEAD.format(tolerance=100 * TOLERANCE, share=100 * SHARE, gain=GAIN_TOLERANCE)]
    sets = {file.stem: _rows(file) for file in sorted(DATA.glob("*mbit.csv"))}
    again = {name: _rows(DATA / f"{name}{AGAIN}.csv") for name in sets}
    parts.append(_verdict(sets, again))
    for name, rows in sets.items():
        world = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        parts += [f"## {_title(name)}\n", _about(world)]
        parts.append(f"![Goodput on Linux by that in the simulator](images/agreement-{name}.png)\n")
        parts.append(
            "*Each mark is a point of the sweep, with 95 % confidence intervals of both worlds;"
            " inside the grey band goodput is within 10 %.*\n"
        )
        parts += ["### Goodput and queue\n", _goodput(rows)]
        parts += ["### What ABE wins\n", _gains(rows)]
        if again[name]:
            parts += ["### Points whose runs scatter\n", _repeated(again[name])]
    parts.append(NOTES.read_text(encoding="utf-8"))
    figures = sorted(DATA.glob(f"{PAPER}-*.csv"))
    if figures:
        parts.append(PAPER_HEAD)
    parts += [_figure(file) for file in figures]
    return "\n".join(parts)


def _figure(file: Path) -> str:
    name = file.stem.removeprefix(f"{PAPER}-")
    goodput = [row for row in _rows(file) if row["metric"] == "Goodput"]
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
    first = [row for rows in sets.values() for row in rows]
    best = [row for name, rows in sets.items() for row in _overlaid(rows, again[name])]
    lines = [
        f"| | three runs of each point | and {UP_TO} where three scatter |",
        "|---|---:|---:|",
    ]
    for what, chosen in (
        ("Goodput within its tolerance", lambda row: row["metric"] == "Goodput"),
        ("Gain of ABE within its tolerance", _is_gain),
    ):
        cells = []
        for rows in (first, best):
            mine = list(filter(chosen, rows))
            within = [row for row in mine if row["within"] == "true"]
            cells.append(f"**{len(within)} of {len(mine)}** points ({_percent(len(within), mine)})")
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _overlaid(rows: list[dict[str, str]], again: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    better = {(*_key(row), row["metric"]): row for row in again}
    for row in rows:
        yield better.get((*_key(row), row["metric"]), row)


def _repeated(rows: list[dict[str, str]]) -> str:
    lines = [
        "Where the 95 % confidence interval of a difference is wider than its tolerance after"
        f" three runs, both worlds ran {UP_TO} seeds:\n",
        "| queue | RTT | controller | simulator, Mbit/s | Linux, Mbit/s | difference |",
        "|---|---|---|---:|---:|---:|",
    ]
    for key, metrics in _points(rows):
        goodput = metrics["Goodput"]
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
    for row in filter(_is_gain, rows):
        base = row["metric"].removeprefix("Gain over ")
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


def _title(name: str) -> str:
    return name.replace("mbit", " Mbit/s")


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
        if not _is_gain(row):
            points.setdefault(_key(row), {})[row["metric"]] = row
    yield from points.items()


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(value for name, value in row.items() if name in ("queue", "rtt", "arm"))


def _is_gain(row: dict[str, str]) -> bool:
    return row["metric"].startswith("Gain over")


def _goodput(rows: list[dict[str, str]]) -> str:
    lines = [
        "| queue | RTT | controller | simulator, Mbit/s | Linux, Mbit/s | difference |"
        " mean delay, ms | marks | drops |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for key, metrics in _points(rows):
        goodput = metrics["Goodput"]
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
    for row in filter(_is_gain, rows):
        base = row["metric"].removeprefix("Gain over ")
        lines.append(
            f"| {row['queue']} | {row['rtt']} | {base} | {float(row['simulator']):+.1f} % |"
            f" {float(row['linux']):+.1f} % | {float(row['difference']):+.1f} pp{_off(row)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
