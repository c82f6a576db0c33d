"""Delays of groups: metrics, SQL, figure, comparison, Linux, and results that have none."""

from __future__ import annotations

import json
import resource
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
import svgs
from conftest import ROOT, real
from test_testbed import valid_run

import cwnd
from cwnd import plots
from cwnd.errors import InputError
from cwnd.files import checksums
from cwnd.results import METRICS, group_table
from cwnd.results.delays import QUANTILES
from cwnd.running import verify

if TYPE_CHECKING:
    from conftest import Cli

#: A call beside downloads; in the second label of the axis the queue isolates flows.
CALL = """
schema = 2
name = "call"

[run]
duration = "12 s"
warmup = "2 s"

[dumbbell]
rate = "10 Mbit/s"

[flow.download]
count = 3
rtt = "40 ms"
controller = "cubic"

[flow.call]
rtt = "40 ms"
workload = { kind = "udp", rate = "80 kbit/s", size = "200 B" }

[sweep]
repeat = 2

[sweep.axis.queue]
path = "dumbbell.queue"
values = ["fifo", "fq-codel"]
"""


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    path = tmp_path_factory.mktemp("call") / "call.toml"
    path.write_text(CALL)
    return cwnd.run(path)


@pytest.fixture
def saved(cli: Cli, call: cwnd.Run) -> Cli:
    call.save(cli.directory / "call", plots=False)
    return cli


