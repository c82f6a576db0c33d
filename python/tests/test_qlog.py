"""Logs of senders in qlog: what they count, where they go, and what has none."""

from __future__ import annotations

import json
import resource
from collections import Counter
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import cwnd
from cwnd.running import plans

if TYPE_CHECKING:
    from conftest import Cli


#: Two flows lose packets in a short queue, and now and then on the line, one of them at random.
LOSSES = """\
schema = 2
name = "logged"
run = { duration = "20 s", sample = "50 ms", seed = 3, noise = "path" }

[dumbbell]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "fifo", limit = "1 BDP" }
loss = 0.01

[flow.main]
count = 2
rtt = "40 ms"
stack = "STACK"

[flow.noise]
rtt = "40 ms"
workload = { kind = "udp", rate = "100 kbit/s", size = "500 B" }
"""
MARKS = LOSSES.replace('"fifo", limit = "1 BDP"', '"codel"').replace("loss = 0.01\n", "")

#: Linux undoes reductions that this causes.
REORDERING = 'reorder = 0.05\nreorder_delay = "10 ms"'
#: Value of an ssthresh that was finite before.
INFINITE = 2**64 - 1

Event = dict[str, Any]


def logs(directory: Path) -> dict[str, list[Event]]:
    """The records of each log but its header, by the name of its file."""
    files = sorted(directory.glob("*/*.sqlog"))
    return {file.stem: records(file)[1:] for file in files}


def records(file: Path) -> list[Event]:
    first, *texts = file.read_text().split("\x1e")
    assert first == ""
    assert all(text.endswith("}\n") for text in texts)
    return [json.loads(text) for text in texts]


def simulate(text: str, tmp_path: Path, **settings: str) -> tuple[cwnd.Run, dict[str, list[Event]]]:
    """Runs a scenario; its result, and its logs."""
    file = tmp_path / "logged.toml"
    file.write_text(text)
    run = cwnd.run(file, set=settings, qlog="main", qlog_dir=tmp_path / "qlog")
    return run, logs(tmp_path / "qlog")


def named(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["name"] == name]


def data_sent(events: list[Event]) -> list[tuple[int, int, int]]:
    """Number, first byte and end of each packet with data."""
    sent = [event["data"] for event in named(events, "transport:packet_sent")]
    return [
        (data["header"]["packet_number"], frame["offset"], frame["offset"] + frame["length"])
        for data in sent
        for frame in data.get("frames", ())
    ]


def retransmissions(packets: list[tuple[int, int, int]]) -> int:
    count = top = 0
    for _, start, end in packets:
        count += start < top
        top = max(top, end)
    return count


def acknowledged(events: list[Event]) -> list[int]:
    frames = [
        frame
        for event in named(events, "transport:packet_received")
        for frame in event["data"]["frames"]
    ]
    return [
        number
        for frame in frames
        for first, last in frame.get("acked_ranges", ())
        for number in range(first, last + 1)
    ]


@pytest.mark.parametrize("stack", ["quic", "linux", "rfc6675", "freebsd"])
def test_packets_and_losses_are_those_that_the_run_counted(stack: str, tmp_path: Path):
    run, by_file = simulate(LOSSES.replace("STACK", stack), tmp_path)

    flows = run.flows.filter(pl.col("group") == "main")
    assert set(by_file) == {"main-0", "main-1"}
    for flow in flows.iter_rows(named=True):
        events = by_file[f"main-{flow['flow_id']}"]
        packets = data_sent(events)
        assert len(packets) == flow["segments_sent"]
        assert retransmissions(packets) == flow["retrans"]
        assert flow["retrans"] > 20
        lost = named(events, "recovery:packet_lost")
        # What a timeout declares lost needs no retransmission if it arrived; losses found at the
        # end still wait for theirs.
        beyond = flow["rto_count"] * 50 + 3
        assert 0 <= len(lost) - flow["retrans"] <= beyond
        assert [event["time"] for event in events] == sorted(event["time"] for event in events)


@pytest.mark.parametrize("stack", ["quic", "linux", "rfc6675", "freebsd"])
@pytest.mark.parametrize("loss", [0.0, 0.01, 0.05])
def test_in_flight_is_what_was_sent_and_neither_acknowledged_nor_lost(
    stack: str, loss: float, tmp_path: Path
):
    text = LOSSES.replace("STACK", stack).replace("0.01", str(loss))
    _, by_file = simulate(text, tmp_path)

    for events in by_file.values():
        in_flight: dict[int, int] = {}
        known = updates = 0
        for event in events:
            data = event["data"]
            match event["name"]:
                case "transport:packet_sent":
                    # QUIC counts packets, TCP their payload.
                    count = "length" if stack == "quic" else "payload_length"
                    in_flight[data["header"]["packet_number"]] = data["raw"][count]
                case "transport:packet_received":
                    for number in acknowledged([event]):
                        in_flight.pop(number, 0)
                case "recovery:packet_lost":
                    del in_flight[data["header"]["packet_number"]]
                case "recovery:metrics_updated":
                    known = data.get("bytes_in_flight", known)
                    assert known == sum(in_flight.values())
                    updates += 1
        assert updates > 500


