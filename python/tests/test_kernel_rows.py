"""Vegas and H-TCP of the simulator beside what Linux's own did in QEMU."""

from __future__ import annotations

from statistics import fmean

import polars as pl
import pytest

import cwnd
import kernel_rows as script
import page_tables


@pytest.mark.parametrize("page", [script.VEGAS, script.HTCP], ids=lambda page: page.controller)
def test_the_table_of_the_page_is_what_both_worlds_give(page: script.Page):
    assert page_tables.written(page.path, script.TABLE) == script.table(page)
    assert cwnd.check(page.scenario) == []


def test_vegas_rests_where_the_kernels_rests():
    alone = script.compared(script.VEGAS).filter(pl.col("flows") == "1")
    # Over 100 ms both still come down from slow start.
    for row in alone.filter(pl.col("rtt") != "100 ms").iter_rows(named=True):
        assert row["first_window_sim"] == pytest.approx(row["first_window_linux"], abs=0.5)
        assert row["wait_sim"] == pytest.approx(row["wait_linux"], abs=0.2)


def test_vegas_shares_with_latecomers_as_the_kernels_does():
    """Compares means over paths up to a hundredth shorter and longer.

    The first flow has four to five segments where it is shared with, and which packet finds the
    queue a segment longer decides which: at 50 ms the last has 14 to 18 times as much.
    """
    runs = [
        script.compared(
            script.VEGAS,
            sweep__axis__rtt__values=[f"{rtt * by:g} ms" for rtt in (20, 50, 100)],
        ).filter(pl.col("flows") == "4")
        for by in (0.992, 0.996, 1, 1.004, 1.008)
    ]
    for row in range(3):
        near = [run.row(row, named=True) for run in runs]
        (linux,) = {each["last_by_first_linux"] for each in near}
        assert fmean(each["last_by_first_sim"] for each in near) == pytest.approx(linux, rel=0.1)
        (linux,) = {each["wait_linux"] for each in near}
        assert fmean(each["wait_sim"] for each in near) == pytest.approx(linux, rel=0.1)


def test_h_tcp_leaves_as_much_in_the_queue_as_the_kernels():
    for row in script.compared(script.HTCP).iter_rows(named=True):
        assert row["utilisation_sim"] == pytest.approx(row["utilisation_linux"], abs=0.4)
        # A packet at 20 Mbit/s takes 0.6 ms; α in whole numbers is worth three of them at 0.25 BDP.
        assert row["wait_sim"] == pytest.approx(row["wait_linux"], abs=2.0)
        assert row["first_window_sim"] == pytest.approx(row["first_window_linux"], rel=0.035)
