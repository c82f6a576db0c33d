"""Figure of a link's queues over time."""

from __future__ import annotations

import polars as pl

from cwnd.figures import Line, Panel, Picture, line_style

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
