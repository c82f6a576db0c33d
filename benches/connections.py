"""Measures runs with very many connections of clients: time, packets per CPU second, memory.

Runs have a tenth of the connections or all of them, with a row for each request and flow or
without. Without rows, memory must not grow with closed connections. Each run has its own process;
writing Parquet files is not included.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from run import measure_file, progress

#: Number of connections in the larger run.
CONNECTIONS = 1_000_000
#: Limit: growth of the peak memory per additional connection without rows, bytes. It is not zero:
#: the longer a run, the more connections are open at its busiest moment, especially in the first
#: seconds. So runs with fewer connections are not judged. With rows the growth is 400 B and more.
GROWTH_B = 16
#: Clients request about 7 kB, ten thousand times a second: a load of 0.6.
SCENARIO = """\
schema = 1

[run]
duration = "{seconds:g} s"
sample = "none"

[record]
requests = "{rows}"
flows = "{rows}"

[dumbbell]
rate = "1 Gbit/s"
queue = "codel"

[flow.web]
rtt = "{rtt}"
workload = {{ kind = "web", interval = "100 us", size = "pareto(1.5, 7 kB)" }}
endpoint = "rfc6675"
"""
#: One round-trip time for all connections, or one for each.
RTTS = {"one": "50 ms", "own": "uniform(20 ms, 80 ms)"}


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--repeats", type=int, default=1, help="the fastest of so many counts")
    options = parser.parse_args()
    print(
        f"{'RTT':<5} {'rows':<5} {'connections':>12} {'packets':>12} {'CPU s':>7}"
        f" {'Mpkt/CPU s':>11} {'peak MiB':>9}"
    )
    good = True
    for name, rtt in RTTS.items():
        for rows in ("all", "none"):
            peaks = []
            for connections in (options.connections // 10, options.connections):
                text = SCENARIO.format(seconds=connections / 10_000, rows=rows, rtt=rtt)
                peaks.append(show(name, rows, connections, text, options.repeats))
            growth = (peaks[1] - peaks[0]) / (0.9 * options.connections)
            print(f"{name:<5} {rows:<5} {growth:.1f} B for each connection more")
            judged = rows == "none" and options.connections >= CONNECTIONS
            if judged and growth > GROWTH_B:
                good = False
                print("error: memory grows with connections that ended", file=sys.stderr)
    return 0 if good else 1


def show(name: str, rows: str, connections: int, text: str, repeats: int) -> int:
    """Measures one run, prints its line and returns its peak memory, bytes."""
    progress(f"{connections:,} connections, rows: {rows}")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "connections.toml")
        path.write_text(text)
        runs = [measure_file(path) for _ in range(repeats)]
    progress("")
    best = min(runs, key=lambda run: run.cpu_s)
    print(
        f"{name:<5} {rows:<5} {connections:>12,} {best.delivered_packets:>12,} {best.cpu_s:>7.2f}"
        f" {best.delivered_packets / best.cpu_s / 1e6:>11.3f} {best.peak_bytes / 2**20:>9.1f}",
        flush=True,
    )
    return best.peak_bytes


if __name__ == "__main__":
    sys.exit(main())
