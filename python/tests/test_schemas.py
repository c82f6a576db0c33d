"""Two versions of the file format: notes on their defaults, from the command line and Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import SHORT

import cwnd

if TYPE_CHECKING:
    from conftest import Cli

SECOND = SHORT.replace("schema = 1", "schema = 2")


@pytest.mark.parametrize("command", [["check"], ["run", "--no-plots", "-o", "out"]])
def test_a_file_of_schema_1_has_one_note_with_its_place(cli: Cli, command: list[str]) -> None:
    answer = cli(*command, "short.toml")
    assert answer.code == 0, answer.err
    (told,) = [line for line in answer.err.splitlines() if line.startswith("note")]
    assert told.startswith("note: short.toml:1:10: a file of schema 1")
    assert "write `schema = 2`" in told
    cli.write("second.toml", SECOND)
    assert "note" not in cli(*command, "second.toml").err


def test_quiet_runs_have_no_notes(cli: Cli) -> None:
    answer = cli("run", "short.toml", "--quiet", "--no-plots")
    assert answer.code == 0, answer.err
    assert "note" not in answer.err


def test_check_lists_notes_beside_its_diagnostics(cli: Cli) -> None:
    (found,) = cli("check", "short.toml", "--json").json["files"]
    assert (found["diagnostics"], found["total"]) == ([], 0)
    (note,) = found["notes"]
    assert (note["severity"], note["key"], note["line"]) == ("note", "schema", 1)


def test_a_scenario_built_in_python_may_have_schema_2() -> None:
    run = cwnd.run(
        cwnd.Scenario(
            schema=2,
            run={"duration": "1 s"},
            dumbbell={"rate": "10 Mbit/s"},
            flow={"main": {"rtt": "40 ms"}},
        )
    )
    lines = run.resolved[0].splitlines()
    assert lines[0] == "schema = 2"
    assert {'noise = "path"', 'stack = "linux"', 'preset = "linux"  # of the stack'} <= set(lines)
    rtt_us = run.flows["rtt_base_us"].item()
    assert rtt_us != 40_000
    assert 39_800 <= rtt_us <= 40_200


def test_the_resolved_file_of_schema_2_runs_again_to_the_same_records(cli: Cli) -> None:
    cli.write("second.toml", SECOND.replace("preset", "beta_ecn = 0.8, preset"))
    first = cwnd.run(cli.directory / "second.toml")
    cli.write("again.toml", first.resolved[0])
    again = cwnd.run(cli.directory / "again.toml")
    assert again.resolved[0] == first.resolved[0]
    assert again.manifest.records_sha256 == first.manifest.records_sha256
