"""The table of DCTCP's page, measured again in part."""

from __future__ import annotations

import polars as pl

import cwnd
import dctcp_threshold as script
import page_tables


def test_two_flows_of_dctcp_leave_two_of_newreno_a_twelfth():
    run = cwnd.run(script.PAGE.parent / "dctcp" / "beside.toml")
    rates = run.flows.group_by(pl.col("group").cast(pl.String)).agg(
        pl.col("throughput_bit_s").sum()
    )
    of = dict(rates.iter_rows())
    share = of["dctcp"] / sum(of.values())
    assert f"have {100 * share:.0f} % of a link" in script.PAGE.read_text(encoding="utf-8")


def test_rows_of_the_page_are_what_the_scenario_gives():
    chosen = {
        "sweep.axis.threshold.values": ["0.02 BDP", "0.17 BDP"],
        "sweep.axis.threshold.labels": ["0.02", "0.17"],
    }
    head, line, *rows = script.table(script.measure(chosen))
    written = page_tables.written(script.PAGE, script.TABLE)
    assert written[:2] == [head, line]
    assert len(rows) == 2
    assert set(rows) <= set(written)
