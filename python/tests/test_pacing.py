"""Pacing and chunks: the page has what the simulator gives, and Linux does what it says."""

from __future__ import annotations

import polars as pl
import pytest

import cwnd
import pacing as script
import page_tables

#: A path that costs little.
CHEAP = next(path for path in script.PATHS if path.name == "10 Mbit/s, 40 ms, CoDel")
SHORTEST = "100 Mbit/s, 10 ms, 0.1 BDP"


@pytest.fixture(scope="module")
def linux() -> pl.DataFrame:
    recorded = pl.read_csv(script.RECORDED)
    each = recorded.group_by("path", "controller", "setting", maintain_order=True)
    return each.agg(pl.col("goodput_mbit_s", "drops", "share", "qdelay_mean_ms").mean())


def _of(linux: pl.DataFrame, path: str, controller: str, setting: str) -> dict[str, float]:
    return linux.row(
        by_predicate=(pl.col("path") == path)
        & (pl.col("controller") == controller)
        & (pl.col("setting") == setting),
        named=True,
    )


def test_the_page_has_what_the_simulator_gives():
    there = page_tables.written(script.PAGE, "scripts/pacing.py alone")
    lines = script.lines_of([CHEAP])
    assert lines
    assert set(lines) <= set(there)


def test_every_run_was_recorded_behind_a_router_that_kept_up():
    recorded = pl.read_csv(script.RECORDED)
    asked = {job.key[:3] for job in script.jobs()}
    assert set(recorded.select("path", "controller", "setting").iter_rows()) == asked
    assert recorded["late_max_us"].max() <= script.LATEST_US


@pytest.mark.parametrize("controller", ["reno", "cubic"])
def test_chunks_change_little_where_a_buffer_holds_more_than_one(linux, controller):
    for path in script.PATHS:
        if path.name in ("50 Mbit/s, 40 ms, 0.05 BDP", SHORTEST):
            continue
        chunks, segments = (
            _of(linux, path.name, controller, name) for name in ("chunks", "segments")
        )
        # A run of one and the same differs by 2 %.
        assert chunks["goodput_mbit_s"] == pytest.approx(segments["goodput_mbit_s"], rel=0.03)


def test_chunks_larger_than_the_buffer_cost_goodput_in_both_worlds(linux):
    path = next(path for path in script.PATHS if path.name == SHORTEST)
    ours = {
        name: script.simulated(path, "cubic", name)["goodput_mbit_s"].mean()
        for name in ("chunks", "segments")
    }
    assert ours["chunks"] < 0.9 * ours["segments"]
    theirs = {name: _of(linux, SHORTEST, "cubic", name)["goodput_mbit_s"] for name in ours}
    assert theirs["chunks"] < 0.9 * theirs["segments"]


def test_a_window_that_chunks_use_grows():
    path = next(path for path in script.PATHS if path.name == "50 Mbit/s, 40 ms, 1 BDP")
    run = cwnd.run(script.scenario(path, "cubic", "chunks, paced"), set={"sweep.repeat": 1})
    # It stayed at 21 Mbit/s as long as what waited for its chunk was taken for a window not used.
    assert run.flows["goodput_bit_s"][0] > 45e6


def test_paced_hystart_leaves_slow_start_later_in_both_worlds(linux):
    path = next(path for path in script.PATHS if path.name == "50 Mbit/s, 40 ms, 1 BDP")
    ours, theirs = (
        [drops(name) for name in ("segments", "segments, paced")]
        for drops in (
            lambda name: script.simulated(path, "cubic", name)["drops"].mean(),
            lambda name: _of(linux, path.name, "cubic", name)["drops"],
        )
    )
    assert ours[1] > 3 * ours[0]
    assert theirs[1] > 3 * theirs[0]


def test_cubics_chunks_are_not_what_bbrs_share_differs_by(linux):
    for path in script.BESIDE:
        chunks, segments = (
            _of(linux, path.name, "bbr+cubic", name)["share"] for name in ("chunks", "segments")
        )
        assert abs(chunks - segments) < 0.03
