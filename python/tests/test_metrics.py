"""Aggregates of runs, their spread and confidence intervals, and comparisons of two results."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import SHORT
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import cwnd
from cwnd import plots
from cwnd.errors import InputError
from cwnd.report.figures import sweep_figure
from cwnd.results import (
    METRICS,
    MetricUnit,
    describe_spreads,
    group_table,
    result_table,
    spreads,
    summarise,
)
from cwnd.results.comparing import compare
from cwnd.results.metrics import main_link, metric, per_run
from cwnd.results.stats import Estimate, paired_difference, t_quantile, welch_difference
from cwnd.results.table import IN_TABLES, Spread

if TYPE_CHECKING:
    from conftest import Cli


#: Quantile of Student's t at 97.5 % for two degrees of freedom, from any table.
T_975_2 = 4.302653


def test_the_same_rows_have_the_same_sums_however_they_came(scenarios: Path):
    """Polars adds in another order in other chunks, and where a column is known to be sorted."""
    run = cwnd.run(scenarios / "sweep.toml", set={"flow.main.count": 5, "run.duration": "2 s"})
    rows = len(run.flows)
    assert rows == 18 * 5
    for by in ("all", "group", "flow"):
        (expected,) = {
            repr(per_run(replace(run, flows=pl.concat(parts, rechunk=False)), by=by).to_dicts())
            for size in (1, 2, 7, rows)
            for parts in [[run.flows[n : n + size] for n in range(0, rows, size)]]
        }
        assert "goodput_bit_s" in expected


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


def test_a_run_that_ends_once_it_is_fair_is_measured_until_then():
    asked = cwnd.Scenario(
        run={"duration": "30 s", "until_fair": 0.95},
        dumbbell={"rate": "10 Mbit/s"},
        flow={"one": {"rtt": "40 ms"}, "late": {"rtt": "40 ms", "start": "2 s"}},
    )
    run = cwnd.run(asked)
    assert run.runs["duration_s"][0] == run.flows["duration_s"].max() < 10
    assert run.per_run()["goodput_bit_s"][0] > 9e6


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


#: One flow, nothing that is random, two points.
STILL = (
    SHORT.replace('start = "uniform(0 ms, 100 ms)"\n', "").replace('"short"', '"still"')
    + """
[sweep]
repeat = 3

