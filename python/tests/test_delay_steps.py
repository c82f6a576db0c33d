"""Repeats part of the measurements of the page about the cost of delay noise."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import polars as pl
import pytest

import cwnd
import delay_noise as script
import page_tables

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_of_the_page_is_what_the_scenario_gives():
    noise = tomllib.loads(script.SCENARIO.read_text(encoding="utf-8"))["sweep"]["axis"]["noise"]
    some = {
        f"sweep.axis.noise.{key}": [noise[key][i] for i in (0, 2, 6)]
        for key in ("values", "labels")
    }
    found = script.table(script.measure({**some, "sweep.axis.correlation.values": ["20 ms"]}))

    def cells(table: list[str]) -> list[list[str]]:
        return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]

    head, _, *rows = cells(page_tables.written(script.PAGE, script.TABLE))
    columns = [head.index(name) for name in cells(found)[0]]
    of_the_page = [[row[i] for i in columns] for row in rows if row[1] == "20 ms"]
    assert of_the_page == cells(found)[2:]


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
