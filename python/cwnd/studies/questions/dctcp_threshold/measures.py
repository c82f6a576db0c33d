"""DCTCP by a switch's marking threshold: table and figure of docs/reference/controllers/dctcp.md.

`scenarios/dctcp.toml` is run; `--page` writes them again, a test runs a part.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables
from cwnd.figures import Figure, Line, Panel, Picture, Rule, line_style
from cwnd.plots import save

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "dctcp.toml"
PAGE = ROOT / "docs" / "reference" / "controllers" / "dctcp.md"
IMAGES = ROOT / "docs" / "images" / "controllers"
TABLE = "scripts/dctcp_threshold.py"
MEASURES = ("utilisation", "qdelay_mean_us", "qdelay_p99_us", "mark_ratio")


def measure(overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """Means over seeds of the bottleneck, a row for each `threshold` and `arm`."""
    run = cwnd.run(SCENARIO, set=dict(overrides or {}))
    axes = ["arm", "threshold"]
    links = run.links.filter(pl.col("link") == "bottleneck").select("run_id", *MEASURES)
    runs = run.runs.select("run_id", pl.col(axes).cast(pl.String))
    joined = runs.join(links, on="run_id", maintain_order="left")
    return joined.group_by(axes, maintain_order=True).agg(pl.col(MEASURES).mean())


def table(found: pl.DataFrame) -> list[str]:
    """Use, mean queueing delay, its 99th percentile and marks."""
    arms = found["arm"].unique(maintain_order=True).to_list()
    lines = page_tables.head(["K, BDP", *arms])

    def us(value: float) -> str:
        return f"{value:.0f} µs" if value >= 10 else f"{value:.1f} µs"  # noqa: PLR2004

    for (threshold,), part in found.group_by("threshold", maintain_order=True):
        cells = [
            f"{100 * row['utilisation']:.1f} %, {us(row['qdelay_mean_us'])}, "
            f"{us(row['qdelay_p99_us'])}, {100 * row['mark_ratio']:.0f} %"
            for row in part.iter_rows(named=True)
        ]
        lines.append(page_tables.line([str(threshold), *cells]))
    return lines


def draw(found: pl.DataFrame) -> Picture:
    """Use and mean queueing delay by K."""
    seventh = Rule(x=1 / 7, colour=line_style.colour(3), label="K = 1/7 (eq. 13)")
    use = Panel([seventh], y_label="Utilisation (%)", x_log=True)
    delay = Panel([seventh], y_label="Mean queueing delay (µs)", x_log=True, y_log=True)
    for index, ((arm,), part) in enumerate(found.group_by("arm", maintain_order=True)):
        thresholds = part["threshold"].cast(pl.Float64).to_list()
        how = {"marker": line_style.marker(index), "label": str(arm)}
        for panel, values in ((use, 100 * part["utilisation"]), (delay, part["qdelay_mean_us"])):
            line = Line(thresholds, values.to_list(), line_style.colour(index), **how)
            panel.marks = [*panel.marks, line]
    return Picture([use, delay], 3.0, columns=2, x_label="K (BDP)", shared_y="none")


def main() -> None:
    """Measures, and writes what the page shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the table and the figure")
    given = parser.parse_args()
    found = measure()
    lines = table(found)
    sys.stdout.write("\n".join(lines) + "\n")
    if given.page:
        page_tables.write(PAGE, TABLE, lines)
        save(Figure(draw(found)), IMAGES, "dctcp")


if __name__ == "__main__":
    main()
