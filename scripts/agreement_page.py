"""Runs the worlds against each other: docs/agreement/*.csv, docs/agreement.md and its figures.

`make agreement` runs this, as root and in real time. With `--simulator` only the simulator's side
is made again, beside what docs/agreement has of Linux; with `--page` only the page is written, from
the numbers there; names behind either are the only comparisons and papers that are looked at.

Of a paper it runs what `cwnd reproduce NAME --on linux` does, or takes what that left in
out/reproduce/NAME-linux, and keeps what the claims came to (linux/claims.json in the paper's
folder) and the figures (`images/linux` of its folder), and writes the paper's page by them.

What is on the page is data: docs/agreement has a file for each group of comparisons (NAME.toml:
its title, its goal, its sets, each a scenario of scenarios/agree), and beside it what people found
out about what differs (NAME.md). Figures of papers are there once their numbers are.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import agreement_tables as tables
from cwnd import _core
from cwnd.figures import Figure
from cwnd.plots import save
from cwnd.running import bar
from cwnd.store import LINUX, load
from cwnd.study import paper, papers, reproduce_on_linux
from cwnd.study.agreement import (
    DOCUMENT,
    FIGURE,
    GAIN_TOLERANCE,
    REPEATED,
    SIMULATOR,
    TABLE,
    TIMEOUTS_LEAST,
    TIMEOUTS_TOLERANCE,
    TOLERANCE,
    Agreement,
    agree,
    rerun_simulator,
    table,
)
from cwnd.study.agreement import figure as drawing
from cwnd.study.format import IMAGES as IMAGES_OF_STUDY
from cwnd.study.images import PAIR_WIDTH, write_images
from cwnd.study.linux import available, draw, drawn_from
from cwnd.study.paper_page import caption, picture, write_linux
from cwnd.study.runner import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from cwnd.running import OnProgress

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "scenarios" / "agree"
DATA, IMAGES, PAGE = ROOT / "docs" / "agreement", ROOT / "docs" / "images", "agreement.md"
#: Suffix of the files with points that ran more often.
AGAIN = "-repeated"
#: Directory of runs, so that an interrupted comparison goes on.
RESULTS = ROOT / "out" / "agree"
#: File with the engine of the simulator's runs, by comparison.
ENGINES = "simulator.json"
#: Counts within tolerances by builds and seeds, and what is found in them; written by hand.
RESEEDED = "reseeded"
PAPER_RESULTS = ROOT / "out" / "reproduce"

#: Runs of each world at points where the scenario's three scatter too far to tell.
UP_TO = 30

#: Directory of the papers' figures.

PAPER_HEAD = """\
### {title}

`cwnd reproduce {name} --on linux`: what Linux can run of it, beside the same scenarios in the
simulator. [The paper's page](../python/cwnd/studies/papers/{name}/page.md) has its own numbers and
more of ours.
"""

HEAD = """\
# Do the worlds agree?

*Written by `make agreement`; its numbers are in [docs/agreement](agreement).*

The same scenario in the simulator (`endpoint = "linux"`) and with real Linux TCP around our router
([the testbed](testbed.md)), three runs of each point in each world, and more where three say too
little (`cwnd agree --up-to`). Asked is at how many points goodput is within {tolerance:g} %
of the simulator's, or the mean completion time where flows are transfers that end, and timeouts
within {timeouts:g} % or {least:g} a run; and whether what an arm wins over its base is within
{gain:g} percentage points. Where there are several groups of flows, each is a point besides all
flows together.

The goals below are for goodput or completion time of a group of comparisons. The verdict of
`cwnd agree` on one scenario is stricter: both worlds agree if goodput and timeouts are each within
their tolerance at 19 of 20 points, every gain is within its tolerance, and all runs are valid.

The simulator's side is of the engine that stands at each comparison (`cwnd._core.engine`: version
and code), which need not be this one; where none stands, of that of its day.
`scripts/agreement_page.py --simulator NAME` makes it again. Linux's is as it was recorded, by the
kernels that are named below.
"""

RESEEDED_HEAD = """\
## Before and after: noise and recovery

