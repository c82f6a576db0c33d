"""What the figures of a page show, for plotly.js; the page gives them colours and places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.plots import look
from cwnd.plots.layout import at, human, points_of, title
from cwnd.plots.look import Look
from cwnd.plots.parts import views
from cwnd.plots.qdelay import SHORTEST_MS, distribution, packets_of, panels_of
from cwnd.plots.sweep import (
    DEFAULT_METRICS,
    MAX_TICKS,
    NUDGE,
    SPREAD,
    is_logarithmic,
    line_names,
    prepare,
    shows_zero,
    x_label,
)
from cwnd.report.names import broken, marks
from cwnd.report.thin import steps
from cwnd.results import METRICS, Shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from cwnd.plots.layout import Layout
    from cwnd.plots.parts import Parts
    from cwnd.plots.sweep import Content, Row
    from cwnd.results import Metric, Run

#: The dashes of `cwnd.plots.look.DASHES`, in pixels, in its order.
DASHES = ("solid", "8px,3px", "2px,2px", "8px,3px,2px,3px")
#: The markers of `cwnd.plots.look.MARKERS`, in its order.
_MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
#: Steps that a distribution is drawn with.
_STEPS = 400
#: Panels of one metric of a sweep; a point of the axes that are neither x nor lines has one.
_MAX_PANELS = 24
#: Of larger sweeps only the usual metrics are drawn.
_MAX_POINTS = 500
#: As many panels stand side by side on a wide screen.
_MAX_COLUMNS = 4
#: Room above and below the drawn values, as a part of their range.
_MARGIN = 0.06


@dataclass(frozen=True)
class Panel:
    """Axes with what is drawn between them."""

    #: Which point of the sweep; empty if there is one only.
    title: str
    #: What a reader who does not see it is told.
    alt: str
    traces: list[dict[str, Any]]
    xaxis: dict[str, Any]
    yaxis: dict[str, Any]
    #: Height in pixels.
    height: int = 250
    #: Which of the values is shown where the pointer is; plotly's `hovermode`.
    hover: str = "closest"


@dataclass(frozen=True)
class Choice:
    """One of several contents of a figure."""

    label: str
    panels: list[Panel]
    columns: int
    #: Whose numbers: of groups, all flows, or flows; empty if there is nothing to choose.
    view: str = ""


@dataclass(frozen=True)
class Swatch:
    """How a line looks in the legend."""

    #: The name of its colour.
    colour: str
    dash: str

    @property
    def dasharray(self) -> str:
        """Its dashes as SVG writes them."""
        return "none" if self.dash == "solid" else self.dash.replace("px", "")


@dataclass(frozen=True)
class Figure:
    """A figure: a legend, and panels to choose from."""

    kind: str
    title: str
    #: What is drawn, and how.
    caption: str
    choices: list[Choice]
    #: What is chosen, for readers: "Metric", "Run".
    chooses: str = ""
    #: What its views differ in, for readers.
    views_called: str = "Flows"
    #: Whether zooming along x moves all of its panels.
    linked: bool = False

    @property
    def views(self) -> list[str]:
        """Whose numbers can be chosen."""
        return list(dict.fromkeys(choice.view for choice in self.choices))

    @property
    def labels(self) -> list[str]:
        """What else can be chosen, whosever it is."""
        return list(dict.fromkeys(choice.label for choice in self.choices))

    @property
    def legends(self) -> dict[str, dict[str, Swatch]]:
        """For each view what the lines are called and how they look; empty with a single line."""
        return {view: self._legend(view) for view in self.views}

    def _legend(self, view: str) -> dict[str, Swatch]:
        found = {
            trace["meta"]: Swatch(trace["line"]["color"][1:], trace["line"]["dash"])
            for choice in self.choices
            if choice.view == view
            for panel in choice.panels
            for trace in panel.traces
            if trace["meta"] and trace.get("hoverinfo") != "skip"
        }
        return found if len(found) > 1 else {}


#: What the views of a result with several groups are called.
VIEWS = {"group": "By group", "all": "All flows together", "flow": "Flow by flow"}


def line(name: str, own: Look, x: Sequence[Any], y: Sequence[Any], **more: Any) -> dict[str, Any]:
    """A line; its colour is named, the page knows it for light, dark and paper."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        "meta": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour(own), "dash": dash(own), "width": 1.6},
        **more,
    }


def colour(own: Look) -> str:
    """The name of the colour of a line."""
    return f"@{own.colour % len(look.COLOURS)}"


def dash(own: Look) -> str:
    """The dashes of a line."""
    return DASHES[own.dash % len(DASHES)]


def axis(label: str, **more: Any) -> dict[str, Any]:
    """An axis with its name; a comma in it is a place to break it."""
    return {"title": {"text": broken(label)}, **more}


