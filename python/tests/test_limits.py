"""Scenarios that are no files, too large, or wrong in more places than anybody reads."""

from __future__ import annotations

import fcntl
import os
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import SHORT

import cwnd
from cwnd import _core
from cwnd.errors import InputError
from cwnd.results.manifest import Manifest

if TYPE_CHECKING:
    from conftest import Cli

PACKAGE = Path(cwnd.__file__).parent
MIB = 1 << 20


def wrong_steps(count: int) -> str:
    steps = "\n".join(f'  {{ at = {i}, rate = "5 Mbit/s" }},' for i in range(count))
    rate = f'\n[dumbbell.rate]\ninitial = "1 Mbit/s"\nsteps = [\n{steps}\n]\n'
    return SHORT.replace('rate = "10 Mbit/s"\n', "", 1) + rate


@pytest.mark.parametrize("count", [4_000, 100_000])
def test_fifty_errors_are_shown_and_the_rest_is_counted(cli: Cli, count: int):
    cli.write("wrong.toml", wrong_steps(count))

    started = time.monotonic()
    answer = cli("check", "wrong.toml")

    # Most of it is the start of the command. It was over 40 s.
    assert time.monotonic() - started < 10
    assert answer.code == 2
    assert answer.err.count("error: ") == 50
    assert f"{count - 50} more errors are not shown" in answer.err
    assert len(answer.err) < 30_000


def test_json_has_fifty_errors_and_their_number(cli: Cli):
    cli.write("wrong.toml", wrong_steps(4_000))

    (checked,) = cli("check", "wrong.toml", "--json").json["files"]
    error = cli("run", "wrong.toml", "--json").json["error"]

    for found in (checked, error):
        assert (len(found["diagnostics"]), found["total"]) == (50, 4_000)
    assert error["message"] == "4000 problems in the scenario"


def test_warnings_are_counted_beyond_fifty(cli: Cli):
    head, _, flow = SHORT.partition("[flow.main]")
    text = head + "".join(
        f'[flow.f{i}]\nrtt = "40 ms"\nendpoint = {{ ecn = true }}\n' for i in range(60)
    )
    assert flow
    cli.write("many.toml", text.replace('queue = "codel"', 'queue = "fifo"'))

    answer = cli("check", "many.toml")

    assert answer.code == 0
    assert answer.err.count("ECN never acts") == 50
    assert "10 more warnings are not shown" in answer.err


def test_a_scenario_has_a_bound(cli: Cli):
    (cli.directory / "large.toml").write_text("#" * (17 * MIB))
    answer = cli("run", "large.toml")
    assert answer.code == 2
    assert f"large.toml: it is too large: {17 * MIB} bytes, and at most {16 * MIB}" in answer.err


def test_a_trace_has_a_bound(cli: Cli):
    with (cli.directory / "large.trace").open("wb") as file:
        file.truncate(65 * MIB)
    cli.write("traced.toml", SHORT.replace('rate = "10 Mbit/s"', 'trace = "large.trace"'))
    answer = cli("check", "traced.toml")
    assert answer.code == 2
    assert f"it is too large: {65 * MIB} bytes, and at most {64 * MIB} are read" in answer.err


@pytest.mark.parametrize("command", ["run", "check", "sweep"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/dev/zero", "it is a device, not a file"),
        ("pipe", "it is a pipe that nothing is written to"),
    ],
)
def test_what_has_no_end_is_no_scenario(cli: Cli, command: str, name: str, reason: str):
    os.mkfifo(cli.directory / "pipe")
    answer = cli(command, name)
    assert answer.code == 2
    assert f"{name}: {reason}" in answer.err


def test_a_device_is_no_trace(cli: Cli):
    cli.write("traced.toml", SHORT.replace('rate = "10 Mbit/s"', 'trace = "/dev/zero"'))
    answer = cli("check", "traced.toml")
    assert answer.code == 2
    assert "it is a device, not a file" in answer.err


