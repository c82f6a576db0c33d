"""Every scenario that comes with cwnd: run, drawn, reported, compared, verified, as a user does."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT, Answer, Cli

from cwnd.cli.report import report
from cwnd.errors import REPORT

SCENARIOS = sorted((ROOT / "scenarios").rglob("*.toml"))
#: A few seeds say as much as many about whether it works.
MOST_SEEDS = 2
#: What takes longer than some seconds all the same is cut down further; its points are as many.
SHORTER = {
    "abe-gigabit": ("run.duration=1 s", "sweep.repeat=1"),
    "abe-codel-pie": ("sweep.repeat=1", "run.duration=50 s"),
    "abe-readings": ("sweep.repeat=1", "run.duration=30 s"),
    "abe-shared": ("sweep.repeat=1", "run.duration=40 s"),
    "delay-below-one": ("sweep.repeat=1", "run.duration=35 s", "run.warmup=5 s"),
    "delay-noise": ("sweep.repeat=1", "run.duration=35 s"),
    "abe-why": (
        "sweep.repeat=1",
        'sweep.axis.time.values=[["10 s", "0 s"], ["20 s", "10 s"]]',
    ),
    **dict.fromkeys(
        ("25mbit", "reordering", "on-off", "transfers", "flows", "shares", "mixtures", "both-ways"),
        ("sweep.repeat=1", "run.duration=10 s"),
    ),
    "two-bottlenecks": ("sweep.repeat=1", "run.duration=30 s"),
}


@pytest.mark.parametrize(
    "file",
    # They share nothing: each is a group of its own.
    [
        pytest.param(file, id=file.stem, marks=pytest.mark.xdist_group(file.stem))
        for file in SCENARIOS
    ],
)
def test_a_scenario_runs_and_is_drawn_reported_compared_and_verified(file: Path, cli: Cli):
    changes = [*SHORTER.get(file.stem, ())]
    if not changes and "\nrepeat = " in file.read_text(encoding="utf-8"):
        changes.append(f"sweep.repeat={MOST_SEEDS}")
    # `cwnd plot` draws the same figures, and writes each for papers, too.
    sets = (f"--set={change}" for change in changes)
    _well(cli("run", file, "-o", "out", "--no-plots", *sets))
    # Those of agreement differ in their measurements, not in what reads them.
    for command, answer in _at_once(cli, whole=file.parent.name != "agree"):
        _well(answer)
        if command == "compare":
            assert answer.out
    plots = list((cli.directory / "out" / "plots").iterdir())
    drawn, for_papers = ({p.stem for p in plots if p.suffix == kind} for kind in (".svg", ".png"))
    assert drawn
    assert drawn == for_papers
    for path in plots:
        if path.suffix == ".svg":
            assert "nan" not in {
                word for line in ET.parse(path).iter() for word in line.attrib.values()
            }
    # In this process, which bundles the library of the pages once.
    assert report([cli.directory / "out"]) == 0
    assert (cli.directory / "out" / "report.html").stat().st_size > 100_000


def _at_once(cli: Cli, *, whole: bool) -> list[tuple[str, Answer]]:
    """What reads a result, two at a time."""
    commands = [("plot", "out")]
    commands += [("compare", "out", "out"), ("verify", "out")] if whole else []
    with ThreadPoolExecutor(2) as pool:
        return [
            (command[0], answer)
            for command, answer in zip(commands, pool.map(lambda c: cli(*c), commands), strict=True)
        ]


def _well(answer: Answer) -> None:
    assert answer.code == 0, answer.err
    # A figure that fails is a warning; here it is an error.
    assert REPORT not in answer.err, answer.err
    assert "could not be drawn" not in answer.err, answer.err
