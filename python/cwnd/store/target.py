"""A directory that receives the cells of a plan: existing cells, missing ones, the result."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS
from cwnd.store import packing, read, write
from cwnd.store.activity import remove_other_logs
from cwnd.store.assembly import CellIndex, assemble, intact_frames, journal_frames
from cwnd.store.dataset import REWRITE_REMEDY, Dataset, Planned, is_packed
from cwnd.store.journal import Writer, put_file, write_journal
from cwnd.store.layout import ERRORS, JOURNAL, LINUX, RUNS
from cwnd.store.manifest import with_activity
from cwnd.store.old_files import FILES, cells_in
from cwnd.store.reading import load

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from cwnd.results import Run
    from cwnd.store.activity import Session
    from cwnd.store.journal import Frame
    from cwnd.store.tables import MemoryBatch


@dataclass(frozen=True)
class Policy:
    """Treatment of existing contents of a directory."""

    #: `True` removes cells of another plan, if there is no other writer.
    replan: bool
    #: `True` keeps a complete result of another plan until the new one is complete.
    replace: bool
    #: `True` computes existing cells again.
    recompute: bool
    #: `True` if there is no other writer.
    exclusive: bool
    #: `True` if only some runs of the plan are wanted.
    partial_plan: bool

    @property
    def removes(self) -> bool:
        """`True` if cells of another plan may be removed."""
        return self.replan and self.exclusive


class Target:
    """A directory that receives the cells of a plan."""

    def __init__(self, root: Path, planned: Planned, writing: Session, policy: Policy) -> None:
        self._root, self._planned = root, planned
        self._writing, self._policy = writing, policy
        #: Index of the first run of each cell.
        self.cells = planned.cells()
        #: Existing frames whose bodies match their hashes, and the others.
        self._found: list[Frame] = []
        self._damaged_frames: set[Frame] = set()

    @property
    def done(self) -> set[str]:
        """Identifiers of the cells that existed before."""
        return {cell for frame in self._found for cell in frame.cells}

    def writer(self) -> Writer:
        """Creates the writer that appends finished cells to the journal."""
        writing, engine = self._writing, self._planned.info.engine
        return Writer(self._root, writing.id, writing.partial, engine, self._describe)

    def prepare(self) -> Run | None:
        """Finds existing cells; returns the result if that of this plan is complete.

        Raises:
            InputError: The directory holds cells of another plan that must stay.
        """
        with packing.packing_lock(self._root):
            return load(self._root) if self._prepare() else None

    def _prepare(self) -> bool:
        """`True` if the result of this plan is complete; else prepares the directory for it."""
        root, policy = self._root, self._policy
        if Dataset.is_at(root) and (root / RUNS).is_dir():
            _remove_version_1(root, self._planned, allowed=policy.removes)
        if policy.recompute:
            return False
        packed = is_packed(root)
        found = journal_frames(root)
        existing = {cell for frame in found for cell in frame.cells}
        if packed and packing.is_result_of(root, self._planned, every_file=policy.replace):
            if existing <= self.cells.keys() or policy.removes:
                packing.remove_journal(root)
            return True
        # A result without its list of hashes was being moved into the journal.
        packed = packed and ((root / SUMS).exists() or not found)
        keep_result = policy.replace and policy.exclusive
        self._refuse_foreign(existing)
        if existing - self.cells.keys():
            _rewrite(root, self._writing, found, self.cells.keys())
            found = journal_frames(root)
        self._found = intact_frames(found)
        self._damaged_frames = set(found).difference(self._found)
        if packed:
            self._unpack_existing(keep_result=keep_result)
        # The description must be there for other writers, and for cells in the journal.
        if not policy.exclusive or policy.partial_plan or self._found:
            self._describe()
        if not (packed and keep_result):
            packing.remove_result(root)
        self._remove_errors()
        return False

    def _refuse_foreign(self, existing: set[str]) -> None:
        foreign = len(existing - self.cells.keys())
        if foreign and not self._policy.removes:
            raise InputError(
                _refusal(self._root, self._planned, foreign, exclusive=self._policy.exclusive)
            )

    def _unpack_existing(self, *, keep_result: bool) -> None:
        """Writes the cells of a complete result into the journal, if they are of this plan."""
        try:
            existing = set(packing.cells_of(self._root))
            if not keep_result:
                self._refuse_foreign(existing or {""})
            wanted = (existing & self.cells.keys()) - self.done
            if wanted:
                batches = packing.unpack_result(self._root, wanted)
                write_journal(self._root / JOURNAL / f"{self._writing.id}-taken", batches)
        except (DamageError, InputError):
            if not keep_result:
                raise
        known = {*self._found, *self._damaged_frames}
        self._found += [frame for frame in journal_frames(self._root) if frame not in known]

    def _describe(self) -> None:
        for name, new in self._planned.files().items():
            _update_file(self._root, name, new, self._writing)

    def _remove_errors(self) -> None:
        existing = self.done
        for file in _errors(self._root):
            if file.stem in existing or (self._policy.exclusive and file.stem not in self.cells):
                file.unlink(missing_ok=True)

    def finish(
        self,
        writer: Writer,
        memory_batch: MemoryBatch | None,
        *,
        recorded: Mapping[str, Path] | None = None,
        steps_hashes: list[str] | None = None,
    ) -> tuple[int, Run | None]:
        """Writes the result if no cell is missing.

        Args:
            writer: The writer of the computed cells.
            memory_batch: Computed cells that it did not write.
            recorded: Directories of files that runs wrote, by their names in the result.
            steps_hashes: Hashes of the steps of checked runs.

        Returns:
            Number of missing cells, and the result of the finished runs, if there are any.
        """

        def packed(frames: list[Frame]) -> tuple[int, Run | None]:
            return self._pack(frames, memory_batch, recorded, steps_hashes)

        root = self._root
        with packing.packing_lock(root):
            # Another shard may have packed the sweep in the meantime.
            if not self._policy.exclusive and packing.is_result_of(root, self._planned):
                return 0, load(root)
            try:
                return packed(self._frames())
            except DamageError:
                return packed(intact_frames(self._frames()))
            except BaseException:
                if memory_batch is not None:
                    with writer:
                        writer.put(memory_batch.packed())
                raise

    def _frames(self) -> list[Frame]:
        frames = [
            frame for frame in journal_frames(self._root) if frame not in self._damaged_frames
        ]
        if self._policy.recompute:
            frames = [frame for frame in frames if _is_by(frame, self._writing)]
        return frames

    def _pack(
        self,
        frames: list[Frame],
        memory_batch: MemoryBatch | None,
        recorded: Mapping[str, Path] | None,
        steps_hashes: list[str] | None,
    ) -> tuple[int, Run | None]:
        root = self._root
        cells = CellIndex.of(
            [*frames, *([memory_batch] if memory_batch else ())], REWRITE_REMEDY.format(root)
        )
        missing = len(self.cells.keys() - cells.where.keys())
        if len(cells.where.keys() & self.cells.keys()) == 0:
            return missing, None
        run = assemble(self._planned, cells)
        if not missing:
            run.manifest = replace(run.manifest, steps_hashes=steps_hashes)
            write.replace_result(run, root, recorded=recorded)
            if not self._found and self._policy.exclusive:
                remove_other_logs(root, self._writing)
            if frames:
                read.read_lazily(run, root)
        run.manifest = with_activity(run.manifest, root)
        return missing, run


def _is_by(frame: Frame, writing: Session) -> bool:
    """`True` if a frame was written by this session."""
    return frame.file.name.startswith(writing.id)


def _errors(root: Path) -> list[Path]:
    return [*(root / ERRORS).glob("*.json"), *(root / ERRORS).glob("*.toml")]


def _remove_version_1(root: Path, planned: Planned, *, allowed: bool) -> None:
    """Removes the cells of a sweep of version 1, if that is allowed.

    Raises:
        InputError: It is not.
    """
    if not allowed:
        cells = len(set(cells_in(root, RUNS)))
        why = _refusal(root, planned, cells, exclusive=True)
        if _engine(root, planned) == planned.info.engine:
            why = (
                f"{root}: a sweep of an earlier version, which is read but not gone on with;"
                " --replan removes it, or give another directory with -o"
            )
        raise InputError(why)
    for table in FILES:
        shutil.rmtree(root / table, ignore_errors=True)


def _rewrite(root: Path, writing: Session, found: Sequence[Frame], wanted: Collection[str]) -> None:
    """Rewrites the journal with the wanted cells only."""
    cells = CellIndex.of(intact_frames(found), REWRITE_REMEDY.format(root))
    write_journal(root / JOURNAL / f"{writing.id}-kept", cells.batches(wanted))
    for file in {frame.file for frame in found}:
        file.unlink()


def _update_file(root: Path, name: str, new: bytes, writing: Session) -> None:
    """Writes a file unless it has the same content already."""
    file = root / name
    if file.exists() and file.read_bytes() == new:
        return
    put_file(file, new, writing.partial)


def _engine(root: Path, planned: Planned) -> str:
    """Returns the engine of the existing cells; that of the plan if none is recorded."""
    with suppress(DamageError, InputError):  # a damaged description is written anew
        if Dataset.is_at(root):
            return Dataset.open(root).info.engine
        return read.opened(root)[0].engine or planned.info.engine
    return planned.info.engine


def _refusal(root: Path, planned: Planned, foreign: int, *, exclusive: bool) -> str:
    engine = _engine(root, planned)
    if engine != planned.info.engine:
        what = "testbed" if engine.startswith(LINUX) else "simulator"
        why = f"was computed by another version of the {what} ({engine})"
    else:
        why = f"holds {foreign} cell{'s' * (foreign != 1)} that this sweep has not"
    remedy = (
        "--replan removes them" if exclusive else "remove them first, with --replan and no --shard"
    )
    return f"{root}: {why}; {remedy}, or give another directory with -o"
