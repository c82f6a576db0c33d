"""Groups of flows as an axis: half CUBIC, half ABE on one bottleneck, in every table and file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import HALF
from polars.testing import assert_frame_equal

import cwnd
from cwnd.errors import InputError
from cwnd.results.metrics import METRICS

if TYPE_CHECKING:
    from conftest import Cli

#: Quantile of Student's t at 97.5 % for two degrees of freedom, from any table.
T_975_2 = 4.302653
#: Measured, of two seconds.
MEASURED_S = 1.5


@pytest.fixture
def saved(cli: Cli, half: cwnd.Run, sweep: cwnd.Run) -> Cli:
    half.save(cli.directory / "half", plots=False)
    sweep.save(cli.directory / "sweep", plots=False)
    cli.write("half.toml", HALF)
    return cli


def interval(values: list[float]) -> float:
    return T_975_2 * stdev(values) / math.sqrt(len(values))


def by_hand(run: cwnd.Run, rate: str, name: str) -> tuple[list[float], list[float], list[float]]:
    """Goodput, share and ratio of a group in each run at a rate, from the table of flows."""
    goodputs, shares, ratios = [], [], []
    for part in run.flows.filter(pl.col("rate") == rate).partition_by("run_id"):
        rows = part.with_columns(pl.col("group").cast(pl.String)).to_dicts()
        mine = [row for row in rows if row["group"] == name]
        first = [row for row in rows if row["group"] == "cubic"]
        bytes_mine = sum(row["delivered_bytes"] for row in mine)
        goodputs.append(bytes_mine * 8 / MEASURED_S)
        shares.append(bytes_mine / sum(row["delivered_bytes"] for row in rows))
        ratios.append(
            fmean(row["goodput_bit_s"] for row in mine)
            / fmean(row["goodput_bit_s"] for row in first)
        )
    return goodputs, shares, ratios


def test_summary_csv_has_a_row_of_all_flows_and_one_of_each_group(saved: Cli, half: cwnd.Run):
    summary = pl.read_csv(saved.directory / "half/summary.csv")

    points = [(rate, name) for rate in ("5 Mbit/s", "10 Mbit/s") for name in ("*", "cubic", "abe")]
    assert summary.select("rate", "group").rows() == points
    assert summary["n"].to_list() == [3] * 6
    for row in summary.filter(pl.col("group") != "*").iter_rows(named=True):
        goodputs, shares, ratios = by_hand(half, row["rate"], row["group"])
        assert row["goodput_bit_s"] == pytest.approx(fmean(goodputs))
        assert row["goodput_bit_s_ci95"] == pytest.approx(interval(goodputs), rel=1e-6)
        assert row["goodput_share"] == pytest.approx(fmean(shares))
        assert row["goodput_share_ci95"] == pytest.approx(interval(shares), rel=1e-6)
        if row["group"] == "cubic":
            assert row["goodput_ratio"] is None, "it is what the others are compared with"
        else:
            assert row["goodput_ratio"] == pytest.approx(fmean(ratios))
            assert row["goodput_ratio_ci95"] == pytest.approx(interval(ratios), rel=1e-6)
            of_means = row["goodput_bit_s"] / (fmean(by_hand(half, row["rate"], "cubic")[0]) / 2)
            assert row["goodput_ratio"] != pytest.approx(of_means, rel=1e-9), "seed by seed"


def test_numbers_of_a_link_are_those_of_all_flows(half: cwnd.Run):
    summary = half.summary()
    together, apart = (
        summary.filter(pl.col("group") == "*"),
        summary.filter(pl.col("group") != "*"),
    )
    assert_frame_equal(together, half.summary(by="all"))
    assert_frame_equal(apart, half.summary(by="group"))
    for column, metric in METRICS.items():
        if metric.of == "link":
            assert together[column].null_count() == 0
            assert apart[column].null_count() == apart.height
    assert together["goodput_share"].null_count() == together.height
    sums = apart.group_by("rate", maintain_order=True).agg(
        pl.col("goodput_bit_s", "goodput_share").sum()
    )
    assert sums["goodput_bit_s"].to_list() == pytest.approx(together["goodput_bit_s"].to_list())
    assert sums["goodput_share"].to_list() == pytest.approx([1, 1])


def test_fairness_is_within_a_group_and_over_all_flows(half: cwnd.Run):
    for part in half.flows.partition_by("run_id"):
        (run_id,) = part["run_id"].unique()
        for name in ("*", "cubic", "abe"):
            rates = part.filter((pl.col("group") == name) | (name == "*"))["goodput_bit_s"]
            here = half.per_run(by="all" if name == "*" else "group")
            here = here.filter(pl.col("run_id") == run_id)
            row = here if name == "*" else here.filter(pl.col("group") == name)
            if len(rates) == 1:
                assert row["jain"].to_list() == [None]
            else:
                expected = rates.sum() ** 2 / (len(rates) * (rates**2).sum())
                assert row["jain"].to_list() == [pytest.approx(expected)]


def test_ratios_are_relative_to_the_group_that_is_named(half: cwnd.Run):
    default, other = half.per_run(by="group"), half.per_run(by="group", relative_to="abe")
    ours, theirs = (
        default.filter(pl.col("group") == "abe")["goodput_ratio"].to_list(),
        other.filter(pl.col("group") == "cubic")["goodput_ratio"].to_list(),
    )
    assert theirs == pytest.approx([1 / ratio for ratio in ours])
    assert other.filter(pl.col("group") == "abe")["goodput_ratio"].null_count() == 6


def test_flows_have_rows_of_their_own_where_asked(half: cwnd.Run):
    rows = half.per_run(by="flow")
    assert rows.select("run_id", "group", "flow_id", "goodput_bit_s").rows() == (
        half.flows.select("run_id", "group", "flow_id", "goodput_bit_s").rows()
    )
    summary = half.summary(["goodput", "goodput_share", "goodput_ratio"], by="flow", group="cubic")
    assert summary.select("rate", "group", "flow_id", "n").rows() == [
        (rate, "cubic", flow, 3) for rate in ("5 Mbit/s", "10 Mbit/s") for flow in (0, 1)
    ]


def test_a_single_group_has_the_row_of_all_flows_only(short: cwnd.Run):
    assert short.groups == ["main"]
    assert short.summary()["group"].to_list() == ["*"]
    assert short.summary(by="group").select("group", "goodput_share").rows() == [("main", 1.0)]
    assert short.summary(by="group")["goodput_bit_s"][0] == short.summary()["goodput_bit_s"][0]


@pytest.mark.parametrize("delivered", [[0, 0, 0], [0, 0, 9000]], ids=str)
def test_what_nobody_got_has_no_share_and_no_ratio(half: cwnd.Run, delivered: list[int]):
    flows = half.flows.with_columns(
        pl.Series("delivered_bytes", delivered * 6, dtype=pl.UInt64),
        pl.Series("goodput_bit_s", [float(each) for each in delivered] * 6),
    )
    summary = replace(half, flows=flows).summary(by="group")
    shares = [0.0, 1.0] * 2 if any(delivered) else [None] * 4
    assert summary["goodput_share"].to_list() == shares
    assert summary["goodput_ratio"].to_list() == [None] * 4
    for column in METRICS:
        for value in summary[column].drop_nulls():
            assert math.isfinite(value)


def test_a_group_without_flows_in_a_run_has_a_row_without_numbers(half: cwnd.Run):
    # The first run has no flow of the first group.
    first = half.runs["run_id"][0]
    flows = half.flows.filter((pl.col("run_id") != first) | (pl.col("group") != "cubic"))
    run = replace(half, flows=flows)
    assert run.groups == ["cubic", "abe"]
    rows = run.per_run(by="group").head(2)
    assert rows.select("group", "goodput_bit_s", "goodput_ratio").row(0) == ("cubic", None, None)
    assert rows["goodput_share"].to_list() == [None, 1.0]


def test_an_unknown_group_is_answered_with_the_groups_there_are(half: cwnd.Run):
    with pytest.raises(InputError, match="no group `reno` in this result; there are cubic, abe"):
        half.summary(group="reno")
    with pytest.raises(InputError, match="there are cubic, abe"):
        half.summary(relative_to="reno")
    with pytest.raises(InputError, match='by="group"'):
        half.per_run(group="abe", by="all")


def test_a_sweep_on_disk_and_sql_say_the_same(half: cwnd.Run, tmp_path: Path):
    (tmp_path / "half.toml").write_text(HALF)
    swept = cwnd.sweep(tmp_path / "half.toml", tmp_path / "out")
    assert_frame_equal(swept.summary(), half.summary())
    assert (tmp_path / "out/summary.csv").read_text() == half.summary().write_csv()
    answer = cwnd.query(
        tmp_path / "out",
        'with g as (select rate, seed, run_id, "group", sum(delivered_bytes) as b from flows'
        "  group by all),"
        " s as (select *, b / sum(b) over (partition by run_id) as share from g)"
        ' select rate, "group", avg(share) as share from s group by all',
    )
    ours = half.summary(by="group").select("rate", "group", pl.col("goodput_share").alias("share"))
    assert_frame_equal(answer, ours, check_row_order=False)


def test_axes_that_have_the_names_of_metrics_and_groups_are_told_apart(tmp_path: Path):
    text = HALF.replace("[sweep.axis.rate]", "[sweep.axis.group]")
    for name in ("goodput_share", "point", "n"):
        (tmp_path / "named.toml").write_text(text.replace("axis.group", f"axis.{name}"))
        run = cwnd.run(tmp_path / "named.toml")
        assert run.axis_columns == [f"axis_{name}"]
        assert run.summary().height == 6
    (tmp_path / "named.toml").write_text(text)
    run = cwnd.run(tmp_path / "named.toml")
    assert run.summary()["group"].to_list() == ["*", "cubic", "abe"] * 2


def test_the_table_of_groups_has_shares_and_ratios(saved: Cli):
    answer = saved("run", "half.toml", "--no-plots")
    assert answer.code == 0, answer.err
    table = answer.out.partition("by group of flows")[2]
    assert "share" in table
    assert "ratio" in table
    assert "to that of a flow of cubic" in " ".join(table.split())
    assert "cubic (2)" in table
    document = saved("run", "half.toml", "--no-plots", "--json").json
    (result,) = document["results"]
    assert [row["group"] for row in result["summary"]] == ["*", "cubic", "abe"] * 2


def test_every_metric_is_explained_in_the_docs():
    from conftest import ROOT

    page = (ROOT / "docs/reference/metrics.md").read_text()
    for column, metric in METRICS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{column}` |"))
        assert metric.label in row
        of = {"flows": "flows", "link": "link", "part": "group, flow"}[metric.of]
        assert row.split("|")[3].strip() == of
