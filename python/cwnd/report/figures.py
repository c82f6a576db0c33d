"""Figures of a page: descriptions with a choice, captions and legends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.figures import Picture, line_style, screen_panels
from cwnd.plots import default_kinds, swept
from cwnd.plots.graph import LOSS, UTILISATION, graph
from cwnd.plots.layout import MAX_FLOWS, SEPARATE_AXES_NOTE, points_of, title, views
from cwnd.plots.qdelay import delay_cdf, qdelay_cdf
from cwnd.plots.responses import response_ccdf
from cwnd.plots.sweep import DEFAULT_METRICS, panels_of, prepare
from cwnd.plots.timeseries import grouping_over_time, overview, panels_over_time, sampled_runs
from cwnd.results import (
    AGREE,
    ALL,
    IN_FIGURES,
    LINK,
    METRICS,
    Metric,
    TextTable,
    describe_spreads,
    main_link,
    number,
)
from cwnd.store import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cwnd.figures import Line, Panel, ScreenPanel
    from cwnd.plots.layout import Grouping
    from cwnd.plots.sweep import SweepData
    from cwnd.plots.timeseries import OneRun
    from cwnd.results import By, Run
    from cwnd.store import Records

#: Maximum number of points of the remaining axes; each has a panel for a metric, or for each group
#: if groups have rows.
_MAX_PANELS = 24
#: Number of rows of the summary (points, and groups or flows) above which only the default metrics
#: are drawn.
_MAX_POINTS = 500
#: Maximum number of panels side by side on a wide screen.
_MAX_COLUMNS = 4
#: Maximum numbers of runs to choose from, and of points with a graph.
_MAX_RUNS = 60
_MAX_GRAPHS = 30
#: Links and nodes of all maps together, two of each graph, after which further graphs are left out.
#: It limits a page to a few megabytes, as `_POINT_BUDGET` does.
_MAX_LINKS = 12_000
#: Points of all lines of a figure over time, and limits of the points of each line.
_POINT_BUDGET = 90_000
_MIN_POINTS, _MAX_LINE_POINTS = 200, 4000
#: Points of a distribution.
_STEPS = 1600
#: Heights of a panel in pixels: by itself, for each unit of a row's height, and of a graph.
_PANEL_PX, _ROW_PX, _GRAPH_PX = 250, 190, 520
#: Names of the views of a result with several groups.
VIEWS = {"group": "By group", "all": "All flows together", "flow": "Flow by flow"}


@dataclass(frozen=True)
class Choice:
    """One of several contents of a figure."""

    label: str
    picture: Picture
    columns: int
    #: View: groups, all flows, or flows; a quantity of links for maps; empty if there is only one.
    view: str = ""


@dataclass(frozen=True)
class Swatch:
    """Style of a line in the legend."""

    #: Colour in CSS; those of lines depend on the page's theme.
    colour: str
    #: Lengths of dashes and gaps, as an SVG attribute.
    dasharray: str

    @classmethod
    def of(cls, line: Line) -> Swatch:
        """Style of a line of a figure."""
        dashes = " ".join(f"{2 * part:g}" for part in line.dashes)
        known = line.colour in line_style.COLOURS
        colour = f"var(--line-{line_style.COLOURS.index(line.colour)})" if known else line.colour
        return cls(colour, dashes or "none")


@dataclass(frozen=True)
class Figure:
    """A figure of the page: a legend, and contents to choose from."""

    kind: str
    title: str
    #: Caption with the drawn quantity and statistics.
    caption: str
    choices: list[Choice]
    #: Object of the choice in the page: "Metric", "Run" or "Point"; empty without a choice.
    chooses: str = ""
    #: Heading of the choice of views.
    views_called: str = "Flows"
    #: `True` if zooming along x applies to all panels.
    linked: bool = False
    #: Text at a point, with {x}, {y} and {y%}; empty for the values of all lines at the pointer's
    #: x.
    about: str = ""
    #: Approximate number of points to which longer lines are downsampled.
    max_points: int = _STEPS

    @property
    def views(self) -> list[str]:
        """Views among which the reader can choose."""
        return list(dict.fromkeys(choice.view for choice in self.choices))

    @property
    def labels(self) -> list[str]:
        """Labels among which the reader can choose, in any view."""
        return list(dict.fromkeys(choice.label for choice in self.choices))

    @property
    def legends(self) -> dict[str, dict[str, Swatch]]:
        """Names and styles of the lines of each view; empty for a single line."""
        return {view: self._legend(view) for view in self.views}

    def _legend(self, view: str) -> dict[str, Swatch]:
        pictures = [choice.picture for choice in self.choices if choice.view == view]
        panels = [panel for picture in pictures for panel in picture.panels]
        lines = [line for panel in panels for line in panel.lines]
        found: dict[str, Swatch] = {}
        for line in lines:
            if line.label:
                found.setdefault(line.label, Swatch.of(line))
        return found if len(found) > 1 else {}

    @cached_property
    def panels(self) -> list[list[ScreenPanel]]:
        """Panels of each choice as specifications."""
        return [screen_panels(choice.picture, self.max_points) for choice in self.choices]

    def height(self, choice: Choice, index: int, panel: ScreenPanel) -> int:
        """Height of a panel in pixels."""
        if panel.ratio is not None:
            return _GRAPH_PX
        heights = choice.picture.heights
        return round(
            (heights[index] * _ROW_PX if heights else _PANEL_PX) + panel.extra_label_height
        )


def sentence(text: str) -> str:
    """Formats a phrase as a sentence of a caption; the rest keeps its capitals."""
    return f"{text[0].upper()}{text[1:]}." if text else ""


def sweep_figure(run: Run) -> Figure | None:
    """Metrics against a parameter of the sweep with their spread; `None` without a sweep."""
    choices: list[Choice] = []
    about: list[str] = []
    shown = views(run)
    for by in shown:
        all_flows, rows = run.per_run(), run.per_run(by=by)
        sources = {name: all_flows if m.of == "link" else rows for name, m in METRICS.items()}
        valued = [n for n, has in sources.items() if has[n].null_count() < has.height]
        try:
            content = prepare(run, metrics=valued, by=by)
        except InputError:
            continue
        view = VIEWS[by] if len(shown) > 1 else ""
        choices += _metric_choices(run, content, view)
        about = about or _about(run, content)
    if not choices:
        return None
    notes = [choice.picture.note for choice in choices if choice.picture.note]
    return Figure(
        kind="sweep",
        title="Over the sweep",
        caption=sentence("; ".join([*about, *notes[:1]])),
        choices=choices,
        chooses="Metric",
    )


def _metric_choices(run: Run, content: SweepData, view: str) -> Iterator[Choice]:
    points = _points(content)[:_MAX_PANELS]
    by_name = {metric.column: metric for metric in content.metrics}
    usual = [by_name[name] for name in DEFAULT_METRICS if name in by_name]
    columns = min(len(points), _MAX_COLUMNS)

    def choice(label: str, metrics: Sequence[Metric]) -> Choice:
        drawn, alike = [], True
        for metric in metrics:
            panels, same = _metric_panels(run, content, metric, points)
            drawn += panels
            alike = alike and same
        # A single panel in a row would be too wide for its height.
        across = columns if columns > 1 else min(len(drawn), 3)
        note = "" if alike else SEPARATE_AXES_NOTE
        return Choice(label, _separate_panels(drawn, note=note), across, view)

    if usual:
        yield choice("Goodput and queueing delay", usual)
    if content.summary.height <= _MAX_POINTS:
        yield from (choice(metric.axis_label, [metric]) for metric in content.metrics)


def _metric_panels(
    run: Run, content: SweepData, metric: Metric, points: Sequence[dict[str, str]]
) -> tuple[list[Panel], bool]:
    rows = content.rows(metric)
    drawn, alike = panels_of(rows, points, content.grouping)
    found = []
    for row, panels in zip(rows, drawn, strict=True):
        for panel, point in zip(panels, points, strict=True):
            panel.title = ", ".join(filter(None, (row.group, title(point, run.remarks.axes))))
            panel.x_label, panel.y_label = row.x_axis.label, metric.axis_label
            found.append(panel)
    return found, alike


def _points(content: SweepData) -> list[dict[str, str]]:
    """Points of the sweep with a panel for each metric."""
    return points_of(tuple(a for a in content.layout.panels if a is not content.grouping.axis))


def _about(run: Run, content: SweepData) -> list[str]:
    about = describe_spreads(content.all_flows, content.metrics, IN_FIGURES)
    about = about or ["one seed for each point, so there are no intervals"]
    every = len(_points(content))
    about += [f"the first {_MAX_PANELS} of {every} panels"] if every > _MAX_PANELS else []
    return [*about, *run.remarks.rest]


def qdelay_figure(run: Run) -> Figure | None:
    """Cumulative distributions of the queueing delay; `None` without packets."""
    try:
        picture = qdelay_cdf(run)
    except InputError:
        return None
    return _delays(run, "qdelay", "Queueing delay", picture)


def delay_figure(run: Run) -> Figure | None:
    """Cumulative distributions of one-way queueing delays by group; `None` with one group."""
    if "delay" not in default_kinds(run):
        return None
    return _delays(run, "delay", "Queueing delay of groups", delay_cdf(run))


def _delays(run: Run, kind: str, title: str, picture: Picture) -> Figure:
    seeds = ", over all seeds" if len(run.manifest.seeds) > 1 else ""
    return Figure(
        kind=kind,
        title=title,
        caption=_joined(
            f"How large a part of the packets waited no longer than this{seeds}.",
            sentence(picture.note),
        ),
        choices=[Choice("", picture, picture.columns)],
        linked=True,
        about="{y%} waited at most {x} ms",
    )


def responses_figure(run: Run) -> Figure | None:
    """Fraction of requests that take longer, on logarithmic axes; `None` without requests."""
    try:
        picture = response_ccdf(run)
    except InputError:
        return None
    several = len(run.manifest.seeds) > 1
    return Figure(
        kind="responses",
        title="Response times",
        caption=_joined(
            "How large a part of the requests takes longer than this.",
            sentence(picture.note),
            "The band is the 95 % interval of the mean over the seeds, at each time by itself."
            * several,
            "A curve that ends above the axis ends where all others were given up, or were open"
            " when the run ended.",
        ),
        choices=[Choice("", picture, picture.columns)],
        linked=True,
        about="{y%} takes longer than {x} s",
    )


def windows_figure(run: Run) -> Figure | None:
    """Windows at all points of a sweep; `None` without a sweep or windows."""
    if not swept(run):
        return None
    drawn = [
        (by, overview(run, group=ALL) if by == "all" else overview(run, lines=by))
        for by in views(run)
    ]
    drawn = [(by, picture) for by, picture in drawn if any(line.x for line in _lines([picture]))]
    if not drawn:
        return None
    max_points, downsampled = _downsampling([picture for _, picture in drawn])
    return Figure(
        kind="windows",
        title="Windows over time",
        caption=_joined(_seed(run), sentence(drawn[0][1].note), downsampled),
        choices=[
            Choice("", picture, picture.columns, VIEWS[by] if len(drawn) > 1 else "")
            for by, picture in drawn
        ],
        linked=True,
        max_points=max_points,
    )


def runs_figure(run: Run) -> Figure | None:
    """Window, round-trip time and queue of a run of the reader's choice; `None` without samples."""
    points = points_of(run.axes)
    link = main_link(run)
    runs = [
        (title(point, run.remarks.axes), one)
        for point, one in zip(points, sampled_runs(run, points[:_MAX_RUNS]), strict=False)
        if not one.flows.is_empty()
    ]
    choices = []
    for label, one in runs:
        for view, grouping in _views_over_time(run, one, runs):
            panels = panels_over_time(run, one.flows, one.links, grouping, link)
            if not one.links.filter(one.links["link"] == link).height:
                # Without samples of the queue there is no delay.
                panels = [panel for panel in panels if any(line.x for line in panel.lines)]
            heights = [1.5, *[1.1] * (len(panels) - 1)]
            choices.append(
                Choice(label, _separate_panels(panels, heights, x_label="Time (s)"), 1, view)
            )
    if not choices:
        return None
    pictures = [choice.picture for choice in choices]
    max_points, downsampled = _downsampling(pictures)
    banded = any(line.band for line in _lines(pictures))
    return Figure(
        kind="timeseries",
        title="Over time",
        caption=_joined(
            _seed(run),
            f"{'By group: m' if choices[0].view else 'M'}edian and middle 80 % of the flows."
            * banded,
            f"The first {_MAX_RUNS} of {len(points)} points." * (len(points) > _MAX_RUNS),
            downsampled,
        ),
        choices=choices,
        chooses="Run" if len(runs) > 1 else "",
        linked=True,
        max_points=max_points,
    )


