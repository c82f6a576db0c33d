"""Timeouts that `cwnd infer` finds in captures at the clients, beside the actual ones (§ 2.4).

Each run is simulated once more, with identical packets, and captured; its flow table is the ground
truth.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Panel, Picture, line_style
from cwnd.infer import infer
from cwnd.running import run as simulate
from cwnd.study import ONE_PANEL, at, curve, labels

if TYPE_CHECKING:
    from cwnd.results import Run
    from cwnd.study import Point, Results

#: Links whose packets the clients receive and send.
_AT_CLIENTS = "near+near.reverse"
#: Port of the first flow in captures.
_PORT = 49152
#: Maximum number of consecutive timeouts in the figure, as longer rows are rare.
_ROUNDS = 7
_KEYS = ("connections", "silences")


def recall(results: Results, figure: str, of: Point) -> list[float]:
    """Recall: share of the actual timeouts that were found, by counts of connections and seeds."""
    return _shares(results[figure], of, pl.col("timeouts_there"))


def precision(results: Results, figure: str, of: Point) -> list[float]:
    """Precision: share of the found timeouts that were actual ones, by counts as for `recall`."""
    return _shares(results[figure], of, pl.col("timeouts"))


def inference(run: Run) -> Picture:
    """Time since the first timer started against consecutive timeouts, in units of the first one.

    The values are those at the clients: medians with the 10th to the 90th percentile, beside the
    values for doubling and for no backoff.
    """
    rounds = range(1, _ROUNDS + 1)
    expected = (
        ("doubled each time", [2.0**n - 1 for n in rounds]),
        ("as long as the first", [float(n) for n in rounds]),
    )
    drawn = [curve(rounds, times, n, label=name) for n, (name, times) in enumerate(expected)]
    silences = _found(run)["silences"]
    for index, n in enumerate(labels(run, "n")):
        seen = _rows_of_timeouts(at(run, silences, {"n": n}))
        ends = seen["low"].to_list(), seen["high"].to_list()
        how = {"marker": line_style.marker(index), "joined": False, "interval": ends}
        drawn.append(curve(seen["round"], seen["median"], index, label=f"{n}, seen", **how))
    panel = Panel(
        drawn,
        x_label="Timeouts in a row",
        y_label="Time waited / first timeout",
        y_log=True,
        y_ticks=[(2.0**n, f"{2**n}") for n in range(8)],
    )
    return Picture([panel], *ONE_PANEL)


def _shares(run: Run, of: Point, all_of_them: pl.Expr) -> list[float]:
    rows = at(run, _found(run)["connections"], of)
    right = pl.min_horizontal("timeouts", "timeouts_there").sum()
    shares = rows.group_by("seed").agg((right / all_of_them.sum()).alias("share"))
    return shares.sort("seed")["share"].to_list()


def _rows_of_timeouts(silences: pl.DataFrame) -> pl.DataFrame:
    rows = silences.with_columns((pl.col("round") == 1).cum_sum().alias("row"))
    times = pl.col("waited_ms").cum_sum().over("row") / pl.col("rto_ms").first().over("row")
    rows = rows.select((pl.col("round") - 1 + pl.col("timeouts")).alias("round"), times.alias("t"))
    seen = (
        rows.filter(pl.col("round") <= _ROUNDS)
        .group_by("round")
        .agg(
            pl.col("t").quantile(0.1).alias("low"),
            pl.col("t").median().alias("median"),
            pl.col("t").quantile(0.9).alias("high"),
        )
    )
    return seen.sort("round")


def _found(run: Run) -> dict[str, pl.DataFrame]:
    """Findings in the captures of all runs, with the ground truth, cached in the result."""
    if not all(("inference", key) in run.derived for key in _KEYS):
        found = [_of_one(run, index) for index in range(run.runs.height)]
        for key, frames in zip(_KEYS, zip(*found, strict=True), strict=True):
            run.derived["inference", key] = pl.concat(frames)
    return {key: run.derived["inference", key] for key in _KEYS}


def _of_one(run: Run, index: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    keys = run.runs[index].select("run_id", *run.key_columns)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "run.toml"
        file.write_text(run.resolved[index], encoding="utf-8")
        simulate(file, pcap=_AT_CLIENTS, pcap_dir=scratch)
        (capture,) = Path(scratch).glob("*/*.pcapng")
        found = infer(capture)
    there = run.flows.join(keys.select("run_id"), on="run_id").select(
        (pl.col("flow_id").cast(pl.Int64) + _PORT).alias("server_port"),
        # Timeouts of SYNs lost before the client are not visible there.
        (pl.col("rto_count").cast(pl.Int64) - pl.col("rto_syn").cast(pl.Int64))
        .clip(0)
        .alias("timeouts_there"),
    )
    connections = found.connections.select(
        "connection", pl.col("server_port").cast(pl.Int64), pl.col("timeouts").cast(pl.Int64)
    ).join(there, on="server_port", how="right")
    silences = found.silences.filter(
        (pl.col("kind") == "timeout") & (pl.col("what") == "data") & (pl.col("rto_ms") > 0)
    ).select("round", "timeouts", "waited_ms", "rto_ms")
    return (
        keys.join(connections.with_columns(pl.col("timeouts").fill_null(0)), how="cross"),
        keys.join(silences, how="cross"),
    )
