"""Kinds of figures of a result: description, drawing, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.figures import Figure
from cwnd.plots.graph import graph
from cwnd.plots.layout import MAX_LINES
from cwnd.plots.qdelay import delay_cdf, qdelay_cdf
from cwnd.plots.responses import available as responses_available
from cwnd.plots.responses import response_ccdf
from cwnd.plots.sweep import sweep
from cwnd.plots.timeseries import overview, timeseries
from cwnd.results import RESULT, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from cwnd.figures import Picture
    from cwnd.results import Run

#: Kinds of figures, by their names in `cwnd plot --kind` and `Run.plot`.
KINDS: dict[str, Callable[..., Picture]] = {
    "timeseries": timeseries,
    "windows": overview,
    "qdelay": qdelay_cdf,
    "delay": delay_cdf,
    "responses": response_ccdf,
    "sweep": sweep,
    "graph": graph,
}


def describe(run: Run, kind: str | None = None, **options: Any) -> Picture:
    """Describes a figure; by default of the first of `default_kinds`.

    Raises:
        InputError: There is no such kind, or nothing of the kind to draw.
    """
    if kind is None:
        kinds = default_kinds(run)
        if not kinds:
            raise InputError("this result has nothing to draw: no sweep, no samples, no packets")
        kind = kinds[0]
    if kind not in KINDS:
        raise InputError(f"there is no figure `{kind}`; there are {', '.join(KINDS)}")
    return KINDS[kind](run, **options)


def draw(run: Run, kind: str | None = None, **options: Any) -> Figure:
    """Draws a figure; by default of the first of `default_kinds`.

    Raises:
        InputError: There is no such kind, or nothing of the kind to draw.
    """
    return Figure(describe(run, kind, **options))


def compare(runs: Mapping[str, Run], *, link: str | None = None, **options: Any) -> Picture:
    """Describes metrics of several results: lines, or points along x where nothing is swept.

    Args:
        runs: Results by name.
        link: Link whose queue is shown, each result's busiest if not given.
        options: Further ones of `sweep`.

    Raises:
        InputError: An axis that not all of them have varies, or there is nothing to draw.
    """
    run = merged(runs, link)
    lines = RESULT if any(len(axis.labels) > 1 for axis in run.axes[:-1]) else None
    return sweep(run, lines=lines, **options)


def swept(run: Run) -> bool:
    """`True` if an axis of the sweep has several labels."""
    return any(len(axis.labels) > 1 for axis in run.axes)


def default_kinds(run: Run) -> list[str]:
    """Kinds of figures for which a result has data, in their order, without the graph."""
    kinds = []
    if swept(run):
        kinds.append("sweep")
    if _filled(run, "series"):
        kinds.append("windows" if swept(run) else "timeseries")
    if _filled(run, "qdelay"):
        kinds.append("qdelay")
    if 1 < len(run.groups) <= MAX_LINES and _filled(run, "delays"):
        kinds.append("delay")
    if responses_available(run):
        kinds.append("responses")
    return kinds


def _filled(run: Run, name: str) -> bool:
    """`True` if a table of samples has rows; the first run, which usually suffices, comes first."""
    first = run.samples_of(name, run.runs["run_id"].head(1).to_list())
    return not first.head(1).collect().is_empty() or not (
        run.samples[name].head(1).collect().is_empty()
    )


def write_kind(run: Run, kind: str, directory: Path, *, quick: bool = False) -> list[Path]:
    """Draws a figure and writes it, as PNG and SVG or as `quick` SVG only."""
    return save(draw(run, kind), directory, kind, quick=quick)


def save(figure: Figure, directory: Path, name: str, *, quick: bool = False) -> list[Path]:
    """Writes a figure as PNG and SVG, or as SVG only."""
    directory.mkdir(parents=True, exist_ok=True)
    formats = ("svg",) if quick else ("png", "svg")
    return [figure.save(directory / f"{name}.{suffix}") for suffix in formats]