def test_metrics_are_those_of_all_packets_of_a_row(call: cwnd.Run):
    for by, keys in (("all", ["run_id"]), ("group", ["run_id", "group"])):
        rows = call.per_run(by=by)  # type: ignore[arg-type]
        rows = rows.with_columns(call.runs["run_id"]) if by == "all" else rows
        delays = call.delays.with_columns(pl.col("group", "what").cast(pl.String))
        for row in rows.iter_rows(named=True):
            mine = delays.filter(*(pl.col(key) == row[key] for key in keys))
            each = {
                kind: part["delay_us"].repeat_by(part["packets"]).explode().sort()
                for (kind,), part in mine.group_by("what")
            }
            for name, (kind, q) in QUANTILES.items():
                if kind not in each:
                    assert row[name] is None
                    continue
                # The least value that a fraction q of the packets does not exceed.
                rank = max(-int(-q * len(each[kind]) // 1), 1)
                assert row[name] == each[kind][rank - 1]
            if "jitter" in each:
                assert row["jitter_us"] == pytest.approx(each["jitter"].mean())
            else:
                assert (row["group"], row["jitter_us"]) == ("download", None)


def test_isolation_is_seen_by_the_call_and_not_by_the_link(call: cwnd.Run):
    names = ["delay_p50_us", "delay_p95_us", "jitter_us"]
    rows = call.summary([*names, "qdelay_p50_us"])
    found = {(row["queue"], row["group"]): row for row in rows.iter_rows(named=True)}
    fifo, isolated = found["fifo", "call"], found["fq-codel", "call"]
    # A FIFO makes all wait alike; a queue for each flow does not make the call wait for downloads.
    assert fifo["delay_p50_us"] == pytest.approx(found["fifo", "*"]["qdelay_p50_us"], rel=0.05)
    assert fifo["delay_p50_us"] > 20_000
    assert all(isolated[name] < 5_000 for name in names)
    assert isolated["delay_p50_us"] < found["fq-codel", "*"]["qdelay_p50_us"] / 3


def test_every_packet_that_arrived_is_in_a_bucket(call: cwnd.Run):
    counts = call.delays.group_by("run_id", "group", "what").agg(pl.col("packets").sum())
    counts = counts.with_columns(pl.col("group", "what").cast(pl.String))
    of_calls = counts.filter(pl.col("group") == "call")
    # A datagram each 20 ms for ten seconds, of which a FIFO may drop some.
    assert (of_calls["packets"] <= 501).all()
    assert of_calls["packets"].max() in {500, 501}
    assert set(of_calls["what"]) == {"queueing", "jitter"}, "nobody answers datagrams"
    assert set(counts["what"]) == {"queueing", "jitter", "round_trip"}


@pytest.mark.parametrize(("group", "names"), [(None, ["download", "call"]), ("call", ["call"])])
def test_the_figure_has_the_distribution_of_each_group(
    call: cwnd.Run, group: str | None, names: list[str]
):
    picture = plots.describe(call, "delay", lines="group", group=group)
    assert [panel.title for panel in picture.panels] == ["fifo", "fq-codel"]
    delays = call.delays.filter(pl.col("what").cast(pl.String) == "queueing")
    for described, panel in zip(picture.panels, svgs.read(picture), strict=True):
        assert [line.label for line in described.lines] == names
        assert len(panel.paths) == len(names)
        for name, (path,) in zip(names, panel.paths.values(), strict=True):
            places = [panel.at(place) for place in path]
            assert all(a[1] <= b[1] for a, b in pairwise(places))
            mine = delays.filter(
                pl.col("queue") == described.title, pl.col("group").cast(pl.String) == name
            ).sort("delay_us")
            for ms in (2.0, 10.0, 50.0):
                part = mine.filter(pl.col("delay_us") <= ms * 1e3)["packets"].sum()
                drawn = max((y for x, y in places if x <= ms), default=0.0)
                assert drawn == pytest.approx(part / mine["packets"].sum(), abs=0.01)


def test_groups_are_drawn_by_default_and_flows_never(call: cwnd.Run, short: cwnd.Run):
    assert "delay" in plots.default_kinds(call)
    assert "delay" not in plots.default_kinds(short), "one group waits as the link says"
    assert len(plots.describe(short, "delay").panels[0].lines) == 1
    with pytest.raises(InputError, match="not for each flow"):
        plots.describe(call, "delay", lines="flow")


def test_more_groups_than_a_panel_has_lines_are_one_curve_that_says_so(tmp_path: Path):
    alone = CALL.partition("[flow.download]")[0]
    flows = (f'[flow.call-{i}]\nrtt = "40 ms"\nworkload = "bulk"\n' for i in range(8))
    (tmp_path / "many.toml").write_text(alone + "\n".join(flows))
    run = cwnd.run(tmp_path / "many.toml", set={"run.duration": "3 s"})
    assert "delay" not in plots.default_kinds(run)
    together = plots.describe(run, "delay")
    assert [line.label for line in together.panels[0].lines] == [None]
    assert together.note == "all 8 groups together"
    for chosen, curves in {"call-3": 1, "*": 1, None: 8}.items():
        lines = "group" if chosen is None else None
        picture = plots.describe(run, "delay", group=chosen, lines=lines)
        assert len(picture.panels[0].lines) == curves
        assert not picture.note


def test_commands_know_the_delays(saved: Cli):
    sql = "select what, sum(packets)::bigint from delays where \"group\" = 'call' group by what"
    assert {kind for kind, _ in saved("query", "call", sql, "--json").json["rows"]} == {
        *("queueing", "jitter")
    }
    drawn = saved("plot", "call", "--kind", "delay", "-o", "figures")
    assert drawn.code == 0, drawn.err
    assert (saved.directory / "figures/delay.svg").exists()
    swept = saved("plot", "call", "--metric", "delay_p95", "--lines", "group", "-o", "figures")
    assert swept.code == 0, swept.err
    page = saved("report", "call", "-o", "page.html")
    assert page.code == 0, page.err
    assert "Queueing delay of groups" in (saved.directory / "page.html").read_text()


def test_the_table_of_groups_has_delays_where_a_group_has_no_rtt(call: cwnd.Run, half: cwnd.Run):
    table = group_table(call)
    assert table is not None
    assert {"delay\np95\nms", "jitter\nmean\nms"} <= set(table.headings)
    of_tcp = group_table(half)
    assert of_tcp is not None
    assert not any(heading.startswith(("delay", "jitter")) for heading in of_tcp.headings)


def test_a_call_that_waits_longer_is_a_regression(saved: Cli, tmp_path: Path):
    for queue in ("fq-codel", "fifo"):
        text = CALL.partition("[sweep.axis")[0].replace('Mbit/s"', f'Mbit/s"\nqueue = "{queue}"', 1)
        (tmp_path / f"{queue}.toml").write_text(text)
        done = saved("run", tmp_path / f"{queue}.toml", "-o", queue, "--no-plots")
        assert done.code == 0, done.err
    limits = ("--fail-if", "delay_p95 > +2 ms")
    assert saved("compare", "fq-codel", "fifo", *limits).code == 1
    assert saved("compare", "fifo", "fq-codel", *limits).code == 0
    lines = saved("compare", "fifo", "fq-codel").out.splitlines()
    of_call = [line for line in lines if " call " in line]
    for metric in ("One-way queueing delay, 95th percentile", "Jitter", "Goodput"):
        assert sum(metric in line for line in of_call) >= 1, metric
    # Without what is zero in both, unless it is asked for.
    assert not any("Timeouts" in line for line in lines)
    assert "Timeouts" in saved("compare", "fifo", "fq-codel", "--metric", "rto_count").out


def test_a_result_without_delays_is_read_all_the_same(saved: Cli):
    place = saved.directory / "call"
    (place / "delays.parquet").unlink()
    manifest = json.loads((place / "manifest.json").read_text())
    del manifest["tables"]["delays"]
    (place / "manifest.json").write_text(json.dumps(manifest))
    checksums.write(place, {})

    run = cwnd.load(place)

    assert run.delays.is_empty()
    assert "queue" in run.delays.columns
    rows = run.summary(["delay_p50", "jitter", "goodput"])
    assert rows["delay_p50_us"].null_count() == rows.height == 6
    assert rows["goodput_bit_s"].null_count() == 0
    assert "delay" not in plots.default_kinds(run)
    assert verify(place, sample=0).sound
    assert saved("query", "call", "select count(*) from flows", "--json").json["rows"] == [[16]]


def test_each_metric_of_delays_is_one_of_flows():
    assert all(METRICS[name].of == "flows" for name in (*QUANTILES, "jitter_us"))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_requests_have_no_latency_besides_their_response_times(share: float):
    only = {"sweep.axis.queue.values": ["fq-codel"], "sweep.axis.queue.labels": ["FQ-CoDel"]}
    run = cwnd.run(
        ROOT / "scenarios" / "rrul.toml",
        set={"run.duration": "8 s", "record.requests": share, **only},
    )
    rows = run.summary(["latency_p95", "delay_p95"])
    found = dict(rows.select("group", "latency_p95_us").iter_rows())
    assert found["ping"] is None, "an ACK of 64 bytes is delayed by 40 ms"
    assert found["download"] < found["*"] < found["upload"] < 200_000


@pytest.mark.parametrize(("rate", "lost"), [("1 Mbit/s", None), ("100 bit/s", 1.0)])
def test_of_datagrams_none_of_which_arrived_all_are_lost_or_on_their_way(
    rate: str, lost: float | None
) -> None:
    start = "9.99 s" if lost is None else "1 s"
    workload = {"kind": "udp", "rate": "1 Mbit/s", "size": "1000 B"}
    asked = cwnd.Scenario(
        schema=2,
        run={"duration": "10 s"},
        dumbbell={"rate": rate, "queue": {"kind": "fifo", "limit": "20 packets"}},
        flow={"main": {"rtt": "40 ms", "start": start, "workload": workload}},
    )
    run = cwnd.run(asked)
    assert run.flows["segments_sent"][0] > 0
    assert run.flows["delivered_bytes"][0] == 0
    assert run.flows["lost_ratio"].to_list() == [lost]


@pytest.mark.parametrize("queue", ["fifo", "codel", "fq-codel"])
def test_lost_datagrams_are_those_that_the_queue_dropped(queue: str) -> None:
    workload = {"kind": "udp", "rate": "15 Mbit/s", "size": "1000 B"}
    run = cwnd.run(
        cwnd.Scenario(
            schema=2,
            run={"duration": "10 s"},
            dumbbell={"rate": "10 Mbit/s", "queue": queue},
            flow={"main": {"rtt": "20 ms"}, "flood": {"rtt": "20 ms", "workload": workload}},
        )
    )
    flood = run.flows.filter(pl.col("group") == "flood").to_dicts()[0]
    tcp = run.flows.filter(pl.col("group") == "main").to_dicts()[0]
    drops = run.links.filter(pl.col("link") == "bottleneck")["dropped_pkts"][0]
    # All that TCP sent again was lost, too. Some datagrams wait at the end, and those dropped
    # behind the last that arrived do not count.
    arrived, ratio = flood["delivered_bytes"] / 972, flood["lost_ratio"]
    lost = arrived * ratio / (1 - ratio)
    assert lost > 2_000
    assert lost + tcp["retrans"] == pytest.approx(drops, abs=0.02 * drops)
    assert lost + arrived <= flood["segments_sent"]
    (share,) = run.summary(["lost_ratio"])["lost_ratio"].filter(
        run.summary(["lost_ratio"])["group"] == "flood"
    )
    assert share == pytest.approx(flood["lost_ratio"])


@pytest.mark.testbed
@real
def test_datagrams_beside_tcp_are_sent_as_in_the_simulator_and_feel_the_same_queue() -> None:
    def group(**workload: str) -> dict[str, object]:
        return {"rtt": "uniform(20 ms, 60 ms)", "workload": {"kind": "udp", **workload}}

    asked = cwnd.Scenario(
        schema=2,
        run={"duration": "6 s", "warmup": "1 s"},
        dumbbell={"rate": "10 Mbit/s", "queue": {"kind": "fifo", "limit": "1 BDP"}},
        flow={
            "main": {"rtt": "40 ms", "controller": "cubic"},
            "call": {"count": 2, "stop": "5.5 s", **group(rate="80 kbit/s", size="200 B")},
            "talk": {
                **group(rate="1 Mbit/s", size="1400 B", arrivals="poisson", on="100 ms", off="1 s"),
                "direction": "reverse",
            },
        },
    )
    run, simulated = valid_run(asked), cwnd.run(asked)
    ours, theirs = (
        each.flows.filter(pl.col("controller") == "none").sort("flow_id")
        for each in (simulated, run)
    )
    assert theirs["group"].to_list() == ["call", "call", "talk"]
    same = ("start_s", "rtt_base_us", "segments_sent", "rto_nth_2", "rtt_p50_us")
    for column in same:
        assert theirs[column].to_list() == ours[column].to_list(), column
    for column in ("delivered_bytes", "throughput_bit_s", "duration_s"):
        assert theirs[column].to_list() == pytest.approx(ours[column].to_list(), rel=0.05), column
    assert theirs["lost_ratio"].to_list() == pytest.approx(ours["lost_ratio"].to_list(), abs=0.05)
    # Nothing is lost but at queues, all arrivals have a size, and few are under way at the end.
    arrived = theirs["delivered_bytes"] / pl.Series([172, 172, 1372])
    lost = theirs["segments_sent"] * theirs["lost_ratio"]
    assert (lost + arrived).to_list() == pytest.approx(theirs["segments_sent"].to_list(), abs=12)
    metrics = ["delay_p50", "delay_p95", "jitter"]
    ours, theirs = (
        each.summary(metrics, by="group").filter(pl.col("group") == "call")
        for each in (simulated, run)
    )
    for metric, tolerance in (("delay_p50_us", 0.1), ("delay_p95_us", 0.1), ("jitter_us", 0.3)):
        assert theirs[metric][0] == pytest.approx(ours[metric][0], rel=tolerance), metric


@pytest.mark.testbed
# Its sender and the router take both cores of a small machine, ahead of all other programs.
@pytest.mark.real_time
@real
def test_datagrams_that_are_due_after_the_end_of_the_run_are_not_sent() -> None:
    overload = {"kind": "udp", "rate": "8 Gbit/s", "size": "200 B"}
    asked = cwnd.Scenario(
        run={"duration": "1 s", "sample": "none"},
        dumbbell={"rate": "2 Mbit/s"},
        flow={"main": {"rtt": "40 ms", "workload": overload}},
    )
    run = cwnd.run(asked, on="linux")
    assert run.flows["segments_sent"][0] < 4_000_000
    assert "datagrams were not sent" in run.runs["facts"][0]


@pytest.mark.testbed
@real
def test_more_flows_than_the_soft_limit_on_open_files_run() -> None:
    datagrams = {"kind": "udp", "rate": "8 kbit/s", "size": "200 B"}
    sources = {"count": 300, "rtt": "40 ms", "spacing": "1 ms", "workload": datagrams}
    asked = cwnd.Scenario(
        run={"duration": "1 s", "sample": "none"},
        dumbbell={"rate": "10 Mbit/s"},
        flow={"main": sources},
    )
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        run = cwnd.run(asked, on="linux")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (run.flows["delivered_bytes"] > 0).all()
