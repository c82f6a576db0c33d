"""Measures controllers of one's own: calls of `on_ack` a second, their cost, gain of two processes.

One flow of 100 Mbit/s and 40 ms gets an ACK for each packet. Calls a second are those of the whole
process, from its start to its end. The cost of a call is the time of a run beyond that of the same
run with the built-in NewReno. The least of several runs counts. With `--check` it fails below the
limits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OWN = Path(__file__).resolve().parent / "own"
#: Least number of calls of `on_ack` a second.
LIMITS = {"aimd.py": 400_000, "cubic.py": 250_000, "reno.bpf.c": 100_000}
#: Least gain of two processes over one.
GAIN_LIMIT = 1.7
SCENARIO = """
schema = 2
name = "own-code"

[run]
duration = "{duration} s"

[dumbbell]
rate = "100 Mbit/s"
queue = {{ kind = "fifo", limit = "1 BDP" }}

[flow.main]
rtt = "40 ms"
stack = "rfc"
endpoint = {{ ack_every = 1 }}
controller = {controller}

[sweep]
repeat = {repeat}
"""
#: Runs a scenario in a process of its own; prints calls, and seconds of `Cell.run`.
CHILD = """
import json, sys, time
from cwnd import _core
from cwnd.running import code
code._Process.runs_code = True
cell = _core.parse(open(sys.argv[1]).read(), name="own", base_dir=sys.argv[2]).cell(0)
classes = code.classes(cell)
began = time.perf_counter()
made = cell.run(classes=classes)
took = time.perf_counter() - began
json.dump([made.activity.get("own_acks", 0), made.delivered_packets, took], sys.stdout)
"""


def run(scenario: Path, threads: int, config: Path) -> tuple[float, int]:
    """Runs `cwnd run`; returns its seconds and the calls of `on_ack`."""
    out = Path(tempfile.mkdtemp(dir=config)) / "out"
    words = ["run", str(scenario), "-o", str(out), "--no-plots", "--trust"]
    words += ["--threads", str(threads)]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "cwnd", *words],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "XDG_CONFIG_HOME": str(config)},
    )
    took = time.perf_counter() - began
    manifest = json.loads((out / "manifest.json").read_text())
    return took, int(manifest["activity"].get("own_acks", 0))


def write(folder: Path, name: str, controller: str, *, duration: int, repeat: int) -> Path:
    """Writes a scenario."""
    file = folder / f"{name}.toml"
    file.write_text(SCENARIO.format(controller=controller, duration=duration, repeat=repeat))
    return file


def own(file: str) -> str:
    """Returns a controller of the folder as a scenario names it."""
    if file.endswith(".c"):
        return f'{{ kind = "c", path = "{OWN / file}" }}'
    return f'{{ kind = "python", path = "{OWN / file}", class = "{Path(file).stem.title()}" }}'


def simulated(scenario: Path) -> tuple[float, float]:
    """Returns calls and seconds of one run without the rest of the process."""
    words = [sys.executable, "-c", CHILD, str(scenario), str(OWN)]
    calls, packets, took = json.loads(subprocess.check_output(words))
    return calls or packets, took


def main() -> int:
    """Prints the measurements; returns 1 if one is beyond its limit and that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the least counts")
    arguments = parser.parse_args()
    fails = []
    with tempfile.TemporaryDirectory(prefix="cwnd-") as made:
        folder = Path(made)
        built_in = write(folder, "newreno", '"newreno"', duration=120, repeat=1)
        base = min(simulated(built_in)[1] for _ in range(arguments.repeat))
        for name, limit in LIMITS.items():
            scenario = write(folder, name, own(name), duration=120, repeat=1)
            calls, inside = min(
                (simulated(scenario) for _ in range(arguments.repeat)), key=lambda pair: pair[1]
            )
            whole, _ = min(run(scenario, 1, folder) for _ in range(arguments.repeat))
            rate, call_us = calls / whole, (inside - base) / calls * 1e6
            print(
                f"{name}: {rate / 1e3:.0f} thousand on_ack/s in `cwnd run` (at least"
                f" {limit / 1e3:.0f}); {inside:.3f} s simulated, {call_us:.2f} µs a call more than"
                " NewReno in Rust"
            )
            if rate < limit:
                fails.append(name)
        scenario = write(folder, "two", own("aimd.py"), duration=120, repeat=16)
        # In turn, as other programs slow both down.
        took = [[run(scenario, n, folder)[0] for n in (1, 2)] for _ in range(arguments.repeat)]
        one, two = map(min, zip(*took, strict=True))
        print(f"two processes: {one:.2f} s to {two:.2f} s, {one / two:.2f} times (at least 1.7)")
        if one / two < GAIN_LIMIT:
            fails.append("two processes")
    for fail in fails:
        print(f"beyond its limit: {fail}", file=sys.stderr)
    return 1 if fails and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
