"""The HTML page with its style, script, figures and drawing library."""

from __future__ import annotations

import base64
import gzip
import math
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cwnd.errors import CwndError, InputError
from cwnd.figures import library
from cwnd.files import write_atomically
from cwnd.plots import attempt, swept
from cwnd.report import figures, tables
from cwnd.report.colours import palettes
from cwnd.report.figures import Recorded
from cwnd.results import group_table, main_link, result_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cwnd.figures import Panel, ScreenPanel
    from cwnd.report.figures import Choice, Figure
    from cwnd.results import Run, TextTable

#: Maximum number of rows of a table.
_MAX_ROWS = 500
_GIB = 2**30
#: Text on the page without a figure, for the warning.
_THEN = "the page is complete without it"


@dataclass(frozen=True)
class Section:
    """Part of the page for a result of `cwnd run`."""

    #: Prefix of the ids of its elements.
    id: str
    run: Run
    results: TextTable
    groups: TextTable | None
    links: TextTable
    flows: TextTable
    activity: TextTable
    axes: list[TextTable]
    figures: dict[str, Figure]
    #: `True` if an axis of the sweep has several labels.
    swept: bool
    facts: list[tuple[str, str]]
    summary: str
    rerun: str
    is_recorded = False

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.run.name


@dataclass(frozen=True)
class RecordedSection:
    """Part of the page for a result of another command."""

    id: str
    recorded: Recorded
    tables: list[TextTable]
    figures: dict[str, Figure]
    is_recorded = True

    @property
    def name(self) -> str:
        """Name of the scenario, or of the measured object."""
        return self.recorded.name


#: Figures of a result, in their order on the page.
_FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "sweep": figures.sweep_figure,
    "windows": figures.windows_figure,
    "timeseries": figures.runs_figure,
    "qdelay": figures.qdelay_figure,
    "delay": figures.delay_figure,
    "responses": figures.responses_figure,
    "graph": figures.graph_figure,
}


def write(results: Sequence[Run | Recorded], file: Path) -> Path:
    """Writes the page of these results atomically.

    Raises:
        InputError: The path is a directory, a device or a pipe.
    """
    if file.is_dir():
        raise InputError(f"{file}: a directory is in the way; name a file with -o")
    content = html(results).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
    return file


def html(results: Sequence[Run | Recorded]) -> str:
    """Formats the page of these results; equal results give equal bytes."""
    sections = [_part(result, f"r{number}-") for number, result in enumerate(results, 1)]
    drawn = {
        f"{section.id}{name}": _for_script(figure)
        for section in sections
        for name, figure in section.figures.items()
    }
    packed, version = _library() if drawn else ("", "")
    return (
        environment()
        .get_template("page.html")
        .render(
            title=", ".join(dict.fromkeys(result.name for result in results)),
            sections=sections,
            style=asset("page.css"),
            script=asset("page.js"),
            palettes=palettes(),
            figures=drawn,
            library=packed,
            library_version=version,
        )
    )


