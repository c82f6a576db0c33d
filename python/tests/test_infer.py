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
from cwnd.infer import CONNECTIONS, FIGURE, SILENCES, SUMMARY, infer, picture

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


def test_the_command_prints_shares_beside_the_papers(cli: Cli, losses: tuple[cwnd.Run, Path]):
    answer = cli("infer", losses[1])

    assert answer.code == 0, answer.err
    assert "with evidence" in answer.out
    assert "in the paper, § 2.4" in answer.out
    assert "8.0 %" in answer.out
    assert "52.0 %" in answer.out


def test_tables_summary_and_figure_are_written(cli: Cli, losses: tuple[cwnd.Run, Path]):
    answer = cli("infer", losses[1], "--out", "found", "--json")

    assert answer.code == 0, answer.err
    out = cli.directory / "found"
    assert {file.name for file in out.iterdir()} == {CONNECTIONS, SILENCES, SUMMARY, FIGURE}
    assert json.loads((out / SUMMARY).read_text()) == answer.json
    connections = pl.read_parquet(out / CONNECTIONS)
    silences = pl.read_parquet(out / SILENCES)
    assert connections.height == 10
    assert silences.filter(pl.col("kind") == "timeout")["timeouts"].sum() > 100
    assert answer.json["timeouts"] == connections["timeouts"].sum()
    assert answer.json["shares"][1]["connections"] == 10
    assert "<svg" in (out / FIGURE).read_text()
    # Again into the same place, but nowhere else.
    assert cli("infer", losses[1], "--out", "found").code == 0
    refused = cli("infer", losses[1], "--out", ".")
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
    assert both["counts"]["duplicates"] == one["counts"]["tcp_segments"]
    assert both["timeouts"] == one["timeouts"]


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

    assert answer.code == 1
    assert "nowhere.pcap: no such file" in answer.err


def test_a_capture_that_is_cut_off_is_read_as_far_as_it_goes(
    cli: Cli, losses: tuple[cwnd.Run, Path]
):
    content = losses[1].read_bytes()
    (cli.directory / "cut.pcapng").write_bytes(content[: len(content) // 2 + 1])
    answer = cli("infer", "cut.pcapng")

    assert answer.code == 0
    assert "1 files that end within a packet" in answer.out


def test_reading_stops_when_it_is_interrupted(losses: tuple[cwnd.Run, Path]):
    def interrupt(_fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        infer([losses[1]] * 50, on_progress=interrupt)
    with pytest.raises(InputError, match="which capture"):
        infer([])


def test_the_figure_compares_with_doubling_and_with_none(losses: tuple[cwnd.Run, Path]):
    described = picture(infer(losses[1]))

    assert described is not None
    doubled, constant, seen = described.panels[0].lines
    assert list(doubled.y)[:2] == [1, 3]
    assert list(constant.y)[:2] == [1, 2]
    # The simulator's senders double.
    for x, y in zip(seen.x, seen.y, strict=True):
        assert y == pytest.approx(2**x - 1, rel=0.1)
