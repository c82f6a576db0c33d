"""Window, round-trip time and queue over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.metrics import main_link
from cwnd.plots import style
from cwnd.plots.layout import Layout, at, points_of, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.results import Run

#: Up to so many flows are drawn one by one; more as their median and the band of the middle 80 %.
_MAX_FLOWS = 6
#: An initial threshold far above every window would flatten them all.
_SSTHRESH_IN_SIGHT = 1.5
#: More labels than this have no room beside the title.
_BESIDE_TITLE = 2
#: The axis of the overview ends at this quantile of the windows, with this much room above it.
_USUAL, _ROOM = 0.98, 1.25
#: Panels of the overview in one row.
_COLUMNS = 3
_MAX_PANELS = 24


def timeseries(
    run: Run,
    *,
    at_point: dict[str, str] | None = None,
    seed: int | None = None,
    link: str | None = None,
) -> Figure:
    """Congestion window with ssthresh, smoothed RTT and queueing delay of one run.

    Args:
        run: The result.
        at_point: Column → label of the point of the sweep; its first if not given.
        seed: Which seed; the first if not given.
        link: Whose queue; the busiest link if not given.
    """
    flows, links, name = _one_run(run, at_point, seed)
    link = link if link is not None else main_link(run)
    queue = links.filter(pl.col("link") == link)
    with style.styled():
        figure = style.figure(4.6)
        window, rtt, delay = figure.subplots(3, 1, sharex=True, height_ratios=(1.5, 1, 1))
        _draw_windows(window, flows)
        _draw(rtt, flows, pl.col("srtt_us") / 1e3)
        delay.plot(queue["time_s"], queue["sojourn_us"] / 1e3, color=style.colour(0), lw=0.8)
        window.set_ylabel("Window (packets)")
        rtt.set_ylabel("Smoothed RTT (ms)")
        delay.set_ylabel(f"Queueing delay\nof {link} (ms)")
        delay.set_xlabel("Time (s)")
        for panel in (window, delay):
            panel.set_ylim(bottom=0)
        for panel in (window, rtt, delay):
            panel.margins(x=0)
        many = flows["flow_id"].n_unique() > _MAX_FLOWS
        window.set_title(f"{name}{': median and middle 80 % of flows' if many else ''}", loc="left")
        if len(window.lines) > _BESIDE_TITLE:
            style.legend(figure, [window])
        elif len(window.lines) > 1:
            beside = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.3}
            window.legend(ncols=_BESIDE_TITLE, **beside)
        figure.align_ylabels()
    return figure


def overview(run: Run, *, seed: int | None = None) -> Figure:
    """The windows at all points of a sweep, in small panels with the same axes."""
    layout = Layout.of(run.axes)
    axes = (*layout.panels, *([layout.x] if layout.x is not None else []))
    points = points_of(axes)
    columns = len(layout.x.labels) if layout.x is not None else 1
    columns = columns if columns <= _COLUMNS + 1 else _COLUMNS
    shown = points[:_MAX_PANELS]
    rows = math.ceil(len(shown) / columns)
    seen = run.samples["series"].filter(pl.col("seed") == _seed(run, seed))
    if axes:
        seen = seen.join(pl.LazyFrame(shown), on=list(shown[0]), how="semi", maintain_order="left")
    series = seen.select(*run.axis_columns, "time_s", "snd_cwnd_pkts").collect()
    with style.styled():
        figure = style.figure(0.6 + 1.55 * rows)
        grid = figure.subplots(rows, columns, sharex=True, sharey="col", squeeze=False)
        drawn: list[list[float]] = [[] for _ in range(columns)]
        for place, (panel, point) in enumerate(zip(grid.flat, shown, strict=False)):
            here = at(series, point)
            for index, label in enumerate(layout.line_labels()):
                mine = here
                if layout.lines is not None:
                    mine = here.filter(pl.col(layout.lines.column) == label)
                mean = mine.group_by("time_s", maintain_order=True).agg(
                    pl.col("snd_cwnd_pkts").mean()
                )
                look = {"color": style.colour(index), "lw": 0.8, "label": layout.line_name(label)}
                panel.plot(mean["time_s"], mean["snd_cwnd_pkts"], **look)
                drawn[place % columns] += mean["snd_cwnd_pkts"].to_list()
            panel.set_title(title(point, run.axes))
            panel.margins(x=0)
        for panel, windows in zip(grid[0], drawn, strict=True):
            panel.set_ylim(0, _top(windows))
        for panel in list(grid.flat)[len(shown) :]:
            panel.set_visible(False)
        many = run.flows["flow_id"].n_unique() > 1
        figure.supylabel(
            "Mean congestion window (packets)" if many else "Congestion window (packets)"
        )
        figure.supxlabel("Time (s)")
        style.legend(figure, list(grid.flat)[: len(shown)])
    return figure


def _top(windows: list[float]) -> float:
    # The overshoot of slow start, a few samples far above all others, may leave the panel.
    if not windows:
        return 1.0
    ordered = sorted(windows)
    return 1.05 * min(ordered[-1], _ROOM * ordered[int(_USUAL * (len(ordered) - 1))])


def _seed(run: Run, seed: int | None) -> int:
    chosen = run.manifest.seeds[0] if seed is None else seed
    if chosen not in run.manifest.seeds:
        known = ", ".join(map(str, run.manifest.seeds))
        raise InputError(f"this result has no seed {chosen}; it has {known}")
    return chosen


def _one_run(
    run: Run, at_point: dict[str, str] | None, seed: int | None
) -> tuple[pl.DataFrame, pl.DataFrame, str]:
    runs = at(run.runs.filter(pl.col("seed") == _seed(run, seed)), at_point or {})
    if runs.is_empty():
        raise InputError(f"this result has no run at {at_point}")
    chosen = runs.row(0, named=True)
    mine = pl.col("run_id") == chosen["run_id"]
    point = {column: chosen[column] for column in run.axis_columns}
    name = ": ".join(part for part in (run.name, title(point, run.axes)) if part)
    if len(run.manifest.seeds) > 1:
        name += f" (seed {chosen['seed']})"
    flows = run.samples["series"].filter(mine).collect()
    links = run.samples["link_series"].filter(mine).collect()
    if flows.is_empty():
        if not links.is_empty():
            raise InputError("this result has no windows to draw: all of its flows are datagrams")
        raise InputError('this result has no time series: its scenario has `sample = "none"`')
    return flows, links, name


def _draw_windows(panel: Axes, flows: pl.DataFrame) -> None:
    _draw(panel, flows, pl.col("snd_cwnd_pkts"))
    if flows["flow_id"].n_unique() > 1:
        return
    highest = float(flows["snd_cwnd_pkts"].max() or 0)  # type: ignore[arg-type]
    threshold = pl.col("snd_ssthresh_pkts")
    seen = flows.select(
        "time_s",
        pl.when(threshold <= _SSTHRESH_IN_SIGHT * highest).then(threshold).otherwise(None),
    )
    look = {"color": style.colour(3), "linestyle": style.DASHES[1], "lw": 0.9}
    panel.lines[0].set_label("cwnd")
    panel.plot(seen["time_s"], seen["snd_ssthresh_pkts"], label="ssthresh", **look)


def _draw(panel: Axes, flows: pl.DataFrame, value: pl.Expr) -> None:
    frame = flows.select("time_s", "flow_id", "group", value.alias("value"))
    groups = frame.sort("flow_id")["group"].unique(maintain_order=True).to_list()
    if frame["flow_id"].n_unique() <= _MAX_FLOWS:
        ids = frame.select("group", "flow_id").unique().sort("flow_id")
        for index, (group, flow) in enumerate(ids.iter_rows()):
            mine = frame.filter(pl.col("flow_id") == flow)
            label = f"{group}, flow {flow}" if ids.height > len(groups) else group
            panel.plot(
                mine["time_s"], mine["value"], color=style.colour(index), lw=0.9, label=label
            )
        return
    for index, group in enumerate(groups):
        spread = (
            frame.filter(pl.col("group") == group)
            .group_by("time_s")
            .agg(
                pl.col("value").quantile(0.1).alias("low"),
                pl.col("value").median().alias("median"),
                pl.col("value").quantile(0.9).alias("high"),
            )
            .sort("time_s")
        )
        colour = style.colour(index)
        panel.fill_between(
            spread["time_s"], spread["low"], spread["high"], color=colour, alpha=0.25, lw=0
        )
        panel.plot(spread["time_s"], spread["median"], **style.line(index), lw=0.9, label=group)
