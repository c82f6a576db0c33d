"""The page that compares the worlds: what its script writes from the numbers beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

import agreement_page as script
import agreement_tables as tables
from cwnd.results.stats import Estimate, welch
from cwnd.study.agreement.recorded import rounded_difference

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_is_what_its_script_writes_from_the_numbers() -> None:
    written = (ROOT / "docs" / script.PAGE).read_text(encoding="utf-8")
    assert script.page() == written, "make it again: scripts/agreement_page.py --page"


def test_every_scenario_that_the_worlds_are_compared_in_is_on_the_page() -> None:
    names = sorted(file.stem for file in script.SCENARIOS.glob("*.toml"))
    assert sorted(each.name for group in script.groups() for each in group.sets) == names
    assert sorted(script.recorded_sets()) == names


def test_every_table_has_what_decides_at_each_point() -> None:
    for name in script.recorded_sets():
        rows = tables.read(script.DATA / f"{name}.csv")
        points = {tables.place(row)[:-1] for row in rows if not tables.is_gain(row)}
        deciding = [tables.place(row)[:-1] for row in tables.deciding(rows)]
        assert sorted(deciding) == sorted(points), name


#: A comparison whose arms have bases of other names, as `cwnd agree` writes it down.
ROWS = """\
rtt,arm,group,metric,unit,runs,simulator,simulator_ci95,\
linux,linux_ci95,difference,difference_ci95,difference_percent,tolerance,tolerance_least,within
20 ms,Reno,*,Goodput,Mbit/s,3,8.0,0.1,8.1,0.1,0.1,0.1,1.25,10,,true
20 ms,Reno,*,Timeouts,,3,0.0,0,4.0,0.5,4.0,0.5,,25,1,false
20 ms,slow,*,Goodput,Mbit/s,3,9.0,0.1,9.0,0.1,0.0,0.1,0.0,10,,true
20 ms,fast,*,Goodput,Mbit/s,3,9.5,0.1,8.0,0.1,-1.5,0.1,-15.8,10,,false
20 ms,fast,*,Gain over Reno,%,3,18.8,1.0,-1.2,1.0,-20.0,2.0,,5,,false
20 ms,fast,*,Gain over slow,%,3,5.6,1.0,1.6,1.0,-4.0,2.0,,5,,true
"""


def test_a_mechanism_is_on_the_page_by_a_file_and_its_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "DATA", tmp_path)
    group = 'title = "{}"\norder = {}\nabout = "What it is."\ngoal = 0.9\n[[set]]\nname = "{}"\n'
    group += 'title = "Here"\nabout = "Where it is."\n'
    for order, name in ((2, "fast"), (1, "missing"), (3, "later")):
        text = group.format(name.title(), order, f"{name}-set")
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    world = {"kernel": ["6"], "controllers": ["own"], "invalid_runs": 0, "lateness_p99_us": 1.0}
    for name in ("fast", "later"):
        (tmp_path / f"{name}-set.csv").write_text(ROWS, encoding="utf-8")
        (tmp_path / f"{name}-set.json").write_text(json.dumps(world), encoding="utf-8")
    (tmp_path / "fast.md").write_text("### What differs\n\nWhy.\n", encoding="utf-8")
    page = script.page()
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# Do the worlds agree?",
        "## Fast",
        "### Here",
        "#### Here: gain of fast",
        "### What differs",
        "## Later",
        "### Here",
        "#### Here: gain of fast",
    ]
    # Each mechanism has its summary, and a row in that of all.
    assert "| Fast | **2 of 3** (67 %) | 90 % | **0 of 1** (0 %) | **1 of 2** (50 %) |" in page
    assert page.count("| **all: gain of fast** | **1 of 2** (50 %) | **1 of 2** (50 %) |") == 2
    assert "| 20 ms | fast | Reno | +18.8 % | -1.2 % | -20.0 pp **✗** |" in page
    assert "| 20 ms | fast | slow | +5.6 % | +1.6 % | -4.0 pp |" in page
    assert "0.0 → 4.0 **✗**" in page


def test_a_last_digit_of_a_table_takes_nothing_beyond_its_tolerance() -> None:
    simulator = Estimate.of([1, 1, 2])
    assert simulator is not None
    # A third, as a table has it.
    linux = Estimate.of_interval(3, 0.3333, 1.4342)
    found = rounded_difference(simulator, linux, 1)
    assert found.mean == -1
    # Of two equal spreads Welch's degrees of freedom are 4, not 3.
    assert found.half_width == pytest.approx(2.7764 * 0.4714, rel=1e-3)
    assert abs(welch(simulator, linux).mean) > 1