def test_a_pipe_that_somebody_writes_to_is_read(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opened both ways, so that neither end waits for the other; the end comes when it is closed.
    held = os.open(pipe, os.O_RDWR)

    def write() -> None:
        os.write(held, SHORT.encode())
        while fcntl.ioctl(held, termios.FIONREAD, bytes(4)) != bytes(4):
            time.sleep(0.01)
        os.close(held)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert _core.read_text(pipe) == SHORT
    writer.join()


def test_an_override_has_a_bound():
    with pytest.raises(cwnd.ScenarioError, match="at most 1048576 can be given"):
        cwnd.check(cwnd.Scenario(), set={"flow.main.rtt": "x" * (2 * MIB)})


#: A scenario with the syntax that TOML 1.1 adds to 1.0: newlines and a last comma in an inline
#: table, `\x`.
NEWER = (
    SHORT.replace('queue = "codel"', 'queue = {\n  kind = "codel", # as it is\n  ecn = true,\n}')
    + '\n[sweep.axis.rate]\npath = "dumbbell.rate"\nvalues = ["5 Mbit/s", "10 Mbit/s"]\n'
    + 'labels = ["\\x35 Mbit/s", "ten"]\n'
)


def test_one_version_of_toml_works_in_every_command(cli: Cli):
    cli.write("newer.toml", NEWER)
    for command in (
        ("check", "newer.toml", "--set", "flow.main.rtt=30 ms"),
        ("run", "newer.toml", "--set", "flow.main.rtt=30 ms", "--no-plots", "-o", "one"),
        ("run", "newer.toml", "--no-plots", "-o", "two"),
        ("run", "one/scenario.toml", "--no-plots", "-o", "three"),
        ("compare", "one", "two"),
        ("report", "one"),
        ("plot", "one"),
        ("sweep", "newer.toml", "--set", "flow.main.rtt=30 ms", "--no-plots", "-o", "swept"),
    ):
        answer = cli(*command)
        assert answer.code == 0, (command, answer.err)


def test_a_queue_of_a_link_is_read_as_in_a_scenario():
    from cwnd.link import Direction

    section = Direction(queue='{ kind = "pie",\n  ecn = true,\n}').to_section("100 ms", None)
    assert section["queue"] == {"kind": "pie", "ecn": True}
    with pytest.raises(InputError, match=r"--queue '\{ kind = \}': this is not TOML"):
        Direction(queue="{ kind = }").to_section("100 ms", None)


def test_toml_has_one_reader():
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for other in ("tomllib", "tomli", "tomlkit", "import toml"):
            assert f"import {other}\n" not in text, file
            assert f"from {other} " not in text, file


def test_the_reader_gives_what_python_would_write():
    text = 'b = 1\na = [true, 0.5, "x"]\n[t]\nk = { v = -3 }\n'
    assert list(_core.read_toml(text, "a.toml").items()) == [
        ("b", 1),
        ("a", [True, 0.5, "x"]),
        ("t", {"k": {"v": -3}}),
    ]
    with pytest.raises(cwnd.ScenarioError, match=r"a.toml:1:5"):
        _core.read_toml("a = nan", "a.toml")


@pytest.mark.parametrize(
    ("key", "value"),
    [("runs", "1"), ("seeds", [1.5]), ("axes", {"a": 1}), ("warnings", [1]), ("wall_s", None)],
)
def test_a_description_whose_values_are_of_other_kinds_is_damaged(
    tmp_path: Path, key: str, value: object
):
    run = cwnd.run(cwnd.Scenario(run={"duration": "1 s"}, dumbbell=_LINK, flow=_FLOW))
    data = run.manifest.to_json()
    assert Manifest.from_json(data, "m.json") == run.manifest
    with pytest.raises(InputError, match=r"m\.json: damaged"):
        Manifest.from_json({**data, key: value}, "m.json")


_LINK = {"rate": "1 Mbit/s", "queue": "codel"}
_FLOW = {"main": {"rtt": "40 ms"}}
