"""Figures of window, round-trip time and queue over time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import Line, LineStyle, Panel, Picture, line_style
from cwnd.plots.layout import (
    ALL_FLOWS_STYLE,
    SEPARATE_AXES_NOTE,
    Grid,
    Grouping,
    Layout,
    at,
    by_flow_or_group,
    share,
    title,
)
from cwnd.results import known_group, main_link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.results import By, Run

#: Maximum number of flows that are drawn individually; more are shown by their median and the band
#: of the middle 80 %.
_MAX_FLOWS = 6
#: Ratio of ssthresh to the largest window above which ssthresh is left out: an initial value far
#: above would flatten the windows.
_SSTHRESH_IN_SIGHT = 1.5
#: Maximum number of labels in a legend beside the title.
_BESIDE_TITLE = 2


def timeseries(
    run: Run,
    *,
    at_point: dict[str, str] | None = None,
    seed: int | None = None,
    link: str | None = None,
    lines: str | None = None,
    group: str | None = None,
) -> Picture:
    """Describes congestion window, smoothed RTT and queueing delay of one run.

    A single flow also has ssthresh and the controller's minRTT. Source quenches and other feedback
    of routers have further panels if there was some.

    Args:
        run: The result.
        at_point: Column → label of the point of the sweep; its first if not given.
        seed: Seed of the run; the first if not given.
        link: Link whose queue is shown; the busiest if not given.
        lines: "flow" for a line of each flow, "group" for the median and the middle 80 % of each
            group; by default flows if they are few.
        group: Only this group of flows; "*" for all.

    Raises:
        InputError: There is nothing of the kind to draw.
    """
    chosen = known_group(run, group)
    by = by_flow_or_group(run, lines)
    if lines is not None and by is None:
        raise InputError(f"lines over time are of `flow` or `group`, not `{lines}`")
    (shown,) = sampled_runs(run, [at_point or {}], seed)
    flows = shown.flows
    if chosen is not None:
        flows = flows.filter(pl.col("group") == chosen)
    if flows.is_empty():
        if not shown.links.is_empty():
            raise InputError("this result has no windows to draw: all of its flows are datagrams")
        raise InputError('this result has no time series: its scenario has `sample = "none"`')
    link = link if link is not None else main_link(run)
    grouping = grouping_over_time(run, flows, by, chosen)
    panels = panels_over_time(run, flows, shown.links, grouping, link)
    # The legend of the first panel names the lines of flows and groups for all panels.
    named = {line.label for line in panels[0].lines}
    for line in chain.from_iterable(panel.lines for panel in panels[1:]):
        line.label = None if line.label in named else line.label
    many = (
        ": median and middle 80 % of flows" if grouping.by == "group" and grouping.several else ""
    )
    panels[0].title, panels[0].title_left = f"{shown.name}{many}", True
    panels[-1].x_label = "Time (s)"
    below = len(panels) - 1
    return Picture(
        panels,
        height=2.6 + below,
        heights=(1.5, *[1.0] * below),
        shared_y="row",
        legend_above=len(panels[0].lines) > _BESIDE_TITLE,
    )


def panels_over_time(
    run: Run, flows: pl.DataFrame, links: pl.DataFrame, grouping: Grouping, link: str | None
) -> list[Panel]:
    """Builds the panels of one run: windows, RTTs, queueing delay, and feedback of routers.

    Args:
        run: The result.
        flows: The samples of flows.
        links: The samples of links.
        grouping: The flows or groups that have lines of their own.
        link: The link whose queue is shown.
    """
    queue = links.filter(pl.col("link") == link)
    single = flows["flow_id"].n_unique() == 1
    windows = _lines(flows, pl.col("snd_cwnd_pkts"), grouping)
    times = _lines(flows, pl.col("srtt_us") / 1e3, grouping)
    if single:
        windows[0].label = "cwnd" if grouping.group is None else f"cwnd of {grouping.group}"
        windows.append(_dashed(*thresholds_in_sight(flows)))
        times[0].label = None
        if (min_rtt := min_rtt_estimates(flows)).height:
            times[0].label = "smoothed RTT"
            times.append(_dashed(min_rtt, "minRTT of the controller"))
    delay = Line(
        queue["time_s"].to_list(),
        (queue["sojourn_us"] / 1e3).to_list(),
        colour=line_style.colour(queue_style(run).colour),
        width=0.8,
    )
    panels = [
        Panel(windows, y_label="Window (packets)", y_limits=(0, None), x_tight=True),
        Panel(times, y_label="Smoothed RTT (ms)", x_tight=True),
        Panel(
            [delay],
            y_label=f"Queueing delay\nof {link} (ms)",
            y_limits=(0, None),
            x_tight=True,
        ),
    ]
    if has_quenches(flows):
        quenches = _lines(flows, pl.col("quenches"), grouping)
        if single:
            quenches[0].label = None
        panels.append(Panel(quenches, y_label="Quenches\nso far", y_limits=(0, None), x_tight=True))
    panels += _feedback_panels(flows, queue, grouping, link)
    return panels


#: Feedback of routers: the column of links, that of flows, the divisor of both, and the label.
_ROUTER_FEEDBACK = (
    ("load_factor", "load_factor_seen", 1.0, "Load factor"),
    ("offered_bit_s", "offered_bit_s", 1e6, "Rate offered\n(Mbit/s)"),
    ("feedback_bit_s", None, 1e6, "Feedback\n(Mbit/s)"),
)


def _feedback_panels(
    flows: pl.DataFrame, queue: pl.DataFrame, grouping: Grouping, link: str | None
) -> Iterator[Panel]:
    """Yields a panel for each kind of router feedback in the samples; the link's value is black."""
    for of_link, of_flow, unit, label in _ROUTER_FEEDBACK:
        if of_link not in queue.columns:
            # a result of an older version
            continue
        reported = queue.filter(pl.col(of_link).is_not_null())
        if reported.is_empty():
            continue
        lines = []
        if of_flow is not None and flows[of_flow].is_not_null().any():
            lines = _lines(
                flows.filter(pl.col(of_flow).is_not_null()), pl.col(of_flow) / unit, grouping
            )
        if len(lines) == 1:
            lines[0].label = None
        measured = Line(
            reported["time_s"].to_list(),
            (reported[of_link] / unit).to_list(),
            colour=line_style.COLOURS[-1],
            width=0.8,
        )
        yield Panel([*lines, measured], y_label=f"{label}\nof {link}", x_tight=True)


