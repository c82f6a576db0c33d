"""Linux's own Vegas and H-TCP, recorded in QEMU, beside the simulator's.

`make kernel-rows` records the files beside the scenarios.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run

    #: Heading of a column, its number and digits.
    Shown: TypeAlias = tuple[tuple[str, str, int], ...]

VEGAS: Shown = (
    ("goodput, Mbit/s", "goodput", 2),
    ("queue, ms", "wait", 1),
    ("window of the first, segments", "first_window", 0),
    ("last / first", "last_by_first", 2),
)
HTCP: Shown = (
    ("utilisation, %", "utilisation", 1),
    ("queue, ms", "wait", 1),
    ("window, segments", "first_window", 0),
    ("drops", "drops", 0),
)


def compared(run: Run, recorded: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Both worlds, a row for each cell.

    Returns:
        The axes' labels, and numbers of the simulator and, with `_linux`, of the kernel.
    """
    cells = run.runs.select(
        pl.int_range(pl.len()).alias("cell"),
        "run_id",
        *(pl.col(axis.column).cast(pl.String).alias(axis.name) for axis in run.axes),
    )
    names = cells.select("run_id", "cell")
    of_link = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    flows = run.flows.join(of_link, on="run_id").join(names, on="run_id")
    simulated = flows.select(
        "cell",
        flow=pl.col("flow_id").cast(pl.Int64),
        goodput_mbit_s=pl.col("goodput_bit_s") / 1e6,
        qdelay_mean_ms=pl.col("qdelay_mean_us") / 1e3,
        utilisation=pl.col("utilisation"),
        drops=pl.col("dropped_pkts"),
    )
    series = run.series.join(names, on="run_id").select(
        "cell",
        "time_s",
        flow=pl.col("flow_id").cast(pl.Int64),
        cwnd=pl.col("snd_cwnd_pkts"),
    )
    begin = run.runs["warmup_s"][0]
    both = _numbers(simulated, series, begin).join(
        _numbers(recorded, windows, begin), on="cell", suffix="_linux"
    )
    return cells.join(both, on="cell", maintain_order="left").drop("run_id", "cell")


def _numbers(flows: pl.DataFrame, series: pl.DataFrame, begin: float) -> pl.DataFrame:
    """Measures of each cell, after the warm-up."""
    after = series.filter((pl.col("time_s") > begin) & (pl.col("flow") == 0)).sort("time_s")
    windows = after.group_by("cell").agg(first_window=pl.col("cwnd").mean())
    totals = flows.group_by("cell").agg(
        goodput=pl.col("goodput_mbit_s").sum(),
        wait=pl.col("qdelay_mean_ms").first(),
        utilisation=pl.col("utilisation").first() * 100,
        drops=pl.col("drops").first(),
        last_by_first=pl.col("goodput_mbit_s").sort_by("flow").last()
        / pl.col("goodput_mbit_s").sort_by("flow").first(),
    )
    return totals.join(windows, on="cell")


def pairs(run: Run, recorded: pl.DataFrame, windows: pl.DataFrame, shown: Shown) -> list[str]:
    """The table of a controller: of each number the simulator's and the kernel's."""
    axes = [axis.name for axis in run.axes]
    rows = (
        [
            *(row[axis] for axis in axes),
            *(f"{row[n]:.{digits}f}, {row[f'{n}_linux']:.{digits}f}" for _, n, digits in shown),
        ]
        for row in compared(run, recorded, windows).iter_rows(named=True)
    )
    return table([*axes, *(heading for heading, _, _ in shown)], rows)


TABLES = {
    "vegas": lambda run, recorded, windows: pairs(run, recorded, windows, VEGAS),
    "htcp": lambda run, recorded, windows: pairs(run, recorded, windows, HTCP),
}
