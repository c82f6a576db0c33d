"""Results as tables for people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from rich import box
from rich.table import Table

from cwnd.metrics import METRICS, Metric, main_link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results import Run

#: What the table of results shows, in its order.
COLUMNS = (
    "goodput_bit_s",
    "utilisation",
    "qdelay_p50_us",
    "qdelay_p90_us",
    "drops",
    "marks",
    "reductions_loss",
    "reductions_ecn",
    "rto_count",
)
#: Shown as well when there is something to show.
OPTIONAL = ("jain", "fct_s")
#: Short headings; the metric's label is the long one.
_HEADINGS = {
    "goodput_bit_s": "goodput",
    "utilisation": "utilis.",
    "qdelay_p50_us": "qdelay\np50",
    "qdelay_p90_us": "qdelay\np90",
    "drops": "drops",
    "marks": "marks",
    "reductions_loss": "reduct.\nby loss",
    "reductions_ecn": "reduct.\nby ECN",
    "rto_count": "time-\nouts",
    "jain": "Jain's\nindex",
    "fct_s": "FCT\nmean",
    "rtt_p50_us": "RTT\np50",
    "retrans": "retrans",
}
#: What the table of groups shows.
_GROUP_COLUMNS = (
    "goodput_bit_s",
    "rtt_p50_us",
    "retrans",
    "reductions_loss",
    "reductions_ecn",
    "rto_count",
    "jain",
    "fct_s",
)
#: Rates are shown in the unit that leaves the largest mean with digits before the point.
_RATE_UNITS = (("kbit/s", 1e-3), ("Mbit/s", 1e-6), ("Gbit/s", 1e-9))
#: Significant digits of a value without an interval.
_DIGITS = 3


@dataclass(frozen=True)
class Shown:
    """A metric in the unit that a table shows it in."""

    metric: Metric
    unit: str
    scale: float

    @classmethod
    def of(cls, metric: Metric, means: Sequence[float | None]) -> Shown:
        """Chooses the unit from what is to be shown."""
        largest = max((abs(mean) for mean in means if mean is not None), default=0.0)
        if metric.unit != "Mbit/s" or largest == 0:
            return cls(metric, metric.unit, metric.scale)
        fitting = [(u, s) for u, s in _RATE_UNITS if largest * s >= 1]
        unit, scale = fitting[-1] if fitting else _RATE_UNITS[0]
        return cls(metric, unit, scale)

    @property
    def heading(self) -> str:
        """The heading of its column."""
        name = _HEADINGS.get(self.metric.column, self.metric.label)
        return f"{name}\n{self.unit}" if self.unit else name

    def text(self, mean: float | None, half_width: float | None) -> str:
        """The mean, with its interval if it has one."""
        if mean is None:
            return "–"
        mean *= self.scale
        if half_width is None:
            return number(mean)
        half_width *= self.scale
        places = _places(half_width) if half_width > 0 else _default_places(mean)
        return f"{mean:.{places}f} ±{half_width:.{places}f}"


def number(value: float) -> str:
    """A number with three significant digits, whole numbers whole."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.{_default_places(value)}f}"


def _default_places(value: float) -> int:
    if value == 0 or value == int(value):
        return 0
    return min(6, max(0, _DIGITS - 1 - math.floor(math.log10(abs(value)))))


def _places(half_width: float) -> int:
    # Two digits of the interval say how many of the mean are worth reading.
    return min(6, max(0, 1 - math.floor(math.log10(half_width))))


def result_table(run: Run, link: str | None = None) -> Table:
    """One row per point of the sweep, each metric with the half-width of its 95 % interval."""
    link = link if link is not None else main_link(run)
    summary = run.summary(link=link)
    columns = [c for c in COLUMNS if not _empty(summary, c)]
    columns += [c for c in OPTIONAL if not _empty(summary, c)]
    seeds = max(summary["n"].to_list(), default=0)
    caption = f"link {link}, after the warm-up" if link is not None else None
    if seeds > 1:
        caption = f"{caption or ''}; mean ± 95 % confidence of {seeds} seeds".removeprefix("; ")
    table = _table(run.name, caption)
    for axis in run.axes:
        table.add_column(axis.name, no_wrap=True)
    _fill(table, summary, run.axis_columns, columns)
    return table


def group_table(run: Run) -> Table | None:
    """One row per point of the sweep and group of flows; `None` if there is one group only."""
    groups = run.flows["group"].unique(maintain_order=True).to_list()
    if len(groups) < 2:  # noqa: PLR2004
        return None
    parts = [
        run.summary(_GROUP_COLUMNS, group=group).with_columns(pl.lit(group).alias("group"))
        for group in groups
    ]
    counts = run.flows.group_by("run_id", "group").len()
    flows = dict(counts.group_by("group").agg(pl.col("len").mean()).iter_rows())
    order = pl.concat(part.with_row_index("point") for part in parts).sort(
        "point", maintain_order=True
    )
    columns = [c for c in _GROUP_COLUMNS if not _empty(order, c)]
    table = _table(None, "by group of flows (goodput of all its flows together)")
    for axis in run.axes:
        table.add_column(axis.name, no_wrap=True)
    table.add_column("group", no_wrap=True)
    names = [f"{group} ({number(flows.get(group, 0))})" for group in order["group"]]
    shown = order.with_columns(pl.Series("group", names))
    _fill(table, shown, [*run.axis_columns, "group"], columns)
    return table


def _table(title: str | None, caption: str | None) -> Table:
    return Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        header_style="bold",
        title_style="bold",
        caption_style="dim",
        pad_edge=False,
    )


def _fill(table: Table, rows: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]) -> None:
    shown = [Shown.of(METRICS[column], rows[column].to_list()) for column in columns]
    for each in shown:
        table.add_column(each.heading, justify="right", no_wrap=True)
    previous: tuple[str, ...] = ()
    for row in rows.iter_rows(named=True):
        key = tuple(str(row[name]) for name in keys)
        # A line between the blocks of the outermost axis makes a long table readable.
        if len(keys) > 1 and previous and previous[0] != key[0]:
            table.add_section()
        previous = key
        cells = [
            each.text(row[each.metric.column], row[f"{each.metric.column}_ci95"]) for each in shown
        ]
        table.add_row(*key, *cells)


def _empty(summary: pl.DataFrame, column: str) -> bool:
    return summary[column].null_count() == summary.height
