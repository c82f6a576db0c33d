"""Finds files whose reading takes more than n log n: adversarial ones, of 30 and 300 kB.

Each file repeats a token of its reader's grammar. Files whose CPU time may grow faster than their
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

from adversarial_files import READERS

if TYPE_CHECKING:
    from adversarial_files import AdversarialFile

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "bench"
IN_PYTHON = ("gml", "graphml", "matrix", "manifest", "activity")
SIZES = (30_000, 300_000)
#: Limit: growth of the instructions for ten times the bytes.
MAX_GROWTH = 15.0
#: Captures whose cost is bounded, but reaches its bound only beyond 300 kB, are measured from
#: 10⁶ to 10⁷: 1,024 segments with equal times are compared with each further one, and up to 16
#: parts whose clock steps back are each read from the beginning of the file.
BOUNDED = ("the same time", "backwards in time")
BOUNDED_SIZES = (1_000_000, 10_000_000)
#: Instructions per byte that are few enough, whatever the growth.
FEW_PER_BYTE = 30
#: Variation of the instructions that starting Python takes.
START_VARIES = 30_000_000
#: Size in bytes of a file whose reading takes nearly only the start.
TO_START = 100
#: Growth of CPU time that is suspect, if the time is long enough in each of several measurements.
#: Valgrind takes half a minute for Python.
SUSPECT, SUSPECT_S, SUSPECT_IN_PYTHON_S, TIMES = 15.0, 0.015, 0.1, 3
#: CPU time that is suspect without growth, s.
SLOW_S = 3.0
#: Limit on the time that instructions are counted, s.
COUNTED_S = 240


@dataclass(frozen=True)
class Growth:
    """Instructions of reading a file, by its length."""

    reader: str
    case: str
    sizes: tuple[int, int]
    instructions: tuple[int, int]

    @property
    def step(self) -> float:
        """Returns the growth from the one size to the other."""
        varies = START_VARIES if self.reader in IN_PYTHON else 0
        few, many = self.instructions
        return many / max(FEW_PER_BYTE * self.sizes[0], few + varies)


def read(reader: str, file: Path) -> None:
    """Reads a file as cwnd does in Python; a refusal is a valid result."""
    from cwnd.errors import CwndError
    from cwnd.store import activity
    from cwnd.store import read as results
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
    """Returns the path at which a reader expects a file."""
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
    """Returns the command line of a program that reads a file."""
    if reader in IN_PYTHON:
        return [sys.executable, __file__, "--read", reader, str(file)]
    return [str(PROGRAM), "read", reader, str(file)]


def seconds(reader: str, file: Path) -> float:
    """Returns the CPU time of reading a file; the reader is killed after twice `SLOW_S`."""
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


def suspects(reader: str) -> tuple[int, list[AdversarialFile]]:
    """Returns the number of a reader's files, and those that may take more than n log n.

    Among files that repeat the same token, the slowest represents all.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = placed(reader, Path(folder))
        least_s = SUSPECT_IN_PYTHON_S if reader in IN_PYTHON else SUSPECT_S

        def slowness(case: AdversarialFile) -> float:
            took = []
            for size in (TO_START, *SIZES):
                file.write_bytes(case.file(size))
                took.append(seconds(reader, file))
            start, short, long = took
            step = (long - start) / max(short - start, least_s / SUSPECT)
            return long if step > SUSPECT or long > SLOW_S or str(case) in BOUNDED else 0.0

        cases = list(READERS[reader]())
        found: dict[str, tuple[float, AdversarialFile]] = {}
        for case in cases:
            slow = slowness(case)
            for _ in range(1, TIMES):
                slow = slow and min(slow, slowness(case))
            if slow > found.get(case.repeats, (0.0, case))[0]:
                found[case.repeats] = slow, case
    return len(cases), [case for _, case in found.values()]


def counted(valgrind: str, reader: str, case: AdversarialFile) -> Growth:
    """Counts the instructions of reading, without those of starting; exits if it takes too long."""
    options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]

    def count(content: bytes) -> int:
        with tempfile.TemporaryDirectory() as folder:
            file = placed(reader, Path(folder))
            file.write_bytes(content)
            whole = [valgrind, *options, *command(reader, file)]
            environment = {**os.environ, "PYTHONHASHSEED": "0"}
            try:
                done = subprocess.run(
                    whole,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    env=environment,
                    timeout=COUNTED_S,
                )
            except subprocess.TimeoutExpired:
                sys.exit(f"error: {reader}, {case}: {len(content):,} bytes take too long to count")
        found = re.search(r"I +refs: +([\d,]+)", done.stderr)
        if done.returncode != 0 or found is None:
            sys.exit(f"error: {reader}, {case}: {done.stderr[-500:]}")
        return int(found[1].replace(",", ""))

    start = count(case.file(TO_START))
    sizes = BOUNDED_SIZES if str(case) in BOUNDED else SIZES
    few, many = (count(case.file(size)) - start for size in sizes)
    return Growth(reader, str(case), sizes, (few, many))


def main() -> int:
    """Reads all files; returns 1 if one takes too long."""
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
            file.write_bytes(b"<graphml/>" if reader == "graphml" else b"graph [ ]")
            read(reader, file)
    # One per core: if more ran at once, all would take too long.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        looked_at = dict(zip(readers, pool.map(suspects, readers), strict=True))
        found = [(reader, case) for reader, (_, cases) in looked_at.items() for case in cases]
        grown = list(pool.map(lambda each: counted(valgrind, *each), found))
    for reader, (files, cases) in looked_at.items():
        print(f"{reader:<10} {files:>5} files, {len(cases)} counted")
    for growth in grown:
        counts = " ".join(f"{n:>14,}" for n in growth.instructions)
        print(f"{growth.reader:<10} {growth.step:>6.1f} {counts}  {growth.case}")
    worst = [growth for growth in grown if growth.step > MAX_GROWTH]
    for growth in worst:
        print(
            f"error: {growth.reader}: ten times the bytes take {growth.step:.1f} times the"
            f" instructions, {MAX_GROWTH:g} at most: {growth.case}",
            file=sys.stderr,
        )
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
