"""`cwnd infer --scenario`: what a captured run was, and how its copy runs (closed loop)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import SHORT

import cwnd
from cwnd.errors import InputError
from cwnd.infer import infer, write_scenario

if TYPE_CHECKING:
    from conftest import Cli

#: The bottleneck between two fast links without delay, on which sender and receiver are captured.
PATH = """\
schema = 2
run = {{ duration = "{duration}", seed = 3 }}

[link.access]
from = "sender"
to = "router"
rate = "10 Gbit/s"
duplex = true

[link.bottleneck]
from = "router"
to = "exit"
rate = "{rate}"
delay = "25 ms"
queue = {{ kind = "fifo", limit = "{limit}" }}
loss = {loss}

[link.near]
from = "exit"
to = "receiver"
rate = "10 Gbit/s"
duplex = true

[link.back]
from = "exit"
to = "router"
rate = "1 Gbit/s"
delay = "25 ms"

[flow.main]
from = "sender"
to = "receiver"
controller = "cubic"
"""
AT_SENDER, AT_RECEIVER = "access+access.reverse", "near+near.reverse"
BETWEEN = "bottleneck+back"


def copied(
    text: str, at: str, directory: Path, cli: Cli
) -> tuple[cwnd.Run, cwnd.Run, dict[str, float]]:
    """Runs a scenario, writes another from its capture and runs that; also the values in it."""
    scenario = directory / "original.toml"
    scenario.write_text(text)
    original = cwnd.run(scenario, pcap=at, pcap_dir=directory / "pcap")
    (capture,) = (directory / "pcap").glob("*/*.pcapng")
    answer = cli("infer", capture, "--scenario", directory / "copy.toml", "--json")
    assert answer.code == 0, answer.err
    assert str(directory / "copy.toml") in answer.json["scenario"]
    checked = cli("check", directory / "copy.toml")
    assert checked.code == 0, checked.err
    written = (directory / "copy.toml").read_text()
    values = {
        "rate_mbit_s": float(found(r'\nrate = "([\d.]+) Mbit/s"', written)),
        "buffer_ms": float(found(r'limit = "([\d.]+) ms"', written)),
        "loss": float(found(r"\nloss = ([\d.e-]+)", written)),
        "duration_s": float(found(r'\nduration = "([\d.]+) s"', written)),
        "rtt_ms": float(found(r'\nrtt = "([\d.]+) ms"', written)),
    }
    return original, cwnd.run(directory / "copy.toml"), values


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, f"{pattern} is not in\n{text}"
    return match[1]


@pytest.mark.parametrize("at", [AT_SENDER, BETWEEN, AT_RECEIVER])
def test_a_bulk_flow_fills_the_same_buffer_at_the_same_rate(tmp_path: Path, cli: Cli, at: str):
    text = PATH.format(duration="20 s", rate="10 Mbit/s", limit="60 ms", loss=0)
    original, copy, values = copied(text, at, tmp_path, cli)

    assert values["rate_mbit_s"] == pytest.approx(10, rel=0.02)
    assert values["rtt_ms"] == pytest.approx(50, rel=0.02)
    assert values["buffer_ms"] == pytest.approx(60, rel=0.1)
    assert values["loss"] == 0
    assert values["duration_s"] == pytest.approx(20, rel=0.01)
    for metric, tolerance in (("goodput_bit_s", 0.02), ("rtt_mean_us", 0.05)):
        assert copy.flows[metric][0] == pytest.approx(original.flows[metric][0], rel=tolerance)
    reductions = [run.flows["cwnd_reductions_loss"][0] for run in (original, copy)]
    assert abs(reductions[0] - reductions[1]) <= 1


def test_short_transfers_arrive_at_the_same_times_and_take_as_long(tmp_path: Path, cli: Cli):
    text = PATH.format(duration="30 s", rate="20 Mbit/s", limit="100 ms", loss=0)
    text = text.partition("[flow.main]")[0]
    for name, delay in (("near-by", "1 ms"), ("middle", "10 ms"), ("far", "40 ms")):
        text += f"""
[link.{name}]
from = "{name}"
to = "router"
rate = "10 Gbit/s"
delay = "{delay}"
duplex = true

