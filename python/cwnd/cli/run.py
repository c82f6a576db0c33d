"""`cwnd run`."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import replace
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
    from cwnd.running import OnProgress, Plan

#: Where results go that have no `-o`.
OUT = Path("out")


def run(
    files: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seed: int | None = None,
    set_: Annotated[list[str], Parameter(name="--set", negative=(), consume_multiple=False)] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None,
    check: Annotated[bool, Parameter(negative=())] = False,
    on: str | None = None,
    plots: bool = True,
    force: Annotated[bool, Parameter(negative=())] = False,
    pcap: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
    json: output.Json = False,
) -> int:
    """Simulate scenarios: table, plots and Parquet files.

    A scenario with a [sweep] runs all its cells, on all cores. The result is written when it is
    complete, and replaces an older one of the same scenario in the same place; other files that are
    there stay.

    Args:
        files: Scenario files.
        output_dir: Directory of the result, out/NAME if not given; with several files one in it
            for each.
        seed: Replaces the scenario's seed.
        set_: Replaces a value: PATH=VALUE, as in "flow.main.rtt=200 ms"; may be given again.
        threads: Runs at a time; all cores if not given. It never changes the result.
        check: Simulate everything twice and compare every event and random draw; the manifest gets
            the hashes of all steps, to compare builds and machines by.
        on: "linux" runs real endpoints on this machine's kernel around our router, in real time, as
            root; Ctrl-C leaves the runs that are finished, and what was captured of the others.
        plots: Draw the figures, as SVG; `cwnd plot` draws them for papers, as PNG too.
        force: Replace the result of another scenario, too.
        pcap: Links whose packets are written to capture files for Wireshark and its kin, in pcap/
            of the result: LINK or several with commas, "LINK+LINK" for both in one file, or "all".
        quiet: No progress and no table: only warnings, and where the result is.
        json: Machine-readable output.
    """
    from cwnd.files import atomic
    from cwnd.plots import draw_result
    from cwnd.results import PCAP, sha256, store
    from cwnd.running import captures, runner, worlds
    from cwnd.running import plans as planning

    if not files:
        raise InputError(
            "which scenario? give a file, as in `cwnd run scenarios/abe-codel-pie.toml`"
        )
    plans = [planning.plan(file, seed=seed, overrides=set_) for file in files]
    world = worlds.world_named(on)
    targets = _targets(plans, output_dir, on)
    froms = [os.path.relpath(f.resolve(), t.resolve()) for f, t in zip(files, targets, strict=True)]
    for plan, target, from_ in zip(plans, targets, froms, strict=True):
        store.check_target(target)
        if not force:
            store.check_same(
                target,
                {
                    "name": plan.scenario.name,
                    "scenario_file": from_,
                    "scenario_sha256": sha256([plan.source.text]),
                },
            )
    for plan in plans:
        world.check(plan.scenario)
    for plan in plans if pcap else []:
        captures(pcap, plan.points, OUT)
    _warm_up(wanted=plots and world is worlds.SIMULATOR)
    documents = []
    for plan, target, from_ in zip(plans, targets, froms, strict=True):
        output.warnings(plan.scenario)
        with atomic.scratch_directory(target) as scratch:
            place = scratch / PCAP if pcap else None
            captured = captures(pcap, plan.points, place) if place else None
            with (
                nullcontext() if quiet or json else _bar(plan) as on_progress,
                nullcontext() if world is worlds.SIMULATOR else _kept_captures(place, target),
            ):
                result = runner.execute(
                    plan,
                    threads=threads,
                    on_progress=on_progress,
                    pcap=captured,
                    check=check,
                    spool=scratch,
                    meanwhile=_import_plots if plots else None,
                    world=world,
                )
            result.manifest = replace(result.manifest, scenario_file=from_)
            store.save(result, target, pcap=place)
            # Samples of long runs are read from the scratch directory.
            if plots:
                draw_result(result, target, quick=True)
            if json:
                documents.append(_document(result, target))
            else:
                _show(result, target, quiet=quiet)
                if not quiet:
                    output.scenario_notes(plan.scenario)
        if result.manifest.missing:
            output.left = f"what was finished is in {target}"
            raise KeyboardInterrupt
    if json:
        output.document({"results": documents})
    return 0


def _bar(plan: Plan) -> AbstractContextManager[OnProgress]:
    from cwnd.running import bar

    return bar(plan.scenario.name, output.stderr())


@contextmanager
def _kept_captures(place: Path | None, target: Path) -> Iterator[None]:
    """Real time cannot be had again: what was captured when nothing was finished stays, too.

    It is beside where the result would be.
    """
    try:
        yield
    except KeyboardInterrupt:
        if place is not None and place.exists():
            kept = target.with_name(f"{target.name}-stopped")
            numbered = (kept.with_name(f"{kept.name}-{n}") for n in count(2))
            kept = next(name for name in chain([kept], numbered) if not name.exists())
            place.rename(kept)
            output.left = f"what was captured is in {kept}"
        raise


def _warm_up(*, wanted: bool) -> None:
    """Loads what draws figures in a thread; what runs in real time is not disturbed."""
    if wanted:
        from cwnd.figures import warm_up

        warm_up()


def _import_plots() -> None:
    from cwnd.plots import kinds

    del kinds


def _targets(plans: list[Plan], output_dir: Path | None, on: str | None) -> list[Path]:
    # A scenario's name is a file name: its reader refuses any other.
    names = [plan.scenario.name for plan in plans]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(
            f"two of the scenarios are named `{twice.pop()}`: one result would replace the other;"
            " run them one by one, with -o"
        )
    if output_dir is not None and len(plans) == 1:
        return [output_dir]
    # What is simulated and what is real stand side by side.
    suffix = f"-{on}" if on is not None else ""
    return [(output_dir or OUT) / f"{name}{suffix}" for name in names]


def _show(result: Run, target: Path, *, quiet: bool) -> None:
    if not quiet:
        show_tables(result)
        cost = result.manifest
        runs = f"{cost.runs} run{'s' * (cost.runs != 1)}"
        output.line(f"{runs} in {cost.wall_s:.2f} s ({cost.cpu_s:.2f} s of CPU time)")
        if cost.steps_hashes is not None:
            output.line("checked: a second run took the same steps")
    for note in result.notes:
        output.note(note)
    for file in [*plot_files(target), *_pcap_files(target)]:
        output.line(str(file))
    output.line(f"{target}")


def show_tables(result: Run) -> None:
    """Prints the numbers of a result."""
    from cwnd.results import group_sheet, result_sheet

    output.show_fitting(lambda intervals: result_sheet(result, intervals=intervals))
    output.show_fitting(lambda intervals: group_sheet(result, intervals=intervals))


def plot_files(target: Path) -> list[Path]:
    """The figures of a result."""
    from cwnd.results import PLOTS

    return sorted((target / PLOTS).glob("*"))


def _pcap_files(target: Path) -> list[Path]:
    from cwnd.results import PCAP

    return sorted((target / PCAP).glob("*/*"))


def _document(result: Run, target: Path) -> dict[str, Any]:
    from cwnd.results import main_link

    return {
        "name": result.name,
        "directory": str(target),
        "manifest": result.manifest.to_json(),
        "link": main_link(result),
        "summary": result.summary().to_dicts(),
        "notes": result.notes,
        "plots": [str(file) for file in plot_files(target)],
        "pcap": [str(file) for file in _pcap_files(target)],
    }
