"""Vegas and H-TCP of the simulator beside what Linux's own did in QEMU."""

from __future__ import annotations

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
    together = script.compared(script.VEGAS).filter(pl.col("flows") == "4")
    assert together.height == 3
    for row in together.iter_rows(named=True):
        # A tenth: one segment of a first flow that has four to five is more.
        assert row["last_by_first_sim"] == pytest.approx(row["last_by_first_linux"], rel=0.1)
        assert row["wait_sim"] == pytest.approx(row["wait_linux"], rel=0.1)


def test_h_tcp_leaves_as_much_in_the_queue_as_the_kernels():
    for row in script.compared(script.HTCP).iter_rows(named=True):
        assert row["utilisation_sim"] == pytest.approx(row["utilisation_linux"], abs=0.4)
        # A packet at 20 Mbit/s takes 0.6 ms; α in whole numbers is worth three of them at 0.25 BDP.
        assert row["wait_sim"] == pytest.approx(row["wait_linux"], abs=2.0)
        assert row["first_window_sim"] == pytest.approx(row["first_window_linux"], rel=0.035)
