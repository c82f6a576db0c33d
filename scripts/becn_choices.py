"""What BECN's choices do: two tables of docs/messengers/quench.md.

`scripts/becn_choices.py --page` measures again and writes them; the tests run a part again.
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

DOCS = Path(__file__).resolve().parents[1] / "docs" / "messengers"
PAGE = DOCS / "quench.md"
END = "<!-- end -->\n"


def choices(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Utilisation, loss and mean queue of flows of one kind: rows of choices by settings."""
    run = cwnd.run(DOCS / "choices.toml", set=dict(overrides or {}))
    choice, setting = (axis.column for axis in run.axes)
    links = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    cells = links.group_by(choice, setting, maintain_order=True).agg(
        (100 * pl.col("utilisation")).mean().alias("used"),
        (100 * pl.col("dropped_pkts") / pl.col("arrived_pkts")).mean().alias("loss"),
        (pl.col("qlen_mean_bytes") / 1e3).mean().alias("queue_kb"),
    )
    lines = [_line(["", *run.axes[1].labels]), _line(["---"] * (1 + len(run.axes[1].labels)))]
    for (label,), part in cells.group_by(choice, maintain_order=True):
        told = [
            f"{used:.1f} %, {_percent(loss)}, {queue:.0f}"
            for used, loss, queue in part.select("used", "loss", "queue_kb").iter_rows()
        ]
        lines.append(_line([str(label), *told]))
    return lines


def beside(overrides: Mapping[str, object] | None = None) -> list[str]:
    """How much more goodput flows have than as many plain ones beside them."""
    run = cwnd.run(DOCS / "beside.toml", set=dict(overrides or {}))
    (choice,) = (axis.column for axis in run.axes)
    goodput = pl.col("goodput_bit_s")
    is_plain = pl.col("group").cast(pl.String) == "plain"
    rows = run.flows.group_by(choice, maintain_order=True).agg(
        (100 * (goodput.filter(~is_plain).sum() / goodput.filter(is_plain).sum() - 1)).alias("more")
    )
    head = [_line(["", "goodput, more than plain flows"]), _line(["---", "---"])]
    return head + [
        _line([str(label), f"{more:+.0f} %".replace("-", "−")]) for label, more in rows.iter_rows()
    ]


TABLES = {"choices": choices, "beside": beside}


def _percent(value: float) -> str:
    text = f"{value:.1f} %"
    return "0" if text == "0.0 %" else text


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measures both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write them into the page")
    given = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        lines = "\n".join(table()) + "\n"
        sys.stdout.write(f"{lines}\n")
        begin = f"<!-- scripts/becn_choices.py: {name} -->\n"
        if given.page:
            before, rest = text.split(begin)
            text = before + begin + lines + END + rest.partition(END)[2]
    if given.page:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
