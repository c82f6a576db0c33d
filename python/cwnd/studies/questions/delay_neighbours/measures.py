"""Delay-based controllers beside others, behind queues of the reverse path, and started late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.results import Run


def reverse(run: Run) -> list[str]:
    """Goodput of all flows there, the queue that they saw and that there was, means over seeds."""
    sees, back = (axis.column for axis in run.axes)
    seeds = pl.col("seed").n_unique()
    there = run.flows.filter(pl.col("group").cast(pl.String) == "there")
    rows = there.group_by(back, sees, maintain_order=True).agg(
        mbit_s=pl.col("goodput_bit_s").sum() / seeds / 1e6,
        seen=pl.col("qdelay_seen_us").mean() / 1e3,
        true=pl.col("qdelay_true_us").mean() / 1e3,
    )
    texts = {
        (row[back], row[sees]): f"{row['mbit_s']:.1f} Mbit/s, {row['seen']:.0f}, {row['true']:.0f}"
        for row in rows.iter_rows(named=True)
    }
    return _grid("the other way", run.axes[1].labels, run.axes[0].labels, texts)


def shares(run: Run, first: str) -> list[str]:
    """The share of goodput of flows beside as many others, per cent, the mean over seeds."""
    kind, queue = (axis.column for axis in run.axes)
    rows = run.per_run(by="group").filter(pl.col("group") == "heeds")
    found = rows.group_by(kind, queue, maintain_order=True).agg(pl.col("goodput_share").mean())
    texts = {(str(a), str(b)): f"{100 * share:.0f}" for a, b, share in found.iter_rows()}
    return _grid(first, run.axes[0].labels, run.axes[1].labels, texts)


def late(run: Run) -> list[str]:
    """The last of flows that begin one after the other; means over seeds.

    Its goodput in shares of the others' mean, by how much it takes the round trip for longer than
    it is (ms), and the queueing delay (ms).
    """
    scheme, flows = (axis.column for axis in run.axes)
    of_runs = run.flows.group_by("run_id", maintain_order=True).agg(
        last=pl.col("goodput_bit_s").last(),
        others=pl.col("goodput_bit_s").slice(0, pl.len() - 1).mean(),
        wrong=(pl.col("min_rtt_us") - pl.col("rtt_base_us")).last() / 1e3,
    )
    names = run.runs.select("run_id", *(pl.col(axis).cast(pl.String) for axis in (scheme, flows)))
    waits = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck").select(
        "run_id", wait=pl.col("qdelay_mean_us") / 1e3
    )
    rows = of_runs.join(names, on="run_id").join(waits, on="run_id")
    means = rows.group_by(scheme, flows, maintain_order=True).agg(
        share=(pl.col("last") / pl.col("others")).mean(),
        wrong=pl.col("wrong").mean(),
        wait=pl.col("wait").mean(),
    )
    texts = {
        (row[scheme], row[flows]): f"{row['share']:.2f}, {row['wrong']:.1f}, {row['wait']:.0f}"
        for row in means.iter_rows(named=True)
    }
    return _grid("the last of", run.axes[0].labels, run.axes[1].labels, texts)


def _grid(
    first: str,
    rows: Sequence[str],
    columns: Sequence[str],
    texts: Mapping[tuple[str, str], str],
) -> list[str]:
    cells = ([row, *(texts[row, column] for column in columns)] for row in rows)
    return table([first, *columns], cells)


TABLES = {
    "reverse": reverse,
    "beside-cubic": lambda run: shares(run, "beside CUBIC"),
    "beside-bbr": lambda run: shares(run, "beside BBR"),
    "late": late,
}