def environment() -> Environment:
    """Returns the environment of the package's templates, which escape all text."""
    return Environment(
        loader=PackageLoader("cwnd.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _part(result: Run | Recorded, prefix: str) -> Section | RecordedSection:
    if not isinstance(result, Recorded):
        return _section(result, prefix)
    figure = None
    with attempt("the figure of the report", _THEN, passing=(CwndError,)):
        figure = result.figure
    figures = {} if figure is None else {figure.kind: figure}
    tables = [table.cut(_MAX_ROWS) for table in result.tables]
    return RecordedSection(prefix, result, tables, figures)


def _section(run: Run, prefix: str) -> Section:
    found: dict[str, Figure | None] = {}
    for name, draw in _FIGURES.items():
        # Damaged files are errors of the result, not of a figure.
        with attempt(f"figure `{name}` of the report", _THEN, passing=(CwndError,)):
            found[name] = draw(run)
    groups = group_table(run)
    return Section(
        id=prefix,
        run=run,
        results=result_table(run).cut(_MAX_ROWS),
        groups=None if groups is None else groups.cut(_MAX_ROWS),
        links=tables.links_table(run).cut(_MAX_ROWS),
        flows=tables.flows_table(run).cut(_MAX_ROWS),
        activity=tables.activity_table(run),
        axes=tables.axis_tables(run),
        figures={name: figure for name, figure in found.items() if figure is not None},
        swept=swept(run),
        facts=_facts(run),
        summary=_summary(run),
        rerun=tables.rerun_command(run),
    )


def _summary(run: Run) -> str:
    manifest = run.manifest
    points = math.prod(len(axis.labels) for axis in run.axes)
    seeds = len(manifest.seeds)
    made = [f"{manifest.runs} run{'s' * (manifest.runs != 1)}"]
    if points > 1 or seeds > 1:
        made.append(f"{points} point{'s' * (points != 1)}, {seeds} seed{'s' * (seeds != 1)}")
    link = main_link(run)
    made += [f"link {link}"] if link is not None else []
    duration = run.runs["duration_s"].unique().sort().to_list()
    warmup = run.runs["warmup_s"].unique().sort().to_list()
    if len(duration) == len(warmup) == 1:
        each = " each" if manifest.runs > 1 else ""
        made.append(f"{duration[0]:g} s{each}, {warmup[0]:g} s of them warm-up")
    return " · ".join(made)


def _facts(run: Run) -> list[tuple[str, str]]:
    manifest = run.manifest
    machine = dict(manifest.machine)
    memory = machine.pop("memory_bytes", None)
    described = ", ".join(
        str(machine[key]) for key in ("system", "release", "architecture", "cpu") if key in machine
    )
    if "cores" in machine:
        described += f", {machine['cores']} cores"
    if memory:
        described += f", {memory / _GIB:.1f} GiB"
    software = ", ".join(f"{key} {machine[key]}" for key in ("python", "polars") if key in machine)
    facts = [
        ("cwnd", manifest.cwnd_version),
        ("started", manifest.started_at),
        (
            "took",
            f"{manifest.wall_s:.2f} s, {manifest.cpu_s:.2f} s of CPU time, "
            f"{manifest.threads} thread{'s' * (manifest.threads != 1)}",
        ),
        ("machine", described),
        ("software", software),
        ("seeds", ", ".join(map(str, manifest.seeds))),
        (
            "seed override",
            "none" if manifest.seed_override is None else str(manifest.seed_override),
        ),
        ("overrides", "; ".join(manifest.overrides) or "none"),
        ("SHA-256 of the scenario", manifest.scenario_sha256),
        ("SHA-256 of all records", manifest.records_sha256),
    ]
    if manifest.installed:
        facts.append(("installed controllers", "; ".join(manifest.installed)))
    if manifest.steps_hashes is not None:
        facts.append(("hashes of all steps", " ".join(map(str, manifest.steps_hashes))))
    return facts


def _for_script(figure: Figure) -> dict[str, Any]:
    return {
        "linked": figure.linked,
        "about": figure.about,
        "choices": [
            _choice(figure, choice, panels)
            for choice, panels in zip(figure.choices, figure.panels, strict=True)
        ],
    }


def _choice(figure: Figure, choice: Choice, panels: Sequence[ScreenPanel]) -> dict[str, Any]:
    drawn = [
        {
            "title": described.title,
            "alt": _alt(panel, described),
            "moment": panel.axis_label("x"),
            "height": figure.height(choice, index, panel),
            **{field.name: getattr(panel, field.name) for field in fields(panel)},
        }
        for index, (panel, described) in enumerate(zip(panels, choice.picture.panels, strict=True))
        if described.shown
    ]
    return {
        "label": choice.label,
        "view": choice.view,
        "columns": choice.columns,
        "panels": drawn,
    }


def _alt(panel: ScreenPanel, described: Panel) -> str:
    """Alternative text of a panel."""
    axes = [panel.axis_label(side) for side in ("y", "x")]
    named = " against ".join(filter(None, axes)) or "Map of the graph with its links"
    where = f", {described.title}" if described.title else ""
    return f"{named}{where}; the values are in the tables."


def asset(name: str) -> Markup:
    """Reads a file of the page's style or script."""
    # A file of the package, which is inserted unescaped.
    return Markup(  # noqa: S704
        (resources.files("cwnd.report") / "assets" / name).read_text("utf-8")
    )


@cache
def _library() -> tuple[str, str]:
    """Drawing library, compressed and encoded for the page's script, and its version."""
    source, version = library()
    # Without a time stamp, equal results give equal pages.
    return base64.b64encode(gzip.compress(source.encode(), mtime=0)).decode(), version
