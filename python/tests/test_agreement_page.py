"""The page that compares the worlds: what its script writes from the numbers beside it."""

from __future__ import annotations

import csv

from conftest import ROOT

import agreement_page as script


def test_the_page_is_what_its_script_writes_from_the_numbers() -> None:
    written = (ROOT / "docs" / script.PAGE).read_text(encoding="utf-8")
    assert script.page() == written, "make it again: scripts/agreement_page.py --page"


def test_every_scenario_that_the_worlds_are_compared_in_is_on_the_page() -> None:
    names = {file.stem for file in script.SCENARIOS.glob("*.toml")}
    assert set(script.SETS) == names
    assert set(script.recorded_sets()) == names


def test_every_table_has_what_decides_at_each_point() -> None:
    for name in script.recorded_sets():
        with (script.DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        points = {script.place(row)[:-1] for row in rows if not script.is_gain(row)}
        deciding = [script.place(row)[:-1] for row in script.deciding(rows)]
        assert sorted(deciding) == sorted(points), name
