"""Response times in summaries and figures, against what can be counted by hand."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import cwnd
from cwnd import plots
from cwnd.plots.responses import TIMES_S, curves_of
from cwnd.report import write
from cwnd.results import METRICS, counts_of, counts_of_times, distribution, survival
from cwnd.results.responses import QUANTILES

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

#: Two groups of clients over a full link, two queues, three seeds. Some are given up.
WEB = """\
schema = 1
name = "web"

[run]
duration = "12 s"
warmup = "2 s"

[dumbbell]
rate = "1 Mbit/s"

[flow.short]
rtt = "uniform(10 ms, 100 ms)"
workload = { kind = "web", interval = "60 ms", size = "pareto(1.2, 7 kB)" }
endpoint = { syn_retries = 1, rto_initial = "200 ms", rto_min = "50 ms" }

[flow.long]
rtt = "50 ms"
workload = { kind = "web", interval = "1 s", size = "30 kB" }

[sweep]
repeat = 3

[sweep.axis.queue]
path = "dumbbell.queue"
values = [{ kind = "fifo", limit = "60 pkts" }, "codel"]
labels = ["fifo", "codel"]
"""
#: Quantile of Student's t at 97.5 % for two degrees of freedom, from any table.
T_975_2 = 4.302653
#: Outcomes of requests whose connection was given up.
GIVEN_UP = ("rejected", "given-up")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    file = tmp_path_factory.mktemp("web") / "web.toml"
    file.write_text(WEB)
    return cwnd.run(file)


def at_hand(requests: pl.DataFrame, end_s: float) -> dict[str, float | None]:
    """The metrics of some requests, counted one by one."""
    rows = requests.with_columns(pl.col("outcome").cast(pl.String)).to_dicts()
    found = times_at_hand(rows, "response_s", end_s)
    times = [row["response_s"] for row in rows if row["outcome"] == "answered"]
    acked = times_at_hand(rows, "acked_s", end_s)
    return {
        "requests": len(rows),
        "given_up_ratio": sum(row["outcome"] in GIVEN_UP for row in rows) / len(rows),
        **{f"response_{name}_s": value for name, value in found.items()},
        "response_max_s": max(times),
        **{f"acked_{name}_s": value for name, value in acked.items()},
    }


def times_at_hand(rows: list[dict[str, Any]], time: str, end_s: float) -> dict[str, float | None]:
    """Mean and quantiles of a time of requests."""
    answered = [row[time] for row in rows if row[time] is not None]
    # Of each: how long it is known to have taken, and whether it was answered then.
    known = [(t, True) for t in answered]
    without = [row for row in rows if row[time] is None]
    known += [(end_s - row["start_s"], False) for row in without if row["outcome"] not in GIVEN_UP]
    never = sum(row["outcome"] in GIVEN_UP for row in without)

    def longer(x: float) -> float:
        part = 1.0
        for t in sorted({t for t, was in known if was and t <= x}):
            waiting = sum(s >= t for s, _ in known) + never
            part *= 1 - sum(s == t and was for s, was in known) / waiting
        return part

    def quantile(q: float) -> float | None:
        return next((t for t in sorted(answered) if longer(t) <= 1 - q + 1e-9), None)

    return {
        "mean": fmean(answered),
        "p50": quantile(0.5),
        "p90": quantile(0.9),
        "p99": quantile(0.99),
    }


def same(found: dict[str, Any], expected: dict[str, float | None]) -> bool:
    return all(
        found[name] is None if value is None else found[name] == pytest.approx(value)
        for name, value in expected.items()
    )


@pytest.mark.parametrize("group", [None, "short", "long"])
def test_metrics_are_those_that_are_counted_one_by_one(web: cwnd.Run, group: str | None):
    requests = web.requests.with_columns(pl.col("group").cast(pl.String))
    outcomes = set(requests["outcome"].cast(pl.String))
    assert {"answered", "open", "rejected"} <= outcomes
    for row in web.per_run(group=group).to_dicts():
        mine = requests.filter(pl.col("run_id") == row["run_id"])
        mine = mine if group is None else mine.filter(pl.col("group") == group)
        assert same(row, at_hand(mine, 12.0))


def test_metrics_of_one_flow_are_of_its_requests(web: cwnd.Run):
    rows = web.per_run(by="flow").filter(pl.col("requests") > 0)
    assert rows["requests"].sum() == web.requests.height
    # A connection of these groups has one request.
    assert set(rows["requests"]) == {1.0}


def test_a_summary_has_their_means_over_seeds_with_intervals(web: cwnd.Run):
    for row in web.summary(["response_mean"], by="all").to_dicts():
        answered = web.requests.filter(pl.col("queue") == row["queue"]).group_by("seed")
        means = answered.agg(pl.col("response_s").mean())["response_s"].to_list()
        assert row["response_mean_s"] == pytest.approx(fmean(means))
        assert row["response_mean_s_ci95"] == pytest.approx(T_975_2 * stdev(means) / math.sqrt(3))


def test_a_quantile_among_requests_that_were_never_answered_is_empty(web: cwnd.Run):
    rejecting = web.per_run(group="short").filter(pl.col("given_up_ratio") > 0.01)
    assert rejecting.height >= 3
    assert rejecting["response_p99_s"].null_count() == rejecting.height
    assert rejecting["response_p50_s"].null_count() == 0


def test_without_open_requests_it_is_the_empirical_distribution():
    rng = random.Random(1)
    times = [rng.choice([0.5, 1.0, rng.expovariate(1.0)]) for _ in range(500)]
    found = distribution([survival(counts_of_times(pl.Series(times)), [])], [0.1, 0.5, 1.0, 3.0])
    assert found.half_widths is None
    for x, share in zip(found.times_s, found.means, strict=True):
        assert share == pytest.approx(sum(t > x for t in times) / 500)


def test_the_estimate_is_that_of_kaplan_and_meier():
    # Kaplan & Meier 1958, § 2: deaths at 0.8, 3.1, 5.4 and 9.2, losses at 1.0, 2.7, 7.0 and 12.1.
    known = [(0.8, 1), (1.0, 0), (2.7, 0), (3.1, 1), (5.4, 1), (7.0, 0), (9.2, 1), (12.1, 0)]
    counts = pl.DataFrame(
        [{"time_s": t, "answered": d, "open": 1 - d, "unanswered": 0} for t, d in known]
    )
    ordered = survival(counts, [])
    found = dict(zip(ordered["time_s"], ordered["longer"], strict=True))
    steps = {0.8: 7 / 8, 3.1: 7 / 10, 5.4: 21 / 40, 9.2: 21 / 80}
    assert all(found[t] == pytest.approx(part) for t, part in steps.items())


def test_the_figure_has_a_curve_for_each_group_and_a_band_over_seeds(web: cwnd.Run):
    picture = plots.describe(web, "responses")
    assert [panel.title for panel in picture.panels] == ["fifo", "codel"]
    for panel in picture.panels:
        assert panel.x_log
        assert panel.y_log
        assert [line.label for line in panel.lines] == ["short", "long"]
        for line in panel.lines:
            assert line.band is not None
            shares = [y for y in line.y if y is not None]
            assert shares[0] == 1
            assert shares == sorted(shares, reverse=True)


def test_the_curve_and_its_band_are_students_over_the_seeds(web: cwnd.Run):
    (curves,) = [c for _, c in curves_of(web, lines="queue", group="long").panels]
    curve = next(each for each in curves if each.label == "fifo")
    runs = web.runs.filter(pl.col("queue") == "fifo")["run_id"].to_list()
    at_s = TIMES_S[TIMES_S.index(curve.shares.times_s[0]) + 10]
    index = curve.shares.times_s.index(at_s)
    shares = []
    for run_id in runs:
        (counts,) = counts_of(web, ["group"], [run_id])
        ordered = survival(counts.filter(pl.col("group") == "long"), [])
        shares.append(distribution([ordered], [at_s]).means[0])
    assert curve.shares.means[index] == pytest.approx(fmean(shares))
    assert curve.shares.half_widths is not None
    width = T_975_2 * stdev(shares) / math.sqrt(3)
    assert curve.shares.half_widths[index] == pytest.approx(width)


def test_a_run_without_requests_has_neither_metrics_nor_a_figure(short: cwnd.Run):
    (row,) = short.summary(["requests", "response_mean"]).to_dicts()
    assert row["requests"] is None
    assert row["response_mean_s"] is None
    assert "responses" not in plots.default_kinds(short)
    with pytest.raises(cwnd.InputError, match="no client opened a connection"):
        short.plot("responses")


def test_results_that_do_not_say_how_many_requests_they_have_are_read(web: cwnd.Run):
    older = replace(web, runs=web.runs.drop("requests"))
    assert older.summary(["requests"]).equals(web.summary(["requests"]))


def test_commands_show_response_times(cli: Cli):
    cli.write("web.toml", WEB)
    done = cli("run", "web.toml", "-o", "out")
    assert done.code == 0
    assert "response" in done.out
    assert (cli.directory / "out/plots/responses.svg").exists()
    drawn = cli("plot", "out", "--kind", "responses", "--group", "long", "--json")
    assert [file.rpartition("/")[2] for file in drawn.json["plots"]] == [
        "responses.png",
        "responses.svg",
    ]
    assert "`no`" in cli("plot", "out", "--kind", "responses", "--group", "no").err
    assert cli("plot", "out", "--metric", "response_p50", "--metric", "dead_pkts").code == 0
    assert cli("report", "out", "-o", "page.html").code == 0
    assert 'id="r1-responses"' in (cli.directory / "page.html").read_text()
    compared = cli("compare", "out", "out")
    assert "Response time, median (s)" in compared.out
    (first, *_) = (cli.directory / "out/summary.csv").read_text().splitlines()
    assert "response_p90_s,response_p90_s_ci95" in first


def test_a_sweep_on_disk_has_the_same_metrics(cli: Cli, web: cwnd.Run):
    cli.write("web.toml", WEB)
    assert cli("sweep", "web.toml", "-o", "swept", "--no-plots").code == 0
    swept = cwnd.Run.load(cli.directory / "swept")
    names = ["requests", "given_up_ratio", "response_p50", "response_max", "timeouts_under_way"]
    assert swept.summary(names).equals(web.summary(names))


def test_timeouts_under_way_duplicates_and_dead_packets_are_metrics(web: cwnd.Run):
    rows = web.per_run()
    for metric, column in (("timeouts_under_way", "rto_under_way"), ("duplicates", "duplicates")):
        sums = web.flows.group_by("run_id").agg(pl.col(column).sum())
        assert sums[column].sum() > 0
        expected = rows.select("run_id").join(sums, on="run_id", maintain_order="left")
        assert rows[metric].to_list() == expected[column].to_list()
    links = web.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    for column in ("dead_pkts", "duplicate_pkts"):
        assert rows[column].to_list() == links[column].to_list()


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    file = tmp_path_factory.mktemp("sparse") / "web.toml"
    file.write_text(WEB + '\n[record]\nrequests = "none"\nflows = 0.1\n')
    return cwnd.run(file)


def test_metrics_are_of_all_requests_and_flows_whatever_has_a_row(web: cwnd.Run, sparse: cwnd.Run):
    assert sparse.requests.is_empty()
    assert 0 < sparse.flows.height < web.flows.height / 5
    for by in ("all", "group"):
        exact, found = (each.per_run(by=by) for each in (web, sparse))  # type: ignore[arg-type]
        for metric in METRICS:
            # Quantiles of response times are those of a sketch.
            bound = 1 / 256 if metric in QUANTILES else 1e-9
            for one, other in zip(exact[metric], found[metric], strict=True):
                # Times to the last acknowledgement are those of rows only.
                known = one is not None and not metric.startswith("acked_")
                assert other == (pytest.approx(one, rel=bound) if known else None), metric


def test_a_result_says_which_part_has_rows(web: cwnd.Run, sparse: cwnd.Run, tmp_path: Path):
    every, some = web.flows.height, sparse.flows.height
    assert f"{some} of {every} flows ({some / every:.2%}), drawn at random, have a row" in "".join(
        sparse.notes
    )
    assert f"none of {web.requests.height} requests has a row" in "".join(sparse.notes)
    place = sparse.save(tmp_path / "out", plots=False)
    said = pl.read_parquet_metadata(place / "flows.parquet")["cwnd"]
    assert json.loads(said)["of"] == every
    assert json.loads(said)["rows"] == some
    again = cwnd.Run.load(place)
    assert again.summary().equals(sparse.summary())
    assert again.notes == sparse.notes
    assert not any("have a row" in note for note in web.notes)


def test_the_figure_is_the_same_to_the_bound_of_the_sketch(web: cwnd.Run, sparse: cwnd.Run):
    for (_, exact), (_, found) in zip(curves_of(web).panels, curves_of(sparse).panels, strict=True):
        for one, other in zip(exact, found, strict=True):
            assert one.label == other.label
            # A bucket may lie on either side of a time: of few requests, one is some per cent.
            both = dict(zip(one.shares.times_s, one.shares.means, strict=True))
            for time, share in zip(other.shares.times_s, other.shares.means, strict=True):
                assert share == pytest.approx(both.get(time, share), abs=0.05)


def test_groups_without_a_row_are_groups_all_the_same(tmp_path: Path):
    (tmp_path / "web.toml").write_text(WEB + '\n[record]\nrequests = 0.5\nflows = "none"\n')
    run = cwnd.run(tmp_path / "web.toml")
    assert run.flows.is_empty()
    assert run.groups == ["short", "long"]
    assert run.summary(by="group")["goodput_bit_s"].null_count() == 0
    run.save(tmp_path / "out")
    report = tmp_path / "report.html"
    write([run], report)
    assert "short" in report.read_text()


def test_a_sweep_with_sampled_rows_has_the_metrics_of_all(cli: Cli, sparse: cwnd.Run):
    cli.write("web.toml", WEB + '\n[record]\nrequests = "none"\nflows = 0.1\n')
    assert cli("sweep", "web.toml", "-o", "swept", "--no-plots").code == 0
    assert cwnd.Run.load(cli.directory / "swept").summary().equals(sparse.summary())


@pytest.mark.parametrize(
    ("written", "said"),
    [('requests = "some"', "all"), ("flows = 1.5", "share"), ("flows = -0.1", "share")],
)
def test_what_is_no_share_is_refused(cli: Cli, written: str, said: str):
    cli.write("web.toml", f"{WEB}\n[record]\n{written}\n")
    answer = cli("run", "web.toml")
    assert answer.code == 2
    assert said in answer.err
