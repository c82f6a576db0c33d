"""Capture files: where they go, and what tshark, which knows nothing of cwnd, makes of them."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import needs_tshark

import cwnd
from cwnd.running import plans
from cwnd.running.simulating import captures

if TYPE_CHECKING:
    from conftest import Cli

#: The sender is a fast link without delay away from the bottleneck: what passes there is what it
#: sends and receives, to the microsecond that a full packet takes at 10 Gbit/s.
PATH = """\
schema = 1
name = "captured"
run = { duration = "10 s", sample = "50 ms", seed = 3 }

[link.access]
from = "sender"
to = "router"
rate = "10 Gbit/s"
duplex = true

[link.bottleneck]
from = "router"
to = "receiver"
rate = "10 Mbit/s"
delay = "10 ms"

[link.back]
from = "receiver"
to = "router"
rate = "1 Gbit/s"
delay = "10 ms"

[flow.main]
from = "sender"
to = "receiver"
controller = "newreno"
"""
LOSSES = PATH.replace('delay = "10 ms"', 'delay = "10 ms"\nqueue = "fifo"\nloss = 0.003', 1)
#: Marks instead of losses, and an ACK for each segment.
MARKS = (
    PATH.replace('delay = "10 ms"', 'delay = "10 ms"\nqueue = "codel"', 1)
    + "endpoint = { ecn = true, ack_every = 1 }\n"
)
AT_SENDER = "access+access.reverse"

#: tshark's names for a segment that was sent before. It calls one that follows new data within a
#: round-trip time reordered.
AGAIN = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
#: Severities of tshark's expert information (wireshark/epan/proto.h, PI_WARN and PI_ERROR).
WARNING, ERROR = 0x600000, 0x800000


def run(text: str, directory: Path, pcap: str) -> tuple[cwnd.Run, dict[str, Path]]:
    """Runs a scenario; its result, and the capture files by their links."""
    scenario = directory / "captured.toml"
    scenario.write_text(text)
    result = cwnd.run(scenario, pcap=pcap, pcap_dir=directory / "pcap")
    return result, {file.stem: file for file in (directory / "pcap").glob("*/*.pcapng")}


def tshark(file: Path, *fields: str) -> pl.DataFrame:
    """A row for each packet; it fails if tshark has anything to complain about."""
    done = subprocess.run(
        [
            *(
                "tshark",
                "-n",
                "-r",
                file,
                "-T",
                "fields",
                "-E",
                "separator=/t",
                "-E",
                "occurrence=f",
            ),
            *("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"),
            *(part for field in fields for part in ("-e", field)),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    complaints = [line for line in done.stderr.splitlines() if "Running as user" not in line]
    assert complaints == []
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return pl.DataFrame(rows, schema=dict.fromkeys(fields, pl.String), orient="row")


def numbers(frame: pl.DataFrame, field: str) -> pl.Series:
    """The values of a field, where it has one."""
    return frame.filter(pl.col(field) != "")[field].cast(pl.Float64)


@needs_tshark
@pytest.mark.parametrize(
    "endpoint",
    [
        '{ recovery = "sack" }',
        '{ recovery = "newreno" }',
        '{ recovery = "tahoe" }',
        '{ preset = "linux", ecn = true }',
        '{ preset = "ns2" }',
    ],
)
def test_tshark_finds_each_retransmission_that_was_counted(tmp_path: Path, endpoint: str):
    result, files = run(f"{LOSSES}endpoint = {endpoint}\n", tmp_path, AT_SENDER)

    again = [f"tcp.analysis.{kind}" for kind in AGAIN]
    seen = tshark(files[AT_SENDER], *again, "_ws.expert.severity", "_ws.malformed")

    found = seen.filter(pl.any_horizontal(pl.col(name) != "" for name in again))
    counted = result.flows["retrans"].sum()
    assert counted >= 20
    assert found.height == counted
    # Nothing else is worth a warning: an out-of-order segment is the only one that tshark has.
    assert set(seen["_ws.malformed"]) == {""}
    severities = numbers(
        seen.filter(pl.col("tcp.analysis.out_of_order") == ""), "_ws.expert.severity"
    )
    assert (severities < WARNING).all()
    assert (numbers(seen, "_ws.expert.severity") < ERROR).all()


@needs_tshark
def test_tshark_measures_the_round_trip_times_that_were_measured(tmp_path: Path):
    result, files = run(MARKS, tmp_path, AT_SENDER)

    seen = tshark(files[AT_SENDER], "ip.src", "tcp.analysis.ack_rtt", "_ws.expert.severity")

    # The sender acknowledges, too, once: the SYN-ACK.
    heard = seen.filter(pl.col("ip.src") != seen["ip.src"][0])
    rtt_us = 1e6 * numbers(heard, "tcp.analysis.ack_rtt")
    flow = result.flows.row(0, named=True)
    # tshark does not see the packet leave the host but the line: 1.2 µs later for each of a burst
    # of ten.
    burst_us = 12.0
    assert flow["rtt_min_us"] - burst_us <= rtt_us.min() <= flow["rtt_min_us"]
    assert flow["rtt_mean_us"] - burst_us <= rtt_us.mean() <= flow["rtt_mean_us"]
    # Quantiles of ours are those of a histogram, to about a hundredth.
    assert rtt_us.quantile(0.5) == pytest.approx(flow["rtt_p50_us"], rel=0.01)
    assert rtt_us.quantile(0.99) == pytest.approx(flow["rtt_p99_us"], rel=0.01)
    # Without a loss there is nothing to warn of.
    assert (numbers(seen, "_ws.expert.severity") < WARNING).all()


@needs_tshark
def test_tshark_counts_the_bytes_in_flight_that_were_counted(tmp_path: Path):
    result, files = run(MARKS, tmp_path, AT_SENDER)

    seen = tshark(files[AT_SENDER], "frame.time_epoch", "tcp.analysis.bytes_in_flight")

    times = seen["frame.time_epoch"].cast(pl.Float64).to_list()
    in_flight = seen["tcp.analysis.bytes_in_flight"].to_list()
    samples = list(result.series.select("time_s", "bytes_in_flight").iter_rows())
    compared = 0
    frame = 0
    for at, ours in samples:
        while frame + 1 < len(times) and times[frame + 1] <= at:
            frame += 1
        # tshark says it at data packets; a sample may come after an ACK that let no data go.
        if times[frame] <= at and in_flight[frame] != "":
            assert int(in_flight[frame]) == ours, at
            compared += 1
    assert compared > len(samples) / 2


@needs_tshark
def test_tshark_counts_the_marks_and_their_echoes(tmp_path: Path):
    result, files = run(MARKS, tmp_path, f"bottleneck,{AT_SENDER}")

    link = tshark(files["bottleneck"], "frame.time_epoch", "ip.dsfield.ecn", "frame.comment")
    host = tshark(files[AT_SENDER], "ip.src", "tcp.flags.ece", "tcp.flags.cwr", "tcp.flags.syn")

    ce = link.filter(pl.col("ip.dsfield.ecn") == "3")
    reasons = result.reasons.filter(pl.col("link") == "bottleneck", pl.col("reason") == "codel")
    marks = reasons.filter(pl.col("verdict") == "marked")["packets"].sum()
    assert marks > 20
    assert ce.height == marks
    assert set(ce["frame.comment"]) == {"marked: codel"}
    assert set(link.filter(pl.col("ip.dsfield.ecn") != "3")["frame.comment"]) == {""}
    # What left in the last 10 ms was still under way at the end.
    arrived = ce.filter(pl.col("frame.time_epoch").cast(pl.Float64) < 9.99)
    assert arrived.height == result.flows["ce_received"].sum()
    data = host.filter(pl.col("tcp.flags.syn") == "0")
    sender = host["ip.src"][0]
    echoes = data.filter((pl.col("ip.src") != sender) & (pl.col("tcp.flags.ece") == "1"))
    answers = data.filter((pl.col("ip.src") == sender) & (pl.col("tcp.flags.cwr") == "1"))
    assert echoes.height == result.manifest.activity["ece_acks"]
    # One answer is still to be sent if the last echo came at the very end.
    assert answers.height in {result.manifest.activity["ecn_reductions"] - late for late in (0, 1)}
    # RFC 3168 § 6.1.1: ECN-setup SYN and SYN-ACK.
    syns = host.filter(pl.col("tcp.flags.syn") == "1").rows()
    assert [row[1:3] for row in syns] == [("1", "1"), ("1", "0")]


@needs_tshark
def test_tshark_finds_all_checksums_right_and_all_lengths_as_simulated(tmp_path: Path):
    noise = (
        '[flow.noise]\nfrom = "sender"\nto = "receiver"\n'
        'workload = { kind = "udp", rate = "1 Mbit/s", size = "700 B" }\n'
    )
    _, files = run(LOSSES + noise, tmp_path, "all")

    assert set(files) == {"access", "access.reverse", "bottleneck", "back"}
    for name, file in files.items():
        seen = tshark(
            file,
            *("ip.checksum.status", "tcp.checksum.status", "tcp.len", "ip.len", "frame.len"),
            *("udp.length", "frame.time_epoch", "_ws.malformed"),
        )
        assert seen.height > 1000
        assert set(seen["ip.checksum.status"]) == {"1"}  # good
        assert set(seen["_ws.malformed"]) == {""}
        assert seen["ip.len"].equals(seen["frame.len"], check_names=False)
        acks = seen.filter(pl.col("tcp.len") == "0")
        # Of data only the headers are there, too little for tshark to check.
        assert set(acks["tcp.checksum.status"]) == {"1"}
        full = seen.filter(pl.col("tcp.len") == "1448")
        assert set(full["frame.len"]) <= {"1500"}
        if name in {"access", "bottleneck"}:
            datagrams = seen.filter(pl.col("udp.length") != "")
            assert set(datagrams["frame.len"]) == {"700"}
        assert all(a <= b for a, b in pairwise(numbers(seen, "frame.time_epoch").to_list()))


def test_captures_go_into_the_result_a_directory_for_each_run(cli: Cli):
    answer = cli("run", "sweep.toml", "--no-plots", "--pcap", "bottleneck", "--quiet")

    assert answer.code == 0, answer.err
    out = cli.directory / "out" / "sweep"
    runs = pl.read_parquet(out / "runs.parquet")["run_id"].to_list()
    assert len(runs) == 18
    for run_id in runs:
        assert [file.name for file in (out / "pcap" / run_id).iterdir()] == ["bottleneck.pcapng"]
    # Nothing is left beside it. Captures stay while no run is simulated anew.
    assert [path.name for path in out.parent.iterdir()] == ["sweep"]
    assert cli("run", "sweep.toml", "--no-plots", "--quiet").code == 0
    assert (out / "pcap").exists()
    assert cli("run", "sweep.toml", "--no-plots", "--quiet", "--again").code == 0
    assert not (out / "pcap").exists()


def test_captures_are_listed_and_change_nothing(cli: Cli):
    plain = cli("run", "short.toml", "-o", "plain", "--no-plots", "--json").json
    captured = cli("run", "short.toml", "-o", "x", "--no-plots", "--json", "--pcap", "all").json

    files = [Path(file).name for file in captured["results"][0]["pcap"]]
    assert files == ["bottleneck.pcapng", "reverse.pcapng"]
    assert plain["results"][0]["pcap"] == []
    digests = [answer["results"][0]["manifest"]["records_sha256"] for answer in (plain, captured)]
    assert digests[0] == digests[1]


def test_a_link_that_is_not_there_is_named_before_anything_runs(cli: Cli):
    answer = cli("run", "long.toml", "--pcap", "bottelneck")

    assert answer.code == 2
    assert "no link `bottelneck`" in answer.err
    assert "bottleneck, reverse" in answer.err
    assert not (cli.directory / "out").exists()


def test_a_capture_that_cannot_be_written_says_why(cli: Cli):
    (cli.directory / "file").write_text("")

    with pytest.raises(OSError, match="file"):
        cwnd.run(cli.directory / "short.toml", pcap="bottleneck", pcap_dir=cli.directory / "file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_stops_the_run_at_once(scenarios: Path):
    cell = plans.plan(scenarios / "long.toml").scenario.cell(0)

    with pytest.raises(OSError, match="No space left") as error:
        cell.run(None, [("/dev/full", ["bottleneck"])])

    assert error.value.filename == "/dev/full"


def test_links_are_told_apart_whatever_they_are_called(scenarios: Path):
    class Cell:
        links = ("a", "b+c", "d,e", "f/g", "f g")

    def files(*wanted: str) -> dict[str, list[str]]:
        return captures(list(wanted), [Cell()], "there").files

    assert files("a") == {"a.pcapng": ["a"]}
    assert files("b+c", "d,e") == {"b+c.pcapng": ["b+c"], "d_e.pcapng": ["d,e"]}
    assert files("a+f/g,a") == {"a+f_g.pcapng": ["a", "f/g"], "a.pcapng": ["a"]}
    assert files("f/g,f g") == {"f_g.pcapng": ["f/g"], "f_g-2.pcapng": ["f g"]}
    assert len(files("all,a")) == 5


@needs_tshark
@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_tshark_sees_clients_that_open_connections_and_ask(tmp_path: Path, loss: float):
    text = f"""\