def _views_over_time(
    run: Run, one: OneRun, runs: list[tuple[str, OneRun]]
) -> list[tuple[str, Grouping]]:
    """Views of flows or groups over time, the same for all runs."""
    usual = grouping_over_time(run, one.flows)
    if len(run.groups) < 2:  # noqa: PLR2004 - nothing to choose from
        return [("", usual)]
    flow_count = max(each.flows["flow_id"].n_unique() for _, each in runs)
    kinds: list[By] = ["group"] if flow_count > MAX_FLOWS else ["flow", "group"]
    kinds.sort(key=lambda by: by != grouping_over_time(run, runs[0][1].flows).by)
    return [(VIEWS[by], grouping_over_time(run, one.flows, by)) for by in kinds]


def graph_figure(run: Run) -> Figure | None:
    """Maps of utilisation and loss for the first points of the sweep; `None` for a dumbbell."""
    choices: list[Choice] = []
    drawn = 0
    for point in points_of(run.axes)[:_MAX_GRAPHS]:
        try:
            picture = graph(run, at_point=point)
        except InputError:
            continue
        drawn += sum(len(panel.lines[-1].texts) for panel in picture.panels)
        if choices and drawn > _MAX_LINKS:
            break
        name = title(point, run.axes)
        choices += [
            Choice(name, _separate_panels([replace(panel, title="")]), 1, quantity.title)
            for panel, quantity in zip(picture.panels, (UTILISATION, LOSS), strict=True)
        ]
    if not choices:
        return None
    return Figure(
        kind="graph",
        title="Graph",
        caption=(
            "Each direction of a link is on the right of the line between its nodes, seen along"
            " it; means of all seeds, after the warm-up. Squares are nodes that send data."
        ),
        choices=sorted(choices, key=lambda choice: choice.view == LOSS.title),
        chooses="Point",
        views_called="Of each link",
        max_points=_MAX_LINKS * 3,
    )


