"""Computes the cells that a sweep lacks."""

from __future__ import annotations

import time
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import CwndError, DamageError, InputError, explain
from cwnd.files import SUMS, checksums
from cwnd.results import SCENARIO, SUMMARY, content
from cwnd.running import LINUX, SIMULATOR, Progress, plans, runner, world_named
from cwnd.sweeps.activity import session
from cwnd.sweeps.cells import MARK, RECORDS, attempt
from cwnd.sweeps.layout import ACTIVITY, ERRORS, PLAN, SUMMED, Dataset, Planned, cell_file, cells_in
from cwnd.sweeps.shard import Shard
from cwnd.sweeps.todo import Todo
from cwnd.sweeps.writer import Writer, put_file

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Generator

    from cwnd.results import Run
    from cwnd.running import OnProgress, Overrides, Plan, ScenarioLike, World
    from cwnd.sweeps.activity import Session
    from cwnd.sweeps.cells import Failure, Outcome
    from cwnd.sweeps.todo import Backend

#: What is in a directory before it is a sweep, when its first writer was killed.
_BEFORE = {ACTIVITY, SCENARIO, PLAN}


@dataclass(frozen=True)
class Filled:
    """What a writer did."""

    dataset: Dataset
    #: Cells that were there before, that were made, and that failed, each with its reason.
    before: int
    made: int
    failed: dict[str, Failure]
    #: Cells of the whole sweep that are still not there.
    missing: int
    wall_s: float
    cpu_s: float
    #: The result, if the sweep is complete.
    run: Run | None = None


def sweep(
    scenario: ScenarioLike,
    directory: str | os.PathLike[str],
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002 - named as the option of the command line
    threads: int | None = None,
    shard: str | None = None,
    on: str | None = None,
    replan: bool = False,
    progress: bool | OnProgress = False,
) -> Run:
    """Simulates a scenario into a directory, where each run is safe as soon as it is done.

    What is there from before, from a call that was interrupted or killed, is not simulated again.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        directory: Where the sweep is.
        seed: Replaces the scenario's seed.
        set: Replaces values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
        threads: Runs at a time; all cores if not given. It never changes the result.
        shard: `"2/8"` does the second of eight parts of the runs.
        on: `"linux"` runs in real time on this machine's kernel. `"ray"` computes on Ray: on the
            cluster of this machine, or in processes of its own; `"ray:HOST:PORT"` names the
            cluster, `"ray://HOST:PORT"` its client port.
        replan: Removes runs of another sweep, or of another version of cwnd, that are there.
        progress: `True` shows a bar on stderr; a function is called with a `Progress`.

    Returns:
        The runs that are there; with a shard they may be a part of all, see `manifest.missing`.

    Raises:
        ScenarioError: The scenario cannot be run; the error shows where and why.
        InputError: The directory holds something else, or another process writes into it.
        CwndError: Runs failed, or could not be written; the others are there.
    """
    from cwnd.running import bar
    from cwnd.sweeps.reading import load

    plan = plans.plan(scenario, seed=seed, overrides=set or ())
    part = Shard.parse(shard) if shard is not None else None

    shown = bar(plan.scenario.name) if progress is True else nullcontext(progress or None)
    with shown as on_progress:
        filled = fill(
            plan,
            directory,
            threads=threads,
            shard=part,
            backend=backend_of(on),
            world=world_of(on),
            replan=replan,
            on_progress=on_progress,
        )
    if filled.failed:
        raise CwndError(failures(filled))
    return filled.run or load(directory)


def backend_of(on: str | None) -> Backend:
    """Where cells are computed: on this machine, or on Ray."""
    if on in (None, LINUX):
        return here
    assert on is not None
    from cwnd.sweeps.on_ray import Ray

    return Ray.at(on)


def world_of(on: str | None) -> World:
    """The world in which cells are run: Ray's is the simulator."""
    return world_named(on if on == LINUX else None)


def failures(filled: Filled) -> str:
    """Says that cells failed, and where it says why."""
    count = len(filled.failed)
    first = next(iter(filled.failed.values()))
    return (
        f"{count} cell{'s' * (count != 1)} failed, the first with {first.error}: {first.message};"
        f" {filled.dataset.path / ERRORS} has the reason and the scenario of each,"
        " and the next call tries them again"
    )


def fill(
    plan: Plan,
    directory: str | os.PathLike[str],
    *,
    threads: int | None = None,
    shard: Shard | None = None,
    backend: Backend | None = None,
    world: World = SIMULATOR,
    replan: bool = False,
    only: Collection[int] | None = None,
    on_progress: OnProgress | None = None,
) -> Filled:
    """Computes the cells of a plan, or of a part of it, that are not in a directory.

    `only` are the numbers of the runs in the plan that are wanted; all if not given.
    """
    root = Path(directory)
    world.check(plan.scenario)
    workers = world.threads(plan.scenario, threads)
    check_target(root)
    planned = Planned.of(plan, world.engine)
    try:
        with session(root, shard, engine=world.engine, threads=workers) as writing:
            _prepare(root, planned, writing, alone=shard is None, replan=replan)
            dataset = Dataset(root, planned.info)
            how = _How(workers, shard, only, backend or here, on_progress, world)
            return _finish(_fill(dataset, plan, planned, writing, how), writing)
    except OSError as error:
        raise CwndError(
            f"the sweep could not be written: {explain(error)};"
            " what was finished is safe, and the next call goes on"
        ) from error


