"""A directory that is being filled: what it has, the cells that it lacks, its result."""

from __future__ import annotations

import dataclasses
import shutil
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS
from cwnd.running import runner
from cwnd.running.cells import Outcome, attempt
from cwnd.running.pending import Todo
from cwnd.running.progress import Progress
from cwnd.running.simulating import Checked
from cwnd.store import (
    ERRORS,
    FILES,
    JOURNAL,
    LINUX,
    MARK,
    PART_ROWS,
    REWRITTEN,
    Batch,
    Dataset,
    FoundCells,
    Planned,
    Writer,
    assemble,
    cell_id,
    cells_in,
    content,
    forget_others,
    is_packed,
    journalled,
    load,
    packing,
    put_file,
    read,
    sound,
    with_activity,
    write,
    write_journal,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence
    from pathlib import Path

    from cwnd import _core
    from cwnd.results import Run
    from cwnd.running.cells import Failure
    from cwnd.running.pending import Backend, Work
    from cwnd.running.plans import Plan
    from cwnd.running.progress import OnProgress
    from cwnd.running.worlds import World
    from cwnd.store import Frame, Held, Session, Shard


@dataclass(frozen=True)
class Filled:
    """Result of a writer's work: counts of cells, times, and the run if it is complete."""

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


@dataclass(frozen=True)
class How:
    """Arguments of `fill` besides plan and directory."""

    threads: int
    shard: Shard | None
    only: Collection[int] | None
    backend: Backend
    on_progress: OnProgress | None
    world: World
    replan: bool
    replace: bool
    again: bool
    work: Work | None
    pcap: Path | None


def here(
    todo: Todo, writer: Writer, threads: int, on_progress: OnProgress
) -> Generator[Outcome | Batch, None, None]:
    """Computes cells on the threads of this process."""

    def work(cell: _core.Cell, control: _core.Control) -> Outcome:
        text = content(cell.resolved)
        if todo.work is not None:
            outcome = Outcome(cell_id(text, todo.world.engine))
            writer.add(text, cell, todo.work(cell, control))
            return outcome
        outcome = attempt(text, cell, control, todo.world)
        if outcome.made is not None:
            writer.add(*outcome.made)
        return Outcome(outcome.cell_id, failure=outcome.failure)

    workers = max(1, min(threads, todo.runs))
    with runner.running(todo, work, workers, on_progress, in_order=False) as (done, _):
        for _, outcome in done:
            yield outcome


class Filling:
    """A directory that is being filled."""

    def __init__(
        self, root: Path, plan: Plan, planned: Planned, writing: Session, how: How
    ) -> None:
        self._root, self._plan, self._planned = root, plan, planned
        self._writing, self._how = writing, how
        self._cells = planned.cells()
        self._dataset = Dataset(root, planned.info)
        #: `True` if nobody else writes.
        self._alone = how.shard is None
        #: Frames that were there, and those whose bodies are not what was written.
        self._found: list[Frame] = []
        self._unsound: set[Frame] = set()

    def fill(self) -> Filled:
        """Computes what is missing."""
        wanted = set(self._cells)
        if self._how.only is not None:
            wanted = self._planned.of_runs(self._how.only)
        mine = wanted if self._how.shard is None else self._how.shard.mine(wanted)
        with packing.alone(self._root):
            ready = self._prepare()
        if ready:
            self._writing.end(how="finished", wall_s=0.0, cpu_s=0.0)
            return Filled(self._dataset, len(mine), 0, {}, 0, 0.0, 0.0, load(self._root))
        return self._fill(mine)

    def _prepare(self) -> bool:
        """Finds the cells that are there; `True` if the result of this plan is complete."""
        root, how = self._root, self._how
        if Dataset.is_at(root) and (root / MARK).is_dir():
            _leave_version_1(root, self._planned, may_go=how.replan and self._alone)
        if how.again:
            return False
        packed = is_packed(root)
        found = journalled(root)
        there = {cell for frame in found for cell in frame.cells}
        if packed and packing.is_same(root, self._planned, every_file=how.replace):
            if there <= self._cells.keys():
                packing.remove_journal(root)
            return True
        # A result without its list of hashes was on its way into the journal.
        packed = packed and ((root / SUMS).exists() or not found)
        stays = how.replace and self._alone
        self._refuse_foreign(there)
        if there - self._cells.keys():
            _rewrite(root, self._writing, found, self._cells.keys())
            found = journalled(root)
        self._found = sound(found)
        self._unsound = set(found).difference(self._found)
        if packed:
            self._take_over(stays=stays)
        # Others add to it, or cells of this plan wait: then what describes them has to be there.
        if not self._alone or how.only is not None or self._found:
            self._describe()
        if not (packed and stays):
            packing.remove_result(root)
        self._forget_errors()
        return False

    def _refuse_foreign(self, there: set[str]) -> None:
        foreign = len(there - self._cells.keys())
        if foreign and not (self._how.replan and self._alone):
            raise InputError(_refusal(self._root, self._planned, foreign, alone=self._alone))

    def _take_over(self, *, stays: bool) -> None:
        """Writes the cells of a complete result into the journal, if they are of this plan."""
        try:
            there = set(packing.cells_of(self._root))
            if not stays:
                self._refuse_foreign(there or {""})
            known = {cell for frame in self._found for cell in frame.cells}
            wanted = (there & self._cells.keys()) - known
            if wanted:
                batches = packing.unpack_result(self._root, wanted)
                write_journal(self._root / JOURNAL / f"{self._writing.id}-taken", batches)
        except (DamageError, InputError):
            if not stays:
                raise
        seen = {*self._found, *self._unsound}
        self._found += [frame for frame in journalled(self._root) if frame not in seen]

    def _describe(self) -> None:
        for name, new in self._planned.files().items():
            _renew(self._root, name, new, self._writing)

    def _forget_errors(self) -> None:
        there = {cell for frame in self._found for cell in frame.cells}
        for file in _errors(self._root):
            if file.stem in there or (self._alone and file.stem not in self._cells):
                file.unlink(missing_ok=True)

    def _fill(self, mine: Collection[str]) -> Filled:
        how, writing = self._how, self._writing
        done = {cell for frame in self._found for cell in frame.cells}
        indices = [i for cell, i in self._cells.items() if cell in mine and cell not in done]
        before = len(mine) - len(indices)
        if how.work is not None:
            # Runs that are the same have captures of their own.
            indices = list(range(self._plan.runs))
        failed: dict[str, Failure] = {}
        made, far = 0, 0.0

        def on_progress(now: Progress) -> None:
            nonlocal far
            far = now.fraction
            writer.poll()
            writing.tell(done=made, failed=len(failed), fraction=far)
            if how.on_progress is not None:
                how.on_progress(Progress(far, before + made, len(failed), before + len(indices)))

        writer = Writer(self._root, writing.id, writing.partial, how.world.engine, self._describe)
        wall, cpu, end, held = time.perf_counter(), time.process_time(), "failed", None
        try:
            with writer:
                todo = Todo(self._plan.scenario, indices, how.world, how.work)
                with closing(how.backend(todo, writer, how.threads, on_progress)) as outcomes:
                    for outcome in outcomes:
                        if isinstance(outcome, Batch):
                            writer.put(outcome)
                            made += len(outcome.cells)
                        elif outcome.failure is None:
                            made += 1
                        else:
                            failed[outcome.cell_id] = outcome.failure
                            self._fail(writer, outcome)
                if not failed and self._cells.keys() <= done | set(mine):
                    held = writer.take(PART_ROWS)
                else:
                    writer.describe()
            end = "finished"
        except KeyboardInterrupt:
            end = "interrupted"
            raise
        finally:
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            writing.tell(done=made, failed=len(failed), fraction=far, force=True)
            writing.end(how=end, wall_s=wall, cpu_s=cpu)
        filled = Filled(self._dataset, before, made, failed, 0, wall, cpu)
        return self._finish(filled, writer, held)

    def _fail(self, writer: Writer, outcome: Outcome) -> None:
        failure, cell = outcome.failure, outcome.cell_id
        assert failure is not None
        resolved = self._plan.scenario.cell(self._cells[cell]).resolved
        writer.fail(cell, failure.error, failure.message, resolved)

    def _finish(self, filled: Filled, writer: Writer, held: Held | None) -> Filled:
        """Counts what is missing; writes the result if nothing is."""
        root = self._root
        with packing.alone(root):
            # Another shard may have ended at the same time.
            if not self._alone and packing.is_same(root, self._planned):
                return dataclasses.replace(filled, run=load(root))
            try:
                return self._pack(filled, self._frames(), held)
            except DamageError:
                return self._pack(filled, sound(self._frames()), held)
            except BaseException:
                if held is not None:
                    with writer:
                        writer.put(held.packed())
                raise

    def _frames(self) -> list[Frame]:
        frames = [frame for frame in journalled(self._root) if frame not in self._unsound]
        if self._how.again:
            frames = [frame for frame in frames if _is_by(frame, self._writing)]
        return frames

    def _pack(self, filled: Filled, frames: list[Frame], held: Held | None) -> Filled:
        root, planned = self._root, self._planned
        cells = FoundCells.of([*frames, *([held] if held else ())], REWRITTEN.format(root))
        missing = len(self._cells.keys() - cells.where.keys())
        if len(cells.where.keys() & self._cells.keys()) == 0:
            return dataclasses.replace(filled, missing=missing)
        run = assemble(planned, cells)
        if missing:
            run.manifest = with_activity(run.manifest, root)
            return dataclasses.replace(filled, missing=missing, run=run)
        if isinstance(self._how.work, Checked):
            hashes = self._how.work.of_runs(planned.info.runs)
            run.manifest = dataclasses.replace(run.manifest, steps_hashes=hashes)
        write.put(run, root, pcap=self._how.pcap)
        if not self._found and self._alone:
            forget_others(root, self._writing)
        if frames:
            read.leave_on_disk(run, root)
        run.manifest = with_activity(run.manifest, root)
        return dataclasses.replace(filled, run=run)


def _is_by(frame: Frame, writing: Session) -> bool:
    """Tells whether a writer wrote a frame."""
    return frame.file.name.startswith(writing.id)


def _errors(root: Path) -> list[Path]:
    return [*(root / ERRORS).glob("*.json"), *(root / ERRORS).glob("*.toml")]


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


def _rewrite(root: Path, writing: Session, found: Sequence[Frame], wanted: Collection[str]) -> None:
    """Leaves only wanted cells in the journal."""
    cells = FoundCells.of(sound(found), REWRITTEN.format(root))
    write_journal(root / JOURNAL / f"{writing.id}-kept", cells.batches(wanted))
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
