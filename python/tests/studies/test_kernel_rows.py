"""Vegas and H-TCP of the simulator beside those of Linux in QEMU."""

from __future__ import annotations

from statistics import fmean

import polars as pl
import pytest
from conftest import ROOT

import cwnd
from cwnd.studies.questions.kernel_rows import measures

FOLDER = ROOT / "python/cwnd/studies/questions/kernel_rows"
AS_LINUX = {"flow.main.endpoint": {"preset": "linux", "rtt_from": "sack"}}


def compared(name: str, **overrides: object) -> pl.DataFrame:
    run = cwnd.run(FOLDER / f"{name}.toml", set={**AS_LINUX, **overrides})
    files = (pl.read_csv(FOLDER / f"{name}{part}.csv") for part in ("", "-windows"))
    return measures.compared(run, *files)


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