def sweep_figure(run: Run) -> Figure | None:
    """Metrics against a parameter of the sweep with their 95 % intervals."""
    choices: list[Choice] = []
    about = ""
    shown = views(run)
    for by in shown:
        together, rows = run.per_run(), run.per_run(by=by)
        sources = {name: together if m.of == "link" else rows for name, m in METRICS.items()}
        valued = [n for n, has in sources.items() if has[n].null_count() < has.height]
        try:
            content = prepare(run, metrics=valued, by=by)
        except InputError:
            continue
        view = VIEWS[by] if len(shown) > 1 else ""
        choices += _choices(run, content, view)
        about = about or _about_seeds(content.together)
    if not choices:
        return None
    return Figure(
        kind="sweep", title="Over the sweep", caption=about, choices=choices, chooses="Metric"
    )


def _choices(run: Run, content: Content, view: str) -> list[Choice]:
    panels = points_of(tuple(a for a in content.layout.panels if a is not content.parts.axis))
    if len(panels) > _MAX_PANELS:
        return []
    by_name = {metric.column: metric for metric in content.metrics}
    usual = [by_name[name] for name in DEFAULT_METRICS if name in by_name]
    columns = min(len(panels), _MAX_COLUMNS)

    def choice(label: str, metrics: Sequence[Metric]) -> Choice:
        drawn = [p for m in metrics for p in _metric_panels(run, content, m, panels)]
        # A single panel in a row would be too wide for its height.
        return Choice(label, drawn, columns if columns > 1 else min(len(drawn), 3), view)

    choices = [choice("Goodput and queueing delay", usual)] if usual else []
    if content.summary.height <= _MAX_POINTS:
        choices += [choice(m.axis_label, [m]) for m in content.metrics]
    return choices


def _about_seeds(summary: pl.DataFrame) -> str:
    seeds = max(summary["n"].to_list(), default=0)
    if seeds < 2:  # noqa: PLR2004
        return "One seed for each point, so there are no intervals."
    return f"Mean of {seeds} seeds; bars are 95 % confidence intervals."


def _metric_panels(
    run: Run, content: Content, metric: Metric, points: Sequence[dict[str, str]]
) -> list[Panel]:
    rows = content.rows(metric)
    means = [mean for row in rows for mean in row.summary[metric.column]]
    shown = Shown.of(metric, means)
    bounds = [
        (mean + sign * (width or 0.0)) * shown.scale
        for row in rows
        for mean, width in row.summary.select(metric.column, f"{metric.column}_ci95").iter_rows()
        if mean is not None
        for sign in (-1, 1)
    ]
    low, high = min(bounds), max(bounds)
    if shows_zero(low, high):
        low = 0.0
    room = _MARGIN * (high - low or abs(high) or 1.0)
    label = f"{metric.label} ({shown.unit})" if shown.unit else metric.label
    # A little below zero, so that a point at zero is seen whole.
    yaxis = axis(label, range=[low - room, high + room])
    panels = []
    for row, point in product(rows, points):
        traces = _metric_lines(row, at(row.summary, point), shown, content.parts)
        name = ", ".join(filter(None, (row.group, title(point, run.axes))))
        where = f", {name}" if name else ""
        along = x_label(row.layout, row.summary)
        alt = f"{label} against {along}{where}; the values are in the table of results."
        xaxis, more = _metric_xaxis(row.layout, row.summary)
        panels.append(Panel(name, alt, traces, xaxis, yaxis, Panel.height + more))
    return panels


def _metric_lines(row: Row, here: pl.DataFrame, shown: Shown, parts: Parts) -> list[dict[str, Any]]:
    layout = row.layout
    assert layout.x is not None
    column, names = shown.metric.column, line_names(row, parts)
    traces = []
    for index, (label, called, own) in enumerate(names):
        mine = here
        if layout.lines is not None:
            mine = at(here, {layout.lines.column: label or ""})
        mine = mine.drop_nulls(column)
        means = mine[column].to_list()
        widths = mine[f"{column}_ci95"].to_list()
        name = called or ""
        if layout.x.value_column is None:
            shift = SPREAD * ((index + 0.5) / len(names) - 0.5)
            xs = [layout.x.labels.index(each) + shift for each in mine[layout.x.column]]
        else:
            xs = _shifted(layout, here, mine, index, len(names))
        head = f"<b>{escape(name)}</b><br>" if name else ""
        texts = [
            f"{head}{escape(f'{layout.x.name} {x}')}<br>{_value(shown, mean, width, n)}"
            for x, mean, width, n in zip(
                mine[layout.x.column], means, widths, mine["n"], strict=True
            )
        ]
        traces.append(
            line(
                name,
                own,
                xs,
                [mean * shown.scale for mean in means],
                mode="markers" if layout.x.value_column is None else "lines+markers",
                marker={"color": colour(own), "symbol": _MARKERS[own.marker % len(_MARKERS)]},
                error_y={
                    "type": "data",
                    "array": [(width or 0.0) * shown.scale for width in widths],
                    "visible": any(width is not None for width in widths),
                    "color": colour(own),
                    "thickness": 1.4,
                    "width": 4,
                },
                hovertext=texts,
                hoverinfo="text",
            )
        )
    return traces