@dataclass(frozen=True)
class OneRun:
    """Samples of one run."""

    #: Name of the scenario, the point of the sweep, and the seed if there are several.
    name: str
    flows: pl.DataFrame
    links: pl.DataFrame


@dataclass(frozen=True)
class Curve:
    """A line over time: columns `time_s` and `value`, and for a band `low` and `high`."""

    style: LineStyle
    label: str
    frame: pl.DataFrame


def overview(
    run: Run, *, seed: int | None = None, lines: str | None = None, group: str | None = None
) -> Picture:
    """Describes the windows at all points of a sweep, in small panels.

    Args:
        run: The result.
        seed: Seed of the runs; the first if not given.
        lines: Subject of the lines: "group", "flow", or an axis of the sweep; by default groups if
            there are several, else as in `Layout.of`.
        group: Only this group of flows; "*" for all flows together.

    Raises:
        InputError: There is no such group, axis or seed.
    """
    shown = window_panels(run, lines, group)
    series = windows_at(run, shown, seed)
    panels = []
    for point in shown.grid.points:
        drawn = [
            Line(
                curve.frame["time_s"].to_list(),
                curve.frame["value"].to_list(),
                colour=line_style.colour(curve.style.colour),
                dashes=line_style.dashes(curve.style.dash) if shown.grouping.dashed else (),
                width=0.8,
                label=curve.label,
            )
            for curve in mean_windows(at(series, point), shown.layout)
        ]
        panels.append(Panel(drawn, title=title(point, shown.grid.axes), x_tight=True))
    columns = shown.grid.columns
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    apart = "" if share(rows, from_zero=True) else SEPARATE_AXES_NOTE
    of_seed = f", seed {_seed(run, seed)}" if len(run.manifest.seeds) > 1 else ""
    return Picture(
        panels,
        height=0.6 + 1.55 * len(rows),
        columns=columns,
        x_label=f"Time (s){of_seed}",
        note="; ".join(filter(None, (shown.grid.left_out, apart))),
        y_label=window_label(shown.grouping),
        shared_y="none",
    )


