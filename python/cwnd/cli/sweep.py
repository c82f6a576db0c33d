"""`cwnd sweep`, and `cwnd sweep verify`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from cwnd.cli import output
from cwnd.cli import verify as verifying
from cwnd.cli.run import OUT, plot_files, show_tables

if TYPE_CHECKING:
    from cwnd.results import Run
    from cwnd.sweeps import Filled

sweep = App(name="sweep", default_parameter=Parameter(show_default=False), help_format="plaintext")


@sweep.default
def fill(
    file: Path,
    /,
    *,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seed: int | None = None,
    set_: Annotated[list[str], Parameter(name="--set", negative=(), consume_multiple=False)] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None,
    shard: str | None = None,
    on: str | None = None,
    replan: Annotated[bool, Parameter(negative=())] = False,
    plots: bool = True,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
    json: output.Json = False,
) -> int:
    """Simulate into a directory that survives anything, and goes on where it was.

    Each run is on disk, whole, soon after it is done: after a Ctrl-C, a kill, a full disk or a
    crash the same command goes on, and the directory ends up the same, byte for byte. A run that
    fails is recorded with its reason; the others go on, and the exit code is 1.

    Args:
        file: Scenario file.
        output_dir: Directory of the sweep, out/NAME if not given.
        seed: Replaces the scenario's seed.
        set_: Replaces a value: PATH=VALUE, as in "flow.main.rtt=200 ms"; may be given again.
        threads: Runs at a time; all cores if not given. It never changes the result.
        shard: I/N does part I of N of the runs, for batch systems; all parts may write into one
            directory, or into several that are copied together.
        on: "linux" runs real endpoints on this machine's kernel around our router, in real time, as
            root. "ray" computes on Ray: on the cluster of which this machine is a node, or in
            processes of its own; "ray:HOST:PORT" names the cluster, "ray://HOST:PORT" its client
            port.
        replan: Remove runs of another scenario or version that are in the directory.
        plots: Draw the figures, as SVG; `cwnd plot` draws them for papers, as PNG too.
        quiet: No progress and no table: only warnings, and where the result is.
        json: Machine-readable output.
    """
    from cwnd.figures import warm_up
    from cwnd.plots import draw_result
    from cwnd.running import bar, plans
    from cwnd.sweeps import Shard, filling, load

    part = Shard.parse(shard) if shard is not None else None
    plan = plans.plan(file, seed=seed, overrides=set_)
    target = output_dir or OUT / plan.scenario.name
    filling.check_target(target)
    output.warnings(plan.scenario)
    if plots and part is None and on is None:
        warm_up()
    output.left = "what was finished is safe, and the same command goes on"
    name = plan.scenario.name
    with nullcontext() if quiet or json else bar(name, output.stderr()) as on_progress:
        filled = filling.fill(
            plan,
            target,
            threads=threads,
            shard=part,
            backend=filling.backend_of(on),
            world=filling.world_of(on),
            replan=replan,
            on_progress=on_progress,
        )
    result = filled.run
    if result is None and filled.missing < filled.dataset.info.cells:
        result = load(target)
    if result is not None and plots and part is None:
        draw_result(result, target, quick=True)
    if json:
        output.document(_document(filled, result, target))
    else:
        _show(filled, result, target, quiet=quiet)
        if not quiet:
            output.scenario_notes(plan.scenario)
    if filled.failed:
        if not json:
            output.fail(filling.failures(filled))
        return 1
    return 0


@sweep.command
def verify(
    directory: Path,
    /,
    *,
    depth: verifying.Depth = verifying.DEPTH,
    json: output.Json = False,
) -> int:
    """Compare all files of a sweep with their hashes, as `cwnd verify` does.

    Exit code 1 if a file is damaged or missing, or a run that is computed again gives other values.

    Args:
        directory: What `cwnd sweep` wrote.
        depth: How much is looked at.
        json: Machine-readable output.
    """
    found = verifying.look(directory, depth, quiet=json)
    if json:
        output.document(found)
    return 0 if found["sound"] else 1


def _show(filled: Filled, result: Run | None, target: Path, *, quiet: bool) -> None:
    if not quiet:
        if result is not None:
            show_tables(result)
        before = f"{filled.before} were there, " if filled.before else ""
        output.line(
            f"{before}{filled.made} cells in {filled.wall_s:.2f} s"
            f" ({filled.cpu_s:.2f} s of CPU time)"
        )
    for note in result.notes if result is not None else ():
        output.note(note)
    for file in plot_files(target):
        output.line(str(file))
    output.line(f"{target}")


def _document(filled: Filled, result: Run | None, target: Path) -> dict[str, Any]:
    return {
        "name": filled.dataset.info.name,
        "directory": str(target),
        "cells": filled.dataset.info.cells,
        "before": filled.before,
        "made": filled.made,
        "failed": [
            {"cell_id": cell, "error": failure.error, "message": failure.message}
            for cell, failure in filled.failed.items()
        ],
        "missing": filled.missing,
        "manifest": None if result is None else result.manifest.to_json(),
        "summary": [] if result is None else result.summary().to_dicts(),
        "notes": [] if result is None else result.notes,
        "plots": [str(file) for file in plot_files(target)],
    }
