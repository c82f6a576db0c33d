"""Readings of ABE, and TCP without backoff: the recorded numbers say what the pages say."""

from __future__ import annotations

import re

import polars as pl
import pytest
from conftest import ROOT

import cwnd
from cwnd.studies.questions.abe_readings import measures
from cwnd.studies.questions.no_backoff.measures import GAIN, MAPS, QUANTITIES, TIMESTAMPS

ABE = ROOT / "python/cwnd/studies/questions/abe_readings"


@pytest.fixture(scope="module")
def grids():
    rows = pl.read_csv(ABE / "results.csv", infer_schema_length=None)
    return {name: measures.Grid(rows, name) for name in ("readings", "why", "shared", "gigabit")}


def share_of(beta_ecn: float) -> float:
    """A Reno's share beside one that halves, where both see the same rate of marks.

    An AIMD flow's mean window is √(α (1 + β) / (2 (1 − β) p)) (RFC 9438 § 4.3, Fig. 3).
    """
    mine, theirs = (((1 + b) / (1 - b)) ** 0.5 for b in (beta_ecn, 0.5))
    return mine / (mine + theirs)


def test_values_of_abe_quoted_in_the_text_are_of_the_records(grids):
    known = {
        written
        for grid in grids.values()
        for point in grid.points
        for name in grid.names
        for written in [grid.written(point, name)]
    }
    text = re.sub(r"^\|.*\n", "", (ABE / "page.md").read_text("utf-8"), flags=re.MULTILINE)
    quoted = re.findall(r"[+−]?\d+\.\d+ ± \d+\.\d+", text)
    assert len(quoted) > 20
    assert set(quoted) <= known


def test_slow_start_ends_above_the_path_at_100_ms_and_below_it_at_400_ms():
    # Segments that a path of 10 Mbit/s holds: 17, 83, 333.
    for rtt, low, high in (("20 ms", 110, 130), ("100 ms", 220, 260), ("400 ms", 220, 260)):
        run = cwnd.run(
            ABE / "why.toml",
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


NO_BACKOFF = ROOT / "python/cwnd/studies/questions/no_backoff"
BARE, STAMPED = TIMESTAMPS


@pytest.fixture(scope="module")
def maps():
    rows = pl.read_csv(NO_BACKOFF / "results.csv", infer_schema_length=None)
    return {each.name: rows.filter(map=each.name) for each in MAPS}


def test_values_quoted_in_the_text_are_of_the_records(maps):
    known = set()
    for rows in maps.values():
        for row in rows.to_dicts():
            for name, (_, digits) in QUANTITIES.items():
                sign = "+" if name.endswith("change") else ""
                mean = f"{row[name]:{sign}.{digits}f}".replace("-", "−")
                known.add(f"{mean} ± {row[f'{name}_ci']:.{digits}f}")
    quoted = re.findall(r"[+−]?[\d.]+ ± [\d.]+\d", (NO_BACKOFF / "page.md").read_text("utf-8"))
    assert len(quoted) > 10
    assert set(quoted) <= known


def test_it_loses_where_path_and_buffer_take_longer_than_the_first_timeout(maps):
    timers = maps["timers"].filter(pl.col("timestamps") == BARE)
    for row in timers.iter_rows(named=True):
        first = {"100 ms": 0.1, "300 ms": 0.3, "1 s": 1.0, "3 s": 3.0}[row["y"].split(", ")[1]]
        # RTTs of 80 to 120 ms, a full buffer of multiples of 100 ms.
        longest = 0.12 + 0.1 * float(row["x"])
        change, width = row[GAIN], row[f"{GAIN}_ci"]
        assert (change + width < -3) == (longest > first), row
        assert (change - width > 0) == (longest < first), row


def test_timestamps_end_most_of_it(maps):
    def costs(timestamps: str) -> float:
        rows = maps["queue"].filter(
            pl.col("timestamps") == timestamps, pl.col(GAIN) + pl.col(f"{GAIN}_ci") < 0
        )
        return rows[GAIN].sum()

    assert costs(BARE) < 3 * costs(STAMPED) < 0


def test_pauses_cost_little_and_random_loss_makes_it_win(maps):
    gaps = maps["gaps"]
    assert gaps[GAIN].min() > -5
    assert gaps["spurious_tcp"].median() > 80
    lossy = maps["loss"].filter(pl.col("x") == "30")
    assert (lossy[GAIN] - lossy[f"{GAIN}_ci"] > 0).all()
    slight = maps["loss"].filter(pl.col("x").is_in(["1", "2", "5"]), pl.col("timestamps") == BARE)
    assert (slight[GAIN] + slight[f"{GAIN}_ci"] < 0).all()


def test_what_stacks_have_takes_most_of_the_cost_and_of_the_gain(maps):
    def change(name: str, x: str, y: str) -> float:
        return maps[name].filter(x=x, y=y, timestamps=BARE)[GAIN].item()

    # Without any of it the points are those of the maps before.
    for name, y, others in (("queue", "10", "1.2"), ("gaps", "10", "50"), ("loss", "20", "50")):
        assert change(f"repair-{name}", "RFC 6298", y) == change(name, y, others)
    # F-RTO ends most of what pauses cost, and little where the first packets wait.
    assert change("repair-gaps", "F-RTO", "10") > change("repair-gaps", "RFC 6298", "10") / 3
    assert change("repair-queue", "F-RTO", "10") < 0.8 * change("repair-queue", "RFC 6298", "10")
    assert change("repair-queue", "RACK-TLP", "10") > change("repair-queue", "RFC 6298", "10") / 4
    assert change("repair-loss", "RACK-TLP", "20") < change("repair-loss", "RFC 6298", "20") / 4


def test_many_users_alone_are_no_problem(maps):
    many = maps["users"].filter(pl.col("x") == "10000")
    assert (many[GAIN] - many[f"{GAIN}_ci"] > 0).all()
