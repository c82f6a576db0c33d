"""Runs that are stopped: at once, at moments of every long command, and without half a result.

`LONG=1` tries twenty moments of each command, on more.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import CWND, IS_LONG, SHORT, real

import cwnd
from cwnd import _core
from cwnd.running import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Cli


#: Stopping takes a poll of two threads; this leaves room for a busy machine.
STOPPED_S = 3.0


def interrupt(cli: Cli, number: signal.Signals, *arguments: object) -> tuple[int, str]:
    process = cli.start("run", *arguments)
    time.sleep(1.5)
    assert process.poll() is None, process.communicate()
    begin = time.monotonic()
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - begin < STOPPED_S
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
    begin = time.monotonic()
    timer.start()

    with pytest.raises(_core.Cancelled):
        cell.run(control)

    assert 0.2 < time.monotonic() - begin < STOPPED_S
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
    thread.join(STOPPED_S)

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
    assert time.monotonic() - begin < STOPPED_S


MOMENTS = 20 if IS_LONG else 2
AT_ONCE_S = 0.5
#: Flows of a world that takes long to build, to close and to free.
FLOWS = 1_000_000 if IS_LONG else 100_000

CROWD = f"""\
schema = 2
[run]
duration = "2 s"
sample = "none"
[dumbbell]
rate = "10 Gbit/s"
queue = "codel"
[flow.main]
count = {FLOWS}
rtt = "100 ms"
"""
#: All packets are marked: as many events as there can be.
MARKED = """\
schema = 2
[run]
duration = "1000 s"
[dumbbell]
rate = "100 Mbit/s"
queue = { kind = "red", ecn = true, min_th = "1 packets", max_th = "1 packets" }
[flow.main]
count = 200
rtt = "10 ms"
endpoint = { ecn = true }
"""
FAST = SHORT.replace('"10 Mbit/s"', '"500 Mbit/s"').replace('"2 s"', '"60 s"')
CELLS = SHORT.replace('"2 s"', '"20 s"') + "[sweep]\nrepeat = 150\n"
REAL = SHORT.replace("schema = 1", "schema = 2").replace(
    'controller = { kind = "newreno", preset = "abe" }', 'controller = "newreno"'
)


class Room:
    """A folder with all that commands read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        texts = {"crowd": CROWD, "marked": MARKED, "fast": FAST, "cells": CELLS, "real": REAL}
        for name, text in texts.items():
            (folder / f"{name}.toml").write_text(text)
        os.mkfifo(folder / "pipe.toml")
        (folder / "graph.gml").write_text(_graph(380))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [CWND, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def make(self, name: str, *arguments: str) -> None:
        """Runs a command once, for the file that other commands read."""
        if not (self.folder / name).exists():
            process = self.start(*arguments, "-o", name)
            _, said = process.communicate()
            assert process.returncode == 0, said
            os.sync()


def _graph(nodes: int) -> str:
    """A binary tree."""
    edges = [f"edge [ source {i} target {(i - 1) // 2} ]" for i in range(1, nodes)]
    named = [f"node [ id {i} ]" for i in range(nodes)]
    return "\n".join(["graph [", *named, *edges, "]"])


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    folder = tmp_path_factory.mktemp("moments")
    yield Room(folder)
    # Gigabytes, of which pytest would keep three copies.
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Command:
    """A command that takes long."""

    arguments: str
    #: Prepares the files that the command reads.
    before: Callable[[Room], None] | None = None
    #: Time for which it is watched, if it is not to end by itself.
    watched_s: float | None = None


def _crowd(room: Room) -> None:
    room.make("crowded", "run", "crowd.toml")


def _capture(room: Room) -> None:
    room.make("captured", "run", "fast.toml", "--pcap", "all", "--no-plots")


def _cells(room: Room) -> None:
    room.make("swept", "sweep", "cells.toml")


COMMANDS = {
    "run": Command("run crowd.toml -o new"),
    "checked run": Command("run crowd.toml --check -o new", watched_s=2),
    "all marked": Command("run marked.toml -o new", watched_s=2),
    "captured run": Command("run fast.toml --pcap all -o new --no-plots"),
    "run of a pipe": Command("run pipe.toml -o new", watched_s=1),
    "sweep": Command("sweep cells.toml -o new"),
    "report": Command("report crowded -o new.html", _crowd),
    "plot": Command("plot crowded -o new", _crowd),
    "compare": Command("compare crowded crowded", _crowd),
    "verify": Command("verify swept", _cells),
    "query": Command("query swept 'select count(*) from series a, series b, series c'", _cells, 3),
    "infer": Command("infer captured/pcap", _capture),
    "topology": Command("topology import graph.gml -o new.toml"),
    "reproduce": Command("reproduce abe --quick -o new", watched_s=3),
    "run on Linux": Command("run real.toml --on linux -o new"),
    "agree": Command("agree real.toml -o new", watched_s=6),
    "calibration": Command("testbed calibrate"),
}
ON_LINUX = ("run on Linux", "agree", "calibration")


@pytest.mark.real_time
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[real] if name in ON_LINUX else []) for name in COMMANDS]
)
def test_a_command_ends_within_half_a_second(room: Room, name: str) -> None:
    command = COMMANDS[name]
    if command.before is not None:
        command.before(room)
    words = shlex.split(command.arguments)
    if words[0] == "infer":
        words[1:] = [str(file) for file in sorted((room.folder / "captured").rglob("*.pcapng"))]
    whole_s = command.watched_s or _whole_s(room, words)
    late = []
    stopped = 0
    for moment in range(MOMENTS):
        _clear(room)
        number = (signal.SIGINT, signal.SIGTERM)[moment % 2]
        process = room.start(*words)
        writer = _write(room) if "pipe.toml" in words else None
        at_s = max(0.15, whole_s * (moment + 0.5) / MOMENTS)
        try:
            _, said = process.communicate(timeout=at_s)
        except subprocess.TimeoutExpired:
            begun = time.monotonic()
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
            took_s = time.monotonic() - begun
            if process.returncode != 0:  # it may have been at its end
                stopped += 1
                assert process.returncode in (128 + number, -number), said
                assert "internal error" not in said
                assert "Traceback" not in said
            if took_s > AT_ONCE_S:
                late.append(f"{took_s:.2f} s after {at_s:.2f} s: {said[-200:]}")
        else:
            assert process.returncode == 0, said
        if writer is not None:
            writer.kill()
            writer.wait()
    assert not late, late
    assert stopped >= MOMENTS / 2, f"{stopped} of {MOMENTS} moments were before its end"


def _whole_s(room: Room, words: list[str]) -> float:
    _clear(room)
    begun = time.monotonic()
    process = room.start(*words)
    _, said = process.communicate()
    assert process.returncode == 0, said
    return time.monotonic() - begun


def _clear(room: Room) -> None:
    for made in room.folder.glob("new*"):
        if made.is_dir():
            shutil.rmtree(made)
        else:
            made.unlink()
    # What is still to be written delays the next synchronisation of a file.
    os.sync()


def _write(room: Room) -> subprocess.Popen[bytes]:
    """Holds the pipe open and writes nothing."""
    hold = "import sys, time; file = open(sys.argv[1], 'w'); time.sleep(100)"
    return subprocess.Popen([sys.executable, "-c", hold, str(room.folder / "pipe.toml")])