def _separate_panels(
    panels: list[Panel], heights: Sequence[float] = (), *, x_label: str = "", note: str = ""
) -> Picture:
    """Builds a picture of panels without shared y axes, whose limits are set or independent."""
    return Picture(
        panels,
        height=1.0,
        heights=heights,
        x_label=x_label,
        note=note,
        shared_x="all" if x_label else "none",
        shared_y="none",
    )


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _seed(run: Run) -> str:
    return f"Seed {run.manifest.seeds[0]}." if len(run.manifest.seeds) > 1 else ""


def _lines(pictures: Iterable[Picture]) -> list[Line]:
    return [line for each in pictures for panel in each.panels for line in panel.lines]


def _downsampling(pictures: Sequence[Picture]) -> tuple[int, str]:
    """Returns the limit of points per line over time, and a sentence if a line exceeds its half."""
    lengths = [len(line.x) for line in _lines(pictures)]
    max_points = max(_MIN_POINTS, min(_MAX_LINE_POINTS, _POINT_BUDGET // max(len(lengths), 1)))
    if max(lengths, default=0) <= max_points // 2:
        return max_points, ""
    return max_points, (
        f"Lines of more than {max_points // 2} samples are thinned: of each of {max_points // 4}"
        " spans of time the first, the last, the least and the greatest sample are drawn."
        " All samples are in the Parquet files."
    )


def _row(of: str, quantity: str, value: float | None) -> tuple[str, ...]:
    metric = METRICS.get(quantity, Metric(quantity, quantity))
    shown = "–" if value is None else number(value * metric.scale)
    return of, metric.label, shown, metric.unit


@dataclass(frozen=True)
class Recorded:
    """A result of another command than `cwnd run`, with its figure."""

    records: Records
    #: Title of the figure, and the figure; `None` if there is nothing to draw.
    title: str
    picture: Picture | None
    #: What the numbers are about, by name.
    facts: Sequence[tuple[str, str]] = ()
    #: Name of an RRUL test, and its tables, in place of those of the link or run beside it.
    rrul: tuple[str, Sequence[TextTable]] | None = None

    @property
    def command(self) -> str:
        """Command of cwnd that made the result."""
        return f"cwnd {self.records.kind if self.rrul is None else 'rrul'}"

    @property
    def name(self) -> str:
        """Name of the scenario, or of the measured object; of a link, which has none, its place."""
        if self.rrul is not None:
            return self.rrul[0]
        place = self.records.path.resolve().name
        return f"link {place}" if self.records.kind == LINK else self.records.name or place

    @property
    def tables(self) -> Sequence[TextTable]:
        """Tables of its numbers, metrics in their units for people."""
        if self.rrul is not None:
            return self.rrul[1]
        rows = [_row(*subject, value) for subject, value in numbers(self.records)]
        about = ["units are in the names of quantities without one"]
        value = "value"
        if self.records.kind == AGREE:
            value, about = "difference", ["Linux − simulator", *about]
        return [TextTable("Numbers", about, 2, ["of", "quantity", value, "unit"], rows)]

    @property
    def figure(self) -> Figure | None:
        """Figure on the page; `None` if there is nothing to draw."""
        if self.picture is None:
            return None
        choice = Choice("", self.picture, self.picture.columns)
        return Figure(self.records.kind, self.title, "", [choice])