The simulator before (`6351474`, without noise) and now (`745ea36`, with the recovery of today, and
`noise = "none"` or `"path"`) is compared with the same record of Linux, whose RTTs were not drawn.
Counts are of all runs of each point, first with the scenarios' own seeds, which Linux had as well.
Goodput is the completion time where flows are transfers that end.
Ten seedings are those and seeds greater by 1000 to 9000: least to most, mean.
Other seeds draw other starts than Linux had. Short transfers keep their seeds, and with them their
arrivals; RTTs longer by 0.05 to 0.45 % stand in for other seeds there.
**✗** marks a count now that is below the least before.
"""


@dataclass(frozen=True)
class Set:
    """A comparison: a scenario of scenarios/agree."""

    name: str
    title: str
    about: str


@dataclass(frozen=True)
class Group:
    """Comparisons that are about one thing."""

    name: str
    #: Position on the page.
    order: int
    title: str
    about: str
    #: The part of the points that must keep to their tolerance.
    goal: float
    sets: tuple[Set, ...]

    @property
    def notes(self) -> str:
        """Text of the page about the differences, written by hand."""
        file = DATA / f"{self.name}.md"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @property
    def recorded(self) -> list[Set]:
        """The comparisons that there are numbers of."""
        return [each for each in self.sets if (DATA / f"{each.name}.csv").exists()]


def groups() -> list[Group]:
    """The groups, in the order of the page."""
    found = []
    for file in DATA.glob("*.toml"):
        data = _core.read_toml(file.read_text(encoding="utf-8"), name=str(file))
        sets = tuple(Set(**each) for each in data.pop("set"))
        found.append(Group(name=file.stem, sets=sets, **data))
    return sorted(found, key=lambda group: (group.order, group.name))


def main(arguments: Sequence[str]) -> None:
    """Runs what is missing, and writes the page."""
    only = {each for each in arguments if not each.startswith("--")}
    if "--simulator" in arguments:
        _simulate(only)
    elif "--page" not in arguments:
        for file in sorted(SCENARIOS.glob("*.toml")):
            if not only or file.stem in only:
                _run(file)
        for name in papers():
            if available(name) and (not only or name in only):
                run_figures(name)
    (ROOT / "docs" / PAGE).write_text(page(), encoding="utf-8")


def _simulate(only: set[str]) -> None:
    """The simulator's side of all tables again; what did not move stays to the last digit."""
    for name in recorded_sets():
        if only and name not in only:
            continue
        scenario, runs = SCENARIOS / f"{name}.toml", RESULTS / name / SIMULATOR
        for recorded in (DATA / f"{name}.csv", DATA / f"{name}{AGAIN}.csv"):
            if recorded.exists():
                found = rerun_simulator(scenario, recorded, runs)
                if _moved(found, recorded) and not recorded.stem.endswith(AGAIN):
                    _picture(found, name)
        _take_engine(name, runs)
    for paper_name, name in recorded_figures():
        if only and paper_name not in only:
            continue
        runs = _results(paper_name) / name / SIMULATOR
        recorded = DATA / f"{paper_name}-{name}.csv"
        found = rerun_simulator(paper(paper_name).folder / LINUX / f"{name}.toml", recorded, runs)
        if _moved(found, recorded):
            files = draw(paper_name, name, {SIMULATOR: load(runs)}, runs)
            write_images(files, paper(paper_name).folder / IMAGES_OF_STUDY / LINUX, PAIR_WIDTH)
        _take_engine(recorded.stem, runs)


def _moved(found: Agreement, recorded: Path) -> bool:
    """Writes a table again if the simulator's side changed, and returns `True` then."""
    text = table(found)
    before, after = (
        [(row["simulator"], row["simulator_ci95"]) for row in csv.DictReader(io.StringIO(each))]
        for each in (recorded.read_text(encoding="utf-8"), text)
    )
    if before != after:
        recorded.write_text(text, encoding="utf-8")
        sys.stderr.write(f"{recorded.stem}: the simulator's side moved\n")
    return before != after


def _take_engine(name: str, runs: Path) -> None:
    """Keeps which engine the simulator's side of a comparison is of."""
    known = _engines()
    known[name] = load(runs).manifest.engine
    written = json.dumps(known, indent=2, sort_keys=True) + "\n"
    (DATA / ENGINES).write_text(written, encoding="utf-8")


def _engines() -> dict[str, str]:
    """The engines of the simulator's sides, by their tables; those of before it was kept lack."""
    file = DATA / ENGINES
    told: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return told


def _picture(found: Agreement, name: str) -> None:
    files = save(Figure(drawing.figure(found)), found.directory, FIGURE)
    (png,) = (file for file in files if file.suffix == ".png")
    shutil.copy(png, IMAGES / f"agreement-{name}.png")


def recorded_sets() -> list[str]:
    """The comparisons that there are numbers of."""
    return [each.name for group in groups() for each in group.recorded]


def recorded_figures() -> list[tuple[str, str]]:
    """The papers' figures that there are numbers of: paper and name."""
    return [
        (name, figure)
        for name in papers()
        for figure in available(name)
        if (DATA / f"{name}-{figure}.csv").exists()
    ]


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
    _take_engine(name, directory / SIMULATOR)
    document = json.loads((directory / DOCUMENT).read_text(encoding="utf-8"))
    world = json.dumps(document["world"], indent=2, ensure_ascii=False) + "\n"
    (DATA / f"{name}.json").write_text(world, encoding="utf-8")


