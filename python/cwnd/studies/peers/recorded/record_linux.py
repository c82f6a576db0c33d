"""Records Linux's TCP behind our router, a row a run, as root: an hour.

`cwnd study run peers/recorded --record linux-testbed.csv` runs this.
Rows that are in the file stay; what is missing is run, several at once, and appended as soon as it
is done, so that it goes on where it was. A run is kept if it is valid and its router was never late
by more than 20 ms, in at most three tries; others are left out and reported. ABE needs
`cwnd-kernel` (`make kernel`).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

from cwnd import _core
from cwnd.machine import kernel_helper
from cwnd.running import Linux, plans
from cwnd.studies.peers.recorded.endless_tables import LATE, LINKS

#: A router that stood still for longer lost a round trip or more to other work on the machine.
LATEST_US = 20_000.0
TRIES = 3
#: Arm of the sweep → its controller, ECN, and queue.
ARMS = {
    "reno codel": ("reno", 1, "codel"),
    "cubic codel": ("cubic", 1, "codel"),
    "reno fifo": ("reno", 0, "fifo"),
    "cubic fifo": ("cubic", 0, "fifo"),
    "abe codel": ("bpf_abe", 1, "codel"),
}
#: Arm whose controller is no part of Linux.
LOADED = "abe codel"


def main() -> int:
    """Fills the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("-j", "--at-once", type=int, default=8, help="runs beside each other")
    options = parser.parse_args()
    scenario = plans.plan(options.file.with_suffix(".toml")).scenario
    there = {_key(row) for row in csv.DictReader(_lines(options.file))}
    cells = [scenario.cell(index) for index in range(scenario.runs)]
    left = [cell for cell in cells if _key(setting(cell)) not in there]
    if kernel_helper() is None:
        lacking = [cell for cell in left if cell.axes["arm"] == LOADED]
        print(f"left out: {len(lacking)} runs of ABE, without cwnd-kernel", file=sys.stderr)
        left = [cell for cell in left if cell.axes["arm"] != LOADED]
    kept = _Kept(options.file, len(left))
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(kept.record, left))
    return 1 if kept.incomplete else 0


class _Kept:
    """The file, and how far it is."""

    def __init__(self, file: Path, runs: int) -> None:
        self._file, self._runs = file, runs
        self._lock = threading.Lock()
        self._done, self._begun = 0, time.monotonic()
        #: `True` once a run did not count in any of its tries.
        self.incomplete = False

    def record(self, cell: _core.Cell) -> None:
        """Runs until a run counts, at most `TRIES` times, and appends its row."""
        row: dict[str, Any] = {}
        for _ in range(TRIES):
            row = recorded(cell, Linux(tries=1).run(cell, None))
            if counts(row):
                break
        with self._lock:
            self._done += 1
            told = " ".join(str(value) for value in setting(cell).values())
            if counts(row):
                self._append(row)
            else:
                self.incomplete = True
                told += f": left out, {worst(row):.0f} us late, {row['flaws']}"
            spent = time.monotonic() - self._begun
            print(f"{self._done}/{self._runs} {spent:.0f} s: {told}", file=sys.stderr, flush=True)

    def _append(self, row: dict[str, Any]) -> None:
        begins = not _lines(self._file)
        with self._file.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if begins:
                writer.writeheader()
            writer.writerow(row)


def setting(cell: _core.Cell) -> dict[str, Any]:
    """Returns the columns of a row that describe its run."""
    controller, ecn, queue = ARMS[cell.axes["arm"]]
    resolved = _core.read_toml(cell.resolved, name="resolved")
    group = resolved["flow"]["main"]
    return {
        "cc": controller,
        "ecn": ecn,
        "queue": queue,
        "rate_mbps": float(resolved["dumbbell"]["rate"]["initial"].removesuffix(" Mbit/s")),
        "rtt_ms": float(group["rtt"].removesuffix(" ms")),
        "n_flows": int(group["count"]),
        "dur_s": cell.duration_s,
        "seed": cell.seed,
    }


def recorded(cell: _core.Cell, result: _core.Result) -> dict[str, Any]:
    """The columns of a row: what was set, what was measured, what the run says of itself."""
    given, facts = setting(cell), json.loads(result.facts or "{}")
    flows, links = pl.DataFrame(result.flows), pl.DataFrame(result.links)
    line = links.row(by_predicate=pl.col("link") == "bottleneck", named=True)
    each = [round(bit_s / 1e6, 4) for bit_s in flows.sort("flow_id")["goodput_bit_s"]]
    router = facts["router"]["directions"]
    return given | {
        "goodput_mbps": round(sum(each), 4),
        "util": round(sum(each) / given["rate_mbps"], 4),
        "marks": line["marked_total_pkts"],
        "drops": line["dropped_total_pkts"],
        "qdelay_ms_p50": round(line["qdelay_p50_us"] / 1e3, 3),
        "qdelay_ms_mean": round(line["qdelay_mean_us"] / 1e3, 3),
        "qdelay_ms_p90": round(line["qdelay_p90_us"] / 1e3, 3),
        "retrans": int(flows["retrans"].sum()),
        "rto": int(flows["rto_count"].sum()),
        "goodput_mbps_each": ";".join(map(str, each)),
        "kernel": facts["kernel"],
        "testbed": _core.testbed,
        "valid": facts["valid"],
        "flaws": "; ".join(facts["flaws"]),
        **{
            f"{direction['name']}_late_{share}_us": direction["lateness_us"][share]
            for direction in router
            for share in LATE
        },
        "idle": round(facts["router"]["idle"], 4),
        **{name: value for row in facts["calibration"] for name, value in _calibrated(row)},
    }


def _calibrated(row: dict[str, Any]) -> list[tuple[str, Any]]:
    link, _, what = row["what"].partition(": ")
    name = f"{link}_{what.removeprefix('one-way ')}"
    measured = round(row["measured"], 4) if row["measured"] else None
    return [(f"{name}_set", row["set"]), (f"{name}_measured", measured)]


def worst(row: dict[str, Any]) -> float:
    """Returns the largest lateness of the router, µs."""
    return max(float(row[f"{link}_late_max_us"] or 0) for link in LINKS)


def counts(row: dict[str, Any]) -> bool:
    """`True` if a run is valid and the router was never later than `LATEST_US`."""
    return bool(row["valid"]) and worst(row) <= LATEST_US


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    names = ("cc", "ecn", "queue", "rate_mbps", "rtt_ms", "n_flows", "dur_s", "seed")
    return tuple(str(row[name]) for name in names)


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


if __name__ == "__main__":
    sys.exit(main())
