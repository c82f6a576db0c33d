"""Runs that are stopped: at once, and without half a result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

import cwnd
from cwnd import _core
from cwnd.running import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

#: Stopping takes a poll of two threads; this leaves room for a busy machine.
AT_ONCE_S = 3.0


def interrupt(cli: Cli, number: signal.Signals, *arguments: object) -> tuple[int, str]:
    process = cli.start("run", *arguments)
    time.sleep(1.5)
    assert process.poll() is None, process.communicate()
    begin = time.monotonic()
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - begin < AT_ONCE_S
    assert "Traceback" not in err
    return process.returncode, err


def test_ctrl_c_stops_a_run_at_once_and_writes_nothing(cli: Cli):
    code, err = interrupt(cli, signal.SIGINT, "long.toml")

    assert code == 130
    assert "interrupted; nothing was written" in err
    assert not (cli.directory / "out").exists()


def test_ctrl_c_keeps_the_result_that_was_there(cli: Cli):
    assert cli("run", "short.toml", "-o", "result", "--no-plots").code == 0
    before = (cli.directory / "result" / "manifest.json").read_bytes()

    code, _ = interrupt(cli, signal.SIGINT, "long.toml", "-o", "result", "--force")

    assert code == 130
    assert (cli.directory / "result" / "manifest.json").read_bytes() == before
    hidden = [path.name for path in cli.directory.iterdir() if path.name.startswith(".")]
    assert hidden == []


def test_ctrl_c_stops_all_cells_of_a_sweep(cli: Cli):
    cli.write("many.toml", (cli.directory / "long.toml").read_text() + "\n[sweep]\nrepeat = 50\n")

    code, _ = interrupt(cli, signal.SIGINT, "many.toml", "--json")

    assert code == 130


def test_sigterm_stops_a_run_as_ctrl_c_does(cli: Cli):
    code, err = interrupt(cli, signal.SIGTERM, "long.toml")

    assert code == 128 + signal.SIGTERM
    assert "nothing was written" in err
    assert not (cli.directory / "out").exists()


#: Writes into a result directory and is killed before the directory is complete.
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from cwnd.files.atomic import atomic_directory
with atomic_directory(Path(sys.argv[1])) as place:
    (place / "manifest.json").write_text("half of a manif")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_that_is_killed_leaves_the_old_result_and_the_next_one_cleans_up(cli: Cli):
    assert cli("run", "short.toml", "-o", "result", "--no-plots").code == 0
    before = (cli.directory / "result" / "manifest.json").read_bytes()

    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WRITER, cli.directory / "result"], check=False
    )

    assert killed.returncode == -signal.SIGKILL
    assert (cli.directory / "result" / "manifest.json").read_bytes() == before
    # The directory and its lock; the next one cleans up, whatever it writes there.
    assert len(list(cli.directory.glob(".result.partial-*"))) == 2
    assert cli("run", "short.toml", "-o", "elsewhere", "--no-plots").code == 0
    assert list(cli.directory.glob(".result.partial-*")) == []


def test_a_cell_is_stopped_from_another_thread(scenarios: Path):
    text = (scenarios / "long.toml").read_text()
    (cell,) = _core.parse(text, name="long.toml").cells
    control = _core.Control()
    timer = threading.Timer(0.3, control.cancel)
    timer.start()
    begin = time.monotonic()

    with pytest.raises(_core.Cancelled):
        cell.run(control)

    assert 0.2 < time.monotonic() - begin < AT_ONCE_S
    assert 0 < control.fraction < 1


def test_the_simulator_lets_other_threads_run(scenarios: Path):
    text = (scenarios / "long.toml").read_text()
    (cell,) = _core.parse(text, name="long.toml").cells
    control = _core.Control()
    stopped = []

    def simulate() -> None:
        with pytest.raises(_core.Cancelled):
            cell.run(control)
        stopped.append(True)

    thread = threading.Thread(target=simulate)
    thread.start()
    ticks = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        time.sleep(0.01)
        ticks += 1
    control.cancel()
    thread.join(AT_ONCE_S)

    # With the interpreter locked this thread would not have woken at all.
    assert ticks > 10
    assert stopped == [True]


def test_a_failing_progress_function_stops_the_run(scenarios: Path):
    def fail(now: Progress) -> None:
        assert 0 <= now.fraction <= 1
        assert now.done == 0
        raise RuntimeError("enough")

    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        cwnd.run(scenarios / "long.toml", progress=fail)
    assert time.monotonic() - begin < AT_ONCE_S
