"""Repeats part of the measurements of the page about BMCC, VCP and MLCP over links."""

from __future__ import annotations

import tomllib

import guided_links as script
import page_tables


def test_rows_of_the_page_are_what_the_scenario_gives():
    axes = tomllib.loads(script.SCENARIO.read_text(encoding="utf-8"))["sweep"]["axis"]
    some = {
        f"sweep.axis.setting.{key}": [axes["setting"][key][i] for i in (0, 1)]
        for key in ("values", "labels")
    }
    head, line, *rows = script.table(script.measure(some))
    written = page_tables.written(script.PAGE, script.TABLE)
    assert written[:2] == [head, line]
    assert len(rows) == len(some["sweep.axis.setting.values"])
    assert set(rows) <= set(written)
    # The paper's words for each link of the scenario.
    assert list(script.PAPER) == axes["setting"]["labels"]
