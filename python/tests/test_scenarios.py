"""The scenarios of scenarios/ and studies/worlds: run, drawn, reported, compared, verified."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from conftest import ROOT, Cli

from cwnd.cli.compare import compare
from cwnd.cli.plot import plot, report
from cwnd.cli.stored import verify
from cwnd.errors import REPORT

WORLDS = (ROOT / "python/cwnd/studies/worlds").glob("*/*.toml")
SCENARIOS = [
    *sorted((ROOT / "scenarios").glob("*.toml")),
    *sorted(file for file in WORLDS if file.name != "study.toml"),
]
#: A few seeds say as much as many about whether it works.
MOST_SEEDS = 2
#: Overrides that shorten scenarios which take longer than some seconds even with few seeds.
SHORTER = {
    "abe-codel-pie": ("sweep.repeat=1", "run.duration=50 s"),
    "two-bottlenecks": ("sweep.repeat=1", "run.duration=30 s"),
    "udp-on-off": ("sweep.repeat=1", "run.duration=40 s"),
    **dict.fromkeys(("adaptive", "bmcc-50mbit", "delay-aimd"), ("sweep.repeat=1",)),
    **dict.fromkeys(
        (
            *("10mbit", "25mbit", "50mbit", "both-ways", "flows", "mixtures", "on-off"),
            *("reordering", "shares", "transfers"),
        ),
        ("sweep.repeat=1", "run.duration=10 s"),
    ),
}


@pytest.mark.parametrize(
    "file",
    # They share nothing: each is a group of its own.
    [
        pytest.param(file, id=file.stem, marks=pytest.mark.xdist_group(file.stem))
        for file in SCENARIOS
    ],
)
def test_a_scenario_runs_and_is_drawn_reported_compared_and_verified(
    file: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
):
    changes = [*SHORTER.get(file.stem, ())]
    if not changes and "\nrepeat = " in file.read_text(encoding="utf-8"):
        changes.append(f"sweep.repeat={MOST_SEEDS}")
    # `cwnd plot` draws the same figures.
    sets = (f"--set={change}" for change in changes)
    ran = cli("run", file, "-o", "out", "--no-plots", *sets)
    assert ran.code == 0, ran.err
    assert REPORT not in ran.err, ran.err
    # What reads the result does so in this process, which loads the libraries once. A figure that
    # fails is a warning, thus an error here.
    out = cli.directory / "out"
    assert plot(out) == 0
    plots = list((out / "plots").iterdir())
    drawn, for_papers = ({p.stem for p in plots if p.suffix == kind} for kind in (".svg", ".png"))
    assert drawn
    assert drawn == for_papers
    for path in plots:
        if path.suffix == ".svg":
            assert "nan" not in {
                word for line in ET.parse(path).iter() for word in line.attrib.values()
            }
    assert report([out]) == 0
    assert (out / "report.html").stat().st_size > 100_000
    if file.parent.name != "agree":
        capsys.readouterr()
        assert compare(out, out) == 0
        assert capsys.readouterr().out
        assert verify([out]) == 0
