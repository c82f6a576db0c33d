"""Command `cwnd animate`: packets of a run as an HTML page, or as a diagram."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.cli.plot import labels_at
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from cwnd.results import Run
    from cwnd.running import PacketLog

#: Maximum number of runs on a page.
_MAX_RUNS = 2
#: Endings of files.
_FORMATS = (".html", ".svg")


def animate(
    source: Path,
    /,
    *,
    begin: Annotated[str, Parameter(name="--from")] = "0 s",
    end: Annotated[str | None, Parameter(name="--to")] = None,
    link: str | None = None,
    at: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    seed: int | None = None,
    set_: Annotated[
        list[str],
        Parameter(name="--set", negative=(), consume_multiple=False),
    ] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    output_file: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    trust: Annotated[bool, Parameter(negative=())] = False,
    json: output.Json = False,
) -> int:
    """Animate the packets of a run: queue, marks and their echoes, drops, source quenches.

    One HTML page that needs no network and no other file plays the packets at one link. Two points
    of a sweep are shown one below the other, by the same clock. As in `cwnd animate becn.toml`, or
    `cwnd animate out/becn --at scheme=BECN --from 2s --to 5s -o becn.html`.

    With a name that ends in .svg, the output is a diagram for slides and papers: time runs down,
    and each packet is a line between sender, router and receiver.

    Args:
        source: Scenario file, or result directory of `cwnd run`, whose run is simulated again, as
            in "cwnd animate becn.toml --from 2s --to 5s -o becn.html".
        begin: Start of the part of the run that is shown; at most 60 s are.
        end: End of that part; the end of the run if not given.
        link: Link whose queue is shown; the busiest if not given.
        at: Point of the sweep: AXIS=LABEL; may be given again, also for two labels of an axis.
        seed: Seed of the run; the first if not given.
        set_: Replaces a value of a scenario file: PATH=VALUE; may be given again.
        output_file: File to write, .html or .svg; NAME-packets.html if not given.
        trust: Trust the code that the scenario names: its hash is kept, so that it is asked for
            once.
        json: Machine-readable output.
    """
    from cwnd.files import write_atomically
    from cwnd.report import animation
    from cwnd.topology import quantity

    file = output_file or Path(f"{source.stem}-packets.html")
    if file.suffix not in _FORMATS or file.is_dir():
        raise InputError(f"{file}: name a file that ends in {' or '.join(_FORMATS)}")
    begin_s = quantity("time", begin, "--from")
    end_s = None if end is None else quantity("time", end, "--to")
    if source.is_dir():
        if set_:
            raise InputError("--set replaces values of a scenario file, not of a result")
        points = _of_result(source, at, seed)
    else:
        points = _of_file(source, at, seed, set_)
    logs = [_logged(point, link, (begin_s, end_s), trust=trust) for point in points]
    text = animation.html(logs) if file.suffix == ".html" else animation.svg(logs)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text.encode())
    if json:
        output.document({"file": str(file), "runs": [_document(log) for log in logs]})
    else:
        output.line(str(file))
    return 0


@dataclass(frozen=True)
class _Point:
    """A run at a point of a sweep."""

    #: Label of each axis.
    labels: Mapping[str, str]
    #: Axes of numbers.
    numeric: Collection[str]
    resolved: str
    #: The result that has it, and its row there; `None` for a run of a scenario file.
    stored: tuple[Run, int] | None = None

    @property
    def title(self) -> str:
        """Name of the point; numbers have the name of their axis before them."""
        return ", ".join(
            f"{axis} = {label}" if axis in self.numeric else label
            for axis, label in self.labels.items()
        )


def _of_file(file: Path, at: list[str], seed: int | None, overrides: list[str]) -> list[_Point]:
    """Returns the runs of a scenario file at these labels, one for each point."""
    from cwnd.running import plan

    scenario = plan(file, seed=seed, overrides=overrides).scenario
    axes = {name: labels for name, labels, _, _ in scenario.axes}
    numeric = [name for name, _, values, _ in scenario.axes if values is not None]
    wanted = labels_at(axes, at)
    cells = map(scenario.cell, range(0, scenario.runs, scenario.repeat))
    return _few(
        (_Point(cell.axes, numeric, cell.resolved) for cell in cells if _is_at(cell.axes, wanted)),
        axes,
    )


def _of_result(directory: Path, at: list[str], seed: int | None) -> list[_Point]:
    """Returns the runs of a result at these labels, one for each point."""
    from cwnd.store import load

    run = load(directory, samples_on_disk=True)
    axes = {axis.name: axis.labels for axis in run.axes}
    numeric = [axis.name for axis in run.axes if axis.value_column is not None]
    wanted = labels_at(axes, at)
    seed = run.manifest.seeds[0] if seed is None else seed
    if seed not in run.manifest.seeds:
        known = ", ".join(map(str, run.manifest.seeds))
        raise InputError(f"{directory}: no run has the seed {seed}; there are {known}")

    def found() -> Iterator[_Point]:
        for row, values in enumerate(run.runs.iter_rows(named=True)):
            labels = {axis.name: str(values[axis.column]) for axis in run.axes}
            if values["seed"] == seed and _is_at(labels, wanted):
                yield _Point(labels, numeric, run.resolved[row], (run, row))

    return _few(found(), axes)


def _is_at(labels: Mapping[str, str], wanted: Mapping[str, list[str]]) -> bool:
    return all(labels[axis] in given for axis, given in wanted.items())


def _few(points: Iterator[_Point], axes: Mapping[str, Sequence[str]]) -> list[_Point]:
    first = list(islice(points, _MAX_RUNS + 1))
    if not first:
        raise InputError("there is no run at these labels: it failed, or is not done yet")
    if len(first) > _MAX_RUNS:
        given = "; ".join(f"{name} = {', '.join(labels)}" for name, labels in axes.items())
        raise InputError(
            f"at most {_MAX_RUNS} points of a sweep fit one page: choose with --at AXIS=LABEL, once"
            f" for each label; the axes and their labels are {given}"
        )
    return first


def _logged(
    point: _Point, link: str | None, ends_s: tuple[float, float | None], *, trust: bool
) -> PacketLog:
    from cwnd.running import check_same_run, log_packets

    log = log_packets(
        point.resolved,
        point=point.title,
        link=link,
        begin_s=ends_s[0],
        end_s=ends_s[1],
        trust=trust,
    )
    if point.stored is not None:
        check_same_run(log, *point.stored)
    return log


def _document(log: PacketLog) -> dict[str, Any]:
    from cwnd.report import animation

    counted = animation.counts(animation.shown_packets(log))
    return {"point": log.point, "link": log.link, "packets": counted}
