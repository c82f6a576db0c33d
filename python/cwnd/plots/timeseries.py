"""Window, round-trip time and queue over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.errors import InputError
from cwnd.metrics import main_link
from cwnd.plots import look
from cwnd.plots.layout import Layout, at, points_of, title
from cwnd.plots.picture import Line, Panel, Picture

if TYPE_CHECKING:
    from collections.abc import Iterator

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
) -> Picture:
    """Congestion window with ssthresh, smoothed RTT and queueing delay of one run.

    Args:
        run: The result.
        at_point: Column → label of the point of the sweep; its first if not given.
        seed: Which seed; the first if not given.
        link: Whose queue; the busiest link if not given.
    """
    (shown,) = sampled_runs(run, [at_point or {}], seed)
    flows = shown.flows
    if flows.is_empty():
        if not shown.links.is_empty():
            raise InputError("this result has no windows to draw: all of its flows are datagrams")
        raise InputError('this result has no time series: its scenario has `sample = "none"`')
    link = link if link is not None else main_link(run)
    queue = shown.links.filter(pl.col("link") == link)
    single = flows["flow_id"].n_unique() == 1
    windows = _lines(flows, pl.col("snd_cwnd_pkts"))
    if single:
        windows[0].label = "cwnd"
        windows.append(_threshold(flows))
    times = _lines(flows, pl.col("srtt_us") / 1e3)
    for line in times:
        line.label = None
    delay = Line(
        queue["time_s"].to_list(),
        (queue["sojourn_us"] / 1e3).to_list(),
        colour=look.colour(0),
        width=0.8,
    )
    many = ": median and middle 80 % of flows" if shown.many else ""
    return Picture(
        [
            Panel(
                windows,
                title=f"{shown.name}{many}",
                title_left=True,
                y_label="Window (packets)",
                y_limits=(0, None),
                x_tight=True,
            ),
            Panel(times, y_label="Smoothed RTT (ms)", x_tight=True),
            Panel(
                [delay],
                x_label="Time (s)",
                y_label=f"Queueing delay\nof {link} (ms)",
                y_limits=(0, None),
                x_tight=True,
            ),
        ],
        height=4.6,
        heights=(1.5, 1, 1),
        shared_y="row",
        legend_above=len(windows) > _BESIDE_TITLE,
    )


@dataclass(frozen=True)
class OneRun:
    """The samples of one run."""

    #: The scenario, the point of the sweep and the seed.
    name: str
    flows: pl.DataFrame
    links: pl.DataFrame

    @property
    def many(self) -> bool:
        """Whether its flows are drawn as their median and the band of the middle 80 %."""
        return self.flows["flow_id"].n_unique() > _MAX_FLOWS


@dataclass(frozen=True)
class Curve:
    """A line over time: columns `time_s` and `value`, and of a band `low` and `high`."""

    #: Which of the figure's colours.
    index: int
    label: str
    frame: pl.DataFrame


def overview(run: Run, *, seed: int | None = None) -> Picture:
    """The windows at all points of a sweep, in small panels with the same axes."""
    layout, shown, columns = window_panels(run)
    series = windows_at(run, shown, seed)
    panels = []
    for point in shown:
        lines = [
            Line(
                curve.frame["time_s"].to_list(),
                curve.frame["value"].to_list(),
                colour=look.colour(curve.index),
                width=0.8,
                label=curve.label,
            )
            for curve in mean_windows(at(series, point), layout)
        ]
        panels.append(Panel(lines, title=title(point, run.axes), x_tight=True))
    for column in range(columns):
        below = panels[column::columns]
        drawn = [y for panel in below for line in panel.lines for y in line.y if y is not None]
        for panel in below:
            panel.y_limits = (0, window_top(drawn))
    return Picture(
        panels,
        height=0.6 + 1.55 * math.ceil(len(shown) / columns),
        columns=columns,
        x_label="Time (s)",
        y_label=window_label(run),
        shared_y="col",
    )


def window_panels(run: Run) -> tuple[Layout, list[dict[str, str]], int]:
    """The layout, the points that get a panel, and the number of panels side by side."""
    layout = Layout.of(run.axes)
    axes = (*layout.panels, *([layout.x] if layout.x is not None else []))
    columns = len(layout.x.labels) if layout.x is not None else 1
    return layout, points_of(axes)[:_MAX_PANELS], columns if columns <= _COLUMNS + 1 else _COLUMNS


def mean_windows(series: pl.DataFrame, layout: Layout) -> Iterator[Curve]:
    """The mean window of the flows over time, for each line of the layout."""
    for index, label in enumerate(layout.line_labels()):
        mine = series
        if layout.lines is not None:
            mine = series.filter(pl.col(layout.lines.column) == label)
        mean = mine.group_by("time_s", maintain_order=True).agg(
            pl.col("snd_cwnd_pkts").mean().alias("value")
        )
        yield Curve(index, layout.line_name(label) or "", mean)


def window_label(run: Run) -> str:
    """What the axis of the windows of a sweep is called."""
    many = run.flows["flow_id"].n_unique() > 1
    return "Mean congestion window (packets)" if many else "Congestion window (packets)"


def window_top(windows: list[float]) -> float:
    """Where the axis of windows ends."""
    # The overshoot of slow start, a few samples far above all others, may leave the panel.
    if not windows:
        return 1.0
    ordered = sorted(windows)
    return 1.05 * min(ordered[-1], _ROOM * ordered[int(_USUAL * (len(ordered) - 1))])


def windows_at(run: Run, points: list[dict[str, str]], seed: int | None = None) -> pl.DataFrame:
    """The windows over time at these points; the first seed if none is given."""
    runs = run.runs.filter(pl.col("seed") == _seed(run, seed))
    if points[0]:
        runs = runs.join(pl.DataFrame(points), on=list(points[0]), how="semi")
    seen = run.samples_of("series", runs["run_id"].to_list())
    return seen.select(*run.axis_columns, "time_s", "snd_cwnd_pkts").collect()


def _seed(run: Run, seed: int | None) -> int:
    chosen = run.manifest.seeds[0] if seed is None else seed
    if chosen not in run.manifest.seeds:
        known = ", ".join(map(str, run.manifest.seeds))
        raise InputError(f"this result has no seed {chosen}; it has {known}")
    return chosen


def sampled_runs(run: Run, points: list[dict[str, str]], seed: int | None = None) -> list[OneRun]:
    """The samples of a run at each of these points; the first seed if none is given."""
    of_seed = run.runs.filter(pl.col("seed") == _seed(run, seed))
    chosen = []
    for point in points:
        here = at(of_seed, point)
        if here.is_empty():
            raise InputError(f"this result has no run at {point}")
        chosen.append(here.row(0, named=True))
    # Read once for all of them.
    wanted = [row["run_id"] for row in chosen]
    flows = run.samples_of("series", wanted).collect()
    links = run.samples_of("link_series", wanted).collect()
    return [
        OneRun(
            _name(run, row),
            flows.filter(pl.col("run_id") == row["run_id"]),
            links.filter(pl.col("run_id") == row["run_id"]),
        )
        for row in chosen
    ]


def _name(run: Run, row: dict[str, Any]) -> str:
    point = {column: row[column] for column in run.axis_columns}
    name = ": ".join(part for part in (run.name, title(point, run.axes)) if part)
    return f"{name} (seed {row['seed']})" if len(run.manifest.seeds) > 1 else name


def _threshold(flows: pl.DataFrame) -> Line:
    seen = thresholds_in_sight(flows)
    return Line(
        seen["time_s"].to_list(),
        seen["value"].to_list(),
        colour=look.colour(3),
        width=0.9,
        dashes=look.dashes(1),
        label="ssthresh",
    )


def _lines(flows: pl.DataFrame, value: pl.Expr) -> list[Line]:
    lines = []
    for curve in curves(flows, value):
        frame = curve.frame
        line = Line(
            frame["time_s"].to_list(),
            frame["value"].to_list(),
            colour=look.colour(curve.index),
            width=0.9,
            label=curve.label,
        )
        if "low" in frame.columns:
            line.band = (frame["low"].to_list(), frame["high"].to_list())
            line.dashes = look.dashes(curve.index)
        lines.append(line)
    return lines


def thresholds_in_sight(flows: pl.DataFrame) -> pl.DataFrame:
    """The slow-start threshold over time, as `value`, where it does not flatten the windows."""
    highest = float(flows["snd_cwnd_pkts"].max() or 0)  # type: ignore[arg-type]
    threshold = pl.col("snd_ssthresh_pkts")
    in_sight = pl.when(threshold <= _SSTHRESH_IN_SIGHT * highest).then(threshold).otherwise(None)
    return flows.select("time_s", in_sight.alias("value"))


def curves(flows: pl.DataFrame, value: pl.Expr) -> Iterator[Curve]:
    """A curve for each flow, or for each group where there are many flows."""
    frame = flows.select("time_s", "flow_id", "group", value.alias("value"))
    groups = frame.sort("flow_id")["group"].unique(maintain_order=True).to_list()
    if frame["flow_id"].n_unique() <= _MAX_FLOWS:
        ids = frame.select("group", "flow_id").unique().sort("flow_id")
        for index, (group, flow) in enumerate(ids.iter_rows()):
            label = f"{group}, flow {flow}" if ids.height > len(groups) else group
            yield Curve(index, label, frame.filter(pl.col("flow_id") == flow))
        return
    for index, group in enumerate(groups):
        spread = (
            frame.filter(pl.col("group") == group)
            .group_by("time_s")
            .agg(
                pl.col("value").quantile(0.1).alias("low"),
                pl.col("value").median(),
                pl.col("value").quantile(0.9).alias("high"),
            )
            .sort("time_s")
        )
        yield Curve(index, group, spread)
