"""Captures of runs on real Linux: what the router counted, tshark and `cwnd infer` find in them."""

from __future__ import annotations

import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import needs_tshark, real, wait_until
from test_pcap import numbers, tshark
from test_testbed import CUBIC, _start, scenario, valid_run

import cwnd
from cwnd.errors import InputError
from cwnd.infer import infer
from cwnd.running import plans

if TYPE_CHECKING:
    from conftest import Cli

pytestmark = pytest.mark.testbed

#: The port of a group's first sender (crates/linux/testbed/src/world.rs).
PORT = 10_000
BOTH = "bottleneck+reverse"


def comments(seen: pl.DataFrame, kind: str) -> dict[str, int]:
    """Counts packets by the text of their comment, for comments that match."""
    said = seen.filter(pl.col("frame.comment").str.contains(kind))
    return dict(said["frame.comment"].value_counts().iter_rows())


@real
@needs_tshark
def test_captures_hold_what_the_router_did_to_each_packet(tmp_path: Path) -> None:
    asked = scenario(duration="4 s", controller=CUBIC, count=3).to_toml()
    file = tmp_path / "real.toml"
    file.write_text(asked.replace('queue = "codel"', 'queue = "codel"\nloss = 0.005'))
    run = valid_run(file, pcap=f"{BOTH},all", pcap_dir=tmp_path / "pcap")
    (place,) = (tmp_path / "pcap").iterdir()
    files = {f.stem: f for f in place.iterdir()}
    assert set(files) == {"bottleneck", "reverse", BOTH}

    fields = (
        *("frame.time_epoch", "frame.interface_name", "frame.interface_description"),
        *("frame.comment", "ip.dsfield.ecn", "frame.len", "frame.cap_len", "tcp.len"),
        *("tcp.srcport", "tcp.options.timestamp.tsval", "ip.id", "_ws.malformed"),
    )
    seen = {name: tshark(each, *fields) for name, each in files.items()}
    # A file with both links has the packets of both, in order of time.
    both = seen[BOTH]
    for name in ("bottleneck", "reverse"):
        assert both.filter(pl.col("frame.interface_name") == name).equals(seen[name])
        ends = {"bottleneck": "left to right", "reverse": "right to left"}[name]
        described = set(seen[name]["frame.interface_description"])
        assert described == {f"link of the testbed from {ends}"}
        counted = run.links.filter(pl.col("link") == name).row(0, named=True)
        dropped = comments(seen[name], "dropped: ")
        assert seen[name].height - sum(dropped.values()) == counted["delivered_pkts"]
        assert sum(dropped.values()) == counted["dropped_pkts"]
    times = numbers(both, "frame.time_epoch").to_list()
    # The time of the run, as in the simulator.
    assert 0 <= times[0] < times[-1] <= 4.2
    assert all(a <= b for a, b in pairwise(times))
    # Marks are in the packets, with their reason beside them.
    forward = seen["bottleneck"]
    assert set(forward["_ws.malformed"]) == {""}
    reasons = run.reasons.filter(pl.col("link") == "bottleneck")
    counted = {tuple(row): n for *row, n in reasons.select("verdict", "reason", "packets").rows()}
    marks = counted["marked", "codel"]
    assert marks > 5
    assert sum(comments(forward, "marked: codel").values()) == marks
    assert forward.filter(pl.col("ip.dsfield.ecn") == "3").height == marks
    lost = {
        name: n for name, n in comments(forward, "dropped: ").items() if name.endswith("link_loss")
    }
    assert sum(lost.values()) == counted["dropped", "link_loss"] > 5
    # Headers only, with the kernel's timestamps.
    data = forward.filter(pl.col("tcp.len") == "1448")
    assert data.height > 1000
    assert set(data["frame.len"]) == {"1500"}
    assert set(data["frame.cap_len"]) == {"52"}
    # When a packet leaves the line, CoDel may drop those behind it at the same instant, and
    # their drops are captured first. Of an instant, in the order they came.
    data = data.sort(numbers(data, "frame.time_epoch"), "ip.id", maintain_order=True)
    for _, flow in data.group_by("tcp.srcport", maintain_order=True):
        assert numbers(flow, "tcp.options.timestamp.tsval").is_sorted()


