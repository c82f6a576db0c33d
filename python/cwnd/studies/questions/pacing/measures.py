"""Effects of pacing and of TSO chunks: the simulator beside recorded rows of Linux."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from cwnd.results import Estimate
from cwnd.study import interval, table

if TYPE_CHECKING:
    from cwnd.results import Run

SHOWN = (("goodput_mbit_s", 1), ("qdelay_mean_ms", 1), ("drops", 0), ("marks", 0))


def rows(run: Run) -> pl.DataFrame:
    """A row for each seed, as Linux's rows are, with the labels of the axes."""
    axes = [pl.col(axis.column).cast(pl.String).alias(axis.name) for axis in run.axes]
    goodput = pl.col("goodput_bit_s")
    bbr = goodput.filter(pl.col("group").cast(pl.String) == "bbr").sum()
    flows = run.flows.group_by("run_id", maintain_order=True).agg(
        goodput_mbit_s=goodput.sum() / 1e6, share=bbr / goodput.sum()
    )
    line = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck").select(
        "run_id",
        drops=pl.col("dropped_pkts").cast(pl.Float64),
        marks=pl.col("marked_pkts").cast(pl.Float64),
        qdelay_mean_ms=pl.col("qdelay_mean_us") / 1e3,
    )
    names = run.runs.select("run_id", *axes)
    return names.join(flows, on="run_id").join(line, on="run_id", maintain_order="left")


def alone(cubic: Run, reno: Run, bbr: Run, recorded: pl.DataFrame) -> list[str]:
    """Single flows: the simulator's mean, Linux's mean. BBR paces segments in any setting."""
    ours = {"cubic": rows(cubic), "reno": rows(reno), "bbr": rows(bbr)}
    names = {name: run.axes[1].labels for name, run in (("cubic", cubic), ("reno", reno))}
    lines = []
    for path in cubic.axes[0].labels:
        for controller, settings in {**names, "bbr": ("chunks", "segments")}.items():
            for setting in settings:
                simulated = ours[controller].filter(path=path)
                if controller in names:
                    simulated = simulated.filter(setting=setting)
                theirs = recorded.filter(path=path, controller=controller, setting=setting)
                cells = (
                    f"{fmean(simulated[column]):.{digits}f} / {fmean(theirs[column]):.{digits}f}"
                    for column, digits in SHOWN
                )
                lines.append([path, controller, setting, *cells])
    head = ["path", "", "sent as", "goodput, Mbit/s", "mean delay, ms", "drops", "marks"]
    return table(head, lines)


def beside(run: Run, recorded: pl.DataFrame) -> list[str]:
    """BBR beside CUBIC: shares with their 95 % intervals."""
    simulated = rows(run)
    lines = []
    for buffer in run.axes[0].labels:
        for setting in run.axes[1].labels:
            ours = simulated.filter(buffer=buffer, setting=setting)
            theirs = recorded.filter(
                path=f"10 Mbit/s, 40 ms, {buffer}", controller="bbr+cubic", setting=setting
            )
            cells = (_interval(100 * each["share"]) for each in (ours, theirs))
            lines.append([buffer, setting, *cells])
    return table(["buffer", "CUBIC sends", "simulator, %", "Linux, %"], lines)


def _interval(values: pl.Series) -> str:
    found = Estimate.of(values.to_list())
    assert found is not None
    return interval(found.mean, found.half_width, 1)


TABLES = {"alone": alone, "beside": beside}
