"""Error messages and exit codes of the command line."""

from __future__ import annotations

import json
import os
import resource
import time
from typing import TYPE_CHECKING

import pytest
from conftest import SHORT

from cwnd.files import checksums

if TYPE_CHECKING:
    from conftest import Cli


def test_a_file_that_is_not_there_is_an_input_error(cli: Cli):
    answer = cli("run", "nowhere.toml")

    assert answer.code == 2
    assert "nowhere.toml: no such file or directory" in answer.err
    assert answer.out == ""
    assert not (cli.directory / "out").exists()


def test_a_directory_is_no_scenario(cli: Cli):
    answer = cli("run", ".")
    assert answer.code == 2
    assert "is a directory" in answer.err


def test_a_binary_file_is_no_scenario(cli: Cli):
    (cli.directory / "binary.toml").write_bytes(b"\x7fELF\xff\xfe")
    answer = cli("check", "binary.toml")
    assert answer.code == 2
    assert "no UTF-8 text" in answer.err


#: Root may read everything, unless it gives these up.
UNPRIVILEGED = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)


def test_a_file_without_permission_is_an_input_error(cli: Cli):
    (cli.directory / "short.toml").chmod(0)
    answer = cli("run", "short.toml", under=UNPRIVILEGED)
    assert answer.code == 2
    assert "permission denied" in answer.err


def test_an_unknown_key_is_shown_with_its_line_and_the_fix(cli: Cli):
    cli.write("typo.toml", SHORT.replace('preset = "abe"', "beta_enc = 0.8"))

    answer = cli("run", "typo.toml")

    assert answer.code == 2
    assert "typo.toml:15:" in answer.err
    assert "beta_enc" in answer.err
    assert "beta_ecn" in answer.err


def test_all_errors_of_a_file_are_shown_at_once(cli: Cli):
    text = SHORT.replace('"2 s"', "2").replace('"10 Mbit/s"', '"10 mbps"')
    cli.write("wrong.toml", text)

    answer = cli("check", "wrong.toml", "--json")

    assert answer.code == 2
    (found,) = answer.json["files"]
    assert not found["ok"]
    assert [each["line"] for each in found["diagnostics"]] == [5, 9]
    assert {"file", "line", "column", "key", "message", "help", "severity"} <= set(
        found["diagnostics"][0]
    )


def test_a_broken_file_is_broken_toml_in_words(cli: Cli):
    cli.write("broken.toml", "schema = = 1\n")
    answer = cli("run", "broken.toml")
    assert answer.code == 2
    assert "broken.toml:1:" in answer.err


@pytest.mark.parametrize("override", ["nonsense", "=3", "flow.main.rtx=3 ms", "flow.main.rtt=fast"])
def test_a_bad_set_is_a_usage_error(cli: Cli, override: str):
    answer = cli("run", "short.toml", "--set", override)
    assert answer.code == 2
    assert answer.err


def test_a_misspelt_set_is_answered_with_the_right_key(cli: Cli):
    answer = cli("run", "short.toml", "--set", "flow.main.rtr=3 ms")
    assert answer.code == 2
    assert "rtt" in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["runn", "short.toml"],
        ["run"],
        ["run", "short.toml", "--seed", "many"],
        ["run", "short.toml", "--seed", "-1"],
        ["run", "short.toml", "--threads", "0"],
        ["run", "short.toml", "--bogus"],
        ["plot"],
        ["compare", "only-one"],
        ["plot", "short.toml"],
        ["plot", "nowhere"],
        ["compare", ".", "."],
        ["doctor", "--require", "luck"],
    ],
    ids=" ".join,
)
def test_wrong_usage_returns_2_and_one_sentence(cli: Cli, arguments: list[str]):
    answer = cli(*arguments)
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert answer.out == ""


