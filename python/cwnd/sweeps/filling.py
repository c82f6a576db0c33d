"""Computes the cells that a sweep lacks."""

from __future__ import annotations

import shutil
import time
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import CwndError, DamageError, InputError, explain
from cwnd.files import SUMS
from cwnd.results import (
    ACTIVITY,
    CELL_ID,
    MANIFEST,
    SCENARIO,
    SUMMARY,
    TABLES,
    content,
    read,
    store,
)
from cwnd.running import LINUX, SIMULATOR, Progress, plans, runner, world_named
from cwnd.sweeps import packing
from cwnd.sweeps.activity import session
from cwnd.sweeps.assembling import Cells, journalled, sound
from cwnd.sweeps.cells import FILES, MARK, Outcome, attempt
from cwnd.sweeps.journal import Journal
from cwnd.sweeps.layout import ERRORS, JOURNAL, PLAN, REWRITTEN, Dataset, Planned, cells_in
from cwnd.sweeps.shard import Shard
from cwnd.sweeps.tables import Batch
from cwnd.sweeps.todo import Todo
from cwnd.sweeps.writer import Writer, put_file

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Generator, Iterable, Sequence

    from cwnd import _core
    from cwnd.results import Run
    from cwnd.running import OnProgress, Overrides, Plan, ScenarioLike, World
    from cwnd.sweeps.activity import Session
    from cwnd.sweeps.cells import Failure
    from cwnd.sweeps.journal import Frame
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
            dataset = Dataset(root, planned.info)
            with packing.alone(root):
                ready = _prepare(root, planned, writing, alone=shard is None, replan=replan)
            if ready:
                return _nothing_to_do(dataset, planned, writing, shard, only)
            how = _How(workers, shard, only, backend or here, on_progress, world)
            return _finish(_fill(dataset, plan, planned, writing, how), plan, writing)
    except OSError as error:
        raise CwndError(
            f"the sweep could not be written: {explain(error)};"
            " what was finished is safe, and the next call goes on"
        ) from error


def _nothing_to_do(
    dataset: Dataset,
    planned: Planned,
    writing: Session,
    shard: Shard | None,
    only: Collection[int] | None,
) -> Filled:
    from cwnd.sweeps.reading import load

    wanted = planned.cells().keys() if only is None else planned.of_runs(only)
    mine = wanted if shard is None else shard.mine(wanted)
    writing.end(how="finished", wall_s=0.0, cpu_s=0.0)
    return Filled(dataset, len(mine), 0, {}, 0, 0.0, 0.0, load(dataset.path))


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
) -> Generator[Outcome | Batch, None, None]:
    """Computes cells on the threads of this process."""

    def work(cell: _core.Cell, control: _core.Control) -> Outcome:
        outcome = attempt(content(cell.resolved), cell, control, todo.world)
        if outcome.made is not None:
            writer.add(*outcome.made)
        return Outcome(outcome.cell_id, failure=outcome.failure)

    workers = max(1, min(threads, todo.runs))
    with runner.running(todo, work, workers, on_progress, in_order=False) as (done, _):
        for _, outcome in done:
            yield outcome


def check_target(root: Path) -> None:
    """Refuses to write into what is no sweep."""
    if not root.exists() or store.is_sweep(root):
        return
    if not root.is_dir():
        raise InputError(f"{root}: a file is in the way; give another directory with -o")
    if {entry.name for entry in root.iterdir()} - _BEFORE:
        raise InputError(
            f"{root}: holds other files and is no sweep of cwnd; give another directory with -o"
        )


def _prepare(root: Path, planned: Planned, writing: Session, *, alone: bool, replan: bool) -> bool:
    """Makes a directory hold this sweep and nothing of another; `True` if it is complete."""
    cells = planned.cells()
    if Dataset.is_at(root) and (root / MARK).is_dir():
        _leave_version_1(root, planned, may_go=replan and alone)
    packed = packing.is_packed(root)
    if packed and packing.is_same(root, planned):
        packing.remove_journal(root)
        return True
    found = journalled(root)
    # A result without its list of hashes was on its way into the journal, if there is one.
    packed = packed and ((root / SUMS).exists() or not found)
    found = [] if packed else found
    there = {cell for frame in found for cell in frame.cells}
    if packed:
        there = set(packing.cells_of(root))
    foreign = there - cells.keys()
    if foreign and not (replan and alone):
        raise InputError(_refusal(root, planned, len(foreign), alone=alone))
    if packed:
        packing.remove_journal(root)
        _journal(root, writing, packing.unpack_result(root, cells.keys()))
        # From here on the journal counts.
        (root / SUMS).unlink()
    elif foreign:
        _rewrite(root, writing, found, cells.keys())
    for file in [*(root / ERRORS).glob("*.json"), *(root / ERRORS).glob("*.toml")]:
        if file.stem in there or (alone and file.stem not in cells):
            file.unlink(missing_ok=True)
    for name, new in planned.files().items():
        _renew(root, name, new, writing)
    (root / MANIFEST).unlink(missing_ok=True)
    for name in (SUMMARY, *(f"{table}.parquet" for table in TABLES)):
        (root / name).unlink(missing_ok=True)
    return False