@dataclass(frozen=True)
class Windows:
    """Subject, axes and panels of the figure of windows."""

    grouping: Grouping
    layout: Layout
    grid: Grid


def window_panels(run: Run, lines: str | None = None, group: str | None = None) -> Windows:
    """Chooses subject and panels; groups are the lines if there are several."""
    # Datagrams have no windows.
    windowed = run.flows.filter(pl.col("controller") != "none")
    grouping = Grouping.of(run, lines, group=group, only=windowed)
    drawn = grouping.axis.column if lines is None and grouping.axis is not None else lines
    layout = grouping.layout(run, None, drawn)
    axes = [*run.remarks.axes, *([grouping.axis] if grouping.axis is not None else [])]
    return Windows(grouping, layout, Grid.of(layout, axes))


def mean_windows(series: pl.DataFrame, layout: Layout) -> Iterator[Curve]:
    """Mean window of the flows over time, for each line of the layout."""
    for index, label in enumerate(layout.line_labels()):
        mine = series
        if layout.lines is not None:
            mine = series.filter(pl.col(layout.lines.column) == label)
        mean = mine.group_by("time_s", maintain_order=True).agg(
            pl.col("snd_cwnd_pkts").mean().alias("value")
        )
        yield Curve(layout.line_style(index, label), layout.line_name(label) or "", mean)


def window_label(grouping: Grouping) -> str:
    """Label of the y axis of windows."""
    return "Mean congestion window (packets)" if grouping.several else "Congestion window (packets)"


def windows_at(run: Run, shown: Windows, seed: int | None = None) -> pl.DataFrame:
    """Samples of the windows at the drawn points, for one seed; the first if none is given."""
    runs = run.runs.filter(pl.col("seed") == _seed(run, seed))
    drawn = shown.grid.points
    swept = [column for column in drawn[0] if column in run.axis_columns]
    if swept:
        points = pl.DataFrame(drawn).select(swept).unique()
        runs = runs.join(points, on=swept, how="semi")
    samples = run.samples_of("series", runs["run_id"].to_list())
    own = [] if shown.grouping.axis is None else ["group"]
    own += ["flow_id"] if shown.grouping.by == "flow" else []
    series = samples.select(*run.axis_columns, *own, "time_s", "snd_cwnd_pkts").collect()
    return shown.grouping.labelled(series)


def _seed(run: Run, seed: int | None) -> int:
    chosen = run.manifest.seeds[0] if seed is None else seed
    if chosen not in run.manifest.seeds:
        known = ", ".join(map(str, run.manifest.seeds))
        raise InputError(f"this result has no seed {chosen}; it has {known}")
    return chosen


def sampled_runs(run: Run, points: list[dict[str, str]], seed: int | None = None) -> list[OneRun]:
    """Samples of a run at each of these points; of the first seed if none is given.

    Raises:
        InputError: There is no such seed or point.
    """
    of_seed = run.runs.filter(pl.col("seed") == _seed(run, seed))
    chosen = []
    for point in points:
        runs = at(of_seed, point)
        if runs.is_empty():
            raise InputError(f"this result has no run at {point}")
        chosen.append(runs.row(0, named=True))
    # A single read serves all runs.
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
    name = ": ".join(part for part in (run.name, title(point, run.remarks.axes)) if part)
    return f"{name} (seed {row['seed']})" if len(run.manifest.seeds) > 1 else name


