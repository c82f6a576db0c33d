"""Runs the scenarios of this folder in the simulator and on this kernel, as root.

A point that the file has is not run again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.running import run as simulate
from cwnd.studies.questions.rtt_on_linux import captured as captured_rtt
from cwnd.studies.questions.rtt_on_linux.measures import (
    FOLDER,
    ONLY_ON_LINUX,
    WAYS,
    WORLDS,
    points,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cwnd.results import Run

BOTH = "bottleneck+reverse"
#: Undone reductions, as Linux counts them: all connections of a host together.
UNDONE = ("TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo")
COLUMNS = ("experiment", "point", "world", "group", "what", "values", "kernel")

Row = tuple[str, ...]
#: A flow's group, a quantity of it, and its value.
Value = tuple[str, str, float]


def cheat(run: Run, row: Mapping[str, Any], _: Path) -> Iterator[Value]:
    """Shares, goodputs, retransmissions, and undone reductions if they were counted."""
    mine = run.flows.filter(pl.col("run_id") == row["run_id"])
    total = mine["goodput_bit_s"].sum()
    for flow in mine.iter_rows(named=True):
        yield flow["group"], "share", 100 * flow["goodput_bit_s"] / total
        yield flow["group"], "goodput", flow["goodput_bit_s"] / 1e6
        yield flow["group"], "retransmitted", 100 * flow["retrans"] / flow["segments_sent"]
    yield from _undone(row)


def ack_noise(run: Run, row: Mapping[str, Any], captured: Path) -> Iterator[Value]:
    """Goodput, backoffs, and what each way of measuring sees beyond the queue, if captured."""
    mine = run.flows.filter(pl.col("run_id") == row["run_id"])
    for flow in mine.iter_rows(named=True):
        yield flow["group"], "goodput", flow["goodput_bit_s"] / 1e6
        minutes = flow["duration_s"] / 60
        yield flow["group"], "backoffs", flow["cwnd_reductions_delay"] / minutes
    if not captured.exists():
        return
    seen = captured_rtt.flows(captured)
    for flow, key in zip(mine.iter_rows(named=True), _senders(seen, mine), strict=True):
        lone = [sample.segments == 1 for sample in seen[key].samples]
        yield flow["group"], "lone ACKs", 100 * sum(lone) / len(lone)
        for way in WAYS:
            noise = seen[key].noise_ms(way)
            # Where every ACK is of one segment, nothing is seen without these.
            if noise:
                mean, most = captured_rtt.mean_and_95(noise)
                yield flow["group"], f"{way}, mean", mean
                yield flow["group"], f"{way}, 95th", most


def chunks(run: Run, row: Mapping[str, Any], captured: Path) -> Iterator[Value]:
    """The saw-tooth of the round trip within 0.2 s, and how many segments go at once."""
    mine = run.flows.filter(pl.col("run_id") == row["run_id"])
    seen = captured_rtt.flows(captured)
    for flow, key in zip(mine.iter_rows(named=True), _senders(seen, mine), strict=True):
        yield flow["group"], "goodput", flow["goodput_bit_s"] / 1e6
        mean, most = captured_rtt.mean_and_95(seen[key].swings_ms(row["warmup_s"]))
        yield flow["group"], "swing, mean", mean
        yield flow["group"], "swing, 95th", most
        at_once = sorted(seen[key].chunks())
        # As a segment meets them.
        yield flow["group"], "chunk", sum(n * n for n in at_once) / sum(at_once)
        yield flow["group"], "largest chunk", at_once[-1]


#: Experiments whose packets are captured, each with its world.
CAPTURED = (("ack_noise", "Linux"), ("chunks", "Linux"))
#: Experiment → the function that reads its values from a run.
EXPERIMENTS: dict[str, Callable[[Run, Mapping[str, Any], Path], Iterator[Value]]] = {
    "cheat": cheat,
    "ack_noise": ack_noise,
    "chunks": chunks,
}


def _senders(
    seen: Mapping[tuple[bytes, int], captured_rtt.Flow], flows: pl.DataFrame
) -> list[tuple[bytes, int]]:
    """Senders of the capture in the order of the table: addresses rise with the groups."""
    order = sorted(seen)
    if len(order) != flows.height:
        raise ValueError(f"{len(order)} senders in the capture, {flows.height} flows")
    return order


def _undone(row: Mapping[str, Any]) -> Iterator[Value]:
    facts = json.loads(row.get("facts") or "{}")
    counters = facts.get("tcp_counters", {}).get("left")
    if counters is not None:
        yield "*", "undone", float(sum(counters.get(name, 0) for name in UNDONE))


def measure(experiment: str, label: str, overrides: Mapping[str, object], world: str) -> list[Row]:
    """Runs a point in a world; invalid runs do not count."""
    with tempfile.TemporaryDirectory() as place:
        run = simulate(
            FOLDER / f"{experiment}.toml",
            set=dict(overrides),
            on=WORLDS[world],
            threads=2 if world == "Linux" else 1,
            pcap=BOTH if (experiment, world) in CAPTURED else (),
            pcap_dir=place,
        )
        found: dict[tuple[str, str], list[float]] = {}
        kernel = ""
        for row in run.runs.iter_rows(named=True):
            facts = json.loads(row.get("facts") or "{}")
            if not facts.get("valid", True):
                sys.stderr.write(f"not valid: {label}, {row['seed']}: {facts['flaws']}\n")
                continue
            file = Path(place) / row["run_id"] / f"{BOTH}.pcapng"
            kernel = facts.get("kernel", "")
            for group, what, value in EXPERIMENTS[experiment](run, row, file):
                found.setdefault((group, what), []).append(round(value, 4))
    return [
        (experiment, label, world, *of, " ".join(map(str, values)), kernel)
        for of, values in found.items()
    ]


def record(file: Path, world: str) -> None:
    """Measures the points that are missing; each point is safe when it is done."""
    for experiment in EXPERIMENTS:
        if experiment in ONLY_ON_LINUX and world != "Linux":
            continue
        for label, overrides in points(experiment):
            there = recorded(file)
            if there.filter(experiment=experiment, point=label, world=world).height:
                continue
            rows = measure(experiment, label, overrides, world)
            fresh = pl.DataFrame(rows, schema=there.schema, orient="row")
            order = ["experiment", "point", "world", "group", "what"]
            pl.concat([there, fresh]).sort(order, maintain_order=True).write_csv(file)
            sys.stderr.write(f"{world}, {experiment}: {label}\n")


def recorded(file: Path) -> pl.DataFrame:
    """All values that were measured: in each row those of a quantity, one a seed."""
    types = dict.fromkeys(COLUMNS, pl.String)
    if not file.exists():
        return pl.DataFrame(schema=types)
    return pl.read_csv(file, schema=types).with_columns(pl.col("kernel").fill_null(""))


if __name__ == "__main__":
    for each in WORLDS:
        record(Path(sys.argv[1]), each)
