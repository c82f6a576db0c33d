"""What the figures of a page show, for plotly.js; the page gives them colours and places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.figures import Look, look
from cwnd.plots.layout import at, points_of, title
from cwnd.plots.limits import OWN_AXES, shared_ends
from cwnd.plots.parts import views
from cwnd.plots.qdelay import distribution, packets_of, panels_of, shortest_ms
from cwnd.plots.sweep import DEFAULT_METRICS, line_names, prepare
from cwnd.report.names import broken, marks
from cwnd.report.thin import steps
from cwnd.results import IN_FIGURES, METRICS, Shown, about_spreads, spreads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from cwnd.plots.along import Along
    from cwnd.plots.parts import Parts
    from cwnd.plots.sweep import Content, Row
    from cwnd.results import Metric, Run, Spread

#: The dashes of `cwnd.figures.look.DASHES`, in pixels, in its order.
DASHES = ("solid", "8px,3px", "2px,2px", "8px,3px,2px,3px")
#: The markers of `cwnd.figures.look.MARKERS`, in its order.
_MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
#: Steps that a distribution is drawn with.
_STEPS = 400
#: Panels of one metric of a sweep; a point of the axes that are neither x nor lines has one.
_MAX_PANELS = 24
#: Of larger sweeps only the usual metrics are drawn.
_MAX_POINTS = 500
#: As many panels stand side by side on a wide screen.
_MAX_COLUMNS = 4
#: Room beside the drawn values, as a part of their range.
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


def sentence(text: str) -> str:
    """A phrase as a sentence of a caption; names and units in it keep their capitals."""
    return f"{text[0].upper()}{text[1:]}."


def has_own_axes(choices: Sequence[Choice]) -> bool:
    """`True` if panels that are shown together have different ends for the same quantity."""
    for choice in choices:
        ends: dict[str, set[tuple[float, float]]] = {}
        for panel in choice.panels:
            low, high = panel.yaxis["range"]
            ends.setdefault(panel.yaxis["title"]["text"], set()).add((low, high))
        if any(len(of) > 1 for of in ends.values()):
            return True
    return False


def sweep_figure(run: Run) -> Figure | None:
    """Metrics against a parameter of the sweep with their spread over the seeds."""
    choices: list[Choice] = []
    about: list[str] = []
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
        about = about or _about(run, content)
    if not choices:
        return None
    return Figure(
        kind="sweep",
        title="Over the sweep",
        caption=sentence("; ".join([*about, *([OWN_AXES] if has_own_axes(choices) else [])])),
        choices=choices,
        chooses="Metric",
    )


def _choices(run: Run, content: Content, view: str) -> list[Choice]:
    panels = _points(content)[:_MAX_PANELS]
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


def _points(content: Content) -> list[dict[str, str]]:
    """The points that have a panel of a metric."""
    return points_of(tuple(a for a in content.layout.panels if a is not content.parts.axis))


def _about(run: Run, content: Content) -> list[str]:
    about = about_spreads(content.together, content.metrics, IN_FIGURES)
    about = about or ["one seed for each point, so there are no intervals"]
    every = len(_points(content))
    about += [f"the first {_MAX_PANELS} of {every} panels"] if every > _MAX_PANELS else []
    return [*about, *run.remarks.rest]


def _metric_panels(
    run: Run, content: Content, metric: Metric, points: Sequence[dict[str, str]]
) -> list[Panel]:
    rows = content.rows(metric)
    means = [each.value for row in rows for each in spreads(row.summary, metric)]
    shown = Shown.of(metric, means)
    label = f"{metric.label} ({shown.unit})" if shown.unit else metric.label
    limits = shared_ends(
        [[_values(at(row.summary, point), shown) for point in points] for row in rows]
    )
    panels = []
    for (row, point), (low, high) in zip(product(rows, points), chain(*limits), strict=True):
        traces = _metric_lines(row, at(row.summary, point), shown, content.parts)
        name = ", ".join(filter(None, (row.group, title(point, run.remarks.axes))))
        where = f", {name}" if name else ""
        alt = f"{label} against {row.along.label}{where}; the values are in the table of results."
        xaxis, more = _metric_xaxis(row.along)
        # A little below zero, so that a point at zero is seen whole.
        yaxis = axis(label, range=[low - _MARGIN * (high - low) * (low == 0), high])
        panels.append(Panel(name, alt, traces, xaxis, yaxis, Panel.height + more))
    return panels


def _values(here: pl.DataFrame, shown: Shown) -> list[float]:
    """All values of a panel with the ends of their intervals."""
    return [v for each in spreads(here, shown.metric) for v in each.scaled(shown.scale).values]


def _metric_lines(row: Row, here: pl.DataFrame, shown: Shown, parts: Parts) -> list[dict[str, Any]]:
    layout, along, names = row.layout, row.along, line_names(row, parts)
    traces = []
    for index, (label, called, own) in enumerate(names):
        mine = here
        if layout.lines is not None:
            mine = at(here, {layout.lines.column: label or ""})
        mine = mine.drop_nulls(shown.metric.column)
        values = spreads(mine, shown.metric)
        name = called or ""
        head = f"<b>{escape(name)}</b><br>" if name else ""
        texts = [
            f"{head}{escape(f'{along.axis.name} {x}')}<br>{_value(shown, each, n)}"
            for x, each, n in zip(mine[along.axis.column], values, mine["n"], strict=True)
        ]
        scaled = [each.scaled(shown.scale) for each in values]
        means = [each.value or 0.0 for each in scaled]
        low, high = (
            [
                each.ends[side] if each.ends else mean
                for each, mean in zip(scaled, means, strict=True)
            ]
            for side in (0, 1)
        )
        traces.append(
            line(
                name,
                own,
                along.places(mine, index, len(names)),
                means,
                mode="lines+markers" if along.numeric else "markers",
                marker={"color": colour(own), "symbol": _MARKERS[own.marker % len(_MARKERS)]},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [end - mean for end, mean in zip(high, means, strict=True)],
                    "arrayminus": [mean - end for end, mean in zip(low, means, strict=True)],
                    "visible": any(each.ends for each in values),
                    "color": colour(own),
                    "thickness": 1.4,
                    "width": 4,
                },
                hovertext=texts,
                hoverinfo="text",
            )
        )
    return traces


def _value(shown: Shown, each: Spread, n: int) -> str:
    unit = f" {shown.unit}" if shown.unit else ""
    seeds = f" ({n} seeds)" if n > 1 else ""
    return f"{escape(shown.metric.label)}: {shown.spread(each)}{unit}{seeds}"


def _metric_xaxis(along: Along) -> tuple[dict[str, Any], int]:
    """The axis, and how much higher a panel is for what is written at it."""
    if not along.numeric:
        count = len(along.axis.labels)
        ticks, more = marks([text for _, text in along.ticks or ()])
        return axis(along.label, range=[-0.5, count - 0.5], showgrid=False, **ticks), more
    own: dict[str, Any] = {"type": "log"} if along.logarithmic else {}
    if along.ticks is not None:
        own["tickvals"] = [value for value, _ in along.ticks]
        own["ticktext"] = [text for _, text in along.ticks]
    return axis(along.label, **own), 0


def qdelay_figure(run: Run) -> Figure | None:
    """Cumulative distributions of the queueing delay."""
    try:
        link, histogram = packets_of(run, None)
    except InputError:
        return None
    layout, grid = panels_of(run)
    shortest = shortest_ms(histogram, layout)
    longest_us: float = histogram["qdelay_us"].max() or 0  # type: ignore[assignment]
    longest_ms = max(longest_us / 1e3, 10 * shortest)
    sight = [math.log10(shortest), math.log10(longest_ms) + _MARGIN]
    xaxis = axis("Queueing delay (ms)", type="log", tickformat="~g", range=sight)
    yaxis = axis("Fraction of packets", range=[0, 1.02])
    panels = []
    for point in grid.points:
        here, traces = at(histogram, point), []
        for index, label in enumerate(layout.line_labels()):
            mine = here if layout.lines is None else at(here, {layout.lines.column: label or ""})
            if mine.is_empty():
                continue
            delay, part = steps(*distribution(mine, shortest), _STEPS)
            traces.append(_distribution(layout.line_name(label) or "", Look.of(index), delay, part))
        name = title(point, grid.axes)
        where = f" at {name}" if name else ""
        alt = f"Distribution of the queueing delay of {link}{where}; the table of links has its"
        panels.append(Panel(name, f"{alt} quantiles.", traces, xaxis, yaxis, hover="closest"))
    seeds = ", over all seeds" if len(run.manifest.seeds) > 1 else ""
    return Figure(
        kind="qdelay",
        title="Queueing delay",
        caption=(
            f"How large a part of the packets waited no longer than this at {link}{seeds}"
            f"{grid.left_out}. Waits below {shortest:g} ms are drawn at the left edge."
        ),
        choices=[Choice("", panels, grid.columns)],
        linked=True,
    )


def _distribution(name: str, own: Look, delay: list[float], part: list[float]) -> dict[str, Any]:
    head = "<b>%{fullData.name}</b><br>" if name else ""
    template = f"{head}%{{y:.1%}} waited at most %{{x:.3~g}} ms<extra></extra>"
    trace = line(name, own, delay, part, hovertemplate=template)
    trace["line"]["shape"] = "hv"
    return trace