schema = 1
name = "asked"
run = {{ duration = "60 s", seed = 3 }}

[link.near]
from = "server"
to = "client"
rate = "20 Mbit/s"
duplex = true

[link.far]
from = "backend"
to = "server"
rate = "10 Mbit/s"
delay = "20 ms"
duplex = true
queue = {{ kind = "fifo", limit = "200 packets" }}
loss = {loss}

[flow.web]
from = "backend"
to = "client"
count = 3
endpoint = "linux"
workload = {{ kind = "web", pages = 2, objects = 2, size = "30 kB", request = "2 kB" }}
"""
    result, files = run(text, tmp_path, "near+near.reverse")
    at_client = files["near+near.reverse"]

    seen = tshark(
        at_client,
        *("ip.src", "tcp.flags.syn", "tcp.flags.ack", "tcp.len"),
        *("tcp.analysis.lost_segment", "tcp.analysis.ack_lost_segment", "_ws.expert.severity"),
    )

    client = seen["ip.src"][0]
    opened = seen.filter((pl.col("tcp.flags.syn") == "True") | (pl.col("tcp.flags.syn") == "1"))
    assert opened["ip.src"][0] == client
    of_client = pl.col("ip.src") == client
    asked = numbers(seen.filter(of_client), "tcp.len").sum()
    answered = numbers(seen.filter(~of_client), "tcp.len").sum()
    assert result.requests["outcome"].to_list() == ["answered"] * 12
    assert result.requests["request_bytes"].sum() == 24_000 <= asked
    assert result.requests["response_bytes"].sum() == 360_000 <= answered
    # Nobody acknowledges what has not been sent, and without loss nothing is worth a note.
    assert set(seen["tcp.analysis.ack_lost_segment"]) == {""}
    if loss == 0.0:
        assert (asked, answered) == (24_000, 360_000)
        assert (numbers(seen, "_ws.expert.severity") < WARNING).all()
        assert set(seen["tcp.analysis.lost_segment"]) == {""}


#: A sender that the routers of a dumbbell steer.
STEERED = """\
schema = 1
run = {{ duration = "6 s", sample = "100 ms", seed = 1 }}
[dumbbell]
rate = "5 Mbit/s"
meter = "{meter}"
reverse_meter = "{meter}"
[flow.main]
rtt = "40 ms"
controller = {controller}
endpoint = {{ {endpoint} }}
"""
EXPERIMENT = "tcp.options.experimental.exid"


@needs_tshark
def test_tshark_reads_identification_marks_and_estimate_of_bmcc(tmp_path: Path):
    text = STEERED.format(
        meter="adpm", controller='"bmcc"', endpoint='ecn = true, echo = "load-every"'
    )
    result, files = run(text, tmp_path, "bottleneck,reverse")
    fields = ("frame.time_epoch", "ip.id", "ip.dsfield.ecn", "tcp.len", EXPERIMENT)
    data = tshark(files["bottleneck"], *fields).filter(pl.col("tcp.len") != "0")
    ids = [int(i, 16) for i in data["ip.id"]]
    # One more with each packet, in the circle of 2^16, but for what is sent again or dropped.
    assert sum((b - a) % 65536 == 1 for a, b in pairwise(ids)) > 0.99 * len(ids)
    ecn = data["ip.dsfield.ecn"].to_list()
    assert {"1", "2"} <= set(ecn)
    series = result.link_series.filter(pl.col("link").cast(pl.String) == "bottleneck")
    factor = dict(zip(series["time_s"], series["load_factor"], strict=True))
    assert max(factor.values()) > 0.9
    acks = tshark(files["reverse"], *fields).filter(pl.col(EXPERIMENT) != "")
    place = [int(p, 0) for p in acks[EXPERIMENT]]
    heard = result.series["load_factor_seen"].drop_nulls()
    assert len(place) > 100
    assert load_of(place[-1]) == pytest.approx(heard[-1], abs=0.05)


def load_of(place: int) -> float:
    """BMCC § II-B: a quarter of the thresholds in (0.15, 0.75), one in (0.75, 1), half above."""
    part = place / 65536
    if part < 0.25:
        return 0.15 + 0.6 * part / 0.25
    if part < 0.5:
        return 0.75 + 0.25 * (part - 0.25) / 0.25
    return 1 + 0.2 * (part - 0.5) / 0.5


@needs_tshark
@pytest.mark.parametrize(("kind", "echo", "exid"), [("xcp", "sum", b"XC"), ("rcp", "last", b"RC")])
def test_tshark_reads_the_headers_of_xcp_and_rcp(tmp_path: Path, kind: str, echo: str, exid: bytes):
    text = STEERED.format(meter=kind, controller=f'"{kind}"', endpoint=f'echo = "{echo}"')
    result, files = run(text, tmp_path, "bottleneck,reverse")
    fields = ("frame.time_epoch", "tcp.len", EXPERIMENT, "tcp.options")
    for file, data in ((files["bottleneck"], True), (files["reverse"], False)):
        seen = tshark(file, *fields).filter((pl.col("tcp.len") != "0") == data)
        assert set(seen[EXPERIMENT]) == {f"0x{exid.hex()}"}
        option = [bytes.fromhex(o).split(b"\xfe", 1)[1] for o in seen["tcp.options"].tail(3)]
        for behind in option:
            fields_of = behind[3:]
            if kind == "rcp":
                # What the link offers, as the time series have it.
                rate = int.from_bytes(fields_of[:6], "big")
                assert rate == pytest.approx(result.series["offered_bit_s"][-1], rel=0.02)
            elif data:
                cwnd_, rtt_us = (int.from_bytes(fields_of[i : i + 4], "big") for i in (0, 4))
                last = result.series.row(-1, named=True)
                assert cwnd_ == pytest.approx(last["snd_cwnd_pkts"] * 1448, rel=0.05)
                assert rtt_us == pytest.approx(last["srtt_us"], rel=0.05)
    known = {"xcp": "feedback_bit_s", "rcp": "offered_bit_s"}[kind]
    assert result.link_series[known].drop_nulls().len() > 0
