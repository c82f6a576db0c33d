"""Comparisons of the worlds: scenarios, recorded tables, and what repeats them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from cwnd import _core, study
from cwnd.running import plans
from cwnd.running.environments import Simulator
from cwnd.studies.worlds import compare
from cwnd.study.agreement import figure, products, run, tables

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.study import Study

GROUPS = [study.study(name) for name in study.studies("worlds") if "overview" not in name]


@pytest.mark.parametrize("group", GROUPS, ids=lambda each: each.name)
def test_every_scenario_is_recorded_with_what_decides_at_each_point(group: Study) -> None:
    scenarios = {file.stem for file in group.folder.glob("*.toml")} - {"study"}
    assert scenarios == {*group.figures} == {*group.tables} - {"verdict"}
    assert {f"{name}.csv" for name in scenarios} == {*group.records}
    for name in scenarios:
        points = plans.plan(group.folder / f"{name}.toml").scenario
        rows, again = tables.split(pl.read_csv(group.folder / f"{name}.csv"))
        assert all(row["runs"] == points.repeat for row in rows)
        assert all(row["runs"] > points.repeat for row in again)
        at = {tables.place(row)[:-1] for row in rows if not tables.is_gain(row)}
        assert sorted(tables.place(row)[:-1] for row in filter(tables.decides, rows)) == sorted(at)
        drawn = run.agreement(tables.best(pl.read_csv(group.folder / f"{name}.csv")))
        assert len(drawn.deciding) == len(at)
        assert figure.figure(drawn).panels


#: A comparison whose arms have bases of other names; with `AGAIN` one point ran more often.
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
AGAIN = "20 ms,fast,*,Goodput,Mbit/s,30,9.5,0.1,9.0,0.1,-0.5,0.1,-5.3,10,,true\n"
WORLD = {"kernel": ["6"], "controllers": ["own"], "invalid_runs": 0, "lateness_p99_us": 1.0}


def test_a_comparison_has_its_tables_by_its_rows() -> None:
    made, _ = products({"here": "Here"})
    facts = {"here": WORLD | {"simulator": "1"}}
    few, more = (pl.read_csv(text.encode()) for text in (ROWS, ROWS + AGAIN))
    lines = made["here"](few, facts)
    assert [line for line in lines if line.startswith("#")] == ["#### Here: gain of fast"]
    assert "| 20 ms | fast | Reno | +18.8 % | -1.2 % | -20.0 pp **✗** |" in lines
    assert "| 20 ms | fast | slow | +5.6 % | +1.6 % | -4.0 pp |" in lines
    assert "0.0 → 4.0 **✗**" in "\n".join(lines)
    counts = "| **all: gain of fast** | **1 of 2** (50 %) | **1 of 2** (50 %) |"
    assert counts in made["verdict"](few)
    assert tables.split(more)[0] == tables.split(few)[0], "in their order"
    lines = made["here"](more, facts)
    assert "#### Here: points whose runs scatter" in lines
    assert "| 20 ms | fast | 9.500 ±0.100 | 9.000 ±0.100 | -5.3 ±1.1 % | – | – |" in lines
    assert "| Here: goodput | 2 of 3 | 3 of 3 |" in made["verdict"](more)


SCENARIO = """
schema = 1
run = { duration = "2 s", sample = "none" }
dumbbell = { rate = "5 Mbit/s" }
flow.main = { rtt = "20 ms", endpoint = "linux" }
sweep.repeat = 2
sweep.axis.rtt = { path = "flow.main.rtt", values = ["20 ms", "40 ms"] }
"""


def test_a_comparison_is_recorded_and_the_simulator_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cwnd.study.agreement.run.Linux", Simulator)
    monkeypatch.setattr("cwnd.study.agreement.run.environment_of", lambda _on: Simulator())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "facts.json").write_text("{}", encoding="utf-8")
    compare.main([str(tmp_path / "toy.csv"), "--on", "linux"])
    written = (tmp_path / "toy.csv").read_text(encoding="utf-8")
    rows, again = tables.split(pl.read_csv(tmp_path / "toy.csv"))
    assert len(list(filter(tables.decides, rows))) == 2
    assert not again
    facts = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))
    assert facts["toy"]["simulator"] == _core.engine
    # The simulator alone changes nothing, and repairs what was wrong in its columns.
    shutil.rmtree(tmp_path / "out")
    for text in (written, written.replace("Mbit/s,2,", "Mbit/s,2,1")):
        (tmp_path / "toy.csv").write_text(text, encoding="utf-8")
        compare.main([str(tmp_path / "toy.csv")])
        assert (tmp_path / "toy.csv").read_text(encoding="utf-8") == written
