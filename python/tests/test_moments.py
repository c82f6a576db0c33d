"""Ctrl-C and SIGTERM at moments of every long command: it ends within half a second.

`LONG=1` tries twenty moments of each, on more.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import CWND, SHORT, real

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What a command takes is a part of what is measured.
pytestmark = pytest.mark.real_time

LONG = bool(os.environ.get("LONG"))
MOMENTS = 20 if LONG else 2
AT_ONCE_S = 0.5
#: Flows of a world that takes long to build, to close and to free.
FLOWS = 1_000_000 if LONG else 100_000

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


def _write(room: Room) -> subprocess.Popen[bytes]:
    """Holds the pipe open and writes nothing."""
    hold = "import sys, time; file = open(sys.argv[1], 'w'); time.sleep(100)"
    return subprocess.Popen([sys.executable, "-c", hold, str(room.folder / "pipe.toml")])