@pytest.mark.parametrize(
    "arguments", [["run", "nowhere.toml"], ["run", "--bogus"], ["plot", "nowhere"], ["bogus"]]
)
def test_json_answers_errors_in_json_too(cli: Cli, arguments: list[str]):
    answer = cli(*arguments, "--json")
    assert answer.code == 2
    assert answer.json["error"]["message"]
    assert answer.err == ""


def test_json_carries_the_diagnostics_of_a_scenario(cli: Cli):
    cli.write("typo.toml", SHORT.replace("rtt =", "rrt ="))
    answer = cli("run", "typo.toml", "--json")
    assert answer.code == 2
    assert any("rrt" in each["message"] for each in answer.json["error"]["diagnostics"])


def test_a_directory_of_other_files_is_never_replaced(cli: Cli):
    home = cli.directory / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")

    answer = cli("run", "short.toml", "-o", "home")

    assert answer.code == 2
    assert "not a cwnd result" in answer.err
    assert [path.name for path in home.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_way_is_an_input_error(cli: Cli):
    cli.write("taken", "text")
    answer = cli("run", "short.toml", "-o", "taken")
    assert answer.code == 2
    assert (cli.directory / "taken").read_text() == "text"


def test_a_file_as_parent_directory_is_said(cli: Cli):
    cli.write("taken", "text")
    answer = cli("run", "short.toml", "-o", "taken/below")
    assert answer.code in {1, 2}
    assert "taken" in answer.err


def test_two_scenarios_of_one_name_do_not_overwrite_each_other(cli: Cli):
    cli.write("twin.toml", SHORT)
    answer = cli("run", "short.toml", "twin.toml")
    assert answer.code == 2
    assert "named `short`" in answer.err
    assert not (cli.directory / "out").exists()


def test_a_full_disk_leaves_the_old_result(cli: Cli):
    assert cli("run", "short.toml", "--no-plots").code == 0
    before = (cli.directory / "out" / "short" / "manifest.json").read_text()

    # No file may grow beyond 2 kB: the first table does not fit.
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    answer = cli("run", "short.toml", "--no-plots", "--seed", 2, preexec_fn=limit)

    assert answer.code == 1
    assert "could not be written" in answer.err
    assert (cli.directory / "out" / "short" / "manifest.json").read_text() == before
    assert [path.name for path in (cli.directory / "out").iterdir()] == ["short"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("flows.parquet", b"PAR1 this is no parquet PAR1"),
        ("series.parquet", b""),
        ("manifest.json", b'{"format": "cwnd-result"'),
        ("manifest.json", b'{"format": "cwnd-result", "format_version": 1}'),
        ("manifest.json", b"[]"),
        ("qdelay.parquet", None),
        ("scenario.toml", None),
    ],
)
def test_a_damaged_result_is_said_to_be_damaged(saved: Cli, file: str, content: bytes | None):
    path = saved.directory / "short" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    answer = saved("plot", "short")

    assert answer.code == 2
    assert file in answer.err


def test_a_result_of_a_newer_cwnd_is_refused(saved: Cli):
    path = saved.directory / "short" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"format_version": 99}))
    checksums.write(path.parent)
    answer = saved("plot", "short")
    assert answer.code == 2
    assert "newer cwnd" in answer.err


def test_a_reader_that_leaves_early_is_no_error_message(cli: Cli):
    process = cli.start("reference")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.wait(10)
    process.stderr.close()


@pytest.mark.real_time
def test_help_is_quick_and_shows_the_exit_codes(cli: Cli):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        answer = cli.process("--help")
        times.append(time.perf_counter() - begin)
    assert answer.code == 0
    assert "3 the machine lacks something" in answer.out
    # 0.2 s on an idle machine.
    assert min(times) < 0.8


@pytest.mark.parametrize(
    "command", ["run", "check", "verify", "plot", "compare", "doctor", "schema", "reference"]
)
def test_every_command_has_help(cli: Cli, command: str):
    answer = cli(command, "--help")
    assert answer.code == 0
    assert "--json" in answer.out
    assert command in answer.out
