"""Measures ns-3 and ns-2 on the benchmark's scenarios beside cwnd: packets per CPU second.

All of them run in turn, repeatedly, each in its own process. CPU seconds are user and system time
of the whole process. ns-3 would take many minutes for the whole scenarios, so it simulates only the
first seconds of each (`--full` for all of them); the cost per packet hardly depends on that.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import run

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "target" / "bench-peers"
NS3_LIBRARIES = (
    "core",
    "network",
    "internet",
    "point-to-point",
    "applications",
    "traffic-control",
)
MISSING = "ns-3 and ns-2 are not installed; `make bench-peers` installs them (Debian, Ubuntu)"


@dataclass(frozen=True)
class Case:
    """A scenario of the benchmark, in the parameters of the peers."""

    name: str
    flows: int
    mbit: int
    rtt_ms: int
    seconds: int
    #: Seconds that ns-3 simulates without `--full`.
    ns3_seconds: int
    #: Queue for ns-3, and for ns-2, which has no CoDel.
    queues: tuple[str, str]


CASES = (
    Case("a", 1, 100, 40, 100, 20, ("fifo", "fifo")),
    Case("b", 100, 1000, 50, 60, 4, ("codel", "red")),
    Case("c", 1000, 1000, 100, 30, 4, ("codel", "red")),
)


@dataclass(frozen=True)
class Cost:
    """Delivered packets and cost of one run."""

    packets: int
    cpu_s: float
    peak_bytes: int


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="whole scenarios for ns-3, too")
    options = parser.parse_args()
    names = installed()
    if not names:
        print(f"error: {MISSING}", file=sys.stderr)
        return 2
    show(measure(names, options.repeats, full=options.full), full=options.full)
    return 0


def installed() -> list[str]:
    """Returns the peers installed on this machine; compiles ns-3's program if necessary."""
    names = []
    if build_ns3():
        names.append("ns-3")
    if shutil.which("ns"):
        names.append("ns-2")
    return names


def build_ns3() -> bool:
    """Compiles the ns-3 program unless it is newer than its source; returns True on success."""
    source, program = HERE / "peers" / "ns3.cc", BUILT / "ns3"
    if program.is_file() and program.stat().st_mtime > source.stat().st_mtime:
        return True
    compiler = shutil.which("c++")
    if compiler is None or not Path("/usr/include/ns3/core-module.h").is_file():
        return False
    BUILT.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{each}" for each in NS3_LIBRARIES]
    command = [compiler, "-O2", "-std=c++17", "-o", str(program), str(source)]
    return subprocess.run([*command, *libraries], check=False).returncode == 0


def command_of(peer: str, case: Case, *, full: bool) -> list[str]:
    """Returns the command line of a peer."""
    seconds = case.seconds if full or peer == "ns-2" else case.ns3_seconds
    if peer == "ns-3":
        return [
            str(BUILT / "ns3"),
            f"--flows={case.flows}",
            f"--mbit={case.mbit}",
            f"--rtt={case.rtt_ms}",
            f"--seconds={seconds}",
            f"--queue={case.queues[0]}",
        ]
    numbers = (case.flows, case.mbit, case.rtt_ms, seconds)
    return ["ns", str(HERE / "peers" / "ns2.tcl"), *map(str, numbers), case.queues[1]]


def measure(names: list[str], repeats: int, *, full: bool) -> dict[tuple[str, str], list[Cost]]:
    """Runs cwnd and the peers in turn."""
    costs: dict[tuple[str, str], list[Cost]] = {}
    for repeat in range(repeats):
        for case in CASES:
            run.progress(f"{case.name}, ours, {repeat + 1} of {repeats}")
            ours = run.measure(run.Case.of(case.name))
            cost = Cost(ours.delivered_packets, ours.cpu_s, ours.peak_bytes)
            costs.setdefault((case.name, "ours"), []).append(cost)
            for peer in names:
                run.progress(f"{case.name}, {peer}, {repeat + 1} of {repeats}")
                cost = measure_peer(command_of(peer, case, full=full))
                costs.setdefault((case.name, peer), []).append(cost)
    run.progress("")
    return costs


def measure_peer(command: list[str]) -> Cost:
    """Runs a peer, which prints the number of data packets that arrived."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        answer = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed with exit code {child.returncode}")
    peak = usage.ru_maxrss * run.MAXRSS_BYTES
    return Cost(int(answer), usage.ru_utime + usage.ru_stime, peak)


def show(costs: dict[tuple[str, str], list[Cost]], *, full: bool) -> None:
    """Prints a table with the speed of cwnd relative to each peer."""
    print(f"{'scenario':<10} {'by':<6} {'kpkt/CPU s':>11} {'ours is':>9} {'peak MiB':>9}")
    for (case, who), runs in costs.items():
        speed, ours = median_speed(runs), median_speed(costs[case, "ours"])
        ratio = "" if who == "ours" else f"{ours / speed:,.1f} ×"
        peak = statistics.median(each.peak_bytes for each in runs) / 2**20
        print(f"{case:<10} {who:<6} {speed / 1e3:>11,.1f} {ratio:>9} {peak:>9.1f}")
    if not full:
        parts = ", ".join(f"{case.ns3_seconds} s of {case.name}" for case in CASES)
        print(f"ns-3 simulated {parts}; the others all of it.")


def median_speed(runs: list[Cost]) -> float:
    """Returns the median of packets per CPU second."""
    return statistics.median(each.packets / each.cpu_s for each in runs)


if __name__ == "__main__":
    sys.exit(main())
