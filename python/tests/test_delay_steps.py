"""Recorded delays of a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import cwnd

if TYPE_CHECKING:
    from pathlib import Path


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
