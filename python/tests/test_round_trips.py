"""The table of the page on round-trip times that a script makes: a row is measured again."""

from __future__ import annotations

import cwnd
import round_trips as script


def test_a_row_measured_again_is_that_of_the_page():
    label = "4 CUBIC"
    chosen = {"sweep.axis.back.values": [[4, "cubic"]], "sweep.axis.back.labels": [label]}
    head, _, row = script.reverse(chosen)
    page = script.PAGE.read_text(encoding="utf-8").splitlines()
    assert {head, row} <= set(page), "run scripts/round_trips.py --page"


def test_the_scenario_of_the_page_is_valid_and_linked():
    assert cwnd.check(script.PAGE.with_suffix("") / "reverse.toml") == []
    assert "(rtt/reverse.toml)" in script.PAGE.read_text(encoding="utf-8")
