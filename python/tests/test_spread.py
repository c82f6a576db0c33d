"""Spread over seeds in tables and figures, against numbers counted by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import SHORT

import cwnd
from cwnd import plots
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
from cwnd.results.table import IN_TABLES, Spread

if TYPE_CHECKING:
    from pathlib import Path

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
