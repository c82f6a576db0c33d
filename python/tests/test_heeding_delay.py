"""Tables of the pages on delay that a script makes: a part of each is measured again."""

from __future__ import annotations

import cwnd
import heeding_delay as script
import page_tables


def test_a_row_of_queues_on_the_way_back_is_that_of_the_page():
    chosen = {"sweep.axis.back.values": [[4, "cubic"]], "sweep.axis.back.labels": ["4 CUBIC"]}
    head, _, row = script.reverse(chosen)
    page = page_tables.written(script.ROUND_TRIPS, script.named("reverse"))
    assert {head, row} <= set(page), "run scripts/heeding_delay.py --page"


def test_a_row_beside_cubic_is_that_of_the_page():
    chosen = {
        "sweep.axis.kind.values": [{"kind": "delay-aimd", "preset": "delayed-acks"}],
        "sweep.axis.kind.labels": ["delay-AIMD"],
    }
    head, _, row = script.beside(chosen)
    page = page_tables.written(script.CONTROLLER, script.named("beside"))
    assert {head, row} <= set(page), "run scripts/heeding_delay.py --page"


def test_a_row_beside_bbr_is_that_of_the_page():
    chosen = {
        "sweep.axis.kind.values": ["newreno"],
        "sweep.axis.kind.labels": ["NewReno"],
    }
    head, _, row = script.beside_bbr(chosen)
    page = page_tables.written(script.BBR, script.named("beside-bbr"))
    assert {head, row} <= set(page), "run scripts/heeding_delay.py --page"


def test_a_row_of_latecomers_is_that_of_the_page():
    chosen = {"sweep.axis.scheme.values": ["ledbat"], "sweep.axis.scheme.labels": ["LEDBAT++"]}
    head, _, row = script.late(chosen)
    page = page_tables.written(script.LATECOMERS, script.named("late"))
    assert {head, row} <= set(page), "run scripts/heeding_delay.py --page"


def test_the_scenarios_are_valid_and_linked():
    for page, file in (
        (script.ROUND_TRIPS, "rtt/reverse.toml"),
        (script.CONTROLLER, "delay-aimd/beside.toml"),
        (script.LATECOMERS, "ledbat/late.toml"),
        (script.BBR, "bbr/beside.toml"),
    ):
        assert cwnd.check(page.parent / file) == []
        assert f"({file})" in page.read_text(encoding="utf-8")
