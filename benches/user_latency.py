"""Measures the time that users wait: the program's start, sweeps on all cores, very short runs.

Every measurement is a whole `cwnd` process as users run it, including files and, without
`--no-plots`, figures. Rows run in turn, so that a slow moment of the machine does not affect only
one of them, and comparisons are within a turn. The last column is the number of cores that other
programs kept busy meanwhile, which a sweep could not use.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SCENARIOS = Path(__file__).resolve().parent / "scenarios"
#: Environment of users, in which Python caches compiled modules.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
REPEATS = 5
#: Repeats of the sweeps.
LONG_REPEATS = 7
#: `ru_maxrss` counts in KiB on Linux and in bytes on macOS.
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
#: Limits for the start, s.
HELP_LIMIT_S, TINY_LIMIT_S = 0.150, 0.400
#: Limit: least share of the cores that a sweep of long runs keeps busy.
EFFICIENCY_LIMIT = 0.95
#: Limit: seconds for 10,000 short runs.
SHORT_LIMIT_S = 30.0


@dataclass(frozen=True)
class Command:
    """A command line of `cwnd` to be measured."""

    arguments: list[str]
    #: Number of cores available to it.
    cores: int


@dataclass(frozen=True)
class Measurement:
    """Cost of one process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    #: Cores that other programs kept busy meanwhile; None if the system does not report it.
    others_cores: float | None


@dataclass(frozen=True)
class Row:
    """Medians of one command."""

    what: str
    wall_s: float
    #: Fastest and slowest repeat.
    wall_s_range: tuple[float, float]
    cpu_s: float
    peak_mib: float
    others_cores: float | None
    #: Wall time of each turn.
    walls_s: tuple[float, ...]


@dataclass(frozen=True)
class Limit:
    """A limit, and the value measured."""

    what: str
    found: float
    limit: float
    unit: str
    met: bool


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of the start")
    parser.add_argument("--long-repeats", type=int, default=LONG_REPEATS, help="of the sweeps")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    if options.repeats < 1 or options.long_repeats < 1:
        parser.error("repeats are whole numbers from 1 on")

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    start = {
        "cwnd --help": Command(["--help"], cores),
        "cwnd run tiny": Command(["run", scenario("tiny")], cores),
        "cwnd run tiny, no plots": Command(["run", scenario("tiny"), "--no-plots"], cores),
    }
    long = ["run", scenario("cells-64"), "--no-plots"]
    sweeps = {
        "64 runs, 1 core": Command([*long, "-j", "1"], 1),
        f"64 runs, {cores} cores": Command([*long, "-j", str(cores)], cores),
        f"10,000 runs, {cores} cores": Command(["run", scenario("cells-10000")], cores),
    }
    rows = [*take_turns(start, options.repeats), *take_turns(sweeps, options.long_repeats)]
    limits = judged(rows, cores)
    if options.json:
        document = {
            "rows": [asdict(row) for row in rows],
            "limits": [asdict(limit) for limit in limits],
        }
        print(json.dumps(document, indent=2))
    else:
        show(rows, limits)
    return 0


def scenario(name: str) -> str:
    """Returns the path of a scenario of the benches."""
    return str(SCENARIOS / f"{name}.toml")


def take_turns(commands: dict[str, Command], repeats: int) -> list[Row]:
    """Measures each command once per turn."""
    measured: dict[str, list[Measurement]] = {what: [] for what in commands}
    for repeat in range(repeats):
        for what, command in commands.items():
            progress(f"{what}, {repeat + 1} of {repeats}")
            measured[what].append(measure(command))
    progress("")
    return [row(what, found) for what, found in measured.items()]


@contextlib.contextmanager
def on_cores(cores: int) -> Iterator[None]:
    """Restricts processes started meanwhile to this many cores, where the system permits that."""
    if not hasattr(os, "sched_setaffinity"):  # there, `-j` has to do
        yield
        return
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def measure(command: Command) -> Measurement:
    """Runs `cwnd` in an empty directory and gets its cost from the kernel."""
    arguments = [sys.executable, "-m", "cwnd", *command.arguments]
    with tempfile.TemporaryDirectory() as directory, on_cores(command.cores):
        others, started = OtherPrograms(), time.perf_counter()
        with subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, cwd=directory, env=ENVIRONMENT
        ) as child:
            _, status, usage = os.wait4(child.pid, 0)
            wall_s = time.perf_counter() - started
            child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"error: {' '.join(arguments)} failed with exit code {child.returncode}")
    return Measurement(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * MAXRSS_BYTES,
        others_cores=others.cores(),
    )


