"""Results as files of Flent; Flent itself opens and draws them if it is installed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import ROOT

import cwnd

if TYPE_CHECKING:
    from conftest import Cli

#: Flent, of the development tools.
FLENT = Path(sys.executable).with_name("flent")


@pytest.fixture(scope="module")
def rrul(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    """The scenario of the repository, shortened, over two of its queues."""
    text = (ROOT / "scenarios/rrul.toml").read_text()
    for long, short in (("70 s", "14 s"), ("65 s", "12 s"), ('"5 s"', '"2 s"')):
        assert long in text
        text = text.replace(long, short)
    path = tmp_path_factory.mktemp("rrul") / "rrul.toml"
    path.write_text(text)
    return cwnd.run(path)


@pytest.fixture
def exported(cli: Cli, rrul: cwnd.Run) -> Path:
    rrul.save(cli.directory / "rrul", plots=False)
    answer = cli("export", "rrul", 2, "-o", "rrul.flent.gz", "--json")
    assert answer.code == 0, answer.err
    assert answer.json == {"flent": "rrul.flent.gz"}
    return cli.directory / "rrul.flent.gz"


def document(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def test_series_are_what_flows_delivered_and_pings_what_requests_took(
    exported: Path, rrul: cwnd.Run
):
    found = document(exported)
    run_id = rrul.runs["run_id"][2]
    assert found["version"] == 4
    assert found["metadata"]["TEST_PARAMETERS"] == {
        "download_streams": "4",
        "upload_streams": "4",
    }
    times, results = found["x_values"], found["results"]
    assert {len(values) for values in results.values()} == {len(times)}
    flows = rrul.series.filter(pl.col("run_id") == run_id)
    step = times[1] - times[0]
    for way in ("download", "upload"):
        of_way = flows.filter(pl.col("group").cast(pl.String) == way)
        ids = of_way["flow_id"].unique().sort()
        for number, flow in enumerate(ids, 1):
            values = [each or 0.0 for each in results[f"TCP {way} BE::{number}"]]
            delivered = of_way.filter(pl.col("flow_id") == flow)["delivered"]
            assert sum(values) * step == pytest.approx(
                (delivered.max() - delivered.min()) * 8e-6  # type: ignore[operator]
            )
        assert max(each or 0.0 for each in results[f"TCP {way} sum"]) > 3
    # Nothing is under way before the flows start.
    before = [each for t, each in zip(times, results["TCP totals"], strict=True) if t < 2]
    assert set(before) == {None}
    # Flows stop 2 s before the end.
    after = [each for t, each in zip(times, results["TCP totals"], strict=True) if t > 13.5]
    assert set(after) == {None}
    pings = rrul.requests.filter(pl.col("run_id") == run_id).drop_nulls("response_s")
    raw = [each["val"] for name in found["raw_values"] for each in found["raw_values"][name]]
    assert sorted(raw) == pytest.approx(sorted(pings["response_s"] * 1e3))
    idle = [each for t, each in zip(times, results["Ping (ms) avg"], strict=True) if 0.4 < t < 2]
    assert idle == pytest.approx([40] * len(idle), abs=1)


def test_equal_runs_are_equal_files(exported: Path, cli: Cli):
    assert cli("export", "rrul", 2, "-o", "again.flent.gz").code == 0
    assert (cli.directory / "again.flent.gz").read_bytes() == exported.read_bytes()


def test_what_cannot_be_exported_is_said(exported: Path, cli: Cli, short: cwnd.Run):
    del exported
    answer = cli("export", "rrul", "-o", "rrul.json")
    assert (answer.code, "Flent opens files named *.flent.gz" in answer.err) == (2, True)
    (cli.directory / "bare.toml").write_text(
        short.source.replace('sample = "50 ms"', 'sample = "none"')
    )
    assert cli("run", "bare.toml", "-o", "bare", "--no-plots").code == 0
    answer = cli("export", "bare", "-o", "bare.flent.gz")
    assert (answer.code, "`[run] sample` asks for" in answer.err) == (2, True), answer.err


def test_flent_reads_what_was_written(exported: Path):
    file = exported.with_name("read.csv")
    subprocess.run([FLENT, "-i", exported, "-f", "csv", "-o", file], check=True)
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    found = document(exported)
    for name in ("TCP download sum", "TCP upload BE::4", "Ping (ms) UDP BE1"):
        values = [float(row[name]) if row[name] else None for row in rows]
        assert values == pytest.approx(found["results"][name])


@pytest.mark.parametrize("plot", ["all_scaled", "ping_cdf", "totals", "box_totals"])
def test_flent_draws_it(exported: Path, tmp_path: Path, plot: str):
    file = tmp_path / "figure.svg"
    drawn = subprocess.run(
        [FLENT, "-i", exported, "-p", plot, "-o", file],
        check=False,
        capture_output=True,
        text=True,
    )
    assert drawn.returncode == 0, drawn.stderr
    assert "WARNING" not in drawn.stderr
    assert file.read_text().count("<path") > 20
