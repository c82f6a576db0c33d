"""Delay-based controllers: tables of docs/explanation/rtt.md and of pages in docs/controllers.

`scripts/heeding_delay.py --page` measures again and writes them; the tests run a part again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROUND_TRIPS = DOCS / "explanation" / "rtt.md"
CONTROLLER = DOCS / "reference" / "controllers" / "delay-aimd.md"
LATECOMERS = DOCS / "reference" / "controllers" / "ledbat.md"
BBR = DOCS / "reference" / "controllers" / "bbr.md"


def reverse(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Goodput of all flows there, the queue that they saw and that there was, means over seeds."""
    run = cwnd.run(DOCS / "rtt" / "reverse.toml", set=dict(overrides or {}))
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


def beside(overrides: Mapping[str, object] | None = None) -> list[str]:
    """The share of goodput of flows beside as many CUBIC flows, per cent, the mean over seeds."""
    return _shares(CONTROLLER, "beside CUBIC", overrides)


def beside_bbr(overrides: Mapping[str, object] | None = None) -> list[str]:
    """The share of goodput of flows beside as many BBR flows, per cent, the mean over seeds."""
    return _shares(BBR, "beside BBR", overrides)


def _shares(page: Path, first: str, overrides: Mapping[str, object] | None) -> list[str]:
    run = cwnd.run(page.with_suffix("") / "beside.toml", set=dict(overrides or {}))
    kind, queue = (axis.column for axis in run.axes)
    rows = run.per_run(by="group").filter(pl.col("group") == "heeds")
    shares = rows.group_by(kind, queue, maintain_order=True).agg(pl.col("goodput_share").mean())
    texts = {(str(a), str(b)): f"{100 * share:.0f}" for a, b, share in shares.iter_rows()}
    return _grid(first, run.axes[0].labels, run.axes[1].labels, texts)


def late(overrides: Mapping[str, object] | None = None) -> list[str]:
    """The last of flows that begin one after the other; means over seeds.

    Its goodput in shares of the others' mean, by how much it takes the round trip for longer than
    it is (ms), and the queueing delay (ms).
    """
    run = cwnd.run(LATECOMERS.with_suffix("") / "late.toml", set=dict(overrides or {}))
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


#: Table → the function that measures it, and its page.
TABLES = {
    "reverse": (reverse, ROUND_TRIPS),
    "beside": (beside, CONTROLLER),
    "late": (late, LATECOMERS),
    "beside-bbr": (beside_bbr, BBR),
}


def named(table: str) -> str:
    """Returns the name of a table on its page."""
    return f"scripts/heeding_delay.py: {table}"


def _grid(
    first: str, rows: list[str], columns: list[str], texts: Mapping[tuple[str, str], str]
) -> list[str]:
    lines = page_tables.head([first, *columns])
    cells = ([row, *(texts[row, column] for column in columns)] for row in rows)
    return lines + [page_tables.line(each) for each in cells]


def main() -> None:
    """Measures, and writes what the pages show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which; else all")
    given = parser.parse_args()
    for name in given.tables or TABLES:
        table, page = TABLES[name]
        lines = table()
        sys.stdout.write("\n".join(lines) + "\n\n")
        if given.page:
            page_tables.write(page, named(name), lines)


if __name__ == "__main__":
    main()