@real
def test_ctrl_c_keeps_what_was_captured(tmp_path: Path) -> None:
    file = tmp_path / "real.toml"
    file.write_text(scenario(duration="60 s").to_toml(), encoding="utf-8")
    out = tmp_path / "out"
    arguments = [*("run", str(file), "--on", "linux", "--pcap", BOTH), "-o", str(out), "-q"]
    being_written = f".*.partial-*/**/{BOTH}.pcapng"
    for place in (tmp_path / "out-stopped", tmp_path / "out-stopped-2"):
        running = _start(arguments)
        # A packet takes 85 bytes of it.
        wait_until(lambda: any(f.stat().st_size > 200_000 for f in tmp_path.glob(being_written)))
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 128 + signal.SIGINT
        (capture,) = place.glob(f"*/{BOTH}.pcapng")
        found = infer(capture)
        assert found.connections["packets"].sum() > 500
        assert "cut_off" not in found.counts
    # What was begun is no result.
    assert not out.exists()


@real
def test_a_full_disk_stops_a_run_on_linux(tmp_path: Path) -> None:
    file = tmp_path / "real.toml"
    file.write_text(scenario(duration="60 s").to_toml(), encoding="utf-8")
    cell = plans.plan(file).scenario.cell(0)
    began = time.monotonic()
    with pytest.raises(OSError, match="No space left") as error:
        cell.run_on_linux(None, [("/dev/full", ["bottleneck"])], calibrate=False)
    assert error.value.filename == "/dev/full"
    assert time.monotonic() - began < 30


@real
def test_links_that_are_not_there_and_checked_runs_are_refused_by_name(cli: Cli) -> None:
    (cli.directory / "real.toml").write_text(scenario().to_toml(), encoding="utf-8")
    answer = cli("run", "real.toml", "--on", "linux", "--pcap", "access")
    assert answer.code == 2
    assert "no link `access`" in answer.err
    assert "bottleneck, reverse" in answer.err
    with pytest.raises(InputError, match="checked run is the simulator's"):
        cwnd.run(cli.directory / "real.toml", on="linux", check=True)


@real
def test_timeouts_of_linux_under_heavy_loss_are_found_as_the_kernel_counts_them(
    tmp_path: Path,
) -> None:
    # With the delay on the link ACKs are captured as they leave the client, not as they come to
    # the server.
    router = {"delay": "20 ms"}
    asked = scenario(duration="15 s", controller=CUBIC, count=10, router=router).to_toml()
    file = tmp_path / "real.toml"
    file.write_text(
        asked.replace('queue = "codel"', 'queue = "codel"\nloss = 0.1')
        + '\n[sweep]\nrepeat = 2\n[sweep.axis.loss]\npath = "dumbbell.loss"\n'
        "values = [0.1, 0.2, 0.3]\n"
    )
    run = cwnd.run(file, on="linux", pcap=BOTH, pcap_dir=tmp_path / "pcap", threads=6)
    if run.flows["rto_count"].null_count():
        pytest.skip("Linux counts timeouts (tcpi_total_rto) from 6.7 on")
    flows = []
    for (run_id,), there in run.flows.group_by("run_id"):
        (capture,) = (tmp_path / "pcap" / str(run_id)).iterdir()
        found = infer(capture).connections.select(
            pl.col("server_port").cast(pl.Int64).alias("port"),
            pl.col("timeouts").cast(pl.Int64).alias("found"),
        )
        kernel = there.select(
            pl.lit(run_id).alias("run_id"),
            (pl.col("flow_id").cast(pl.Int64) + PORT).alias("port"),
            pl.col("rto_count").cast(pl.Int64).alias("there"),
        )
        flows.append(kernel.join(found, on="port", how="left").fill_null(0))
    every = pl.concat(flows)
    right = every.select(pl.min_horizontal("there", "found").sum()).item()
    # Other losses each time: 18 runs of 20 s had 2,282 timeouts, of which 0.967 were found, and no
    # more. What a run ends in the middle of is not to be seen.
    assert every["there"].sum() > 300
    assert right >= 0.93 * every["there"].sum(), every
    assert right >= 0.98 * every["found"].sum(), every
