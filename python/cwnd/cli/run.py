"""Command `cwnd run`: simulation of scenarios."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from cwnd.results import Run
    from cwnd.running import (
        Captures,
        Environment,
        FillResult,
        OnProgress,
        Plan,
        SenderLogs,
    )

#: Parent directory of results without `-o`.
OUT = Path("out")
#: Value of `--on` for real TCP endpoints on Linux.
_LINUX = "linux"


def run(
    files: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seed: int | None = None,
    set_: Annotated[
        list[str],
        Parameter(name="--set", negative=(), consume_multiple=False),
    ] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None,
    check: Annotated[bool, Parameter(negative=())] = False,
    on: str | None = None,
    shard: str | None = None,
    again: Annotated[bool, Parameter(negative=())] = False,
    replan: Annotated[bool, Parameter(negative=())] = False,
    plots: bool = True,
    force: Annotated[bool, Parameter(negative=())] = False,
    pcap: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    qlog: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    trust: Annotated[bool, Parameter(negative=())] = False,
    strict: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
    latex: output.Latex = False,
    json: output.Json = False,
) -> int:
    """Simulate scenarios: table, plots and Parquet files.

    A scenario with a [sweep] runs all its cells, on all cores. Each run is on disk soon after it
    is done: after a Ctrl-C, a kill, a full disk or a crash the same command goes on, and the result
    ends up the same, byte for byte. Existing runs are not simulated again. A run that fails
    is recorded with its reason; the others go on, and the exit code is 1.

    The complete result replaces an older one of the same scenario in the same place; other files
    stay.

    Args:
        files: Scenario files.
        output_dir: Directory of the result; out/NAME if not given, out/NAME-linux with --on linux.
            With several files it gets one such directory for each.
        seed: Replaces the scenario's seed.
        set_: Replaces a value: PATH=VALUE, as in "flow.main.rtt=200 ms"; may be given again.
        threads: Runs at a time; all cores if not given, or with --on linux as many as they can
            route. It never changes a simulated result.
        check: Simulate everything twice and compare every event and random draw; the manifest gets
            the hashes of all steps, to compare builds and machines by.
        on: "linux" runs real endpoints on this machine's kernel around our router, in real time, as
            root; Ctrl-C leaves the runs that are finished, and partial captures of the others.
            "ray" computes on Ray: on the cluster of which this machine is a node, or in processes
            of its own; "ray:HOST:PORT" names the cluster, "ray://HOST:PORT" its client port.
        shard: I/N does part I of N of the runs, for batch systems; all parts may write into one
            directory, or into several that are copied together.
        again: Simulate all runs anew, existing ones, too; --check, --pcap and --qlog always do.
        replan: Remove runs of another scenario or version from a sweep that is not complete.
        plots: Draw the figures, as SVG; `cwnd plot` draws them for papers, as PNG too.
        force: Replace the result of another scenario, too.
        pcap: Links whose packets are written to capture files for Wireshark and its kin, in pcap/
            of the result: LINK or several with commas, "LINK+LINK" for both in one file, or "all".
        qlog: Flow groups whose senders are logged for qvis and its kin, in qlog/ of the result, a
            file for each connection: GROUP or several with commas, or "all".
        trust: Trust the code that the scenarios name: their hashes are kept, so that it is asked
            for once.
        strict: Exit with 1, too, if a run on Linux was not valid, as when the machine was too busy.
        quiet: No progress and no table: only warnings, and the directory of the result.
        latex: Tables for LaTeX.
        json: Machine-readable output.
    """
    del latex  # `main` reads it
    from cwnd.running import plans as planning
    from cwnd.store import Shard

    if not files:
        raise InputError(
            "which scenario? give a file, as in `cwnd run my.toml`; `cwnd new scenario my.toml`"
            " writes one"
        )
    part = Shard.parse(shard) if shard is not None else None
    if part is not None and (again or check or pcap or qlog):
        raise InputError("--again, --check, --pcap and --qlog simulate all runs: leave out --shard")
    plans = [planning.plan(file, seed=seed, overrides=set_) for file in files]
    # Figures' libraries load in a thread while data frames are imported, which takes as long.
    _warm_up(wanted=plots and on is None and part is None)
    from cwnd.running import captures, check_trust, executor, sender_logs, simulating

    backend, environment = executor.backend_of(on), executor.environment_of(on)
    targets = _targets(plans, output_dir, on)
    for plan, target in zip(plans, targets, strict=True):
        executor.check_target(target)
        if not force:
            executor.check_same(target, plan)
    for plan in plans:
        check_trust(plan.code, plan.source.name, trust=trust)
    for plan in plans if qlog else []:
        sender_logs(qlog, plan.points, OUT, environment)
    for plan in plans:
        environment.check(plan.scenario)
    for plan in plans if pcap else []:
        captures(pcap, plan.points, OUT)
    documents = []
    failed = False
    for plan, target in zip(plans, targets, strict=True):
        output.warnings(plan.scenario)
        with (
            _recordings(pcap, qlog, plan, target, environment) as (made, pcaps, logs),
            nullcontext() if quiet or json else _bar(plan) as on_progress,
            _set_interrupt_message(target),
        ):
            filled = executor.fill(
                plan,
                target,
                threads=threads,
                shard=part,
                backend=backend,
                environment=environment,
                replan=replan,
                replace=True,
                recompute=again,
                work=simulating.work_of(environment, check=check, files=pcaps, logs=logs),
                recorded=made,
                on_progress=on_progress,
            )
        _draw(filled, target, wanted=plots and part is None)
        if json:
            documents.append(_document(filled, target))
        else:
            _show(filled, target, quiet=quiet)
            _show_failures(filled, plan, quiet=quiet)
        invalid = strict and filled.run is not None and bool(filled.run.flaws)
        failed = failed or invalid or bool(filled.failed)
    if json:
        output.document({"results": documents})
    return 1 if failed else 0


@contextmanager
def _recordings(
    links: list[str], groups: list[str], plan: Plan, target: Path, environment: Environment
) -> Iterator[tuple[dict[str, Path], Captures | None, SenderLogs | None]]:
    """Yields the captures of links and the logs of groups that runs write beside the result.

    The directories that it yields move into the result. A run in real time cannot be repeated
    exactly: on Linux, Ctrl-C renames the unfinished captures to `TARGET-stopped`, or
    `TARGET-stopped-2` and so on, instead of deleting them.
    """
    from cwnd.files import atomic
    from cwnd.running import Linux, captures, sender_logs
    from cwnd.store import PCAP, QLOG

    if not links and not groups:
        yield {}, None, None
        return
    with atomic.scratch_directory(target) as scratch:
        place, logs = scratch / PCAP, scratch / QLOG
        try:
            yield (
                {PCAP: place, QLOG: logs},
                captures(links, plan.points, place) if links else None,
                sender_logs(groups, plan.points, logs, environment) if groups else None,
            )
        except KeyboardInterrupt:
            if isinstance(environment, Linux) and place.exists():
                kept = target.with_name(f"{target.name}-stopped")
                numbered = (kept.with_name(f"{kept.name}-{n}") for n in count(2))
                kept = next(name for name in chain([kept], numbered) if not name.exists())
                place.rename(kept)
                output.interrupt_message = (
                    f"{output.interrupt_message}; what was captured is in {kept}"
                )
            raise


@contextmanager
def _set_interrupt_message(target: Path) -> Iterator[None]:
    """Sets the message after Ctrl-C: finished runs are kept if the sweep has its journal."""
    try:
        yield
    except KeyboardInterrupt:
        from cwnd.store import JOURNAL

        if (target / JOURNAL).exists():
            output.interrupt_message = "what was finished is safe, and the same command goes on"
        raise


def _draw(filled: FillResult, target: Path, *, wanted: bool) -> None:
    if wanted and filled.run is not None:
        from cwnd.plots import draw_result

        draw_result(filled.run, target, quick=True)


def _bar(plan: Plan) -> AbstractContextManager[OnProgress]:
    from cwnd.running import bar

    return bar(plan.scenario.name, output.stderr())


def _warm_up(*, wanted: bool) -> None:
    """Starts loading the libraries that draw figures in a thread, if `wanted`."""
    if wanted:
        from cwnd.figures import warm_up

        warm_up()


def _targets(plans: list[Plan], output_dir: Path | None, on: str | None) -> list[Path]:
    # A scenario's name is a valid file name: the parser refuses any other.
    names = [plan.scenario.name for plan in plans]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(
            f"two of the scenarios are named `{twice.pop()}`: one result would replace the other;"
            " run them one by one, with -o"
        )
    if output_dir is not None and len(plans) == 1:
        return [output_dir]
    # Simulated and real results get different directories.
    suffix = f"-{on}" if on == _LINUX else ""
    return [(output_dir or OUT) / f"{name}{suffix}" for name in names]


def _show(filled: FillResult, target: Path, *, quiet: bool) -> None:
    result = filled.run
    if not quiet:
        if result is not None:
            show_tables(result)
        before = f"{_runs(filled.before)} there before, " if filled.before else ""
        output.line(
            f"{before}{_runs(filled.made)} in {filled.wall_s:.2f} s"
            f" ({filled.cpu_s:.2f} s of CPU time)"
        )
        if result is not None and result.manifest.steps_hashes is not None:
            output.line("checked: a second run took the same steps")
    for note in result.notes if result is not None else ():
        output.note(note)
    for file in [*plot_files(target), *_pcap_files(target), *_log_directories(target)]:
        output.line(str(file))
    output.line(f"{target}")


def _show_failures(filled: FillResult, plan: Plan, *, quiet: bool) -> None:
    from cwnd.running import failures

    if not quiet:
        output.scenario_notes(plan.scenario)
    if filled.failed:
        output.fail(failures(filled))


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number != 1)}"


def show_tables(result: Run) -> None:
    """Prints the tables of a result: all flows together, and groups if there are several."""
    from cwnd.results import group_table, result_table

    output.show_fitting(lambda intervals: result_table(result, intervals=intervals))
    output.show_fitting(lambda intervals: group_table(result, intervals=intervals))


def plot_files(target: Path) -> list[Path]:
    """Returns the figure files of a result, sorted."""
    from cwnd.store import PLOTS

    return sorted((target / PLOTS).glob("*"))


def _pcap_files(target: Path) -> list[Path]:
    from cwnd.store import PCAP

    return sorted((target / PCAP).glob("*/*"))


def _log_directories(target: Path) -> list[Path]:
    """Returns the directories of logs of senders, of each run one, which may have many files."""
    from cwnd.store import QLOG

    return sorted((target / QLOG).glob("*"))


def _document(filled: FillResult, target: Path) -> dict[str, Any]:
    from cwnd.results import main_link

    result = filled.run
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
        "link": None if result is None else main_link(result),
        "summary": [] if result is None else result.summary().to_dicts(),
        "notes": [] if result is None else result.notes,
        "plots": [str(file) for file in plot_files(target)],
        "pcap": [str(file) for file in _pcap_files(target)],
        "qlog": [str(directory) for directory in _log_directories(target)],
    }
