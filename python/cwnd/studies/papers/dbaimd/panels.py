"""Parts of the delay-based AIMD thesis's figures."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.studies.papers.dbaimd.runs import (
    BOTTLENECK,
    along_flows,
    bound_ms,
    errors,
    share_of_windows,
    window_shares,
)
from cwnd.study import at, curve, first_seed, labels, marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.figures import Mark
    from cwnd.results import Run
    from cwnd.study import Point

#: Labels of axes of several figures.
TIME, WINDOW, RTT, DELAY = "Time (s)", "cwnd (packets)", "RTT (ms)", "Queueing delay (ms)"
GOODPUT, ERROR = "Goodput (Mbit/s)", "minRTT − baseRTT (ms)"
#: Limits of an axis that starts at zero.
FROM_ZERO = (0, None)
GREY = "#999999"


def queue_series(run: Run, of: Point) -> pl.DataFrame:
    """Samples of the bottleneck over time, of the first seed."""
    rows = at(run, run.link_series, of, link=BOTTLENECK)
    return first_seed(rows).sort("time_s")


def flow_series(run: Run, of: Point) -> pl.DataFrame:
    """Samples of the flows over time, of the first seed, with RTTs in ms."""
    rows = first_seed(at(run, run.series, of)).sort("time_s")
    return rows.with_columns(rtt=pl.col("rtt_seen_us") / 1e3, srtt=pl.col("srtt_us") / 1e3)


def of_group(rows: pl.DataFrame, group: str) -> pl.DataFrame:
    """Selects the rows of a group of flows."""
    return rows.filter(pl.col("group").cast(pl.String) == group)


def over_time(
    rows: pl.DataFrame, what: str, index: int, label: str | None = None, **how: Any
) -> Line:
    """Builds a line of a column over time."""
    return curve(rows["time_s"], rows[what], index, **{"width": 0.8, "label": label} | how)


def stacked(panels: Sequence[Panel], start: float, end: float, height: float = 3.2) -> Picture:
    """Arranges panels below each other, with a common range of time in seconds."""
    panels[0].x_limits = start, end
    return Picture(list(panels), height, 4.8, x_label=TIME, shared_y="none")


def side_by_side(*panels: Panel, height: float = 2.8) -> Picture:
    """Arranges panels side by side, without shared axes."""
    return Picture(list(panels), height, columns=len(panels), shared_x="none", shared_y="none")


def by_flows(run: Run, of: Point, what: str, index: int, label: str) -> Line:
    """Builds a line of means of a column of `of_runs` by the number of flows."""
    counts, rows = along_flows(run, of, what)
    return marks(zip(counts, zip(*rows, strict=True), strict=True), index, label)


def delay_curves(run: Run, of: Point, packet_b: float = 1500.0) -> list[Mark]:
    """Lines of peak and mean queueing delay by the number of flows, beside eq. 3.7."""
    drawn = [by_flows(run, of, what, index, what) for index, what in enumerate(("peak", "mean"))]
    counts = drawn[0].x
    bounds = [bound_ms(n, packet_b) for n in counts]
    eq_3_7 = Line(counts, bounds, "#4D4D4D", dashes=line_style.DASHES[1], label="eq. 3.7")
    return [*drawn, eq_3_7]


def circle(x: float, y: float, index: int = 0) -> Line:
    """A number of the thesis's text, as a hollow circle in the colour of its line."""
    colour = line_style.colour(index)
    return Line([x], [y], colour, joined=False, marker="o", hollow=True, size=9)


#: Number of window sizes with a line each.
_WINDOWS = 5


def window_panel(run: Run, of: Point, *more: Mark, title: str = "") -> Panel:
    """Builds a panel of the share of time of each window in whole packets, by number of flows."""
    shares = window_shares(run, of)
    counts = labels(run, "flows")
    below = [0.0] * len(counts)
    drawn: list[Mark] = []
    for index in range(_WINDOWS):
        last = index + 1 == _WINDOWS
        most = 10**6 if last else index + 1
        upto = [mean(share_of_windows(shares, n, most)) for n in counts]
        values = [a - b for a, b in zip(upto, below, strict=True)]
        label = f"cwnd {index + 1}{' and more' if last else ''}"
        how = {"marker": line_style.marker(index), "label": label}
        drawn.append(curve(map(int, counts), values, index, **how))
        below = upto
    y_label = "Share of time (%)"
    return Panel([*drawn, *more], title, x_label="Flows", y_label=y_label, y_limits=(0, 100))


def error_steps(rows: pl.DataFrame, index: int, label: str | None = None, **how: Any) -> Line:
    """Builds a step line of one flow's error, from its changes and its last sample."""
    changed = pl.col("error").ne_missing(pl.col("error").shift())
    last = pl.col("time_s") == pl.col("time_s").max()
    return over_time(rows.filter(changed | last), "error", index, label, steps=True, **how)


def error_panel(part: pl.DataFrame, title: str = "") -> Panel:
    """Builds a panel of the errors of all flows over time, each from its start."""
    drawn = [
        error_steps(mine, index, dashes=())
        for index, (_, mine) in enumerate(part.group_by("flow_id", maintain_order=True))
    ]
    return Panel(drawn, title, x_limits=(0, max(part["time_s"])), y_limits=FROM_ZERO)


def of_errors(panels: Sequence[Panel], height: float = 2.6, **more: Any) -> Picture:
    """Arranges panels of errors over time, with the same axes."""
    return Picture(list(panels), height, x_label=TIME, y_label=ERROR, **more)


def with_web(run: Run) -> Picture:
    """Describes errors of the long flows, without web users and with."""
    # The seed with the largest mean error without web users has the most to correct.
    most = errors(run, {"web": "none"}, "long").group_by("seed").agg(pl.col("error").mean())
    seed = most.sort("error", "seed")["seed"][-1]
    panels = []
    for web in reversed(labels(run, "web")):
        part = errors(run, {"web": web}, "long").filter(pl.col("seed") == seed)
        panels.append(error_panel(part, web if web != "none" else "no web users"))
    return of_errors(panels, columns=2)
