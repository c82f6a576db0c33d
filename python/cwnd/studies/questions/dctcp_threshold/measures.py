"""DCTCP and NewReno by a switch's marking threshold K, and beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Line, Panel, Picture, Rule, line_style
from cwnd.study import table

if TYPE_CHECKING:
    from cwnd.results import Run

_MEASURES = ("utilisation", "qdelay_mean_us", "qdelay_p99_us", "mark_ratio")


def means(run: Run) -> pl.DataFrame:
    """Means over seeds of the bottleneck, a row for each `threshold` and `arm`."""
    axes = ["arm", "threshold"]
    links = run.links.filter(pl.col("link") == "bottleneck").select("run_id", *_MEASURES)
    runs = run.runs.select("run_id", pl.col(axes).cast(pl.String))
    joined = runs.join(links, on="run_id", maintain_order="left")
    return joined.group_by(axes, maintain_order=True).agg(pl.col(_MEASURES).mean())


def threshold(run: Run) -> list[str]:
    """Formats a row for each K and a column for each arm.

    A cell has means over seeds: utilisation, mean and 99th percentile of the queueing delay, and
    share of packets marked.
    """
    found = means(run)

    def us(value: float) -> str:
        return f"{value:.0f} µs" if value >= 10 else f"{value:.1f} µs"  # noqa: PLR2004

    rows = (
        [
            str(k),
            *(
                f"{100 * row['utilisation']:.1f} %, {us(row['qdelay_mean_us'])}, "
                f"{us(row['qdelay_p99_us'])}, {100 * row['mark_ratio']:.0f} %"
                for row in part.iter_rows(named=True)
            ),
        ]
        for (k,), part in found.group_by("threshold", maintain_order=True)
    )
    return table(["K, BDP", *found["arm"].unique(maintain_order=True)], rows)


def beside(run: Run) -> list[str]:
    """Share of the link of each pair of flows."""
    rates = run.flows.group_by(pl.col("group").cast(pl.String), maintain_order=True).agg(
        pl.col("throughput_bit_s").sum()
    )
    total = rates["throughput_bit_s"].sum()
    rows = ([group, f"{100 * rate / total:.0f} %"] for group, rate in rates.iter_rows())
    return table(["two flows of", "share of the link"], rows)


def draw(run: Run) -> Picture:
    """Use and mean queueing delay by K."""
    seventh = Rule(x=1 / 7, colour=line_style.colour(3), label="K = 1/7 (eq. 13)")
    use = Panel([seventh], y_label="Utilisation (%)", x_log=True)
    delay = Panel([seventh], y_label="Mean queueing delay (µs)", x_log=True, y_log=True)
    for index, ((arm,), part) in enumerate(means(run).group_by("arm", maintain_order=True)):
        thresholds = part["threshold"].cast(pl.Float64).to_list()
        for panel, values in ((use, 100 * part["utilisation"]), (delay, part["qdelay_mean_us"])):
            line = Line(thresholds, values.to_list(), line_style.colour(index), label=str(arm))
            line.marker = line_style.marker(index)
            panel.marks = [*panel.marks, line]
    return Picture([use, delay], 3.0, columns=2, x_label="K (BDP)", shared_y="none")


TABLES = {"threshold": threshold, "beside": beside}
FIGURES = {"threshold": draw}
