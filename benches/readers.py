"""Looks for files whose reading takes more than n log n: hostile ones, of 10⁴ to 10⁶ bytes.

Each file repeats a token of its reader's grammar. Those whose CPU time may grow faster than their
length are read again under valgrind: ten times the bytes may take fifteen times the instructions.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hostile import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile import Hostile

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "examples" / "readers"
IN_PYTHON = ("gml", "graphml", "matrix", "manifest", "activity")
SIZES = (10_000, 100_000, 1_000_000)
#: Bar: instructions of ten times the bytes.
MOST = 15.0
#: Instructions for a byte that are few, whatever they grew from: captures that are out of order are
#: read up to sixteen times, each time they turn out to have one more part.
FEW = 500
#: What is read, in bytes, when nearly all that it takes is to start.
TO_START = 100
#: A step of CPU time that is suspect, if it is so long.
SUSPECT, SUSPECT_S = 12.0, 0.03
#: More is suspect without a step.
SLOW_S = 3.0


@dataclass(frozen=True)
class Growth:
    """What a file took by its length."""

    reader: str
    case: str
    instructions: tuple[int, ...]

    @property
    def step(self) -> float:
        """The largest step."""
        floors = [max(FEW * size, n) for size, n in zip(SIZES, self.instructions, strict=True)]
        return max(n / before for before, n in zip(floors, self.instructions[1:], strict=False))


def read(reader: str, file: Path) -> None:
    """What cwnd does with a file, in Python; a refusal is an answer."""
    from cwnd.errors import CwndError
    from cwnd.results import read as results
    from cwnd.sweeps import activity
    from cwnd.topology import importing, matrix
    from cwnd.topology.graph import Graph, Node

    warnings.simplefilter("ignore")
    with contextlib.suppress(CwndError, UnicodeDecodeError):
        if reader == "matrix":
            nodes = [Node(name, None, None, None) for name in "ab"]
            matrix.read_matrix(file, Graph("graph", nodes, [], [], []))
        elif reader == "manifest":
            results.opened(file.parent)
        elif reader == "activity":
            activity.sessions(file.parent.parent)
        else:
            importing.read_graph(file, importing.Defaults())


def placed(reader: str, folder: Path) -> Path:
    """Where a file has to be to be read."""
    names = {
        "gml": "file.gml",
        "graphml": "file.graphml",
        "manifest": "manifest.json",
        "activity": "activity/20260101T000000Z-1-0000.jsonl",
    }
    file = folder / names.get(reader, "file")
    file.parent.mkdir(exist_ok=True)
    return file


def command(reader: str, file: Path) -> list[str]:
    """A program that reads a file."""
    if reader in IN_PYTHON:
        return [sys.executable, __file__, "--read", reader, str(file)]
    return [str(PROGRAM), reader, str(file)]


def seconds(reader: str, file: Path) -> float:
    """CPU time of reading a file, at most about `SLOW_S`."""
    if reader not in IN_PYTHON:
        child = os.posix_spawn(
            PROGRAM,
            command(reader, file),
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
    else:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                read(reader, file)
                os._exit(0)
            os._exit(1)
    return _waited(child, reader)


def _waited(child: int, reader: str) -> float:
    until = time.monotonic() + 2 * SLOW_S
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.0005)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        sys.exit(f"error: the reader of {reader} ended with {code}")
    return used.ru_utime + used.ru_stime


def suspects(reader: str) -> Iterator[tuple[Hostile, bool]]:
    """The files of a reader, and whether reading one may take more than n log n."""
    with tempfile.TemporaryDirectory() as folder:
        file = placed(reader, Path(folder))
        for case in READERS[reader]():
            took = []
            for size in SIZES[1:]:
                file.write_bytes(case.file(size))
                took.append(seconds(reader, file))
            step = took[-1] / max(took[-2], SUSPECT_S / SUSPECT)
            yield case, step > SUSPECT or took[-1] > SLOW_S


def counted(valgrind: str, reader: str, case: Hostile) -> Growth:
    """The instructions of reading, without those of starting."""
    options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]

    def count(content: bytes) -> int:
        with tempfile.TemporaryDirectory() as folder:
            file = placed(reader, Path(folder))
            file.write_bytes(content)
            whole = [valgrind, *options, *command(reader, file)]
            environment = {**os.environ, "PYTHONHASHSEED": "0"}
            done = subprocess.run(
                whole,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env=environment,
            )
        found = re.search(r"I +refs: +([\d,]+)", done.stderr)
        if done.returncode != 0 or found is None:
            sys.exit(f"error: {reader}, {case}: {done.stderr[-500:]}")
        return int(found[1].replace(",", ""))

    start = count(case.file(TO_START))
    return Growth(reader, str(case), tuple(count(case.file(size)) - start for size in SIZES))


def main() -> int:
    """Reads all files; 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", nargs="*", help=f"some of {', '.join(READERS)}")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read(options.read[0], Path(options.read[1]))
        return 0
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: instructions of readers (valgrind is not installed)")
        return 0
    readers = options.reader or list(READERS)
    with tempfile.TemporaryDirectory() as folder:
        for reader in IN_PYTHON:  # what they import
            file = placed(reader, Path(folder))
            file.write_bytes(b"")
            read(reader, file)
    with ThreadPoolExecutor() as pool:
        looked_at = list(pool.map(lambda reader: list(suspects(reader)), readers))
        found = [
            (reader, case)
            for reader, cases in zip(readers, looked_at, strict=True)
            for case, suspect in cases
            if suspect
        ]
        grown = list(pool.map(lambda each: counted(valgrind, *each), found))
    for reader, cases in zip(readers, looked_at, strict=True):
        print(f"{reader:<10} {len(cases):>5} files, {sum(s for _, s in cases)} counted")
    for growth in grown:
        counts = " ".join(f"{n:>14,}" for n in growth.instructions)
        print(f"{growth.reader:<10} {growth.step:>6.1f} {counts}  {growth.case}")
    worst = [growth for growth in grown if growth.step > MOST]
    for growth in worst:
        print(
            f"error: {growth.reader}: ten times the bytes take {growth.step:.1f} times the"
            f" instructions, {MOST:g} at most: {growth.case}",
            file=sys.stderr,
        )
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
