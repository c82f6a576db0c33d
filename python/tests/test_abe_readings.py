"""The page on the readings of ABE: its numbers are those of its scenarios, and say what it says."""

from __future__ import annotations

import pytest
from conftest import ROOT

import abe_readings as script
import cwnd
from cwnd.results import interval_ends

STALE = "is stale; run make docs"


@pytest.fixture(scope="module")
def results():
    return script.from_csv(script.RESULTS.read_text())


#: Points that are run again, with what they are compared with: scenario, other axes, the last axis.
AGAIN = [
    (
        "abe-readings",
        # Marks, drops and timeouts.
        {"queue": ("pie", "PIE"), "rtt": ("uniform(380 ms, 420 ms)", "400 ms")},
        [
            ({"kind": "cubic", "preset": "neqo"}, "CUBIC: neqo"),
            ({"kind": "cubic", "preset": "neqo", "beta_ecn": "none"}, "CUBIC: neqo, off"),
        ],
    ),
    (
        "abe-why",
        {
            "time": (["60 s", "0 s"], "first minute"),
            "rtt": ("uniform(19 ms, 21 ms)", "20 ms"),
        },
        [
            ("cubic", "CUBIC: off"),
            (
                {"kind": "cubic", "beta_ecn": 0.85, "ecn_new_stage": False},
                "CUBIC: 0.85, the curve goes on",
            ),
        ],
    ),
    (
        "abe-shared",
        {
            "queue": ("fq-codel", "FQ-CoDel"),
            "rtt": (["uniform(95 ms, 105 ms)"] * 2, "100 ms"),
            "against": ("cubic", "CUBIC"),
        },
        [
            ("newreno", "NewReno: off"),
            ({"kind": "newreno", "preset": "pytcp"}, "NewReno: PyTCP"),
        ],
    ),
]


@pytest.mark.parametrize(("name", "others", "last"), AGAIN, ids=[row[0] for row in AGAIN])
def test_a_point_run_again_gives_the_same_numbers(results, name, others, last):
    study = script.STUDIES[name]
    axes = {axis: [pair] for axis, pair in others.items()} | {study.axes[-1]: last}
    overrides = {}
    for axis, pairs in axes.items():
        overrides[f"sweep.axis.{axis}.values"] = [value for value, _ in pairs]
        overrides[f"sweep.axis.{axis}.labels"] = [label for _, label in pairs]
    found = study.measure(overrides)
    assert len(found) == len(last)
    for point, estimates in found.items():
        assert estimates == results[name][point], f"docs/abe-readings/results.csv {STALE}"


def test_the_numbers_are_of_every_point_of_the_scenarios(results):
    assert {name: len(table) for name, table in results.items()} == {
        "abe-readings": 4 * 3 * 19,
        "abe-why": 2 * 3 * 23,
        "abe-shared": 4 * 2 * 2 * 12,
        "abe-gigabit": 2 * 2 * 12,
    }


def test_the_page_is_made_of_the_numbers(results):
    page = script.page(results)
    assert "{{" not in page
    assert (ROOT / "docs/abe-readings.md").read_text() == page, f"docs/abe-readings.md {STALE}"


def test_the_figures_are_made_of_the_numbers(results):
    def estimates(scenario, panel, name):
        rtt = panel.title.partition("RTT ")[2]
        for line in panel.lines:
            if scenario == "abe-shared":
                other = (panel.title.removeprefix("beside plain ").partition(",")[0], line.label)
            else:
                other = (f"{panel.title.partition(',')[0]}: {line.label}",)
            points = [(queue, rtt, *other) for _, queue in panel.ticks]
            yield line, [results[scenario][point][name] for point in points]

    count = {"gain": 5 * 3 + 5 * 3, "p90": 5 * 3 + 4 * 3, "shared": 4 * 8}
    measured = {"gain": ("abe-readings", "gain"), "p90": ("abe-readings", "dp90")}
    for name, picture in script.figures(results).items():
        scenario, quantity = measured.get(name, ("abe-shared", "taken"))
        found = [each for p in picture.panels for each in estimates(scenario, p, quantity)]
        assert len(found) == count[name]
        for line, wanted in found:
            assert line.y == [each.mean for each in wanted]
            assert line.interval == interval_ends(wanted)
        looks = {(line.label, line.colour, line.marker) for line, _ in found}
        assert len(looks) == len({label for label, *_ in looks}), "a reading has one look"
        for kind in ("png", "svg"):
            assert (ROOT / f"docs/images/abe-readings/{name}.{kind}").exists()


