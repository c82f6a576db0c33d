"""Questions: numbers of pages, closed forms, and simulations beside recorded rows of Linux."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import exp
from statistics import fmean

import numpy as np
import polars as pl
import pytest
from conftest import ROOT

import cwnd
from cwnd import models, study
from cwnd.figures import line_style
from cwnd.studies.questions.bmcc_beyond import measures as bmcc_beyond
from cwnd.studies.questions.cellular.measures import LINKS
from cwnd.studies.questions.closed_forms.measures import COMPARISONS
from cwnd.studies.questions.kernel_rows import measures as kernel_rows
from cwnd.studies.questions.marking import measures as marking
from cwnd.studies.questions.pacing import measures as pacing
from cwnd.studies.questions.pacing import record
from cwnd.studies.questions.tcpstar_servers import measures as tcpstar_servers
from cwnd.study import tables

BMCC_OPTIONS = ROOT / "python/cwnd/studies/questions/bmcc_beyond/options.toml"


def test_a_run_tells_how_many_options_were_removed_and_damaged():
    def done(**keys: float) -> list[int]:
        overrides = {"sweep": {}, "run.duration": "30 s", "run.warmup": "1 s"}
        link = {f"dumbbell.{key}": value for key, value in keys.items()}
        found = cwnd.run(BMCC_OPTIONS, set=overrides | link)
        of = found.activity
        return [of.get(f"options_{what}", 0) for what in ("removed", "damaged")]

    assert done() == [0, 0]
    removed, damaged = done(option_loss=0.25, option_damage=0.5)
    # Of what is not removed half is damaged.
    assert damaged == pytest.approx(1.5 * removed, rel=0.1)
    assert removed > 1000


def test_max_min_shares_are_those_of_progressive_filling():
    # The narrowest link settles its flows; what they leave is shared by the others (Bertsekas &
    # Gallager, Data Networks, § 6.5.2).
    wide = bmcc_beyond.max_min(bmcc_beyond.CROSSES, {**bmcc_beyond.RATES, "c-d": 30.0})
    assert wide == pytest.approx(
        {"long": 10 / 3, "first": 20 - 20 / 3, "second": 10 / 3, "third": 30 - 20 / 3}
    )
    narrow = bmcc_beyond.max_min(bmcc_beyond.CROSSES, {**bmcc_beyond.RATES, "c-d": 8.0})
    assert narrow == pytest.approx(
        {"long": 8 / 3, "first": 20 - 16 / 3, "second": 10 - 16 / 3, "third": 8 / 3}
    )


def test_a_trace_is_a_poisson_process_whose_rate_stays_within_its_bounds():
    still = replace(LINKS["fast"], sigma=0.0)
    passes = still.trace(60)
    # 30,000 are expected, and √30,000 more or less.
    assert len(passes) == pytest.approx(30_000, abs=4 * 30_000**0.5)
    assert passes == sorted(passes)
    # Gaps are exponential, of 2 ms in the mean: three milliseconds or more, from anywhere in one.
    long = sum(after - before >= 3 for before, after in pairwise(passes)) / len(passes)
    assert long == pytest.approx(2 * exp(-1.5) * (exp(0.5) - 1), abs=4 * (0.29 / 30_000) ** 0.5)
    moved = replace(still, sigma=1e6).trace(60)
    most = max(sum(at // 1000 == second for at in moved) for second in range(60))
    assert most < 1000 + 4 * 1000**0.5


CLOSED_FORMS = ROOT / "python/cwnd/studies/questions/closed_forms"


#: Parts of the sweeps that take long, with the points of the largest errors.
PARTS: dict[str, dict[str, object]] = {
    "mathis-random": {"sweep.axis.loss.values": [0.001, 0.01]},
    "padhye": {"sweep.axis.loss.values": [0.001, 0.05, 0.2]},
    "saw-tooth": {"sweep.axis.buffer.values": ["0.1 BDP", "0.5 BDP", "1.3 BDP"]},
    "md1": {"sweep.axis.rate.values": ["0.8 Mbit/s", "4 Mbit/s", "7.2 Mbit/s"]},
    "ps": {"sweep.axis.load.values": [0.2, 0.7]},
    "ps-tcp": {"sweep.axis.load.values": [0.7]},
}


@cache
def simulated(name: str) -> cwnd.Run:
    return cwnd.run(CLOSED_FORMS / f"{name}.toml", set=PARTS.get(name))


@pytest.fixture(scope="module")
def points():
    runs = {"mathis": "mathis-periodic", "cubic": "cubic"}
    return {name: COMPARISONS[name].points([simulated(run)]) for name, run in runs.items()}


@pytest.mark.parametrize("name", COMPARISONS)
def test_captions_name_the_largest_errors_and_none_is_beyond_its_bound(name: str):
    page = tables.blocks((CLOSED_FORMS / "page.md").read_text(encoding="utf-8"))
    runs = study.study("closed_forms").tables[name].runs
    assert COMPARISONS[name].caption(*map(simulated, runs)) == page[name]


def test_the_bound_of_each_model_would_catch_a_fault(points):
    # A window that grows by half a packet, as with every second ACK lost, is off by 1 − 1/√2.
    for found in points.values():
        rare = [p for p in found if p.judged and p.x <= 0.001]
        assert rare
        assert all(p.bound + (p.found.half_width or 0) / p.model < 0.29 for p in rare)
        assert all(p.holds for p in found)


def test_a_point_beyond_its_bound_is_named(points):
    run = cwnd.run(CLOSED_FORMS / "mathis-periodic.toml", set={"flow.main.controller.beta": 0.7})
    caption, *broken = COMPARISONS["mathis"].caption(run)
    assert caption.startswith("*Lines: the model.")
    assert broken
    assert all(each.startswith("Beyond the bound: +") for each in broken)


def test_errors_of_the_square_root_vanish_with_the_loss(points):
    for name in ("periodic loss, ACK for every packet", "periodic loss, ACK for every second"):
        series = sorted((p for p in points["mathis"] if p.series == name), key=lambda p: p.x)
        errors = [abs(p.error) for p in series]
        assert errors == sorted(errors)
        assert errors[0] < 0.03


def test_cubic_settles_above_eq_5_without_fast_convergence_and_below_it_with(points):
    long_path = [p for p in points["cubic"] if p.x < 5e-4 and "100 ms" in p.series]
    assert {p.judged for p in long_path} == {True, False}
    for point in long_path:
        assert (point.error > 0) == point.judged, point


KERNEL_ROWS = ROOT / "python/cwnd/studies/questions/kernel_rows"
AS_LINUX = {"flow.main.endpoint": {"preset": "linux", "rtt_from": "sack"}}


def compared(name: str, **overrides: object) -> pl.DataFrame:
    run = cwnd.run(KERNEL_ROWS / f"{name}.toml", set={**AS_LINUX, **overrides})
    files = (pl.read_csv(KERNEL_ROWS / f"{name}{part}.csv") for part in ("", "-windows"))
    return kernel_rows.compared(run, *files)


def test_vegas_rests_where_the_kernels_rests():
    alone = compared("vegas").filter(pl.col("flows") == "1")
    # Over 100 ms both still come down from slow start.
    for row in alone.filter(pl.col("rtt") != "100 ms").iter_rows(named=True):
        assert row["first_window"] == pytest.approx(row["first_window_linux"], abs=0.5)
        assert row["wait"] == pytest.approx(row["wait_linux"], abs=0.2)


def test_vegas_shares_with_latecomers_as_the_kernels_does():
    """Compares means over paths up to a hundredth shorter and longer.

    The first flow has four to five segments where it is shared with, and which packet finds the
    queue a segment longer decides which: at 50 ms the last has 14 to 18 times as much.
    """
    runs = [
        compared(
            "vegas",
            **{"sweep.axis.rtt.values": [f"{rtt * by:g} ms" for rtt in (20, 50, 100)]},
        ).filter(pl.col("flows") == "4")
        for by in (0.992, 0.996, 1, 1.004, 1.008)
    ]
    for row in range(3):
        near = [run.row(row, named=True) for run in runs]
        (linux,) = {each["last_by_first_linux"] for each in near}
        assert fmean(each["last_by_first"] for each in near) == pytest.approx(linux, rel=0.1)
        (linux,) = {each["wait_linux"] for each in near}
        assert fmean(each["wait"] for each in near) == pytest.approx(linux, rel=0.1)


def test_h_tcp_leaves_as_much_in_the_queue_as_the_kernels():
    for row in compared("htcp").iter_rows(named=True):
        assert row["utilisation"] == pytest.approx(row["utilisation_linux"], abs=0.4)
        # A packet at 20 Mbit/s takes 0.6 ms; α in whole numbers is worth three of them at 0.25 BDP.
        assert row["wait"] == pytest.approx(row["wait_linux"], abs=2.0)
        assert row["first_window"] == pytest.approx(row["first_window_linux"], rel=0.035)


def _drawn(scheme: marking.Scheme, value: float, packets: int, times: int = 4000) -> float:
    """Mean square error of the last estimate."""
    rng = np.random.default_rng(7)
    last = [scheme(np.full(packets, value), rng)[-1] for _ in range(times)]
    return float(np.mean((np.array(last) - value) ** 2))


@pytest.mark.parametrize("value", [0.2, 0.7])
@pytest.mark.parametrize("packets", [10, 60])
def test_closed_forms_are_what_lots_give(value: float, packets: int):
    def near(expected: float) -> object:
        return pytest.approx(expected, rel=0.12)

    assert _drawn(marking.adpm, value, packets) == near(models.adpm_mse(1 - value, packets))
    assert _drawn(marking.ram(packets), value, packets) == near(models.ram_mse(value, packets))
    rem = models.rem_mse(value, packets, marking.PHI)
    assert _drawn(marking.rem(packets), value, packets) == near(rem)


@pytest.mark.parametrize("bits", [4, 8])
def test_static_marking_errs_as_its_closed_form_says_over_all_values(bits: int):
    rng = np.random.default_rng(3)
    scheme, packets = marking.static(bits), 12
    values = rng.random(6000)
    last = np.array([scheme(np.full(packets, value), rng)[-1] for value in values])
    error = float(np.mean((last - values) ** 2))
    assert error == pytest.approx(models.static_mse(packets, bits), rel=0.08)


def test_adpm_errs_by_two_over_n_squared_and_denser_thresholds_by_less():
    assert models.adpm_mse(0.5, 1000) == pytest.approx(2e-6, rel=0.01)
    assert models.adpm_mse(0.2, 1000, density=2.5) == pytest.approx(2e-6 / 6.25, rel=0.01)
    # None came: it is as far away as at first.
    assert models.adpm_mse(0.3, 0) == pytest.approx(0.09)


def test_numbers_without_meaning_are_refused():
    for call in (
        lambda: models.adpm_mse(0.5, 10, density=3),
        lambda: models.adpm_mse(-0.1, 10),
        lambda: models.ram_mse(1.5, 10),
        lambda: models.ram_mse(0.5, 0),
        lambda: models.rem_mse(0.5, 10, phi=1),
        lambda: models.static_mse(10, 0),
    ):
        with pytest.raises(ValueError, match=r"\d"):
            call()
    assert models.rem_mse(0.0, 10) == 0.0


def test_what_the_page_says_of_the_schemes_holds():
    after = {
        packets: dict(zip(marking.NAMES, marking.stays(packets), strict=True))
        for packets in (100, 10_000)
    }
    assert after[100]["RAM"] / after[100]["ADPM"] == pytest.approx(9, rel=0.05)
    assert after[10_000]["RAM"] / after[10_000]["ADPM"] == pytest.approx(800, rel=0.1)
    assert after[100]["static, 8 bits"] < after[100]["ADPM"] < after[100]["static, 4 bits"]
    assert math.log10(after[10_000]["REM"] / after[10_000]["ADPM"]) > 3


PACING = ROOT / "python/cwnd/studies/questions/pacing"
PATHS = record.axis("cubic.toml", "path")
SHORTEST = "100 Mbit/s, 10 ms, 0.1 BDP"
LONGEST = "50 Mbit/s, 40 ms, 1 BDP"
RECORDED = pl.read_csv(PACING / "linux.csv")


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
    return pacing.rows(cwnd.run(PACING / "cubic.toml", set=overrides))


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


def test_answers_of_real_servers_are_drawn_beside_those_of_the_simulator():
    folder = study.study("tcpstar_servers").folder
    curves, runs = (pl.read_csv(folder / name) for name in ("curves.csv", "runs.csv"))
    *traces, bursts = tcpstar_servers.web(curves, runs).panels
    points = tcpstar_servers.finite(curves)
    stars = list(tcpstar_servers.STARS)
    for panel, case in zip(traces, tcpstar_servers.cases(runs, "T3"), strict=True):
        assert len(panel.lines) == 2 * len(stars)
        for line in panel.lines:
            n = tcpstar_servers.STARS[stars[line_style.COLOURS.index(line.colour)]]
            world = "simulator" if line.dashes else "Linux"
            of = points.filter(case=case, n=n, world=world)
            assert (line.x, line.y) == (of["s"].to_list(), of["share"].to_list())
            assert len(line.x) > 10
    keys = {line.label: line for line in bursts.lines if line.label}
    assert list(keys) == list(tcpstar_servers.RATIOS)
    for line in bursts.lines:
        (world,) = (name for name, key in keys.items() if key.dashes == line.dashes)
        for case, value in zip(tcpstar_servers.cases(runs, "T5"), line.y, strict=bool(line.x)):
            n = tcpstar_servers.STARS[stars[line_style.COLOURS.index(line.colour)]]
            of = runs.filter(claim="T5", n=n, world=world, case=case)
            assert value == of["p99_s"].mean()