[sweep.axis.rtt]
path = "flow.main.rtt"
values = ["10 ms", "20 ms"]
"""
)


def run(tmp_path: Path, text: str) -> cwnd.Run:
    (tmp_path / "scenario.toml").write_text(text)
    return cwnd.run(tmp_path / "scenario.toml")


def test_counts_have_a_median_and_quartiles_and_other_metrics_a_mean():
    # Sums of 12,345 drops over five seeds: the mean of 2,469 is that of no seed.
    rows = pl.DataFrame({"arm": ["a"] * 5, "drops": [1, 2, 4, 8, 12330], "jain": [0.5] * 4 + [1.0]})
    summary = summarise(rows, ["arm"], ["drops", "jain"])
    assert summary.select("drops", "drops_p25", "drops_p50", "drops_p75").row(0) == (2469, 2, 4, 8)
    assert "jain_p50" not in summary.columns

    (drops,), (jain,) = (spreads(summary, METRICS[name]) for name in ("drops", "jain"))
    assert (drops.value, drops.ends) == (4, (2, 8))
    # 0.6 ± 2.776445 · 0.1, Student's t over four degrees of freedom.
    assert jain.value == pytest.approx(0.6)
    assert jain.ends == pytest.approx((0.6 - 0.2776445, 0.6 + 0.2776445))
    shown = [MetricUnit.of(METRICS[name], [1.0]) for name in ("drops", "jain")]
    assert [each.spread(of) for each, of in zip(shown, (drops, jain), strict=True)] == [
        "4 [2–8]",
        "0.60 ±0.28",
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([3, 3, 3], "3"),
        ([2, 3], "2.5 [2.2–2.8]"),
        ([0, 0, 0, 1], "0 [0–0.2]"),
        ([300, 301, 302, 303], "302 [301–302]"),
        ([7], "7"),
    ],
)
def test_quartiles_of_counts_are_written_as_short_as_they_are_told_apart(
    values: list[int], text: str
):
    summary = summarise(
        pl.DataFrame({"arm": ["a"] * len(values), "drops": values}), ["arm"], ["drops"]
    )
    (of,) = spreads(summary, METRICS["drops"])
    assert MetricUnit.of(METRICS["drops"], [of.value]).spread(of, named_elsewhere=True) == text


def test_every_table_and_figure_says_which_spread_it_shows(sweep: cwnd.Run):
    text_table = result_table(sweep)
    assert "mean ± 95 % confidence of 3 seeds; counts: median [quartiles]" in text_table.caption
    assert "mean of 3 seeds; counts: median; " in result_table(sweep, intervals=False).caption
    drawn = plots.describe(sweep, "sweep", metrics=["goodput", "marks"])
    assert drawn.note == (
        "mean and 95 % confidence interval of 3 seeds; counts: median and quartiles"
    )
    marks = plots.describe(sweep, "sweep", metrics=["marks"])
    assert marks.note == "median and quartiles of 3 seeds"
    figure = sweep_figure(sweep)
    assert figure is not None
    assert figure.caption.startswith("Mean and 95 % confidence interval of 3 seeds; counts: ")


def test_what_does_not_depend_on_the_seed_is_called_deterministic(tmp_path: Path):
    still = run(tmp_path, STILL)
    assert still.runs["digest"].n_unique() == 2
    assert still.summary()["deterministic"].to_list() == [True, True]
    text_table = result_table(still)
    assert "deterministic: 3 seeds gave the same result" in text_table.caption
    assert not any("±" in cell or "det." in cell for row in text_table.rows for cell in row)
    assert "±" not in text_table.caption
    picture = plots.describe(still, "sweep")
    assert picture.note == "deterministic: 3 seeds gave the same result"
    ends = [end for panel in picture.panels for line in panel.lines for end in line.interval or ()]
    assert ends
    assert all(each is None for end in ends for each in end)
    figure = sweep_figure(still)
    assert figure is not None
    assert figure.caption.startswith("Deterministic: 3 seeds gave the same result")


def test_points_that_do_not_depend_on_the_seed_are_marked_where_others_do(tmp_path: Path):
    some = STILL.replace(
        'path = "flow.main.rtt"\nvalues = ["10 ms", "20 ms"]',
        'path = "dumbbell.loss"\nvalues = [0, 0.01]',
    ).replace("axis.rtt", "axis.loss")
    lossy = run(tmp_path, some)
    assert lossy.summary()["deterministic"].to_list() == [True, False]
    text_table = result_table(lossy)
    goodput = text_table.headings.index(
        next(h for h in text_table.headings if h.startswith("goodput"))
    )
    same, random = (row[goodput] for row in text_table.rows)
    assert same.endswith(" det.")
    assert "±" in random
    assert "det.: deterministic, all seeds gave the same result" in text_table.caption
    assert "deterministic where all seeds gave the same result" in (
        plots.describe(lossy, "sweep").note
    )


def test_a_figure_of_no_metric_says_nothing_about_their_spread():
    rows = pl.DataFrame({"arm": ["a"] * 2, "drops": [1, 2]})
    assert describe_spreads(summarise(rows, ["arm"], ["drops"]), [], IN_TABLES) == []


def test_one_seed_is_not_deterministic(short: cwnd.Run):
    assert short.summary()["deterministic"].to_list() == [False]
    assert "deterministic" not in result_table(short).caption


def test_seeds_that_agree_in_one_metric_alone_are_not_deterministic():
    rows = pl.DataFrame({"arm": ["a", "a"], "rto_count": [1, 1], "jain": [0.5, 0.6]})
    (row,) = summarise(rows, ["arm"], ["rto_count"]).to_dicts()
    assert not row["deterministic"]
    # An interval without a width is none.
    same = Spread(1.0, None, counts=False, deterministic=False)
    rows = pl.DataFrame({"arm": ["a", "a"], "drops": [1, 2], "jain": [1.0, 1.0]})
    assert spreads(summarise(rows, ["arm"], ["jain"]), METRICS["jain"]) == [same]


def test_a_group_is_deterministic_if_its_run_is(tmp_path: Path):
    other = (
        '\n[flow.call]\nrtt = "20 ms"\n'
        'workload = { kind = "udp", rate = "20 kbit/s", size = "100 B" }\n'
    )
    short = SHORT + other + "\n[sweep]\nrepeat = 3\n"
    summary = run(tmp_path, short.replace('queue = "codel"', 'queue = "fifo"')).summary()
    calls = summary.filter(pl.col("group") == "call")
    # All that is known of the calls is the same: their packets never met a full queue.
    assert calls["goodput_bit_s_ci95"].to_list() == [0]
    assert summary["deterministic"].to_list() == [False] * 3


def test_each_row_of_groups_has_its_own_number_of_flows(tmp_path: Path):
    text = (
        STILL.partition("\n[sweep.axis")[0]
        + """
