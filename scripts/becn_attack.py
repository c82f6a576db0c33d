"""Goodput under forged source quenches: a table and a figure of quench.md.

`scripts/becn_attack.py --page` measures again, writes the table and draws the figure into
docs/images/messengers; the tests run a part again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables
from cwnd.figures import Figure, Line, Panel, Picture, line_style
from cwnd.plots import save

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "messengers" / "quench.md"
IMAGES = ROOT / "docs" / "images" / "messengers"
TABLE = "scripts/becn_attack.py: goodput"
#: Attackers whose lines lie under those of others.
UNDERNEATH = ("blind", "knows the ports, all believed")


def measured(overrides: Mapping[str, object] | None = None) -> cwnd.Run:
    """The runs of docs/messengers/attack.toml."""
    return cwnd.run(PAGE.with_name("attack.toml"), set=dict(overrides or {}))


def goodput(run: cwnd.Run) -> dict[str, list[float]]:
    """Mbit/s of each attacker by quenches a second, means over seeds."""
    attack, rate = (axis.column for axis in run.axes)
    mean = (pl.col("goodput_bit_s") / 1e6).mean()
    means = run.flows.group_by(attack, rate, maintain_order=True).agg(mbit_s=mean)
    parts = means.group_by(attack, maintain_order=True)
    return {str(label): part["mbit_s"].to_list() for (label,), part in parts}


def table(run: cwnd.Run) -> list[str]:
    """Goodput, Mbit/s: rows of attackers by quenches a second."""
    lines = page_tables.head(["quenches a second", *run.axes[1].labels])
    for label, means in goodput(run).items():
        lines.append(page_tables.line([label, *(f"{mean:.2f}" for mean in means)]))
    return lines


def draw(run: cwnd.Run) -> Picture:
    """Goodput by rate on a logarithmic axis, a line for each attacker."""
    rates = [float(label.replace(",", "")) for label in run.axes[1].labels]
    lines = [
        Line(
            rates,
            means,
            line_style.colour(index),
            width=2.4 if label in UNDERNEATH else 1.0,
            marker=line_style.marker(index),
            label=label,
        )
        for index, (label, means) in enumerate(goodput(run).items())
    ]
    panel = Panel(lines, x_log=True, y_limits=(0, 10))
    panel.x_label, panel.y_label = "Forged source quenches a second", "Goodput (Mbit/s)"
    return Picture([panel], 3.1, 6.2)


def main() -> None:
    """Measures, and writes what the page shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write table and figure")
    given = parser.parse_args()
    run = measured()
    lines = table(run)
    sys.stdout.write("\n".join(lines) + "\n")
    if given.page:
        page_tables.write(PAGE, TABLE, lines)
        save(Figure(draw(run)), IMAGES, "attack")


if __name__ == "__main__":
    main()