def _dashed(frame: pl.DataFrame, label: str) -> Line:
    return Line(
        frame["time_s"].to_list(),
        frame["value"].to_list(),
        colour=line_style.colour(3),
        width=0.9,
        dashes=line_style.dashes(1),
        label=label,
    )


def min_rtt_estimates(flows: pl.DataFrame) -> pl.DataFrame:
    """Minimum RTT that a controller uses as the RTT without queues, over time in ms, as `value`.

    The table is empty if no controller uses one.
    """
    if "min_rtt_us" not in flows.columns:
        return pl.DataFrame(schema={"time_s": pl.Float64, "value": pl.Float64})
    value = (pl.col("min_rtt_us") / 1e3).alias("value")
    return flows.select("time_s", value).drop_nulls()


def _lines(flows: pl.DataFrame, value: pl.Expr, grouping: Grouping) -> list[Line]:
    lines = []
    for curve in curves(flows, value, grouping):
        frame = curve.frame
        line = Line(
            frame["time_s"].to_list(),
            frame["value"].to_list(),
            colour=line_style.colour(curve.style.colour),
            width=0.9,
            label=curve.label,
        )
        if "low" in frame.columns:
            line.band = (frame["low"].to_list(), frame["high"].to_list())
        # Overlapping bands need dashes, too.
        if "low" in frame.columns or grouping.dashed:
            line.dashes = line_style.dashes(curve.style.dash)
        lines.append(line)
    return lines


def thresholds_in_sight(flows: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Slow-start threshold over time, as `value`, and its name in the legend.

    Values that would flatten the windows are left out.
    """
    highest = float(flows["snd_cwnd_pkts"].max() or 0)  # type: ignore[arg-type]
    threshold = pl.col("snd_ssthresh_pkts")
    in_sight = pl.when(threshold <= _SSTHRESH_IN_SIGHT * highest).then(threshold).otherwise(None)
    shown = flows.select("time_s", in_sight.alias("value"))
    left_out = shown["value"].null_count() > flows["snd_ssthresh_pkts"].null_count()
    return shown, "ssthresh (larger ones are left out)" if left_out else "ssthresh"


def has_quenches(flows: pl.DataFrame) -> bool:
    """`True` if samples of flows have source quenches that a sender accepted."""
    return "quenches" in flows.columns and bool(flows["quenches"].sum())


def queue_style(run: Run) -> LineStyle:
    """Style of a line of the queue; with several groups that of all flows, in black."""
    return ALL_FLOWS_STYLE if len(run.groups) > 1 else LineStyle.of(0)


def grouping_over_time(
    run: Run, flows: pl.DataFrame, by: By | None = None, group: str | None = None
) -> Grouping:
    """Chooses the lines over time: flows if they are few, else groups."""
    few = flows["flow_id"].n_unique() <= _MAX_FLOWS
    return Grouping.of(run, group=group, by=by or ("flow" if few else "group"), only=flows)


def curves(flows: pl.DataFrame, value: pl.Expr, grouping: Grouping) -> Iterator[Curve]:
    """Yields a curve for each flow, or the median and the middle 80 % of each group."""
    frame = flows.select("time_s", "flow_id", "group", value.alias("value"))
    for label, (group, flow) in grouping.flows.items():
        of_flow = (pl.col("group") == group) & (pl.col("flow_id") == flow)
        yield Curve(grouping.styles[label], label, frame.filter(of_flow))
    for group in (
        grouping.axis.labels if grouping.by == "group" and grouping.axis is not None else ()
    ):
        mine = frame.filter(pl.col("group") == group)
        if mine.is_empty():  # datagrams have no windows
            continue
        spread = (
            mine.group_by("time_s")
            .agg(
                pl.col("value").quantile(0.1).alias("low"),
                pl.col("value").median(),
                pl.col("value").quantile(0.9).alias("high"),
            )
            .sort("time_s")
        )
        yield Curve(grouping.styles[group], group, spread)