def _shifted(
    layout: Layout, here: pl.DataFrame, mine: pl.DataFrame, index: int, lines: int
) -> list[float]:
    assert layout.x is not None
    assert layout.x.value_column is not None
    values = sorted(here[layout.x.value_column].unique().to_list())
    _, factor = human(layout.x.unit, values)
    steps_aside = index - (lines - 1) / 2
    if is_logarithmic(values):
        # By a part of the span of the logarithms: an equal distance everywhere.
        ratio = (values[-1] / values[0]) ** (NUDGE * steps_aside)
        return [value * ratio * factor for value in mine[layout.x.value_column]]
    shift = NUDGE * steps_aside * (values[-1] - values[0])
    return [(value + shift) * factor for value in mine[layout.x.value_column]]


def _value(shown: Shown, mean: float, width: float | None, n: int) -> str:
    unit = f" {shown.unit}" if shown.unit else ""
    seeds = f" ({n} seeds)" if n > 1 else ""
    return f"{escape(shown.metric.label)}: {shown.text(mean, width)}{unit}{seeds}"


def _metric_xaxis(layout: Layout, summary: pl.DataFrame) -> tuple[dict[str, Any], int]:
    """The axis, and how much higher a panel is for what is written at it."""
    assert layout.x is not None
    label = x_label(layout, summary)
    if layout.x.value_column is None:
        count = len(layout.x.labels)
        ticks, more = marks(layout.x.labels)
        return axis(label, range=[-0.5, count - 0.5], showgrid=False, **ticks), more
    values = sorted(summary[layout.x.value_column].unique().to_list())
    _, factor = human(layout.x.unit, values)
    own: dict[str, Any] = {}
    if is_logarithmic(values):
        own["type"] = "log"
    if len(values) <= MAX_TICKS:
        own["tickvals"] = [value * factor for value in values]
        own["ticktext"] = [f"{value * factor:g}" for value in values]
    return axis(label, **own), 0


def qdelay_figure(run: Run) -> Figure | None:
    """Cumulative distributions of the queueing delay."""
    try:
        link, histogram = packets_of(run, None)
    except InputError:
        return None
    layout, points, columns = panels_of(run)
    longest_ms = max(float(histogram["qdelay_us"].max() or 0) / 1e3, 10 * SHORTEST_MS)  # type: ignore[arg-type]
    sight = [math.log10(SHORTEST_MS), math.log10(longest_ms) + _MARGIN]
    xaxis = axis("Queueing delay (ms)", type="log", tickformat="~g", range=sight)
    yaxis = axis("Fraction of packets", range=[0, 1.02])
    panels = []
    for point in points:
        here, traces = at(histogram, point), []
        for index, label in enumerate(layout.line_labels()):
            mine = here if layout.lines is None else at(here, {layout.lines.column: label or ""})
            if mine.is_empty():
                continue
            delay, part = steps(*distribution(mine), _STEPS)
            traces.append(_distribution(layout.line_name(label) or "", Look.of(index), delay, part))
        name = title(point, run.axes)
        where = f" at {name}" if name else ""
        alt = f"Distribution of the queueing delay of {link}{where}; the table of links has its"
        panels.append(Panel(name, f"{alt} quantiles.", traces, xaxis, yaxis, hover="closest"))
    seeds = ", over all seeds" if len(run.manifest.seeds) > 1 else ""
    return Figure(
        kind="qdelay",
        title="Queueing delay",
        caption=(
            f"How large a part of the packets waited no longer than this at {link}{seeds}."
            f" Waits below {SHORTEST_MS:g} ms are drawn at the left edge."
        ),
        choices=[Choice("", panels, columns)],
        linked=True,
    )


def _distribution(name: str, own: Look, delay: list[float], part: list[float]) -> dict[str, Any]:
    head = "<b>%{fullData.name}</b><br>" if name else ""
    template = f"{head}%{{y:.1%}} waited at most %{{x:.3~g}} ms<extra></extra>"
    trace = line(name, own, delay, part, hovertemplate=template)
    trace["line"]["shape"] = "hv"
    return trace