def run_figures(name: str) -> None:
    """Runs what is missing of a paper, keeps what came of it, and writes its page by that."""
    found = reproduce_on_linux(name, directory=_results(name), progress=bar)
    shutil.copy(_results(name) / CLAIMS, paper(name).folder / LINUX / CLAIMS)
    for figure in found.figures:
        shutil.copy(figure.agreement.directory / TABLE, DATA / f"{name}-{figure.name}.csv")
        write_images(figure.files, paper(name).folder / IMAGES_OF_STUDY / LINUX, PAIR_WIDTH)
        _take_engine(f"{name}-{figure.name}", figure.agreement.directory / SIMULATOR)
    write_linux(paper(name))


def _results(name: str) -> Path:
    """Returns the directory with the runs of `cwnd reproduce NAME --on linux`."""
    return PAPER_RESULTS / f"{name}-{LINUX}"


def page() -> str:
    """The page, from the numbers beside it."""
    parts = [
        HEAD.format(
            tolerance=100 * TOLERANCE,
            gain=GAIN_TOLERANCE,
            timeouts=100 * TIMEOUTS_TOLERANCE,
            least=TIMEOUTS_LEAST,
        )
    ]
    shown = [group for group in groups() if group.recorded]
    numbers = {group.name: _Numbers.of(group) for group in shown}
    parts += [_overview(shown, numbers), *_reseeded(shown)]
    for group in shown:
        parts += [f"## {group.title}\n", f"{group.about}\n", _verdict(numbers[group.name])]
        for each in group.recorded:
            parts += _set(each, numbers[group.name])
        parts += [group.notes] if group.notes else []
    figures = recorded_figures()
    if figures:
        parts.append("## Figures of papers\n")
    for name in dict.fromkeys(name for name, _ in figures):
        parts.append(PAPER_HEAD.format(name=name, title=paper(name).title))
        parts += [_figure(name, figure) for of, figure in figures if of == name]
    return "\n".join(parts)


@dataclass(frozen=True)
class _Numbers:
    """The rows of a group's comparisons, by the scenario's own runs and of points that ran more."""

    group: Group
    sets: dict[str, list[dict[str, str]]]
    again: dict[str, list[dict[str, str]]]

    @classmethod
    def of(cls, group: Group) -> _Numbers:
        names = [each.name for each in group.recorded]
        sets, again = (
            {name: tables.read(DATA / f"{name}{more}.csv") for name in names}
            for more in ("", AGAIN)
        )
        return cls(group, sets, again)

    @property
    def best(self) -> dict[str, list[dict[str, str]]]:
        """Each point with all of its runs."""
        return {
            name: list(tables.overlaid(rows, self.again[name])) for name, rows in self.sets.items()
        }


def _overview(shown: Sequence[Group], numbers: dict[str, _Numbers]) -> str:
    """A row for each group, by all runs of each point."""
    lines = [
        "| by all runs of each point | goodput or completion time | goal | timeouts | gains |",
        "|---|---:|---:|---:|---:|",
    ]
    for group in shown:
        rows = [row for of in numbers[group.name].best.values() for row in of]
        decides, timeouts, gains = (
            tables.within(found, share=True) if (found := list(filter(of, rows))) else "–"
            for of in (tables.decides, tables.is_timeouts, tables.is_gain)
        )
        lines.append(
            f"| {group.title} | {decides} | {100 * group.goal:g} % | {timeouts} | {gains} |"
        )
    return "\n".join(lines) + "\n"


def _reseeded(shown: Sequence[Group]) -> list[str]:
    """Counts before noise and recovery changed and after, by the file that has them."""
    rows = tables.read(DATA / f"{RESEEDED}.csv")
    if not rows:
        return []
    lines = [
        "| within their tolerances | of | before | ten seedings | now, `none` | now, `path` |"
        " ten seedings |",
        "|---|" + "---:|" * 6,
    ]
    parts = [(group.title, [each.name for each in group.sets]) for group in shown]
    parts.append(("Figures of papers", ["-".join(each) for each in recorded_figures()]))
    for (title, names), what in product(parts, ("goodput", "timeouts", "gains")):
        mine = [row for row in rows if row["set"] in names and row["what"] == what]
        if not mine:
            continue
        before, none, path = (
            _sums(row["within"] for row in mine if row["noise"] == noise)
            for noise in ("-", "none", "path")
        )
        points = sum(int(row["points"]) for row in mine if row["noise"] == "path")
        off = " **✗**" if path[0] < min(before) else ""
        lines.append(
            f"| {title}: {what} | {points} | {before[0]} | {_range(before)} | {none[0]} |"
            f" {path[0]}{off} | {_range(path)} |"
        )
    notes = (DATA / f"{RESEEDED}.md").read_text(encoding="utf-8")
    return [RESEEDED_HEAD, "\n".join(lines) + "\n", notes]