@pytest.mark.parametrize("stack", ["quic", "linux", "rfc6675", "freebsd"])
@pytest.mark.parametrize("line", ["loss = 0.01", REORDERING])
def test_metrics_are_those_of_the_series_at_each_sample(stack: str, line: str, tmp_path: Path):
    text = LOSSES.replace("STACK", stack).replace("loss = 0.01", line)
    run, by_file = simulate(text, tmp_path)

    for name, events in by_file.items():
        number = int(name.removeprefix("main-"))
        series = run.series.filter(pl.col("flow_id") == number)
        updates = iter([*named(events, "recovery:metrics_updated"), {"time": float("inf")}])
        update, metrics = next(updates), {}
        wrong, compared = 0, 0
        for row in series.iter_rows(named=True):
            while update["time"] <= 1000 * row["time_s"]:
                metrics |= update["data"]
                update = next(updates)
            if not metrics or update["time"] <= 1000 * row["time_s"] + 1e-6:
                continue
            compared += 1
            unit = 1472 if stack == "quic" else 1448
            expected = [
                row["snd_cwnd_pkts"] * unit,
                row["bytes_in_flight"],
                (row["srtt_us"] or 0) / 1000,
                (row["snd_ssthresh_pkts"] or inf) * unit,
            ]
            seen = [
                metrics["congestion_window"],
                metrics["bytes_in_flight"],
                metrics.get("smoothed_rtt", 0),
                inf if metrics.get("ssthresh") == INFINITE else metrics.get("ssthresh", inf),
            ]
            wrong += seen != pytest.approx(expected, rel=1e-5, abs=1e-3)
        assert compared > 300
        assert wrong == 0


@pytest.mark.parametrize("stack", ["quic", "linux"])
def test_marks_are_counted_in_the_acks_and_lead_into_recovery(stack: str, tmp_path: Path):
    text = MARKS.replace('stack = "STACK"', f'stack = "{stack}"\nendpoint = {{ ecn = true }}')
    run, by_file = simulate(text, tmp_path, **{"run.duration": "60 s"})

    for flow in run.flows.filter(pl.col("group") == "main").iter_rows(named=True):
        events = by_file[f"main-{flow['flow_id']}"]
        states = named(events, "recovery:congestion_state_updated")
        triggers = Counter(event["data"].get("trigger") for event in states)
        assert triggers["ECN"] == flow["cwnd_reductions_ecn"] > 5
        for before, after in pairwise(states):
            assert after["data"]["old"] == before["data"]["new"]
        counts = [
            frame["ce"]
            for event in named(events, "transport:packet_received")
            for frame in event["data"]["frames"]
            if "ce" in frame
        ]
        if stack != "quic":
            # The ECN-echo of TCP is no count.
            assert not counts
            continue
        assert counts == sorted(counts)
        # The last marks are reported by ACKs under way.
        assert 0 <= flow["ce_received"] - counts[-1] <= 2


def test_bbr_without_ssthresh_is_never_in_slow_start(tmp_path: Path):
    text = LOSSES.replace('"STACK"', '"linux"\ncontroller = "bbr"')
    _, by_file = simulate(text, tmp_path)

    for events in by_file.values():
        states = named(events, "recovery:congestion_state_updated")
        assert {"congestion_avoidance", "recovery"} <= {state["data"]["new"] for state in states}
        assert "slow_start" not in {state["data"]["new"] for state in states}


def test_syns_are_lost_or_acknowledged(tmp_path: Path):
    text = LOSSES.replace("STACK", "linux").replace("0.01", "0.6").replace("count = 2", "count = 9")
    _, by_file = simulate(text, tmp_path)

    repeated = answered = 0
    for events in by_file.values():
        headers = [event["data"]["header"] for event in named(events, "transport:packet_sent")]
        syns = [each["packet_number"] for each in headers if each["packet_type"] == "initial"]
        lost = [
            event["data"]["header"]["packet_number"]
            for event in named(events, "recovery:packet_lost")
            if event["data"]["trigger"] == "pto_expired"
        ]
        assert lost[: len(syns) - 1] == syns[:-1]
        repeated += len(syns) > 1
        for event in named(events, "transport:packet_received"):
            if event["data"]["header"]["packet_type"] == "initial":
                answered += 1
                assert event["data"]["frames"][0]["acked_ranges"] == [[syns[-1], syns[-1]]]
    assert repeated > 1
    assert answered > 1


def test_a_timeout_loses_what_it_sends_again(tmp_path: Path):
    text = LOSSES.replace("STACK", "rfc6675").replace("0.01", "0.2")
    run, by_file = simulate(text, tmp_path)

    assert run.flows["rto_count"].sum() > 10
    for events in by_file.values():
        lost = named(events, "recovery:packet_lost")
        triggers = Counter(event["data"]["trigger"] for event in lost)
        assert triggers["pto_expired"] > 5
        counts = [
            event["data"]["pto_count"]
            for event in named(events, "recovery:metrics_updated")
            if "pto_count" in event["data"]
        ]
        assert max(counts) >= 2


