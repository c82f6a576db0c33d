"""Goodput under forged source quenches: a table and a figure of docs/messengers/quench.md.

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
from cwnd.plots import style

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "messengers" / "quench.md"
IMAGES = ROOT / "docs" / "images" / "messengers"
TABLE = "scripts/becn_attack.py: goodput"


def measured(overrides: Mapping[str, object] | None = None) -> cwnd.Run:
    """The runs of docs/messengers/attack.toml."""
    return cwnd.run(PAGE.with_name("attack.toml"), set=dict(overrides or {}))


def table(run: cwnd.Run) -> list[str]:
    """Goodput, Mbit/s, mean over seeds: rows of attackers by quenches a second."""
    attack, rate = (axis.column for axis in run.axes)
    means = run.flows.group_by(attack, rate, maintain_order=True).agg(
        (pl.col("goodput_bit_s") / 1e6).mean().alias("mbit_s")
    )
    labels = run.axes[1].labels
    lines = page_tables.head(["quenches a second", *labels])
    for (label,), part in means.group_by(attack, maintain_order=True):
        lines.append(page_tables.line([str(label), *(f"{value:.2f}" for value in part["mbit_s"])]))
    return lines


def draw(run: cwnd.Run) -> None:
    """Goodput by rate on a logarithmic axis, a line for each attacker."""
    attack, rate = (axis.column for axis in run.axes)
    rates = [float(label.replace(",", "")) for label in run.axes[1].labels]
    with style.styled():
        figure = style.figure(3.1, width=6.2)
        axes = figure.subplots()
        for index, label in enumerate(run.axes[0].labels):
            mine = run.flows.filter(pl.col(attack).cast(pl.String) == label)
            means = mine.group_by(rate, maintain_order=True).agg(pl.col("goodput_bit_s").mean())
            axes.plot(
                rates,
                (means["goodput_bit_s"] / 1e6).to_list(),
                color=style.colour(index),
                marker="osv^Dx"[index],
                markersize=3.5,
                # Whom the check stops, lies under each other.
                linewidth=2.4 if index == 0 else 1.0,
                label=label,
            )
        axes.set(xscale="log", ylim=(0, 10), xlabel="Forged source quenches a second")
        axes.set_ylabel("Goodput (Mbit/s)")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    for kind, data in style.render(figure, "png", "svg").items():
        (IMAGES / f"attack.{kind}").write_bytes(data)


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
        IMAGES.mkdir(parents=True, exist_ok=True)
        draw(run)


if __name__ == "__main__":
    main()