def row(what: str, found: list[Measurement]) -> Row:
    """Returns the medians."""
    walls = [each.wall_s for each in found]
    others = [each.others_cores for each in found if each.others_cores is not None]
    return Row(
        what=what,
        wall_s=statistics.median(walls),
        wall_s_range=(min(walls), max(walls)),
        cpu_s=statistics.median(each.cpu_s for each in found),
        peak_mib=statistics.median(each.peak_bytes for each in found) / 2**20,
        others_cores=statistics.median(others) if others else None,
        walls_s=tuple(walls),
    )


def judged(rows: list[Row], cores: int) -> list[Limit]:
    """Compares the rows with the limits."""
    help_, tiny, _, one, all_, short = rows
    # The two runs of a turn are a few seconds apart, on a machine in much the same state.
    turns = zip(one.walls_s, all_.walls_s, strict=True)
    speedup = statistics.median(alone / together for alone, together in turns)
    least = EFFICIENCY_LIMIT * cores
    return [
        Limit("cwnd --help", help_.wall_s, HELP_LIMIT_S, "s", help_.wall_s < HELP_LIMIT_S),
        Limit("cwnd run tiny", tiny.wall_s, TINY_LIMIT_S, "s", tiny.wall_s < TINY_LIMIT_S),
        Limit(f"64 runs, 1 core / {cores} cores", speedup, least, "×", speedup >= least),
        Limit("10,000 runs", short.wall_s, SHORT_LIMIT_S, "s", short.wall_s < SHORT_LIMIT_S),
    ]


class OtherPrograms:
    """Meter of the CPU time that other programs take."""

    def __init__(self) -> None:
        self._began = self._cpu_s()

    def cores(self) -> float | None:
        """Returns the cores kept busy since the start; None if the system does not report it."""
        now = self._cpu_s()
        if now is None or self._began is None:
            return None
        (wall, busy, ours), (wall0, busy0, ours0) = now, self._began
        return max(0.0, (busy - busy0 - (ours - ours0)) / (wall - wall0))

    @staticmethod
    def _cpu_s() -> tuple[float, float, float] | None:
        """Returns wall time, CPU time of all programs, and of this one and its ended children.

        None without /proc/stat.
        """
        try:
            text = Path("/proc/stat").read_text(encoding="ascii")
        except OSError:
            return None
        # proc(5): user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
        ticks = [int(field) for field in text.split("\n", 1)[0].split()[1:9]]
        busy = sum(ticks) - ticks[3] - ticks[4]
        times = os.times()
        return time.monotonic(), busy / os.sysconf("SC_CLK_TCK"), sum(times[:4])


def progress(text: str) -> None:
    """Shows on a terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", flush=True, file=sys.stderr)


def show(rows: list[Row], limits: list[Limit]) -> None:
    """Prints the tables."""
    print(
        f"{'command':<26} {'wall s':>8} {'min–max':>13} {'CPU s':>7} {'peak MiB':>9} {'others':>7}"
    )
    for each in rows:
        low, high = each.wall_s_range
        others = "" if each.others_cores is None else f"{each.others_cores:.2f}"
        print(
            f"{each.what:<26} {each.wall_s:>8.3f} {f'{low:.3f}–{high:.3f}':>13}"
            f" {each.cpu_s:>7.2f} {each.peak_mib:>9.0f} {others:>7}"
        )
    print(f"\n{'limit':<26} {'found':>8} {'limit':>8}")
    for limit in limits:
        verdict = "" if limit.met else "  missed"
        print(
            f"{limit.what:<26} {limit.found:>6.3g} {limit.unit}"
            f" {limit.limit:>6.3g} {limit.unit}{verdict}"
        )
    one, together = rows[3:5]
    print(
        f"\n{together.what}: {together.cpu_s / together.wall_s:.2f} of them busy,"
        f" CPU time {together.cpu_s / one.cpu_s - 1:+.1%} of {one.what}"
    )


if __name__ == "__main__":
    sys.exit(main())
