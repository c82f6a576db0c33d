"""Effect of each part of preset `linux`: the table of docs/reference/endpoint.md.

`scripts/endpoint_parts.py --page` runs `docs/endpoint/parts.toml` and writes it. Linux's
numbers over the same paths come from worlds/kernel.
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
PAGE = DOCS / "reference" / "endpoint.md"
WORLDS = DOCS.parent / "python" / "cwnd" / "studies" / "worlds" / "kernel"
SCENARIO = DOCS / "endpoint" / "parts.toml"
TABLE = "scripts/endpoint_parts.py"
REPEATED = "50mbit.csv"
#: Setting → file of worlds/kernel and the queue, round-trip time and arm of Linux's row there.
LINUX = {
    "CUBIC, FIFO, 20 ms": ("10mbit.csv", "FIFO 1 BDP", "20 ms", "CUBIC"),
    "CUBIC, FIFO, 200 ms": ("10mbit.csv", "FIFO 1 BDP", "200 ms", "CUBIC"),
    "Reno, PIE, 100 ms": ("10mbit.csv", "PIE", "100 ms", "Reno"),
    "Reno, PIE, 200 ms": ("10mbit.csv", "PIE", "200 ms", "Reno"),
    "Reno, PIE, 50 Mbit/s, 100 ms": (REPEATED, "PIE", "100 ms", "Reno"),
    "Reno+ABE, PIE, 50 Mbit/s, 100 ms": (REPEATED, "PIE", "100 ms", "Reno+ABE"),
}


def again(setting: str) -> bool:
    """`true` if retransmissions are compared: over FIFO the goodput of all fills the path."""
    return "FIFO" in setting


def text(setting: str, mean: float, error: float) -> str:
    """A mean with its interval, as the table says it."""
    return page_tables.interval(mean, error, 0 if again(setting) else 2)


def linux(setting: str) -> str:
    """Returns Linux's mean and interval in a setting."""
    file, *of = LINUX[setting]
    metric = "Retransmissions" if again(setting) else "Goodput"
    whose = dict(zip(("queue", "rtt", "arm"), of, strict=True), group="*", metric=metric)
    row = pl.read_csv(WORLDS / file).filter(**whose)
    return text(setting, row["linux"][-1], row["linux_ci95"][-1])


def measure(overrides: Mapping[str, object] | None = None) -> dict[str, dict[str, str]]:
    """Returns setting → part that is left out → mean and interval."""
    run = cwnd.run(SCENARIO, set=dict(overrides or {}))
    names = [pl.col(axis.column).cast(pl.String) for axis in run.axes]
    found: dict[str, dict[str, str]] = {}
    for row in run.summary(["goodput_bit_s", "retrans"]).with_columns(names).to_dicts():
        column, scale = ("retrans", 1.0) if again(row["setting"]) else ("goodput_bit_s", 1e-6)
        mean, error = scale * row[column], scale * (row[f"{column}_ci95"] or 0.0)
        found.setdefault(row["setting"], {})[row["without"]] = text(row["setting"], mean, error)
    return found


def table(found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The lines of the page."""
    parts = list(next(iter(found.values())))
    lines = page_tables.head(["", "Linux", "preset `linux`", *(f"without {p}" for p in parts[1:])])
    for setting, values in found.items():
        what = "sent again" if again(setting) else "Mbit/s"
        cells = [f"{setting}: {what}", linux(setting), *(values[part] for part in parts)]
        lines.append(page_tables.line(cells))
    return lines


def main() -> None:
    """Measures, and writes what the page shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the table")
    given = parser.parse_args()
    lines = table(measure())
    sys.stdout.write("\n".join(lines) + "\n")
    if given.page:
        page_tables.write(PAGE, TABLE, lines)


if __name__ == "__main__":
    main()
