"""Table of a link's statistics, and figure of its queues over time."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.results import TextTable, number

if TYPE_CHECKING:
    from rich.table import Table

    from cwnd.link.settings import LinkOutcome

#: Units of rates; the largest unit that is at most the rate is used.
_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
#: Maximum length of the command in the title, in characters.
_TITLE = 80
_HEADINGS = [
    "direction",
    "rate",
    "carried",
    "packets",
    "dropped",
    "marked",
    "qdelay\np50",
    "qdelay\np99",
    "late\np50",
    "late\np99",
]


def table(outcome: LinkOutcome) -> Table:
    """Formats a row for each direction."""
    summary = outcome.summary
    rows = [_row(row, summary["directions"][row["link"]]) for row in outcome.links()]
    about = [
        f"{summary['elapsed_s']:.1f} s",
        "qdelay, late: ms",
        "late: from when a packet was due to when the router sent it",
    ]
    title = textwrap.shorten(shlex.join(outcome.command), _TITLE, placeholder=" …")
    return TextTable(title, about, 1, _HEADINGS, rows).rich()


def _row(link: dict[str, Any], direction: dict[str, Any]) -> tuple[str, ...]:
    used = link["utilisation"]
    return (
        link["link"],
        "none" if link["rate_bit_s"] is None else _rate(link["rate_bit_s"]),
        _rate(direction["sent_bit_s"]) + ("" if used is None else f" ({used:.1%})"),
        str(link["arrived_total_pkts"]),
        _counts(direction["drops"]),
        _counts(direction["marks"]),
        *(_ms(link[f"qdelay_{q}_us"]) for q in ("p50", "p99")),
        *(_ms(direction[f"late_{q}_us"]) for q in ("p50", "p99")),
    )


def _counts(by_reason: dict[str, int]) -> str:
    if len(by_reason) <= 1:
        return "".join(f"{count} ({reason})" for reason, count in by_reason.items()) or "0"
    each = ", ".join(f"{reason} {count}" for reason, count in by_reason.items())
    return f"{sum(by_reason.values())} ({each})"


def _rate(bit_s: float) -> str:
    scale, unit = next((found for found in _RATES if bit_s >= found[0]), _RATES[-1])
    return f"{number(round(bit_s / scale, 3))} {unit}"


def _ms(us: float | None) -> str:
    return "" if us is None else f"{us / 1000:.2f}"


_DIRECTIONS = ("downlink", "uplink")
#: Height of a panel in inches.
_PANEL = 1.5


def picture(samples: pl.DataFrame) -> Picture | None:
    """Draws queueing delay, backlog, and cumulative drops and marks of both directions.

    `samples` is the table `link_series` of a link. The result is `None` if no packet left a queue.
    """
    if samples.is_empty() or samples["deq"].max() == 0:
        return None
    hits = pl.col("drop") + pl.col("mark")
    panels = [
        _panel(samples, "Queueing delay (ms)", pl.col("sojourn_us") / 1e3),
        _panel(samples, "Waiting (packets)", pl.col("qlen_pkts")),
        _panel(samples, "Drops and marks so far", hits),
    ]
    return Picture(panels, height=_PANEL * len(panels) + 0.5, x_label="Time (s)", shared_y="row")


def _panel(samples: pl.DataFrame, label: str, value: pl.Expr) -> Panel:
    lines = []
    for index, name in enumerate(_DIRECTIONS):
        mine = samples.filter(pl.col("link") == name).select("time_s", value.alias("value"))
        lines.append(
            Line(
                mine["time_s"].to_list(),
                mine["value"].cast(pl.Float64).to_list(),
                colour=line_style.colour(index),
                dashes=line_style.dashes(index),
                steps=True,
                label=name,
            )
        )
    return Panel(lines, y_label=label, x_tight=True, y_limits=(0, None))
