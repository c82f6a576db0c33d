"""A paper's figures in both worlds: the simulator stands in for Linux, which takes real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_reproduce import SCENARIO

from cwnd import study
from cwnd.running.environments import Simulator
from cwnd.studies.papers import on_linux
from cwnd.study import linux
from cwnd.study.page import with_linux

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLAIMS = """
title = "A toy in both worlds"
authors = "A. Author"
venue = "Nowhere"
setting_on_linux = "as it is."
found_on_linux = "nothing."

[same_runs_on_linux]
fig02 = "fig01"

[[claim]]
id = "T1"
figures = ["fig01", "fig02"]
text = "Larger factors carry more"
"""


def bound(what: str, at_least: float, measured: str) -> str:
    return f"""
[[claim.check]]
what = "{what}"
kind = "bound"
unit = "Mbit/s"
at_least = {at_least}
measure = {{ name = "goodput", {measured} }}
"""


CHECKS = (
    ("goodput of 0.9 at 160 ms", 1, 'of = { rtt = "160 ms", beta_ecn = "0.9" }'),
    ("goodput at an RTT that Linux did not run", 1, 'of = { rtt = "20 ms", beta_ecn = "0.9" }'),
    (
        "goodput in a figure that Linux did not run",
        1,
        'figure = "fig03", of = { rtt = "160 ms", beta_ecn = "0.9" }',
    ),
    (
        "goodput of 0.5 in a figure of the same runs",
        100,
        'figure = "fig02", of = { rtt = "160 ms", beta_ecn = "0.5" }',
    ),
)
MEASURES = """
def goodput(results, figure, of):
    rows = results[figure].per_run()
    for axis, label in of.items():
        rows = rows.filter(rows[axis].cast(str) == label)
    return [value / 1e6 for value in rows["goodput_bit_s"]]


MEASURES = {"goodput": goodput}
"""


def test_claims_are_judged_by_what_linux_ran_and_stand_on_the_page(
    make_paper: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = make_paper("both", CLAIMS + "".join(bound(*each) for each in CHECKS), MEASURES)
    text = SCENARIO.to_toml()
    for figure in ("fig01", "fig02", "fig03"):
        (folder / f"{figure}.toml").write_text(text, encoding="utf-8")
    fewer = text.replace('    "20 ms",\n', "")
    assert fewer != text
    (folder / "linux").mkdir()
    (folder / "linux" / "fig01.toml").write_text(fewer, encoding="utf-8")
    monkeypatch.setattr("cwnd.study.agreement.run.Linux", Simulator)
    monkeypatch.setattr("cwnd.study.agreement.run.environment_of", lambda _on: Simulator())

    monkeypatch.chdir(tmp_path)

    found = study.reproduce_on_linux("both")
    assert [figure.name for figure in found.figures] == ["fig01"]
    pictures = {file.name for file in found.figures[0].files if file.suffix == ".png"}
    assert pictures == {f"fig0{n}-{world}.png" for n in (1, 2) for world in ("simulator", "linux")}
    both = found.outcomes["T1"]
    assert [linux.check.what for _, linux in both] == [
        "goodput of 0.9 at 160 ms",
        "goodput of 0.5 in a figure of the same runs",
    ]
    assert [(ours.holds, theirs.holds) for ours, theirs in both] == [(True, True), (False, False)]
    assert both[0][0].ours == both[0][1].ours, "the worlds are the same one here"

    # The page has it once it is kept, and nothing else of the page changes.
    paper = study.paper("both")
    before = "# A toy\n\nWhat it says.\n"
    assert with_linux(before, paper, "images") == before
    (folder / "page.md").write_text(before, encoding="utf-8")
    on_linux.main([str(folder / "linux" / "claims.json"), "--on", "linux"])
    assert linux.recorded(paper) == found.outcomes
    assert (folder / "linux" / "fig01.csv").exists()
    pairs = sorted((folder / "images" / "linux").iterdir())
    assert [file.name for file in pairs] == ["fig01.png", "fig02.png"]
    page = with_linux(before, paper, "images")
    assert page.startswith(f"{before}\n## On real Linux\n")
    assert with_linux(page, paper, "images") == page
    kept = (folder / "page.md").read_text(encoding="utf-8")
    assert kept == with_linux(before, paper, "images")
    assert "1 of 2 numbers hold" in page
    text = both[1][1].text
    row = "| T1.4 | goodput of 0.5 in a figure of the same runs |  | ≥ 100 |"
    assert f"{row} {text} | {text} | **contradicted** |" in page
    assert "![Fig. 2, simulator and Linux](images/linux/fig02.png)" in page


@pytest.mark.parametrize("name", study.papers())
def test_the_page_of_a_paper_has_what_was_recorded_of_linux(name: str) -> None:
    paper = study.paper(name)
    page = (paper.folder / "page.md").read_text(encoding="utf-8")
    assert with_linux(page, paper, "images") == page