def _sums(counts: Iterable[str]) -> list[int]:
    """Counts of several comparisons together, seeding by seeding."""
    return [sum(map(int, of)) for of in zip(*(each.split() for each in counts), strict=True)]


def _range(counts: list[int]) -> str:
    return f"{min(counts)} to {max(counts)}, {sum(counts) / len(counts):.1f}"


def _set(each: Set, numbers: _Numbers) -> list[str]:
    """A comparison: what it is of, its figure and its tables."""
    rows, again = numbers.sets[each.name], numbers.again[each.name]
    world = json.loads((DATA / f"{each.name}.json").read_text(encoding="utf-8"))
    what = tables.deciding(rows)[0]["metric"]
    parts = [
        f"### {each.title}\n",
        f"{each.about}\n",
        tables.about(world, _engines().get(each.name)),
        f"![{what} on Linux by that in the simulator](images/agreement-{each.name}.png)\n",
        "*Each mark is a point of the sweep, with 95 % confidence intervals of both worlds;"
        f" inside the grey band the {what.lower()} is within 10 %.*\n",
        tables.points(rows),
    ]
    if any(map(tables.is_gain, rows)):
        parts += [f"#### {each.title}: gain of {tables.arms(rows)}\n", tables.gains(rows)]
    if again:
        parts += [
            f"#### {each.title}: points whose runs scatter\n",
            tables.ran(again),
            tables.points(again),
        ]
        if any(map(tables.is_gain, again)):
            parts.append(tables.gains(again))
    return parts


def _verdict(numbers: _Numbers) -> str:
    """Counts rows within their tolerances in a group: by three runs of each point, and by all."""
    best = numbers.best
    lines = [
        "| within their tolerances | three runs of each point | and more where three scatter |",
        "|---|---:|---:|",
    ]
    everything = [[row for rows in of.values() for row in rows] for of in (numbers.sets, best)]
    gain = f"gain of {tables.arms(everything[0])}"
    questions = (
        ("goodput", lambda row: tables.decides(row, tables.GOODPUT_CALLED)),
        ("completion time", lambda row: tables.decides(row, tables.COMPLETION_CALLED)),
        ("timeouts", tables.is_timeouts),
        (gain, tables.is_gain),
    )
    for each in numbers.group.recorded:
        for what, chosen in questions:
            if any(map(chosen, numbers.sets[each.name])):
                both = (numbers.sets[each.name], best[each.name])
                cells = " | ".join(tables.within(filter(chosen, of)) for of in both)
                lines.append(f"| {each.title}: {what} | {cells} |")
    for what, chosen in (("goodput or completion time", tables.decides), *questions[2:]):
        if any(map(chosen, everything[0])):
            cells = " | ".join(tables.within(filter(chosen, of), share=True) for of in everything)
            lines.append(f"| **all: {what}** | {cells} |")
    return "\n".join(lines) + "\n"


def _figure(paper_name: str, name: str) -> str:
    goodput = [
        row
        for row in tables.read(DATA / f"{paper_name}-{name}.csv")
        if row["metric"] == tables.GOODPUT_CALLED
    ]
    within = sum(row["within"] == "true" for row in goodput)
    worst = max(goodput, key=lambda row: abs(float(row["difference_percent"])))
    place = ", ".join(value for value in tables.key_of(worst, tables.axes_of(goodput)))
    engine = _engines().get(f"{paper_name}-{name}")
    told = f" Simulator {engine}." if engine else ""
    parts = [
        f"#### {caption(name)}\n\nGoodput within 10 % at {within} of {len(goodput)} points;"
        f" farthest apart at {place}: {float(worst['difference_percent']):+.1f} %.{told}\n"
    ]
    folder = paper(paper_name).folder / IMAGES_OF_STUDY / LINUX
    for drawn in drawn_from(paper_name, name):
        pictures = " | ".join(
            picture(drawn, world, f"../python/cwnd/studies/papers/{paper_name}/images")
            for world in (SIMULATOR, LINUX)
            if (folder / f"{drawn}-{world}.png").exists()
        )
        parts.append(f"| simulator | Linux |\n|---|---|\n| {pictures} |\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main(sys.argv[1:])
