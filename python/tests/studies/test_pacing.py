"""Pacing and chunks: their effects in the simulator and on Linux."""

from __future__ import annotations

import polars as pl
import pytest
from conftest import ROOT

import cwnd
from cwnd.studies.questions.pacing import measures, record

FOLDER = ROOT / "python/cwnd/studies/questions/pacing"
PATHS = record.axis("cubic.toml", "path")
SHORTEST = "100 Mbit/s, 10 ms, 0.1 BDP"
LONGEST = "50 Mbit/s, 40 ms, 1 BDP"
RECORDED = pl.read_csv(FOLDER / "linux.csv")


@pytest.fixture(scope="module")
def linux() -> pl.DataFrame:
    each = RECORDED.group_by("path", "controller", "setting", maintain_order=True)
    return each.agg(pl.col("goodput_mbit_s", "drops", "share", "qdelay_mean_ms").mean())


def _of(linux: pl.DataFrame, path: str, controller: str, setting: str) -> dict[str, float]:
    return linux.filter(path=path, controller=controller, setting=setting).row(0, named=True)


def _simulated(path: str, settings: tuple[str, ...]) -> pl.DataFrame:
    """Rows of CUBIC in some settings over a path."""
    known = record.axis("cubic.toml", "setting")
    overrides = {
        "sweep.axis.path.values": [PATHS[path]],
        "sweep.axis.path.labels": [path],
        "sweep.axis.setting.values": [known[name] for name in settings],
        "sweep.axis.setting.labels": list(settings),
    }
    return measures.rows(cwnd.run(FOLDER / "cubic.toml", set=overrides))


def test_every_run_was_recorded_behind_a_router_that_kept_up():
    asked = {job.key[:3] for job in record.jobs()}
    assert set(RECORDED.select("path", "controller", "setting").iter_rows()) == asked
    assert RECORDED["late_max_us"].max() <= record.LATEST_US


@pytest.mark.parametrize("controller", ["reno", "cubic"])
def test_chunks_change_little_where_a_buffer_holds_more_than_one(linux, controller):
    for path in PATHS:
        if path in ("50 Mbit/s, 40 ms, 0.05 BDP", SHORTEST):
            continue
        chunks, segments = (_of(linux, path, controller, name) for name in ("chunks", "segments"))
        # A run of one and the same differs by 2 %.
        assert chunks["goodput_mbit_s"] == pytest.approx(segments["goodput_mbit_s"], rel=0.03)


def test_chunks_larger_than_the_buffer_cost_goodput_in_both_worlds(linux):
    ours = _simulated(SHORTEST, ("chunks", "segments"))
    chunks, segments = (
        ours.filter(setting=name)["goodput_mbit_s"].mean() for name in ("chunks", "segments")
    )
    assert chunks < 0.9 * segments
    theirs = {
        name: _of(linux, SHORTEST, "cubic", name)["goodput_mbit_s"]
        for name in ("chunks", "segments")
    }
    assert theirs["chunks"] < 0.9 * theirs["segments"]


def test_a_window_that_chunks_use_grows():
    # It stayed at 21 Mbit/s as long as what waited for its chunk was taken for a window not used.
    assert _simulated(LONGEST, ("chunks, paced",))["goodput_mbit_s"][0] > 45


def test_paced_hystart_leaves_slow_start_later_in_both_worlds(linux):
    settings = ("segments", "segments, paced")
    rows = _simulated(LONGEST, settings)
    ours = [rows.filter(setting=name)["drops"].mean() for name in settings]
    theirs = [_of(linux, LONGEST, "cubic", name)["drops"] for name in settings]
    assert ours[1] > 3 * ours[0]
    assert theirs[1] > 3 * theirs[0]


def test_cubics_chunks_are_not_what_bbrs_share_differs_by(linux):
    for buffer in ("2 BDP", "4 BDP"):
        path = f"10 Mbit/s, 40 ms, {buffer}"
        chunks, segments = (
            _of(linux, path, "bbr+cubic", name)["share"] for name in ("chunks", "segments")
        )
        assert abs(chunks - segments) < 0.03