[flow.{name}]
from = "{name}"
to = "receiver"
workload = {{ kind = "poisson", interval = "150 ms", size = "pareto(1.2, 30 kB)" }}
"""
    original, copy, values = copied(text, AT_RECEIVER, tmp_path, cli)

    assert values["rate_mbit_s"] == pytest.approx(20, rel=0.05)
    begun, again = (run.flows.sort("start_s") for run in (original, copy))
    assert begun.height > 500
    # Data of those at the very end did not arrive.
    assert begun.height - again.height <= 10
    pairs = begun.join(again, on="size_bytes", suffix="_again").filter(
        pl.len().over("flow_id") == 1, pl.len().over("flow_id_again") == 1
    )
    assert pairs.height > 0.9 * again.height
    rtts = pl.col("rtt_base_us_again") / pl.col("rtt_base_us") - 1
    assert pairs.select(rtts.abs().quantile(0.9)).item() < 0.05
    late = pl.col("start_s_again") - pl.col("start_s")
    assert pairs.select((late - late.median()).abs().quantile(0.9)).item() < 0.02
    for q in (0.25, 0.5, 0.9):
        took, takes = (flows["fct_s"].drop_nulls().quantile(q) for flows in (begun, again))
        assert takes == pytest.approx(took, rel=0.1), q


def test_transfers_that_met_only_a_queue_have_the_round_trip_time_of_their_hosts(
    tmp_path: Path, cli: Cli
):
    text = PATH.format(duration="20 s", rate="10 Mbit/s", limit="60 ms", loss=0)
    # Noise gives each flow hosts of its own.
    text = text.replace("seed = 3", 'seed = 3, noise = "none"')
    text += """
[flow.short]
from = "sender"
to = "receiver"
count = 15
start = "2 s"
spacing = "1 s"
workload = { kind = "bytes", size = "20 kB" }
"""
    original, copy, _ = copied(text, AT_RECEIVER, tmp_path, cli)

    rtts = re.findall(r'\nrtt = "([\d.]+) ms"', (tmp_path / "copy.toml").read_text())
    assert [float(rtt) for rtt in rtts] == pytest.approx([50, 50], rel=0.02)
    before, after = (
        run.flows.filter(pl.col("size_bytes") == 20_000).sort("start_s") for run in (original, copy)
    )
    assert (before["start_s"] - after["start_s"]).abs().max() < 0.1
    took = before["fct_s"].median()
    assert after["fct_s"].median() == pytest.approx(took, rel=0.15)


def test_random_losses_are_not_those_of_a_full_queue(tmp_path: Path, cli: Cli):
    text = PATH.format(duration="60 s", rate="20 Mbit/s", limit="100 ms", loss=0.01)
    text += "count = 3\n"
    original, copy, values = copied(text, AT_RECEIVER, tmp_path, cli)

    assert values["loss"] == pytest.approx(0.01, rel=0.15)
    assert values["rtt_ms"] == pytest.approx(50, rel=0.02)
    assert copy.flows.height == 3
    goodputs = [run.flows["goodput_bit_s"].sum() for run in (original, copy)]
    assert goodputs[1] == pytest.approx(goodputs[0], rel=0.1)
    ratios = [
        run.flows["retrans"].sum() / run.flows["segments_sent"].sum() for run in (original, copy)
    ]
    assert ratios[1] == pytest.approx(ratios[0], rel=0.15)


def test_marks_and_the_way_back_are_in_the_scenario(tmp_path: Path, cli: Cli):
    text = PATH.format(duration="10 s", rate="10 Mbit/s", limit="60 ms", loss=0)
    text = text.replace('queue = { kind = "fifo", limit = "60 ms" }', 'queue = "codel"')
    text += """\
endpoint = { ecn = true }