def test_slow_start_ends_above_the_path_at_100_ms_and_below_it_at_400_ms():
    # Segments that a path of 10 Mbit/s holds: 17, 83, 333.
    for rtt, low, high in (("20 ms", 110, 130), ("100 ms", 220, 260), ("400 ms", 220, 260)):
        run = cwnd.run(
            script.WHY.path,
            set={
                "run": {"duration": "5 s", "sample": "20 ms"},
                "flow.main.rtt": rtt,
                "sweep": {"repeat": 1},
            },
        )
        windows = run.series["snd_cwnd_pkts"].to_list()
        assert low < max(windows) < high, (rtt, max(windows))


def test_one_flow_over_fq_codel_is_one_flow_over_codel(results):
    grid = results["abe-readings"]
    for (queue, *rest), estimates in grid.items():
        if queue == "FQ-CoDel":
            assert grid[("CoDel", *rest)] == estimates


def test_shares_of_reno_follow_the_square_root_law(results):
    shared = results["abe-shared"]
    for reading, beta_ecn in (("ns-3", 0.7), ("RFC 8511", 0.8), ("PyTCP", 0.85)):
        for queue in ("PIE", "RED"):
            found = shared[queue, "20 ms", "NewReno", f"NewReno: {reading}"]["share"]
            assert found.mean == pytest.approx(100 * script.share_of(beta_ecn), abs=2.5)


def test_without_abe_nothing_is_gained_and_equals_share_alike(results):
    for table in results.values():
        for point, estimates in table.items():
            if point[-1].endswith("off") and "gain" in estimates:
                assert estimates["gain"].mean == 0
    for controller in ("NewReno", "CUBIC"):
        for rtt in ("20 ms", "100 ms"):
            for queue in ("CoDel", "PIE", "FQ-CoDel", "RED"):
                even = results["abe-shared"][queue, rtt, controller, f"{controller}: off"]["share"]
                assert abs(even.mean - 50) <= even.half_width + 1, (queue, rtt, controller)


def test_the_recommendation_follows_from_the_numbers(results):
    why, shared = results["abe-why"], results["abe-shared"]

    def gain(time, rtt, step):
        return why[time, rtt, step]["gain"]

    # Fair queueing protects the neighbour; a queue for all does not.
    for reading in script.readings(shared):
        kept = shared["FQ-CoDel", "100 ms", "NewReno", reading]["taken"].mean
        for queue in ("PIE", "RED"):
            assert shared[queue, "100 ms", "NewReno", reading]["taken"].mean < kept
    # The milder factor at the end of slow start: nothing won at 100 ms, much at 400 ms.
    milder = "NewReno: 0.8, also in slow start"
    rfc = "NewReno: 0.8 (RFC 8511)"
    at_100 = [gain("first minute", "100 ms", step) for step in (milder, rfc)]
    assert abs(at_100[0].mean - at_100[1].mean) < at_100[0].half_width + at_100[1].half_width
    assert gain("first minute", "400 ms", rfc).mean == 0
    assert gain("first minute", "400 ms", milder).mean > 20
    late = [why["first minute", "100 ms", step]["dp99"].mean for step in (milder, rfc)]
    assert late[0] > 20 > late[1]
    # HyStart++ in front of it: a help at 20 ms, none at 100 ms.
    with_hystart = "NewReno, HyStart++: 0.8, also in slow start"
    short, medium = (
        [why["first minute", rtt, step]["dp99"].mean for step in (with_hystart, milder)]
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
            shared[queue, "20 ms", "CUBIC", f"CUBIC: {reading}"]["share"]
            for reading in ("RFC 8511", "neqo")
        )
        assert 1 < window.mean - base.mean < 3
    # A mark that does not begin a new stage.
    goes_on = results["abe-readings"]["CoDel", "100 ms", "CUBIC: PyTCP"]
    assert goes_on["p50"].mean > 20
    assert shared["CoDel", "100 ms", "CUBIC", "CUBIC: PyTCP"]["share"].mean > 90
