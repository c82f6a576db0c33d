"""Aggregates of runs, against sums computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import polars as pl
import pytest
from conftest import SHORT

import cwnd
from cwnd.errors import InputError
from cwnd.results.metrics import METRICS, main_link, metric, summarise

#: Quantile of Student's t at 97.5 % for two degrees of freedom, from any table.
T_975_2 = 4.302653


def test_a_summary_is_the_mean_over_seeds_with_its_interval(sweep: cwnd.Run):
    summary = sweep.summary(["goodput_bit_s"])

    assert summary.height == 6
    for row in summary.iter_rows(named=True):
        point = (pl.col("arm") == row["arm"]) & (pl.col("rtt") == row["rtt"])
        # Two seconds are simulated.
        goodputs = [8 * each / 2.0 for each in sweep.flows.filter(point)["delivered_bytes"]]
        assert row["n"] == len(goodputs) == 3
        assert row["goodput_bit_s"] == pytest.approx(fmean(goodputs))
        expected = T_975_2 * stdev(goodputs) / math.sqrt(3)
        assert row["goodput_bit_s_ci95"] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_points_of_a_summary_are_in_the_order_of_the_scenario(sweep: cwnd.Run):
    points = sweep.summary().select("arm", "rtt").rows()
    arms, rtts = ["NewReno", "NewReno+ABE"], ["10 ms", "20 ms", "40 ms"]
    assert points == [(arm, rtt) for arm in arms for rtt in rtts]


def test_one_seed_has_no_interval(short: cwnd.Run):
    (row,) = short.summary().to_dicts()
    assert row["n"] == 1
    assert row["goodput_bit_s"] > 0
    assert all(row[f"{column}_ci95"] is None for column in METRICS)


def with_goodputs(run: cwnd.Run, goodputs: list[float]) -> cwnd.Run:
    flows = pl.concat([run.flows] * len(goodputs)).with_columns(
        pl.Series("goodput_bit_s", goodputs)
    )
    return replace(run, flows=flows)


@pytest.mark.parametrize(
    ("goodputs", "jain"),
    [([1.0, 1.0, 1.0, 1.0], 1.0), ([4.0, 0.0, 0.0, 0.0], 0.25), ([1.0, 3.0], 16 / 20)],
)
def test_fairness_is_jains(short: cwnd.Run, goodputs: list[float], jain: float):
    # Jain, Chiu & Hawe 1984: all equal gives 1, one of n gives 1/n.
    rows = with_goodputs(short, goodputs).per_run()
    assert rows["jain"].to_list() == [pytest.approx(jain)]


def test_transfers_that_end_have_no_part_in_fairness(short: cwnd.Run):
    flows = with_goodputs(short, [1.0, 3.0, 99.0]).flows.with_columns(
        pl.Series("size_bytes", [None, None, 1000], dtype=pl.UInt64)
    )
    assert replace(short, flows=flows).per_run()["jain"].to_list() == [pytest.approx(16 / 20)]


def test_goodput_is_what_all_flows_got_over_the_measured_time(short: cwnd.Run):
    # One second of two is measured; short transfers count with their bytes, not with their rates.
    flows = pl.concat([short.flows] * 2).with_columns(
        pl.Series("delivered_bytes", [1000, 500], dtype=pl.UInt64),
        pl.Series("goodput_bit_s", [1e9, 1e9]),
        pl.Series("duration_s", [1e-3, 1.0]),
        pl.Series("throughput_bit_s", [8e6, 4e3]),
    )
    runs = short.runs.with_columns(pl.lit(1.0).alias("warmup_s"))
    (row,) = replace(short, flows=flows, runs=runs).per_run().to_dicts()
    assert row["goodput_bit_s"] == pytest.approx(1500 * 8)
    assert row["throughput_bit_s"] == pytest.approx(8e3 + 4e3)


def test_a_single_flow_and_idle_flows_have_no_fairness(short: cwnd.Run):
    assert short.per_run()["jain"].to_list() == [None]
    assert with_goodputs(short, [0.0, 0.0]).per_run()["jain"].to_list() == [None]


def test_datagrams_are_no_part_of_fairness(tmp_path: Path):
    crowd = 'workload = { kind = "udp", rate = "1 Mbit/s", size = "1000 B" }'
    path = tmp_path / "crowd.toml"
    path.write_text(SHORT + f'\n[flow.crowd]\ncount = 3\nrtt = "20 ms"\n{crowd}\n')
    run = cwnd.run(path)
    assert run.flows["controller"].to_list() == ["newreno", "none", "none", "none"]
    assert run.flows["rtt_p50_us"].null_count() == 3
    rows = run.per_run()
    assert rows["jain"].to_list() == [None], "one flow shares with nobody"
    assert rows["goodput_bit_s"][0] == pytest.approx(run.flows["delivered_bytes"].sum() * 8 / 2)
    assert run.per_run(group="crowd")["jain"].to_list() == [None]


def test_the_busiest_link_is_shown_unless_another_is_asked_for(short: cwnd.Run):
    assert main_link(short) == "bottleneck"
    busy, idle = short.per_run()["utilisation"][0], short.per_run("reverse")["utilisation"][0]
    assert busy > 0.5 > idle


def test_an_unknown_link_is_answered_with_the_known_ones(short: cwnd.Run):
    with pytest.raises(InputError, match="there are bottleneck, reverse"):
        short.per_run("wireless")


def test_a_metric_is_found_by_the_beginning_of_its_name():
    assert metric("goodput") is METRICS["goodput_bit_s"]
    with pytest.raises(InputError, match="begins several"):
        metric("qdelay")
    with pytest.raises(InputError, match="is not a metric; there are"):
        metric("speed")
    with pytest.raises(InputError, match="did you mean `goodput_bit_s`"):
        metric("gooput")


def test_runs_without_a_value_do_not_count():
    rows = pl.DataFrame({"arm": ["a", "a", "a"], "fct_s": [1.0, None, 3.0]})
    (row,) = summarise(rows, ["arm"], ["fct_s"]).to_dicts()
    assert row["n"] == 3
    assert row["fct_s"] == 2.0
    # Two values, √2 their deviation: t · √2 / √2, with t of one degree of freedom.
    assert row["fct_s_ci95"] == pytest.approx(math.tan(0.475 * math.pi))
