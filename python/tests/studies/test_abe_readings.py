"""The readings of ABE: the numbers say what the page says."""

from __future__ import annotations

import re

import polars as pl
import pytest
from conftest import ROOT

import cwnd
from cwnd.studies.questions.abe_readings import measures

FOLDER = ROOT / "python/cwnd/studies/questions/abe_readings"


@pytest.fixture(scope="module")
def grids():
    rows = pl.read_csv(FOLDER / "results.csv", infer_schema_length=None)
    return {name: measures.Grid(rows, name) for name in ("readings", "why", "shared", "gigabit")}


def share_of(beta_ecn: float) -> float:
    """A Reno's share beside one that halves, where both see the same rate of marks.

    An AIMD flow's mean window is √(α (1 + β) / (2 (1 − β) p)) (RFC 9438 § 4.3, Fig. 3).
    """
    mine, theirs = (((1 + b) / (1 - b)) ** 0.5 for b in (beta_ecn, 0.5))
    return mine / (mine + theirs)


def test_values_quoted_in_the_text_are_of_the_records(grids):
    known = {
        written
        for grid in grids.values()
        for point in grid.points
        for name in grid.names
        for written in [grid.written(point, name)]
    }
    text = re.sub(r"^\|.*\n", "", (FOLDER / "page.md").read_text("utf-8"), flags=re.MULTILINE)
    quoted = re.findall(r"[+−]?\d+\.\d+ ± \d+\.\d+", text)
    assert len(quoted) > 20
    assert set(quoted) <= known


def test_slow_start_ends_above_the_path_at_100_ms_and_below_it_at_400_ms():
    # Segments that a path of 10 Mbit/s holds: 17, 83, 333.
    for rtt, low, high in (("20 ms", 110, 130), ("100 ms", 220, 260), ("400 ms", 220, 260)):
        run = cwnd.run(
            FOLDER / "why.toml",
            set={
                "run": {"duration": "5 s", "sample": "20 ms"},
                "flow.main.rtt": rtt,
                "sweep": {"repeat": 1},
            },
        )
        windows = run.series["snd_cwnd_pkts"].to_list()
        assert low < max(windows) < high, (rtt, max(windows))


def test_one_flow_over_fq_codel_is_one_flow_over_codel(grids):
    grid = grids["readings"]
    for queue, *rest in grid.points:
        if queue == "FQ-CoDel":
            for name in grid.names:
                assert grid.at(("CoDel", *rest), name) == grid.at((queue, *rest), name)


def test_shares_of_reno_follow_the_square_root_law(grids):
    shared = grids["shared"]
    for reading, beta_ecn in (("ns-3", 0.7), ("RFC 8511", 0.8), ("PyTCP", 0.85)):
        for queue in ("PIE", "RED"):
            found = shared.at((queue, "20 ms", "NewReno", f"NewReno: {reading}"), "share")
            assert found.mean == pytest.approx(100 * share_of(beta_ecn), abs=2.5)


def test_without_abe_nothing_is_gained_and_equals_share_alike(grids):
    for grid in grids.values():
        for point in grid.points:
            if point[-1].endswith("off") and "gain" in grid.names:
                assert grid.at(point, "gain").mean == 0
    for controller in ("NewReno", "CUBIC"):
        for rtt in ("20 ms", "100 ms"):
            for queue in ("CoDel", "PIE", "FQ-CoDel", "RED"):
                point = (queue, rtt, controller, f"{controller}: off")
                even = grids["shared"].at(point, "share")
                assert abs(even.mean - 50) <= even.half_width + 1, (queue, rtt, controller)


def test_the_recommendation_follows_from_the_numbers(grids):
    why, shared = grids["why"], grids["shared"]

    def gain(time, rtt, step):
        return why.at((time, rtt, step), "gain")

    # Fair queueing protects the neighbour; a queue for all does not.
    for reading in shared.readings:
        kept = shared.at(("FQ-CoDel", "100 ms", "NewReno", reading), "taken").mean
        for queue in ("PIE", "RED"):
            assert shared.at((queue, "100 ms", "NewReno", reading), "taken").mean < kept
    # The milder factor at the end of slow start: nothing won at 100 ms, much at 400 ms.
    milder = "NewReno: 0.8, also in slow start"
    rfc = "NewReno: 0.8 (RFC 8511)"
    at_100 = [gain("first minute", "100 ms", step) for step in (milder, rfc)]
    assert abs(at_100[0].mean - at_100[1].mean) < at_100[0].half_width + at_100[1].half_width
    assert gain("first minute", "400 ms", rfc).mean == 0
    assert gain("first minute", "400 ms", milder).mean > 20
    late = [why.at(("first minute", "100 ms", step), "dp99").mean for step in (milder, rfc)]
    assert late[0] > 20 > late[1]
    # HyStart++ in front of it: a help at 20 ms, none at 100 ms.
    with_hystart = "NewReno, HyStart++: 0.8, also in slow start"
    short, medium = (
        [why.at(("first minute", rtt, step), "dp99").mean for step in (with_hystart, milder)]
        for rtt in ("20 ms", "100 ms")
    )
    assert short[0] < 2
    assert short[1] > 20
    assert medium[0] > 0.9 * medium[1]
    # What fast convergence costs.
    plain, without = (
        gain("later", "100 ms", f"CUBIC: 0.85{step}")
        for step in (" (RFC 8511)", ", no fast convergence")
    )
    assert without.mean - without.half_width > plain.mean + plain.half_width
    # The base, alone and beside others.
    for time in ("first minute", "later"):
        base, window = (
            gain(time, "100 ms", f"NewReno: 0.8{step}")
            for step in (" (RFC 8511)", " of the window")
        )
        assert abs(base.mean - window.mean) < base.half_width + window.half_width
    for queue in ("PIE", "RED"):
        base, window = (
            shared.at((queue, "20 ms", "CUBIC", f"CUBIC: {reading}"), "share")
            for reading in ("RFC 8511", "neqo")
        )
        assert 1 < window.mean - base.mean < 3
    # A mark that does not begin a new stage.
    goes_on = grids["readings"].at(("CoDel", "100 ms", "CUBIC: PyTCP"), "p50")
    assert goes_on.mean > 20
    assert shared.at(("CoDel", "100 ms", "CUBIC", "CUBIC: PyTCP"), "share").mean > 90
