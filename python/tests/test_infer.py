"""`cwnd infer`: captures of the simulator's, read back; tshark judges what it can."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import CWND, ROOT, needs_tshark

import cwnd
from cwnd.errors import InputError
from cwnd.infer import FIGURE, SUMMARY, infer, picture

if TYPE_CHECKING:
    from conftest import Cli

#: The last link has no delay: what passes there is what the receiver sends and receives.
LOSSES = ROOT / "tests/suite/at_receiver.toml"
AT_RECEIVER = "near+near.reverse"


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> tuple[cwnd.Run, Path]:
    """A result, and its capture at the receiver."""
    directory = tmp_path_factory.mktemp("losses")
    result = cwnd.run(LOSSES, pcap=AT_RECEIVER, pcap_dir=directory)
    (capture,) = directory.glob("*/*.pcapng")
    return result, capture


def test_timeouts_are_those_of_the_simulator(losses: tuple[cwnd.Run, Path]):
    result, capture = losses
    found = infer(capture)

    truth = dict(result.flows.select("flow_id", "rto_count").iter_rows())
    inferred = found.connections.select(
        pl.col("server_port") - 49152, pl.col("timeouts") + pl.col("syn_timeouts")
    )
    counted = sum(truth.values())
    assert counted > 100
    # What nobody could see: timeouts when the run ended, lost SYNs of the far end, and data whose
    # loss delayed the handshake.
    right = sum(min(truth[flow], count) for flow, count in inferred.iter_rows())
    said = inferred[:, 1].sum()
    assert right / said > 0.98
    assert right / counted > 0.9
    assert found.shares[1].connections == 10
    assert set(found.backoff()) <= {"doubled", "unclear"}


@needs_tshark
def test_tshark_counts_the_same_segments_that_came_again_or_late(losses: tuple[cwnd.Run, Path]):
    _, capture = losses
    again = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
    wanted = " or ".join(f"tcp.analysis.{kind}" for kind in again)
    done = subprocess.run(
        ["tshark", "-n", "-r", capture, "-Y", f"ip.dst == 10.0.0.3 and ({wanted})"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    counted = infer(capture).connections.select("filled", "repeated").sum_horizontal().sum()
    assert counted > 500
    # tshark calls a SYN that came again a retransmission, too.
    syns = infer(capture).connections["syn_timeouts"].sum()
    assert len(done.stdout.splitlines()) == counted + syns


def test_the_captures_own_summary_comes_first(cli: Cli, losses: tuple[cwnd.Run, Path]):
    result, capture = losses
    answer = cli("infer", capture)

    assert answer.code == 0, answer.err
    rows = [line.split("  ")[0].strip() for line in answer.out.splitlines() if line.strip()]
    order = ["TCP packets", "throughput", "RTT to servers", "retransmissions", "ECN"]
    places = [rows.index(name) for name in (*order, "by gaps alone", "with evidence")]
    assert places == sorted(places)
    assert "in the paper" not in answer.out

    summary = infer(capture).capture
    assert summary.connections == 10
    assert summary.one_direction == 0
    assert summary.span_s == pytest.approx(40, abs=0.5)
    # Goodput counts bytes once, and the SYN's round trip is in its time.
    assert summary.throughput_bit_s is not None
    goodput = result.flows["goodput_bit_s"].sum()
    assert summary.throughput_bit_s == pytest.approx(goodput, rel=0.02)
    # The bottleneck's 50 ms and what its transmission takes.
    assert summary.rtt_ms is not None
    assert 50.5 < summary.rtt_ms[0] < 52
    connections = infer(capture).connections
    again = connections.select("filled", "repeated").sum_horizontal().sum()
    assert summary.retransmissions == again
    assert summary.ecn_connections == summary.ce_packets == 0


def test_ecn_of_a_capture_is_counted(tmp_path: Path):
    settings = {
        "link.bottleneck.queue": "codel",
        "link.bottleneck.loss": 0,
        "flow.main.endpoint.ecn": True,
    }
    result = cwnd.run(LOSSES, set=settings, pcap=AT_RECEIVER, pcap_dir=tmp_path)
    (capture,) = tmp_path.glob("*/*.pcapng")
    summary = infer(capture).capture

    assert summary.ecn_connections == 10
    assert summary.ce_packets == result.flows["ce_received"].sum() > 0
    assert summary.ece_packets > 0
    # A sender that heard of a mark says so once.
    assert summary.cwr_packets > 0


def test_a_capture_of_uploads_is_said_to_be_one(tmp_path: Path):
    # The link has no delay: the receiver is the end that is farther away.
    settings = {"run.duration": "5 s", "run.warmup": "1 s"}
    scenario = ROOT / "scenarios/fifo-one-flow.toml"
    cwnd.run(scenario, set=settings, pcap="bottleneck+reverse", pcap_dir=tmp_path)
    (capture,) = tmp_path.glob("*/*.pcapng")
    sent, dropped = infer(capture).notes()

    assert sent.startswith("100% of the data go from clients to servers")
    assert dropped.endswith("packets dropped by the link, according to comments")


def test_tables_summary_and_figure_are_written(cli: Cli, losses: tuple[cwnd.Run, Path]):
    answer = cli("infer", losses[1], "--output", "found", "--json")

    assert answer.code == 0, answer.err
    out = cli.directory / "found"
    assert {file.name for file in out.iterdir()} == {
        *("connections.parquet", "silences.parquet", SUMMARY, FIGURE),
        *("manifest.json", "SHA256SUMS"),
    }
    assert json.loads((out / SUMMARY).read_text()) == answer.json
    connections = pl.read_parquet(out / "connections.parquet")
    silences = pl.read_parquet(out / "silences.parquet")
    assert connections.height == 10
    assert silences.filter(pl.col("kind") == "timeout")["timeouts"].sum() > 100
    assert answer.json["timeouts"] == connections["timeouts"].sum()
    assert answer.json["shares"][1]["connections"] == 10
    assert "<svg" in (out / FIGURE).read_text()
    # Again into the same place, but nowhere else.
    assert cli("infer", losses[1], "--output", "found").code == 0
    refused = cli("infer", losses[1], "-o", ".")
    assert refused.code == 2
    assert "holds something else" in refused.err


def test_several_files_patterns_and_standard_input_are_read(
    cli: Cli, losses: tuple[cwnd.Run, Path]
):
    content = losses[1].read_bytes()
    (cli.directory / "a.pcapng").write_bytes(content)
    (cli.directory / "b.pcapng").write_bytes(gzip.compress(content, 1))

    both = cli("infer", "*.pcapng", "--json").json
    piped = subprocess.run(
        [CWND, "infer", "-", "--json"], input=content, capture_output=True, check=True, timeout=60
    )
    one = cli("infer", "a.pcapng", "--json").json
    assert json.loads(piped.stdout) == one
    # Merged by time, each packet is there twice.
    assert both["counts"]["duplicates"] == one["capture"]["packets"]
    assert both["capture"] == one["capture"]
    assert both["timeouts"] == one["timeouts"]
    assert both["notes"][0] == "2 files were merged by time"
    assert cli("infer", "a.pcapng", "./b.pcapng", "--json").json == both


def test_repairs_are_said_with_their_counts(cli: Cli, losses: tuple[cwnd.Run, Path]):
    content = losses[1].read_bytes()
    clean = infer(losses[1])
    # Sections of pcapng may follow one another in a file: here the second begins anew.
    (cli.directory / "twice.pcapng").write_bytes(content + content)
    twice = infer(cli.directory / "twice.pcapng")

    assert twice.connections.drop("file").equals(clean.connections.drop("file"))
    assert twice.silences.equals(clean.silences)
    said = " ".join(cli("infer", "twice.pcapng").out.split())
    packets = clean.counts["tcp_segments"]
    assert f"{packets} packets captured more than once: only the first copy counts" in said
    assert "1 time a file goes back in time: its parts were merged by time" in said


def test_graphs_of_another_capture_are_removed(cli: Cli, losses: tuple[cwnd.Run, Path]):
    def graphs(capture: Path, number: int | None) -> set[str]:
        graph = () if number is None else ("--connection", number)
        done = cli("infer", capture, "-o", "found", *graph)
        assert done.code == 0, done.err
        return {file.stem for file in (cli.directory / "found").glob("*-*.*g")}

    assert graphs(losses[1], 0) == {"connection-0"}
    assert graphs(losses[1], 3) == {"connection-0", "connection-3"}
    cut = cli.directory / "cut.pcapng"
    content = losses[1].read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    assert graphs(cut, 1) == {"connection-1"}
    assert graphs(losses[1], None) == set()


def test_limits_may_be_larger_than_any_capture(cli: Cli, losses: tuple[cwnd.Run, Path]):
    usual = cli("infer", losses[1], "--json").json
    limits = ("--connections", 10**20, "--idle", 1e300)
    assert cli("infer", losses[1], *limits, "--json").json == usual


def test_what_cannot_be_repaired_is_refused(cli: Cli, losses: tuple[cwnd.Run, Path]):
    content = losses[1].read_bytes()
    piped = subprocess.run(
        [CWND, "infer", "-"], input=content + content, capture_output=True, timeout=60, check=False
    )
    assert piped.returncode == 2
    assert "save it to a file" in " ".join(piped.stderr.decode().split())

    cwnd.run(LOSSES, set={"run.duration": "5 s"}, pcap="near", pcap_dir=cli.directory)
    answer = cli("infer", *cli.directory.glob("*/near.pcapng"))
    assert answer.code == 2
    assert "capture both directions" in " ".join(answer.err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["text.txt"], "text.txt: neither pcap nor pcapng"),
        (["empty.pcap"], "empty.pcap: empty"),
        (["*.nothing"], "no file matches *.nothing"),
        (["text.txt", "--connections", "0"], "--connections 0"),
        (["text.txt", "--idle", "0"], "--idle 0"),
    ],
)
def test_what_is_no_capture_is_named(cli: Cli, arguments: list[str], said: str):
    cli.write("text.txt", "to whom it may concern\n")
    cli.write("empty.pcap", "")
    answer = cli("infer", *arguments)

    assert answer.code == 2
    assert said in answer.err


def test_a_file_that_is_not_there_is_named(cli: Cli):
    answer = cli("infer", "nowhere.pcap")

    assert answer.code == 2
    assert "nowhere.pcap: no such file" in answer.err


def test_a_word_that_begins_with_hyphens_is_an_option_or_the_name_of_a_file(
    cli: Cli, losses: tuple[cwnd.Run, Path]
):
    for words in (["--bogus", losses[1]], [losses[1], "--out", "found"], [losses[1], "-x"]):
        answer = cli("infer", *words)
        assert answer.code == 2
        assert "unknown option" in answer.err
    assert not (cli.directory / "found").exists()
    (cli.directory / "--x.pcapng").write_bytes(losses[1].read_bytes())
    assert cli("infer", "-o", "found", "--", "--x.pcapng").code == 0


def test_a_capture_that_is_cut_off_is_read_as_far_as_it_goes(
    cli: Cli, losses: tuple[cwnd.Run, Path]
):
    content = losses[1].read_bytes()
    (cli.directory / "cut.pcapng").write_bytes(content[: len(content) // 2 + 1])
    answer = cli("infer", "cut.pcapng")

    assert answer.code == 0
    assert "1 file cut off within a packet" in answer.out


def test_reading_stops_when_it_is_interrupted(losses: tuple[cwnd.Run, Path]):
    def interrupt(_fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        infer([losses[1]] * 50, on_progress=interrupt)
    with pytest.raises(InputError, match="which capture"):
        infer([])


def test_the_figure_compares_with_doubling_and_with_none(losses: tuple[cwnd.Run, Path]):
    described = picture(infer(losses[1]).silences)

    assert described is not None
    doubled, constant, seen = described.panels[0].lines
    assert list(doubled.y)[:2] == [1, 3]
    assert list(constant.y)[:2] == [1, 2]
    # The simulator's senders double.
    for x, y in zip(seen.x, seen.y, strict=True):
        assert y == pytest.approx(2**x - 1, rel=0.1)
