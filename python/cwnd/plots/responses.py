"""Figure of the complementary distribution of response times."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.plots.layout import Grid, Grouping, at, by_flow_or_group, title
from cwnd.results import Distribution, counts_of, distribution, known_group, survival

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.figures import LineStyle
    from cwnd.plots.layout import Layout
    from cwnd.results import Run

#: Points of a curve in each decade, from a microsecond to eleven days.
_PER_DECADE = 40
TIMES_S = tuple(10 ** (step / _PER_DECADE) for step in range(-6 * _PER_DECADE, 6 * _PER_DECADE + 1))
#: Smallest fraction that is drawn.
_MIN_FRACTION = 1e-6


@dataclass(frozen=True)
class Curve:
    """Distribution of the response times of a group or flow at a point of the sweep."""

    style: LineStyle
    label: str | None
    #: Fractions from the last time that all requests exceed to one step after the last change.
    shares: Distribution


@dataclass(frozen=True)
class Curves:
    """Panels of the figure, with their curves."""

    grid: Grid
    #: Points of the sweep, each with its curves.
    panels: list[tuple[dict[str, str], list[Curve]]]

    @property
    def smallest(self) -> float:
        """Smallest positive fraction of all curves, at least 10⁻⁶; the axis ends below it."""
        found = [
            share
            for _, curves in self.panels
            for curve in curves
            for share in curve.shares.means
            if share > 0
        ]
        return max(min(found, default=0.1), _MIN_FRACTION)


def available(run: Run) -> bool:
    """`True` if the result has requests."""
    if "requests" in run.runs.columns:
        return bool(run.runs["requests"].sum())
    return next(counts_of(run), None) is not None


def response_ccdf(run: Run, *, lines: str | None = None, group: str | None = None) -> Picture:
    """Describes the fraction of requests that take longer, on logarithmic axes.

    There is a curve for each group, or for each label of an axis of the sweep, with panels for the
    points of the others. Over several seeds a curve is the mean, and the band around it the
    pointwise 95 % interval by Student's t. Requests that were given up count as infinite; those
    open at the end of the run are censored there (Kaplan & Meier 1958).

    Args:
        run: The result.
        lines: Subject of the curves: "group", "flow", or an axis of the sweep.
        group: Only this group of flows; "*" for all flows together.

    Raises:
        InputError: There are no requests, or no such group or axis.
    """
    found = curves_of(run, lines, group)
    single = len(found.panels) == 1
    rows = math.ceil(len(found.panels) / found.grid.columns)
    return Picture(
        [
            Panel(
                [_line(curve) for curve in curves],
                title=title(point, found.grid.axes),
                x_log=True,
                y_log=True,
                y_limits=(found.smallest / 1.5, 1),
            )
            for point, curves in found.panels
        ],
        height=2.8 if single else 0.7 + 1.7 * rows,
        width=4.5 if single else line_style.WIDTH,
        columns=found.grid.columns,
        x_label="Response time (s)",
        note=found.grid.left_out,
        y_label="Part of requests that takes longer",
    )


def _line(curve: Curve) -> Line:
    shares = curve.shares
    line = Line(
        shares.times_s,
        [share if share > 0 else None for share in shares.means],
        colour=line_style.colour(curve.style.colour),
        dashes=line_style.dashes(curve.style.dash),
        label=curve.label,
    )
    if shares.half_widths is not None:
        line.band = edges(shares)
    return line


def edges(shares: Distribution) -> tuple[list[float], list[float]]:
    """Edges of the band around a curve, limited to fractions from 0 to 1."""
    both = list(zip(shares.means, shares.half_widths or [], strict=True))
    return [max(m - h, 0.0) for m, h in both], [min(m + h, 1.0) for m, h in both]


def curves_of(run: Run, lines: str | None = None, group: str | None = None) -> Curves:
    """Chooses and computes the curves of the figure.

    Raises:
        InputError: There are no requests, or no such group or axis.
    """
    known_group(run, group)
    if not available(run):
        raise InputError("this result has no requests to draw: no client opened a connection")
    requesting = _requesting_flows(run, flows=by_flow_or_group(run, lines) == "flow")
    grouping = Grouping.of(run, lines, group=group, only=requesting)
    layout = grouping.layout(run, None, lines).without_x()
    if layout.x is layout.lines:
        layout = replace(layout, x=None)
    grid = Grid.of(
        layout, [*run.remarks.axes, *([grouping.axis] if grouping.axis is not None else [])]
    )
    ordered = _ordered(run, grouping, grid.points)
    panels = [(point, list(_curves(at(ordered, point), layout))) for point in grid.points]
    if not any(curves for _, curves in panels):
        raise InputError(f"group `{group}` has no requests to draw")
    return Curves(grid, panels)


def _requesting_flows(run: Run, *, flows: bool) -> pl.DataFrame:
    """Flows with requests, or one for each group with requests, as there may be millions."""
    if flows:
        found = [
            counts.select("group", "flow_id").unique()
            for counts in counts_of(run, ["group", "flow_id"])
        ]
    else:
        found = [counts.select("group").unique() for counts in counts_of(run, ["group"])]
    requesting = pl.concat(found).unique(maintain_order=True)
    return requesting if flows else requesting.with_row_index("flow_id")


def _ordered(run: Run, grouping: Grouping, points: list[dict[str, str]]) -> pl.DataFrame:
    """Response times with `survival` at the points to draw, sorted within each run and line."""
    runs = run.runs.select("run_id", *run.axis_columns)
    swept = [column for column in points[0] if column in run.axis_columns]
    if swept:
        shown = pl.DataFrame(points).select(swept).unique()
        runs = runs.with_columns(pl.col(swept).cast(pl.String)).join(shown, on=swept, how="semi")
    own = ["group", "flow_id"] if grouping.by == "flow" else ["group"]
    counts = pl.concat(counts_of(run, own, runs["run_id"].to_list()))
    chosen = grouping.group
    if chosen is not None:
        counts = counts.filter(pl.col("group") == chosen)
    counts = grouping.labelled(counts)
    by = ["run_id", *([grouping.axis.column] if grouping.axis is not None else [])]
    keys = run.runs.select("run_id", *(pl.col(c).cast(pl.String) for c in run.axis_columns))
    return survival(counts, by).join(keys, on="run_id", maintain_order="left")


def _curves(rows: pl.DataFrame, layout: Layout) -> Iterator[Curve]:
    for index, label in enumerate(layout.line_labels()):
        mine = rows
        if layout.lines is not None:
            mine = rows.filter(pl.col(layout.lines.column) == label)
        if mine.is_empty():
            continue
        seeds = [part for _, part in mine.group_by("run_id", maintain_order=True)]
        shares = _cut(distribution(seeds, TIMES_S))
        yield Curve(layout.line_style(index, label), layout.line_name(label), shares)


def _cut(shares: Distribution) -> Distribution:
    """Cuts off all but the last time that all requests exceed, and all but one after the end."""
    means = shares.means
    first = max((i for i, share in enumerate(means) if share == 1), default=0)
    last = next((i for i, share in enumerate(means) if share == means[-1]), len(means) - 1)
    kept = slice(first, last + 2)
    widths = shares.half_widths
    return Distribution(shares.times_s[kept], means[kept], None if widths is None else widths[kept])