[flow.uploads]
from = "receiver"
to = "sender"
workload = { kind = "poisson", interval = "1 s", size = "20 kB" }
"""
    (tmp_path / "both.toml").write_text(text)
    original = cwnd.run(tmp_path / "both.toml", pcap=AT_RECEIVER, pcap_dir=tmp_path)
    (capture,) = tmp_path.glob("*/*.pcapng")
    written = tmp_path / "copy.toml"
    seen = infer(capture, path=True)
    files = write_scenario(seen, written, capture.name)

    without = seen.capture.connections - seen.shares[0].connections
    assert without > 5
    note = f"{without} of {seen.capture.connections} connections without data of their server"
    assert any(said.startswith(note) for said in seen.notes())
    assert 'queue = "codel"' in written.read_text()
    copy = cwnd.run(written)
    assert copy.flows.filter(pl.col("group") == "bulk-0")["ce_received"].sum() > 0
    uploads = copy.flows.filter(pl.col("group").cast(pl.String).str.starts_with("transfers"))
    truth = original.flows.filter(pl.col("group") == "uploads")
    assert abs(uploads.height - truth.height) <= 1
    assert 'direction = "reverse"' in written.read_text()
    assert [file.name for file in files][-1] == "copy.toml"


@pytest.mark.parametrize("at", [AT_SENDER, AT_RECEIVER])
def test_a_queue_that_marks_is_known_on_both_sides_of_it(tmp_path: Path, at: str):
    text = PATH.format(duration="20 s", rate="10 Mbit/s", limit="60 ms", loss=0)
    text = text.replace('queue = { kind = "fifo", limit = "60 ms" }', 'queue = "codel"')
    (tmp_path / "one.toml").write_text(text + "endpoint = { ecn = true }\n")
    original = cwnd.run(tmp_path / "one.toml", pcap=at, pcap_dir=tmp_path)
    (capture,) = tmp_path.glob("*/*.pcapng")
    seen = infer(capture, path=True)
    write_scenario(seen, tmp_path / "copy.toml", capture.name)

    # Data before the queue have no marks, but their echoes, and the answers to these, pass.
    marks = original.flows["ce_received"].sum()
    assert seen.capture.ce_packets == (marks if at == AT_RECEIVER else 0)
    assert seen.capture.ect_packets > 10_000
    assert seen.capture.ece_packets > marks > 10
    assert marks / 2 < seen.capture.cwr_packets <= marks
    copy = cwnd.run(tmp_path / "copy.toml")
    for metric, tolerance in (("goodput_bit_s", 0.05), ("rtt_mean_us", 0.05)):
        assert copy.flows[metric][0] == pytest.approx(original.flows[metric][0], rel=tolerance)
    assert copy.flows["cwnd_reductions_loss"].sum() == 0
    said = "No packet was marked here" if at == AT_SENDER else "packets were marked"
    assert said in (tmp_path / "copy.toml").read_text()


def test_a_scenario_runs_whatever_the_names_are(tmp_path: Path, cli: Cli):
    scenario = tmp_path / "one.toml"
    scenario.write_text(PATH.format(duration="1 s", rate="10 Mbit/s", limit="20 ms", loss="0.0"))
    cwnd.run(scenario, pcap=AT_RECEIVER, pcap_dir=tmp_path)
    (capture,) = tmp_path.glob("*/*.pcapng")
    raw = Path(os.fsdecode(b"a\r\x01\xff.pcapng"))
    (cli.directory / raw).write_bytes(capture.read_bytes())

    name = 'q"x\\2.toml'
    found = cli("infer", raw, "--scenario", name, "-o", "out", "--connection", "0")
    assert found.code == 0, found.err
    checked = cli("check", name)
    assert checked.code == 0, checked.err
    for refused in (b"a\xff.toml", b"a\n.toml"):
        answer = cli("infer", raw, "--scenario", os.fsdecode(refused))
        assert answer.code == 2
        assert "take another" in " ".join(answer.err.split())


def test_what_gives_no_scenario_says_why(tmp_path: Path, cli: Cli):
    scenario = tmp_path / "one.toml"
    scenario.write_text(SHORT.replace('duration = "2 s"', 'duration = "30 ms"'))
    cwnd.run(scenario, pcap="bottleneck+reverse", pcap_dir=tmp_path)
    (capture,) = tmp_path.glob("*/*.pcapng")

    for name, said in {"new.txt": "ends with .toml", "one.toml": "is there already"}.items():
        answer = cli("infer", capture, "--scenario", tmp_path / name)
        assert answer.code == 2
        assert said in " ".join(answer.err.split())
    with pytest.raises(InputError, match="no rate can be estimated"):
        write_scenario(infer(capture, path=True), tmp_path / "new.toml", "a capture")
    assert not (tmp_path / "new.toml").exists()
