"""The table of DCTCP's page, measured again in part."""

from __future__ import annotations

import polars as pl
import pytest

import cwnd
import dctcp_threshold as script
import page_tables
from cwnd.figures import Rule


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


def test_the_figure_shows_use_and_delay_by_threshold():
    arms, thresholds = ["DCTCP", "NewReno"], ["0.01", "0.1", "1"]
    found = pl.DataFrame(
        {
            "threshold": [each for each in thresholds for _ in arms],
            "arm": arms * 3,
            "utilisation": [0.9, 0.6, 1.0, 0.8, 1.0, 1.0],
            "qdelay_mean_us": [1.0, 0.5, 10.0, 4.0, 200.0, 100.0],
        }
    )
    use, delay = script.draw(found).panels
    assert [(line.label, line.x, line.y) for line in use.lines] == [
        ("DCTCP", [0.01, 0.1, 1], [90, 100, 100]),
        ("NewReno", [0.01, 0.1, 1], [60, 80, 100]),
    ]
    assert [line.y for line in delay.lines] == [[1, 10, 200], [0.5, 4, 100]]
    for panel in (use, delay):
        (rule,) = (mark for mark in panel.marks if isinstance(mark, Rule))
        assert rule.x == pytest.approx(1 / 7)
