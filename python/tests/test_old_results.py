"""Results of earlier versions: `data/v1` has one directory of each kind that version 1 wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from conftest import Cli

import cwnd
from cwnd.running import verify

OLD = Path(__file__).parent / "data" / "v1"


@pytest.fixture(params=["run", "sweep"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD / request.param, tmp_path / "old"))


def test_every_command_that_reads_takes_them(old: Path, cli: Cli):
    assert cli("cell", old, 0).out.startswith('schema = 1\nname = "old"\n')
    runs = cwnd.load(old).manifest.runs
    asked = cli("query", old, "select count(*) as n from runs", "--json")
    assert asked.json["rows"] == [[runs]]
    for command in (
        ("report", old),
        ("plot", old, "--kind", "timeseries"),
        ("compare", old, old),
        ("verify", old, "--sample", 0),
    ):
        answer = cli(*command)
        assert answer.code == 0, answer.err
        assert "warning" not in answer.err


def test_columns_of_links_are_rows_of_reasons(old: Path):
    run = cwnd.load(old)
    reasons = run.reasons
    assert reasons.columns[-5:] == ["link", "verdict", "reason", "packets", "total_packets"]
    for row in run.links.iter_rows(named=True):
        of = (pl.col("run_id") == row["run_id"], pl.col("link") == row["link"])
        for verdict in ("dropped", "marked"):
            mine = reasons.filter(*of, pl.col("verdict") == verdict)
            assert mine["packets"].sum() == row[f"{verdict}_pkts"]
        assert row["drops_overlimit"] == reasons.filter(*of, reason="overlimit")["packets"].sum()
    assert reasons["packets"].sum() > 0


@pytest.mark.parametrize(
    ("kind", "table"), [("link", "links"), ("link", "qdelay"), ("infer", "silences")]
)
def test_tables_of_other_commands_are_asked_with_a_warning(kind: str, table: str, cli: Cli):
    answer = cli("query", OLD / kind, f"select count(*) as n from {table}", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["rows"][0][0] > 0
    assert "warning: " in answer.err
    assert "written before results had checksums" in answer.err


def test_what_has_no_hashes_is_not_verified(cli: Cli):
    for kind in ("link", "infer", "agreement"):
        answer = cli("verify", OLD / kind, "--sample", 0)
        assert answer.code == 1
        assert "SHA256SUMS: missing, as in what older versions wrote" in answer.out


def test_they_are_compared_with_each_other(cli: Cli):
    answer = cli("compare", OLD / "run", OLD / "sweep", "--json")
    assert answer.json["identical"] is True
    assert answer.json["changes"] == []


def test_status_takes_an_old_sweep(cli: Cli):
    assert cli("status", OLD / "sweep", "--json").json["done"] == 2


def test_an_old_run_is_written_anew_with_what_is_known_of_it(tmp_path: Path):
    old = cwnd.load(OLD / "run")

    new = cwnd.load(old.save(tmp_path / "new", plots=False))

    assert list(new.resolved) == list(old.resolved)
    assert new.manifest == old.manifest
    assert json.loads((tmp_path / "new/manifest.json").read_text())["format_version"] == 2
    assert verify(tmp_path / "new").sound
    assert not (tmp_path / "new" / "cells").exists()


def test_an_old_run_is_replaced_by_a_new_one(cli: Cli, tmp_path: Path):
    old = shutil.copytree(OLD / "run", tmp_path / "old")
    (old / "notes.md").write_text("mine")

    answer = cli("run", OLD / "run" / "scenario.toml", "-o", old, "--no-plots")

    assert answer.code == 0, answer.err
    assert not (old / "cells").exists()
    assert (old / "notes.md").read_text() == "mine"
    assert cwnd.load(old).manifest.engine == cwnd.run(old / "scenario.toml").manifest.engine
