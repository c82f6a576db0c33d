"""What the figures of the delay-based AIMD thesis are put together from."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.papers.dbaimd.runs import (
    BOTTLENECK,
    along_flows,
    bound_ms,
    errors,
    of_runs,
    share_of_windows,
    window_shares,
)
from cwnd.plots import style
from cwnd.reproduce import at, labels
from cwnd.results import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.reproduce import Point
    from cwnd.results import Run


def warm(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows after the warm-up."""
    return rows.filter(pl.col("time_s") >= run.runs["warmup_s"].max())


def queue_series(run: Run, of: Point) -> pl.DataFrame:
    """The bottleneck over time, of the first seed."""
    rows = at(run, run.link_series, of).filter(pl.col("link").cast(pl.String) == BOTTLENECK)
    return rows.filter(pl.col("seed") == rows["seed"].min()).sort("time_s")


def stacked(rows: int, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A figure with panels below each other, in time."""
    figure = style.figure(height, 4.8)
    return figure, list(figure.subplots(rows, 1, sharex=True))


def grid(rows: int, columns: Sequence[str]) -> tuple[Figure, list[list[Axes]]]:
    """A figure with columns of panels."""
    figure = style.figure(3.4)
    panels = figure.subplots(rows, len(columns), sharex=True, sharey="row")
    return figure, [list(row) for row in panels]


def seconds(panel: Axes, start: float, end: float) -> None:
    """Time on the axis below, from one second to another."""
    panel.set_xlim(start, end)
    panel.set_xlabel("Time (s)")


def error_axis(panel: Axes) -> None:
    """The error of minRTT on the axis beside."""
    panel.set_ylabel("minRTT − baseRTT (ms)")
    panel.set_ylim(bottom=0)


def delay_curves(panel: Axes, run: Run, of: Point, packet_b: float = 1500.0) -> list[int]:
    """Peak and mean queueing delay by the number of flows, beside eq. 3.7."""
    counts, peaks = along_flows(run, of, "peak")
    means(panel, counts, columns_of(peaks), 0, "peak")
    _, all_means = along_flows(run, of, "mean")
    means(panel, counts, columns_of(all_means), 1, "mean")
    bounds = [bound_ms(n, packet_b) for n in counts]
    panel.plot(counts, bounds, color="0.3", ls="--", label="eq. 3.7")
    panel.set_xlabel("Flows")
    panel.set_ylim(bottom=0)
    return counts


#: Windows that are told apart.
_WINDOWS = 5


def window_curves(panel: Axes, run: Run, of: Point) -> None:
    """The share of time of each window in whole packets, by the number of flows."""
    shares = window_shares(run, of)
    counts = labels(run, "flows")
    below = [0.0] * len(counts)
    for window in range(1, _WINDOWS + 1):
        most = window if window < _WINDOWS else 10**6
        upto = [mean(share_of_windows(shares, n, most)) for n in counts]
        name = f"{window}" if window < _WINDOWS else f"{window} and more"
        values = [a - b for a, b in zip(upto, below, strict=True)]
        look = style.points(window - 1)
        panel.plot([int(n) for n in counts], values, **look, label=f"cwnd {name}")
        below = upto
    panel.set_xlabel("Flows")
    panel.set_ylim(0, 100)


def error_curves(panel: Axes, part: pl.DataFrame) -> None:
    """Errors of all flows over time, each from its start."""
    for index, (_, mine) in enumerate(part.group_by("flow_id", maintain_order=True)):
        look: dict[str, Any] = {"color": style.colour(index), "lw": 0.8}
        panel.step(mine["time_s"], mine["error"], where="post", **look)
    panel.set_xlim(0, max(part["time_s"].to_list()))
    panel.set_xlabel("Time (s)")
    error_axis(panel)


def with_web(run: Run) -> Figure:
    """Errors of the long flows, without web users and with."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    # The seed that has the most to correct without web users.
    most = errors(run, {"web": "none"}, "long").group_by("seed").agg(pl.col("error").mean())
    seed = most.sort("error", "seed")["seed"][-1]
    for web, panel in zip(reversed(labels(run, "web")), panels, strict=True):
        part = errors(run, {"web": web}, "long").filter(pl.col("seed") == seed)
        error_curves(panel, part)
        panel.set_title(web if web != "none" else "no web users")
    return figure


_BARS = {"jain": "Jain index", "error": "Worst error of minRTT (ms)", "mean": "Mean delay (ms)"}


def bars(run: Run, axis: str, columns: Sequence[str]) -> Figure:
    """Numbers of `runs.of_runs` for each label of an axis."""
    figure = style.figure(2.2)
    panels = figure.subplots(1, len(columns), sharey=True)
    names = labels(run, axis)
    for panel, what in zip(panels, columns, strict=True):
        for row, name in enumerate(names):
            found = estimate(of_runs(run, {axis: name})[what].to_list())
            look = {"fmt": "o", "ms": 4, "color": style.colour(0)}
            panel.errorbar(found.mean, row, xerr=found.half_width, **look)
        panel.set_xlabel(_BARS[what])
        panel.set_xlim(left=0)
    panels[0].set_yticks(range(len(names)), labels=names)
    panels[0].invert_yaxis()
    return figure


def columns_of(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Of rows of seeds the values of each column."""
    return [list(column) for column in zip(*rows, strict=True)]


def estimate(values: Sequence[float]) -> Estimate:
    """The mean over seeds, and its confidence interval."""
    found = Estimate.of([float(value) for value in values])
    assert found is not None
    return found


def means(
    panel: Axes, xs: Sequence[float], points: Sequence[Sequence[float]], index: int, label: str
) -> None:
    """Means over seeds with their 95 % intervals."""
    found = [estimate(list(values)) for values in points]
    panel.errorbar(
        xs,
        [each.mean for each in found],
        yerr=[each.half_width or 0.0 for each in found],
        label=label,
        **style.points(index),
    )
