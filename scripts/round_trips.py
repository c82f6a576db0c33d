"""What senders see of queues on the way of their ACKs: a table of docs/rtt.md.

`scripts/round_trips.py --page` measures again and writes it; the tests run a part again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = Path(__file__).resolve().parents[1] / "docs" / "rtt.md"
BEGIN = "<!-- scripts/round_trips.py: reverse -->\n"
END = "<!-- end -->\n"


def reverse(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Goodput of all flows there, the queue that they saw and that there was, means over seeds."""
    run = cwnd.run(PAGE.with_suffix("") / "reverse.toml", set=dict(overrides or {}))
    sees, back = (axis.column for axis in run.axes)
    seeds = pl.col("seed").n_unique()
    there = run.flows.filter(pl.col("group").cast(pl.String) == "there")
    rows = there.group_by(back, sees, maintain_order=True).agg(
        mbit_s=pl.col("goodput_bit_s").sum() / seeds / 1e6,
        seen=pl.col("qdelay_seen_us").mean() / 1e3,
        true=pl.col("qdelay_true_us").mean() / 1e3,
    )
    labels = run.axes[0].labels
    texts = {
        (row[back], row[sees]): f"{row['mbit_s']:.1f} Mbit/s, {row['seen']:.0f}, {row['true']:.0f}"
        for row in rows.iter_rows(named=True)
    }
    lines = [_line(["the other way", *labels]), _line(["---"] * (1 + len(labels)))]
    lines += [
        _line([name, *(texts[name, label] for label in labels)]) for name in run.axes[1].labels
    ]
    return lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measures, and writes what the page shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the table")
    given = parser.parse_args()
    lines = "\n".join(reverse()) + "\n"
    sys.stdout.write(lines)
    if given.page:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + lines + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
