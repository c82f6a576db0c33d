"""Measures the simulator: delivered data packets per CPU second, and peak memory.

Each scenario runs in its own process, all of them in turn and repeatedly, so that a slow moment of
the machine does not affect only one of them. CPU seconds are user and system time of the whole
process, including the start of the interpreter and reading the scenario.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINUX = {"stack": '"linux"', "endpoint": "{}"}
SACK = 'recovery = "sack"'
ECN = f"{SACK}, ecn = true, obey_ece = false"


def feedback(kind: str, endpoint: str) -> dict[str, str]:
    """Returns the settings of flows whose controller and meter are of this kind."""
    return {
        "controller": f'"{kind}"',
        "endpoint": f"{{ {endpoint} }}",
        "dumbbell.meter": f'"{kind}"',
    }


#: Scenarios that differ from another one in settings of `flow.main` only, and in the meter: flows
#: of b over the Linux stack, with BBR, and paced segment by segment as Linux paces; flows of bmcc
#: with other feedback, or without pacing; flows of delay-newreno with control by delay.
VARIANTS: dict[str, tuple[str, dict[str, str]]] = {
    "b-linux": ("b", LINUX | {"controller": '{ kind = "newreno", preset = "rfc" }'}),
    "b-bbr": ("b", {"controller": '"bbr"'}),
    "b-bbr-linux": ("b", LINUX | {"controller": '{ kind = "bbr", preset = "draft" }'}),
    "b-paced": ("b", {"endpoint": f'{{ {SACK}, tso = "1448 B", tso_sizing = "rate" }}'}),
    "xcp": ("bmcc", feedback("xcp", f'{SACK}, echo = "sum"')),
    "rcp": ("bmcc", feedback("rcp", f'{SACK}, echo = "last"')),
    "vcp": ("bmcc", feedback("vcp", f'{ECN}, echo = "changes"')),
    "mlcp": ("bmcc", feedback("mlcp", f'{ECN}, echo = "level"')),
    "bmcc-unpaced": ("bmcc", {"controller": '{ kind = "bmcc", paced = false }'}),
    "delay-aimd": ("delay-newreno", {"controller": '"delay-aimd"'}),
}
NAMES = (*"abcde", "bmcc", "delay-newreno", *VARIANTS)
#: Limits: CPU time per packet of these scenarios relative to b.
LIMITS = {"b-linux": 1.5, "b-bbr": 3.0}
REPEATS = 3
#: `ru_maxrss` counts in KiB on Linux and in bytes on macOS.
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
#: Program of the child process: runs all cells; prints packets delivered, events and digests.
CHILD = """
import json, pathlib, sys
from cwnd import _core
path, *overrides = sys.argv[1:]
path = pathlib.Path(path)
text = path.read_text(encoding="utf-8")
scenario = _core.parse(text, name=str(path), base_dir=str(path.parent), overrides=overrides)
results = [cell.run() for cell in scenario.cells]
json.dump({
    "delivered": sum(result.delivered_packets for result in results),
    "events": sum(result.events for result in results),
    "digests": [result.digest for result in results],
}, sys.stdout)
"""


@dataclass(frozen=True)
class Case:
    """A scenario file, and settings in place of its own, such as `run.duration="5 s"`."""

    name: str
    path: Path
    settings: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str) -> Case:
        """Returns the case of a name of this benchmark, or of a file."""
        base, settings = VARIANTS.get(name, (name, {}))
        path = HERE / "scenarios" / f"{base}.toml" if name in NAMES else Path(name)
        keys = {key if "." in key else f"flow.main.{key}": value for key, value in settings.items()}
        return cls(name, path, tuple(f"{key}={value}" for key, value in keys.items()))


@dataclass(frozen=True)
class Measurement:
    """One run of one scenario."""

    delivered_packets: int
    events: int
    digests: list[str]
    cpu_s: float
    wall_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Row:
    """Medians of one scenario over its repeats; packets and events of the first."""

    scenario: str
    delivered_packets: int
    events: int
    cpu_s: float
    packets_per_cpu_s: float
    #: Slowest and fastest repeat.
    packets_per_cpu_s_range: tuple[float, float]
    events_per_packet: float
    peak_mib: float
    repeats: int
    #: True if all repeats gave the same records.
    deterministic: bool


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=NAMES, help="a file, or one of our names")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--alone", action="store_true", help="no peers, even if installed")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats takes a number from 1 on")
    cases = [Case.of(name) for name in options.scenarios]
    absent = [str(case.path) for case in cases if not case.path.is_file()]
    if absent:
        parser.error(f"no such file: {', '.join(absent)}; our names are {', '.join(NAMES)}")

    measured: dict[Case, list[Measurement]] = {case: [] for case in cases}
    for repeat in range(options.repeats):
        for case in cases:
            progress(f"{case.name}, {repeat + 1} of {options.repeats}")
            measured[case].append(measure(case))
    progress("")
    rows = [row(case, runs) for case, runs in measured.items()]
    if options.json:
        print(json.dumps([asdict(each) for each in rows], indent=2))
    else:
        show(rows)
        show_ratios(rows)
        if not options.alone:
            beside_peers(options.repeats)
    if not all(each.deterministic for each in rows):
        print("error: repeats of one scenario gave different records", file=sys.stderr)
        return 1
    return 0


def progress(text: str) -> None:
    """Shows on a terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", flush=True, file=sys.stderr)