def test_each_connection_that_arrives_has_a_file(tmp_path: Path):
    text = LOSSES.replace("count = 2\n", "").replace(
        'stack = "STACK"',
        """stack = "linux"
workload = { kind = "poisson", size = "20 kB", interval = "100 ms" }""",
    )
    run, by_file = simulate(text, tmp_path)

    flows = run.flows.filter(pl.col("group") == "main")
    assert flows.height > 100
    assert set(by_file) == {f"main-{number}" for number in flows["flow_id"]}
    for flow in flows.iter_rows(named=True):
        packets = data_sent(by_file[f"main-{flow['flow_id']}"])
        assert len(packets) == flow["segments_sent"]


def test_a_server_has_the_acks_that_requests_carry(tmp_path: Path):
    text = LOSSES.replace("count = 2\n", "").replace(
        'stack = "STACK"',
        """stack = "linux"
workload = { kind = "web", interval = "50 ms", size = "pareto(1.2, 7 kB)" }""",
    )
    run, by_file = simulate(text, tmp_path)

    flow = run.flows.filter(pl.col("group") == "main").row(0, named=True)
    (file,) = (tmp_path / "qlog").glob(f"*/main-{flow['flow_id']}.sqlog")
    assert records(file)[0]["trace"]["vantage_point"]["type"] == "server"
    events = by_file[file.stem]
    packets = data_sent(events)
    assert len(packets) == flow["segments_sent"]
    lost = named(events, "recovery:packet_lost")
    assert 0 <= len(packets) - len(lost) - len(acknowledged(events)) < 50


def test_logs_go_into_the_result_and_change_nothing(cli: Cli):
    plain = cli("run", "short.toml", "-o", "plain", "--no-plots", "--json").json
    twice = [
        cli("run", "short.toml", "-o", name, "--no-plots", "--json", "--qlog", "all").json
        for name in ("one", "other")
    ]

    results = [answer["results"][0] for answer in (plain, *twice)]
    assert len({result["manifest"]["records_sha256"] for result in results}) == 1
    assert plain["results"][0]["qlog"] == []
    one, other = ([*(cli.directory / name / "qlog").glob("*/*")] for name in ("one", "other"))
    assert one
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]
    directory = Path(twice[0]["results"][0]["qlog"][0])
    assert cli.directory / directory == one[0].parent


def test_groups_without_senders_and_real_kernels_are_refused(cli: Cli):
    (cli.directory / "logged.toml").write_text(LOSSES.replace("STACK", "linux"))

    missing = cli("run", "logged.toml", "--qlog", "mian")
    datagrams = cli("run", "logged.toml", "--qlog", "noise")
    linux = cli("run", "logged.toml", "--qlog", "main", "--on", "linux")
    checked = cli("run", "logged.toml", "--qlog", "main", "--check")

    for answer, text in [
        (missing, "no flow group `mian` of connections to log; there are main, or `all` of them"),
        (datagrams, "no flow group `noise` of connections"),
        (linux, "only simulated senders have logs"),
        (checked, "a checked run is two runs at once"),
    ]:
        assert answer.code == 2
        assert text in " ".join(answer.err.split())
    assert not (cli.directory / "out").exists()


def test_all_groups_are_at_least_one(cli: Cli):
    sweep = """
[sweep.axis.load]
path = "flow.main.workload"
values = ["bulk", { kind = "udp", rate = "1 Mbit/s", size = "500 B" }]
"""
    text = LOSSES.replace('stack = "STACK"\n', "").replace("count = 2\n", "") + sweep
    (cli.directory / "logged.toml").write_text(text)

    answer = cli("run", "logged.toml", "--qlog", "all")

    assert answer.code == 2
    assert "no flow group `all` of connections to log; none is in all runs" in " ".join(
        answer.err.split()
    )
    assert not (cli.directory / "out").exists()


def test_too_many_open_logs_say_how_to_raise_the_limit(cli: Cli):
    text = LOSSES.replace("STACK", "linux").replace("count = 2", "count = 200")
    (cli.directory / "logged.toml").write_text(text)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    answer = cli("run", "logged.toml", "--no-plots", "--qlog", "main", preexec_fn=limited)

    assert answer.code == 1
    assert "too many open files (`ulimit -n` raises their number)" in " ".join(answer.err.split())


def test_a_log_that_cannot_be_written_says_why(tmp_path: Path):
    file = tmp_path / "logged.toml"
    file.write_text(LOSSES.replace("STACK", "quic"))
    cell = plans.plan(file).scenario.cell(0)

    with pytest.raises(OSError, match="No such file") as error:
        cell.run(qlog=(tmp_path / "nowhere", [("main", "main")]))

    assert error.value.filename == str(tmp_path / "nowhere")