def _leave_version_1(root: Path, planned: Planned, *, may_go: bool) -> None:
    """Removes the cells of a sweep of version 1, if they may go."""
    if not may_go:
        cells = len(set(cells_in(root, MARK)))
        why = _refusal(root, planned, cells, alone=True)
        if _engine(root, planned) == planned.info.engine:
            why = (
                f"{root}: a sweep of an earlier version, which is read but not gone on with;"
                " --replan removes it, or give another directory with -o"
            )
        raise InputError(why)
    for table in FILES:
        shutil.rmtree(root / table, ignore_errors=True)


def _journal(root: Path, writing: Session, batches: Iterable[Batch]) -> None:
    """Writes cells into a file of the journal."""
    with Journal(root / JOURNAL / f"{writing.id}-kept") as journal:
        for batch in batches:
            journal.append(batch.cells, batch.rows, batch.body)


def _rewrite(root: Path, writing: Session, found: Sequence[Frame], wanted: Collection[str]) -> None:
    """Leaves only wanted cells in the journal."""
    cells = Cells.of(sound(found), REWRITTEN.format(root))
    _journal(root, writing, cells.batches(wanted))
    for file in {frame.file for frame in found}:
        file.unlink()


def _renew(root: Path, name: str, new: bytes, writing: Session) -> None:
    """Writes a file that is not the same already."""
    file = root / name
    if file.exists() and file.read_bytes() == new:
        return
    put_file(file, new, writing.partial)


def _engine(root: Path, planned: Planned) -> str:
    """The engine of the cells that are there; that of the plan if nothing says it."""
    with suppress(DamageError, InputError):  # it is written anew
        if Dataset.is_at(root):
            return Dataset.open(root).info.engine
        return read.opened(root)[0].engine or planned.info.engine
    return planned.info.engine


def _refusal(root: Path, planned: Planned, foreign: int, *, alone: bool) -> str:
    engine = _engine(root, planned)
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
    found = sound(journalled(dataset.path))
    done = {cell for frame in found for cell in frame.cells}
    indices = [index for cell, index in cells.items() if cell in mine and cell not in done]
    failed: dict[str, Failure] = {}
    before, made = len(mine) - len(indices), 0
    wall, cpu, end = time.perf_counter(), time.process_time(), "failed"
    far = 0.0

    def on_progress(now: Progress) -> None:
        nonlocal far
        far = now.fraction
        writer.poll()
        writing.tell(done=made, failed=len(failed), fraction=far)
        if how.on_progress is not None:
            how.on_progress(Progress(far, before + made, len(failed), len(mine)))

    writer = Writer(dataset.path, writing.id, writing.partial, how.world.engine)
    try:
        with writer:
            todo = Todo(plan.scenario, indices, how.world)
            with closing(how.backend(todo, writer, how.threads, on_progress)) as outcomes:
                for outcome in outcomes:
                    if isinstance(outcome, Batch):
                        writer.put(outcome)
                        made += len(outcome.cells)
                        continue
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
    return Filled(dataset, before, made, failed, len(cells), wall, cpu)


def _finish(filled: Filled, plan: Plan, writing: Session) -> Filled:
    """Counts what is missing; packs a sweep that is complete."""
    from cwnd.sweeps.reading import load

    root = filled.dataset.path
    with packing.alone(root):
        # Another shard may have ended at the same time.
        if not packing.is_packed(root):
            found = sound(journalled(root))
            cells = {cell for frame in found for cell in frame.cells}
            missing = len(set(filled.dataset.plan()[CELL_ID]) - cells)
            if missing:
                return replace(filled, missing=missing)
            packing.pack_result(filled.dataset, plan, found, writing.partial)
        with suppress(OSError):  # there was none, or somebody keeps files there
            (root / ERRORS).rmdir()
    return replace(filled, missing=0, run=load(root))
