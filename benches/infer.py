"""Measures `cwnd infer`: packets per CPU second, and peak memory, on a generated capture.

A thousand connections lose packets on a link of 200 Mbit/s. The capture is read several times, each
in a new process, and so is one of four times the duration: memory may grow with the connections and
silences found, not with packets. The files are in the page cache when they are read.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: The last link has no delay: a capture there shows the receivers' view.
SCENARIO = """\
schema = 1
run = { duration = "DURATION s", sample = "none" }

[link.bottleneck]
from = "servers"
to = "router"
rate = "200 Mbit/s"
delay = "20 ms"
loss = 0.01

[link.near]
from = "router"
to = "clients"
rate = "10 Gbit/s"
duplex = true

[link.back]
from = "router"
to = "servers"
rate = "10 Gbit/s"

[flow.main]
from = "servers"
to = "clients"
count = 1000
start = "uniform(0 s, 5 s)"
endpoint = "rfc6675"
"""
REPEATS = 5
#: Durations of the small capture and of the large one.
DURATIONS_S = (60, 240)
#: Source of the peak memory of this process alone; `ru_maxrss` includes its parent's.
STATUS = Path("/proc/self/status")


def child(files: list[str]) -> None:
    """Reads captures; prints packets, growth of the peak memory and CPU time of all threads."""
    from cwnd import _core

    before = peak_bytes()
    began = time.process_time()
    found = _core.infer_timeouts(files)
    cpu_s = time.process_time() - began
    memory = peak_bytes() - before
    packets = found.counts["frames"]
    print(json.dumps({"packets": packets, "cpu_s": cpu_s, "memory_bytes": memory}))


def peak_bytes() -> int:
    """Returns the peak memory of this process (`proc_pid_status(5)`)."""
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measure(files: list[Path]) -> dict[str, float]:
    """Returns the medians of several readings."""
    runs = []
    for _ in range(REPEATS):
        command = [sys.executable, __file__, "--child", *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    """Generates the captures, reads them, and prints a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print a document, not a table")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    import cwnd

    rows = {}
    for duration in DURATIONS_S:
        with tempfile.TemporaryDirectory() as scratch:
            scenario = Path(scratch) / "bench.toml"
            scenario.write_text(SCENARIO.replace("DURATION", str(duration)))
            cwnd.run(scenario, pcap="near+near.reverse", pcap_dir=scratch)
            (capture,) = Path(scratch).glob("*/*.pcapng")
            rows[f"{capture.stat().st_size / 1e6:.0f} MB"] = measure([capture])
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'file':>8} {'packets':>12} {'per CPU s':>12} {'memory':>10}")
    for name, row in rows.items():
        speed, memory = row["packets"] / row["cpu_s"], row["memory_bytes"] / 2**20
        print(f"{name:>8} {row['packets']:>12,.0f} {speed:>12,.0f} {memory:>6.1f} MiB")


if __name__ == "__main__":
    main()
