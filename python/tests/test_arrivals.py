"""Connections that arrive, and recorded delays: loads, lists, files, and what results say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import SHORT

import cwnd
from cwnd.results.unsampled import flow_counts

if TYPE_CHECKING:
    from pathlib import Path


WEB = """
schema = 1
[run]
duration = "100 s"
warmup = "10 s"
sample = "none"
seed = 3
[dumbbell]
rate = "10 Mbit/s"
[flow.web]
rtt = "40 ms"
workload = { kind = "bytes", size = "exponential(30 kB)" }
arrivals = { kind = "poisson", load = 0.5 }
"""


@pytest.fixture
def scenario(tmp_path):
    def write(text, **files):
        for name, content in files.items():
            (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
        path = tmp_path / "web.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_run_says_what_was_offered_and_carried(scenario):
    run = cwnd.run(scenario(WEB))
    (note,) = run.notes
    found = re.fullmatch(
        r"`web` is to load `bottleneck` with 50.0%: (\d+) connections began and offered ([\d.]+)%,"
        r" and the link carried ([\d.]+)% in all \(in this run\)",
        note,
    )
    assert found, note
    connections, offered, carried = (float(text) for text in found.groups())
    (row,) = run.summary().to_dicts()
    # 8 (30 kB + 21.2 segments · 52 B + SYN): a connection every 49.8 ms.
    assert connections == pytest.approx(90 / 0.0498, rel=4 / (90 / 0.0498) ** 0.5)
    assert carried / 100 == pytest.approx(row["utilisation"], abs=0.001)
    # What was offered is carried, but for what began or ended outside of the time that counts.
    assert offered == pytest.approx(carried, abs=1.5)
    payload = row["offered_bit_s"] / 10e6 * 100
    assert payload == pytest.approx(offered * 30_000 / 31_150, rel=0.005)
    resolved = run.resolved[0]
    # In whole nanoseconds, whichever unit shows them.
    assert re.search(r'interval = "(49\.\d+ ms|49\d{3}(\.\d+)? us|49\d{6} ns)"', resolved)
    assert "load = 0.5" in resolved
    assert 'link = "bottleneck"' in resolved


@pytest.mark.parametrize(("stop", "start"), [("40 s", "0 s"), ("none", "60 s"), ("50 s", "20 s")])
def test_the_offered_load_is_that_of_the_time_with_arrivals(scenario, stop, start):
    text = WEB.replace('rtt = "40 ms"', f'rtt = "40 ms"\nstart = "{start}"\nstop = "{stop}"')
    run = cwnd.run(scenario(text), set={"sweep.repeat": 4})
    (note,) = run.notes
    found = re.search(r"(\d+) connections began and offered ([\d.]+)%", note)
    assert found, note
    connections, offered = (float(part) for part in found.groups())
    # Four seeds of 30 s or more have 2,400 transfers: a standard error of 3 %.
    assert offered == pytest.approx(50, rel=0.1)
    assert connections > 2000


def test_flows_without_a_size_offer_nothing(scenario):
    text = re.sub(r"(?m)^(workload|arrivals) = .*\n", "", WEB)
    run = cwnd.run(scenario(text.replace('"100 s"', '"12 s"')))
    assert run.summary()["offered_bit_s"].to_list() == [None]
    assert run.notes == []


def test_a_result_needs_no_file_to_run_again(scenario, tmp_path):
    text = WEB.replace('"exponential(30 kB)"', '"sizes.csv"').replace(
        '"poisson", load = 0.5', '"list", rows = "when.csv"'
    )
    path = scenario(
        text,
        sizes="kB,probability\n1,0\n20,1\n",
        when="time_s,server,client,size_bytes\n12,left,right,4000\n11,,,\n",
    )
    run = cwnd.run(path)
    (again := tmp_path / "elsewhere" / "again.toml").parent.mkdir()
    again.write_text(run.resolved[0], encoding="utf-8")
    assert cwnd.run(again).runs["digest"].to_list() == run.runs["digest"].to_list()
    assert sorted(run.flows["start_s"].to_list()) == [11.0, 12.0]
    assert 4000 in run.flows["size_bytes"].to_list()


def test_a_broken_file_is_named_with_its_line(scenario):
    text = WEB.replace('"exponential(30 kB)"', '"sizes.csv"')
    path = scenario(text, sizes="bytes,probability\n40,0.5\nmany,1\n")
    with pytest.raises(cwnd.ScenarioError, match=r"`sizes.csv` can't be used: its line 3"):
        cwnd.run(path)


def test_the_flows_of_a_group_are_a_mean_over_all_seeds(tmp_path: Path):
    rare = (
        '\n[flow.rare]\nrtt = "20 ms"\nworkload = { kind = "bytes", size = "10 kB" }\n'
        'arrivals = { kind = "poisson", interval = "2 s" }\n[sweep]\nrepeat = 8\n'
    )
    (tmp_path / "rare.toml").write_text(SHORT + rare)
    run = cwnd.run(tmp_path / "rare.toml")
    arrived = run.flows.filter(pl.col("group") == "rare")
    # In some runs none arrived.
    assert 0 < arrived["run_id"].n_unique() < 8
    assert flow_counts(run) == {("main",): 1.0, ("rare",): arrived.height / 8}


def test_recorded_delays_are_a_file_and_repeat(tmp_path: Path):
    (tmp_path / "wifi.csv").write_text("time_s,added_ms\n0,0\n10,20\n")
    file = tmp_path / "recorded.toml"
    file.write_text(
        """\
[run]
duration = "40 s"
sample = "100 ms"
[dumbbell]
rate = "10 Mbit/s"
delay_steps = "wifi.csv"
delay_steps_period = "20 s"
[flow.main]
rtt = "50 ms"
endpoint = { max_window = "1448 B", ack_every = 1, clock = "1 us" }
"""
    )
    run = cwnd.run(file)
    # A window of one segment: 50 ms and 1.2 ms, and what was added when it went.
    seconds = run.series.filter(pl.col("time_s") % 10 > 1)
    for decade, added in enumerate((0.0, 20.0, 0.0, 20.0)):
        part = seconds.filter((pl.col("time_s") / 10).floor() == decade)
        assert part["srtt_us"].to_list()[-1] == pytest.approx(51_200 + 1000 * added, rel=0.01)
    # What is resolved needs no file.
    again = tmp_path / "resolved.toml"
    again.write_text(run.resolved[0])
    (tmp_path / "wifi.csv").unlink()
    assert cwnd.run(again).manifest.records_sha256 == run.manifest.records_sha256