[sweep.axis.flows]
path = "flow.main.count"
values = [1, 4, 16]
"""
    )
    other = (
        '\n[flow.call]\nrtt = "20 ms"\n'
        'workload = { kind = "udp", rate = "20 kbit/s", size = "100 B" }\n'
    )
    text_table = group_table(run(tmp_path, text.replace("\n[sweep]", other + "\n[sweep]")))
    assert text_table is not None
    assert [row[:2] for row in text_table.rows] == [
        ("1", "main (1)"),
        ("1", "call (1)"),
        ("4", "main (4)"),
        ("4", "call (1)"),
        ("16", "main (16)"),
        ("16", "call (1)"),
    ]


values = st.lists(
    st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False), min_size=2, max_size=30
)


@given(
    p=st.floats(min_value=0.5, max_value=0.9999), freedom=st.integers(min_value=1, max_value=2000)
)
def test_the_t_quantile_is_scipys(p: float, freedom: int):
    expected = scipy_stats.t.ppf(p, freedom)
    assert t_quantile(p, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_t_quantile_of_one_degree_of_freedom_is_cauchys():
    assert t_quantile(0.975, 1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-12)


@pytest.mark.parametrize(("p", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_there_is_no_quantile_outside_its_range(p: float, freedom: int):
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(p, freedom)


@given(values)
def test_an_estimate_is_scipys_interval(sample: list[float]):
    estimate = Estimate.of(sample)
    assert estimate is not None
    assert estimate.sd is not None
    assert estimate.half_width is not None
    error = scipy_stats.sem(sample)
    assert estimate.n == len(sample)
    assert estimate.mean == pytest.approx(math.fsum(sample) / len(sample), rel=1e-12, abs=1e-6)
    expected = scipy_stats.t.ppf(0.975, len(sample) - 1) * error
    assert estimate.half_width == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_one_value_has_a_mean_and_no_interval():
    assert Estimate.of([3.0]) == Estimate(1, 3.0, None, None)


def test_no_value_has_no_mean():
    assert Estimate.of([]) is None


def test_equal_values_have_an_interval_of_no_width():
    assert Estimate.of([2.5, 2.5, 2.5]) == Estimate(3, 2.5, 0.0, 0.0)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=20))
def test_pairs_of_equal_seeds_are_compared_as_differences(pairs: list[tuple[float, float]]):
    before, after = zip(*pairs, strict=True)
    found = paired_difference(before, after)
    assert found == Estimate.of([b - a for a, b in pairs])


def test_what_seeds_have_in_common_cancels():
    before = [10.0, 20.0, 30.0, 40.0]
    after = [11.1, 20.9, 31.0, 41.0]
    paired, apart = paired_difference(before, after), welch_difference(before, after)
    assert paired is not None
    assert apart is not None
    assert paired.mean == pytest.approx(apart.mean)
    expected = scipy_stats.ttest_rel(after, before).confidence_interval()
    assert paired.half_width == pytest.approx((expected.high - expected.low) / 2)
    assert paired.half_width < apart.half_width / 100


spread = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30).filter(
    lambda sample: len(set(sample)) > 1
)


@given(spread, spread)
def test_welchs_interval_is_scipys_or_a_little_wider(before: list[int], after: list[int]):
    found = welch_difference(before, after)
    assert found is not None
    assert found.half_width is not None
    expected = scipy_stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    width = (expected.high - expected.low) / 2
    # Degrees of freedom are rounded down: between one and two this matters most (12.7 to 4.3).
    assert found.half_width >= width * (1 - 1e-6)
    assert found.half_width <= width * 3


def test_a_result_does_not_differ_from_itself(sweep: cwnd.Run):
    found = compare(sweep, sweep)
    assert found.identical
    assert found.changes == []
    assert len({tuple(each.point.items()) for each in found.differences}) == 6
    for each in found.differences:
        assert each.paired
        assert each.difference.mean == 0
        assert not each.clear


def test_a_doubled_rate_doubles_the_goodput_clearly(scenarios: Path, sweep: cwnd.Run):
    faster = cwnd.run(scenarios / "sweep.toml", set={"dumbbell.rate": "20 Mbit/s"})

    found = compare(sweep, faster, ["goodput_bit_s"])

    assert ("dumbbell.rate.initial", "10 Mbit/s", "20 Mbit/s") in [
        (each.path, each.before, each.after) for each in found.changes
    ]
    assert not found.identical
    assert all(each.paired and each.clear for each in found.differences)
    for each in found.differences:
        assert each.difference.mean == pytest.approx(each.after.mean - each.before.mean)
        assert 1.3 < each.after.mean / each.before.mean < 2.2


def test_other_seeds_are_compared_by_welch(scenarios: Path, sweep: cwnd.Run):
    found = compare(sweep, cwnd.run(scenarios / "sweep.toml", seed=100), ["goodput_bit_s"])
    assert found.changes == []
    assert not any(each.paired for each in found.differences)


def test_points_that_one_lacks_are_named(scenarios: Path, sweep: cwnd.Run):
    path = "sweep.axis.rtt.values"
    fewer = cwnd.run(scenarios / "sweep.toml", set={path: ["10 ms", "80 ms"]})

    found = compare(sweep, fewer, ["goodput_bit_s"])

    assert [each["rtt"] for each in found.only_before] == ["20 ms", "40 ms"] * 2
    assert [each["rtt"] for each in found.only_after] == ["80 ms"] * 2
    assert len(found.differences) == 2


def test_results_with_other_axes_are_not_compared(short: cwnd.Run, sweep: cwnd.Run):
    with pytest.raises(InputError, match="same axes"):
        compare(short, sweep)


def test_cwnd_compare_shows_settings_and_differences(cli: Cli):
    assert cli("run", "sweep.toml", "-o", "a", "--no-plots").code == 0
    slower = ("--set", "dumbbell.rate=5 Mbit/s")
    assert cli("run", "sweep.toml", "-o", "b", "--no-plots", *slower).code == 0

    answer = cli("compare", "a", "b", "--metric", "goodput")

    assert answer.code == 0, answer.err
    assert "dumbbell.rate.initial" in answer.out
    assert "5 Mbit/s" in answer.out
    rows = [line for line in answer.out.splitlines() if "Goodput" in line]
    assert len(rows) == 6
    assert all("*" in row and "-" in row for row in rows)

    document = cli("compare", "a", "b", "--json").json
    assert {each["metric"] for each in document["differences"]} >= {"goodput_bit_s", "marks"}
    assert all("clear" in each for each in document["differences"])