def measure(case: Case) -> Measurement:
    """Runs a case in a new process and gets its cost from the kernel."""
    command = [sys.executable, "-c", CHILD, str(case.path), *case.settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        started = os.times().elapsed
        assert child.stdout is not None
        answer = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = os.times().elapsed - started
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"error: {case.name} failed with exit code {child.returncode}")
    data = json.loads(answer)
    return Measurement(
        delivered_packets=data["delivered"],
        events=data["events"],
        digests=data["digests"],
        cpu_s=usage.ru_utime + usage.ru_stime,
        wall_s=wall_s,
        peak_bytes=usage.ru_maxrss * MAXRSS_BYTES,
    )


def measure_file(path: Path) -> Measurement:
    """Runs a scenario file in a new process and gets its cost from the kernel."""
    return measure(Case(path.stem, path))


def row(case: Case, runs: list[Measurement]) -> Row:
    """Returns the medians."""
    speeds = [run.delivered_packets / run.cpu_s for run in runs]
    first = runs[0]
    return Row(
        scenario=case.name,
        delivered_packets=first.delivered_packets,
        events=first.events,
        cpu_s=statistics.median(run.cpu_s for run in runs),
        packets_per_cpu_s=statistics.median(speeds),
        packets_per_cpu_s_range=(min(speeds), max(speeds)),
        events_per_packet=first.events / max(1, first.delivered_packets),
        peak_mib=statistics.median(run.peak_bytes for run in runs) / 2**20,
        repeats=len(runs),
        deterministic=all(run.digests == first.digests for run in runs),
    )


def show(rows: list[Row]) -> None:
    """Prints a table."""
    print(
        f"{'scenario':<14} {'packets':>12} {'CPU s':>8} {'Mpkt/CPU s':>11} {'min–max':>13}"
        f" {'events/pkt':>11} {'peak MiB':>9}"
    )
    for each in rows:
        low, high = each.packets_per_cpu_s_range
        print(
            f"{each.scenario:<14} {each.delivered_packets:>12,} {each.cpu_s:>8.2f}"
            f" {each.packets_per_cpu_s / 1e6:>11.3f} {f'{low / 1e6:.3f}–{high / 1e6:.3f}':>13}"
            f" {each.events_per_packet:>11.2f} {each.peak_mib:>9.1f}"
        )


def show_ratios(rows: list[Row]) -> None:
    """Prints the CPU time per packet of scenarios relative to b, if both were measured."""
    costs = {each.scenario: 1 / each.packets_per_cpu_s for each in rows}
    for name, limit in LIMITS.items():
        if name in costs and "b" in costs:
            ratio = costs[name] / costs["b"]
            verdict = "met" if ratio <= limit else "missed"
            print(f"{name} / b: {ratio:.2f} in CPU time per packet; limit {limit:g}: {verdict}")


def beside_peers(repeats: int) -> None:
    """Prints the ratios to ns-3 and ns-2, if they are installed."""
    import peers

    names = peers.installed()
    print()
    if names:
        peers.show(peers.measure(names, repeats, full=False), full=False)
    else:
        print(f"{peers.MISSING}.")


if __name__ == "__main__":
    sys.exit(main())