@dataclass(frozen=True)
class _How:
    """How cells are computed, and which."""

    threads: int
    shard: Shard | None
    only: Collection[int] | None
    backend: Backend
    on_progress: OnProgress | None
    world: World


def here(
    todo: Todo, writer: Writer, threads: int, on_progress: OnProgress
) -> Generator[Outcome, None, None]:
    """Computes cells on the threads of this process."""

    def work(cell: _core.Cell, control: _core.Control) -> Outcome:
        outcome = attempt(content(cell.resolved), cell, control, todo.world)
        if outcome.files is None:
            return outcome
        writer.put(outcome.cell_id, outcome.files)
        return replace(outcome, files=None)

    workers = max(1, min(threads, todo.runs))
    with runner.running(todo, work, workers, on_progress, in_order=False) as (done, _):
        for _, outcome in done:
            yield outcome


def check_target(root: Path) -> None:
    """Refuses to write into what is no sweep."""
    if not root.exists() or Dataset.is_at(root):
        return
    if not root.is_dir():
        raise InputError(f"{root}: a file is in the way; give another directory with -o")
    if {entry.name for entry in root.iterdir()} - _BEFORE:
        raise InputError(
            f"{root}: holds other files and is no sweep of cwnd; give another directory with -o"
        )


def _prepare(root: Path, planned: Planned, writing: Session, *, alone: bool, replan: bool) -> None:
    """Makes a directory hold this sweep and nothing of another."""
    cells = planned.cells()
    foreign = set(cells_in(root, MARK)) - cells.keys()
    if foreign and not (replan and alone):
        raise InputError(_refusal(root, planned, len(foreign), alone=alone))
    if alone:
        for table in (MARK, *RECORDS):
            for cell in set(cells_in(root, table)) - cells.keys():
                cell_file(root, table, cell).unlink()
    done = set(cells_in(root, MARK))
    for file in [*(root / ERRORS).glob("*.json"), *(root / ERRORS).glob("*.toml")]:
        if file.stem in done or (alone and file.stem not in cells):
            file.unlink(missing_ok=True)
    for name, new in planned.files().items():
        _renew(root, name, new, writing)


def _renew(root: Path, name: str, new: bytes, writing: Session) -> None:
    """Writes a file that is not the same already."""
    file = root / name
    if file.exists() and file.read_bytes() == new:
        return
    # It is written last, and says of no other file what it is not.
    (root / SUMS).unlink(missing_ok=True)
    put_file(file, new, writing.partial)


def _refusal(root: Path, planned: Planned, foreign: int, *, alone: bool) -> str:
    engine = planned.info.engine
    with suppress(DamageError):  # it is written anew
        engine = Dataset.open(root).info.engine if Dataset.is_at(root) else _core.engine
    if engine != planned.info.engine:
        what = "testbed" if engine.startswith(LINUX) else "simulator"
        why = f"was computed by another version of the {what} ({engine})"
    else:
        why = f"holds {foreign} cell{'s' * (foreign != 1)} that this sweep has not"
    way = "--replan removes them" if alone else "remove them first, with --replan and no --shard"
    return f"{root}: {why}; {way}, or give another directory with -o"


def _fill(dataset: Dataset, plan: Plan, planned: Planned, writing: Session, how: _How) -> Filled:
    cells = planned.cells()
    wanted = cells.keys() if how.only is None else planned.of_runs(how.only)
    mine = wanted if how.shard is None else how.shard.mine(wanted)
    done = dataset.done()
    indices = [index for cell, index in cells.items() if cell in mine and cell not in done]
    failed: dict[str, Failure] = {}
    before, made = len(mine) - len(indices), 0
    wall, cpu, end = time.perf_counter(), time.process_time(), "failed"
    far = 0.0

    def on_progress(now: Progress) -> None:
        nonlocal far
        far = now.fraction
        writing.tell(done=made, failed=len(failed), fraction=far)
        if how.on_progress is not None:
            how.on_progress(Progress(far, before + made, len(failed), len(mine)))

    try:
        with Writer(dataset.path, writing.partial) as writer:
            todo = Todo(plan.scenario, indices, how.world)
            with closing(how.backend(todo, writer, how.threads, on_progress)) as outcomes:
                for outcome in outcomes:
                    if outcome.failure is None:
                        made += 1
                        continue
                    failed[outcome.cell_id] = outcome.failure
                    resolved = plan.scenario.cell(cells[outcome.cell_id]).resolved
                    writer.fail(outcome.cell_id, outcome.failure, resolved)
        end = "finished"
    except KeyboardInterrupt:
        end = "interrupted"
        raise
    finally:
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        writing.tell(done=made, failed=len(failed), fraction=far, force=True)
        writing.end(how=end, wall_s=wall, cpu_s=cpu)
    missing = len(cells.keys() - dataset.done())
    return Filled(dataset, before, made, failed, missing, wall, cpu)


def _finish(filled: Filled, writing: Session) -> Filled:
    """Adds what only a complete sweep has."""
    from cwnd.sweeps.reading import load

    root = filled.dataset.path
    if filled.missing:
        for name in (SUMS, SUMMARY):
            (root / name).unlink(missing_ok=True)
        return filled
    with suppress(OSError):  # there was none, or somebody keeps files there
        (root / ERRORS).rmdir()
    run = load(root)
    _renew(root, SUMMARY, run.summary().write_csv().encode(), writing)
    sums = [(name, checksums.sha256((root / name).read_bytes())) for name in SUMMED]
    _renew(root, SUMS, checksums.listed(sums), writing)
    return replace(filled, run=run)
