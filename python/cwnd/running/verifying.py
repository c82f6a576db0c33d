"""Verification of a stored result: its files' hashes, and a recomputation of some runs."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import polars as pl

from cwnd import _core
from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS, Sums
from cwnd.results import RUN
from cwnd.running import runner
from cwnd.running.cells import CellTexts, Outcome, attempt
from cwnd.running.code import check_trust, is_of_given_class
from cwnd.running.processes import computed
from cwnd.running.runner import Workers
from cwnd.store import (
    AGREEMENT,
    CELL_ID,
    LINUX,
    MANIFEST,
    RESOLVED,
    RUNS,
    CellFiles,
    Dataset,
    JournalCells,
    MemoryBatch,
    Problem,
    ResultCells,
    Verified,
    damaged_files,
    is_packed,
    packing,
    read,
    write,
)
from cwnd.store import RUN as NUMBER

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

#: Default number of cells that are computed again.
SAMPLE = 16


#: Columns that identify the run of a row.
_RUN_COLUMNS = (CELL_ID, RESOLVED, NUMBER, "seed")

Made = TypeVar("Made")


def verify(
    directory: str | os.PathLike[str],
    *,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    mend: bool = False,
    trust: bool = False,
) -> Verified:
    """Compares all files of a result with their hashes, and computes some runs again.

    Args:
        directory: Result directory of any command of cwnd.
        sample: Number of runs that are computed again if no file is damaged; their tables must have
            the same values. Runs with a class that a program passed are not computed again. The
            default is 16 for a result of this version of the simulator, and 0
            for another; it is always 0 for Linux.
        seed: Seed of the choice of these runs.
        threads: Runs at a time; all cores if not given.
        mend: Removes damaged runs, of a complete result all runs; the next call of `cwnd run`
            computes them again.
        trust: Trusts the code of the runs from now on.

    Raises:
        InputError: There is no result, it cannot be mended, or `sample` is not 0 for a result of
            another version of the simulator.
    """
    path = Path(directory)
    if has_cells(path):
        try:
            cells: StoredCells = _cells_at(path)
        except DamageError as error:
            # The damaged file lists the cells, so that none can be checked.
            problems, mended = [Problem(error.file, error.what)], 0
            if mend and error.file.name == SUMS:
                mended = packing.remove_damaged_result(path)
            return Verified(0, 0, 0, problems, mended)
        found = _sweep(cells, sample=sample, seed=seed, threads=threads, trust=trust)
        damage = [problem for problem in found.problems if problem.is_damage]
        return replace(found, mended=cells.mend(damage)) if mend else found
    read.require_directory(path)
    if not read.is_result(path):
        raise InputError(f"{path}: not a cwnd result (it has neither {SUMS} nor {MANIFEST})")
    if mend:
        raise InputError(f"{path}: only what `cwnd run` wrote can be mended; make the result again")
    return _with_both_results(path, _run(path), sample=sample, seed=seed, threads=threads)


def has_cells(path: Path) -> bool:
    """`True` if a directory holds runs stored as cells, all of them or a part."""
    if Dataset.is_at(path):
        return True
    if not is_packed(path):
        return False
    if write.is_sweep(path):
        return True
    manifest = write.stored_manifest(path)
    listed = (path / SUMS).exists()
    return listed and manifest.get("kind", RUN) == RUN and bool(manifest.get("engine"))


def _with_both_results(
    path: Path, found: Verified, *, sample: int | None, seed: int, threads: int | None
) -> Verified:
    """Adds the simulator's and Linux's results to the findings about an agreement directory."""
    if not (path / AGREEMENT).exists():
        return found
    for place in sorted(each for each in path.iterdir() if each.is_dir()):
        if write.is_sweep(place):
            other = verify(place, sample=sample, seed=seed, threads=threads)
            found = Verified(
                found.checked + other.checked,
                found.recomputed + other.recomputed,
                found.missing + other.missing,
                found.problems + other.problems,
            )
    return found


class StoredCells(Protocol):
    """Cells of a sweep on disk, in any of the layouts."""

    engine: str
    #: Identifiers of the stored cells, and the number of missing ones.
    stored: list[str]
    missing: int
    path: Path

    def check(self, threads: int) -> list[Problem]:
        """Compares all files with their hashes, and returns the differences."""

    def text(self, cell: str) -> str:
        """Returns the content of a cell: its resolved scenario."""

    def tables(self, cell: str) -> dict[str, pl.DataFrame]:
        """Returns the stored rows of a cell by table, without columns that identify the run."""

    def file(self, table: str, cell: str) -> Path:
        """Returns the path of the file that holds a table of a cell."""

    def mend(self, problems: list[Problem]) -> int:
        """Removes damaged cells, of a complete result all cells; returns the known number."""


def _cells_at(path: Path) -> StoredCells:
    if is_packed(path):
        return ResultCells(path)
    dataset = Dataset.open(path)
    return CellFiles(dataset) if dataset.is_old else JournalCells(dataset)


def _sweep(
    cells: StoredCells, *, sample: int | None, seed: int, threads: int | None, trust: bool
) -> Verified:
    if cells.engine.startswith(LINUX):
        # Runs in real time are not repeatable.
        sample = 0
    if sample is None:
        sample = SAMPLE if cells.engine == _core.engine else 0
    if sample and cells.engine != _core.engine:
        raise InputError(
            f"{cells.path}: computed by cwnd {cells.engine}, and this is {_core.engine}:"
            " it cannot compute the same; --sample 0 only compares the files with their hashes"
        )
    count = runner.thread_count(threads)
    problems = cells.check(count)
    draw = random.Random(seed)  # noqa: S311 - no secret
    chosen = draw.sample(cells.stored, min(sample, len(cells.stored)))
    recomputed = 0
    if not problems:
        again = CellTexts(
            [text for cell in chosen if not is_of_given_class(text := cells.text(cell))]
        )
        recomputed = again.runs
        processes = min(count, max(1, recomputed))
        for made in _computed(again, str(cells.path), processes, trust=trust):
            problems += _compare(cells, made)
    return Verified(len(cells.stored), recomputed, cells.missing, problems)


def _computed(
    cells: CellTexts, path: str, threads: int, *, trust: bool
) -> Iterator[Outcome | MemoryBatch]:
    """Computes cells again; those with code in processes, if that is trusted."""
    named = dict(cells.named_code())
    in_processes = [text for text, code in named.items() if code]
    if in_processes:
        code = dict.fromkeys(source for text in in_processes for source in named[text])
        check_trust(list(code), path, trust=trust)
        yield from computed(CellTexts(in_processes), threads, None)
    here = [text for text in cells.texts if not named.get(text)]
    with Workers(len(here), threads, lambda index: attempt(here[index])) as workers:
        yield from (outcome.tabled() for outcome in workers.results())


def _compare(cells: StoredCells, made: Outcome | MemoryBatch) -> list[Problem]:
    """Compares a cell recomputed from its content with the one on disk."""
    if isinstance(made, Outcome):
        reason = made.failure.message if made.failure is not None else "no reason"
        what = f"cannot be computed again: {reason}"
        return [Problem(cells.file(RUNS, made.cell_id), what, is_damage=False)]
    (cell,) = made.cells
    ours = {name: table.drop(_RUN_COLUMNS, strict=False) for name, table in made.tables.items()}
    theirs = cells.tables(cell)
    return [
        Problem(cells.file(name, cell), "not what the cell gives when it is computed again")
        # Sweeps of version 1 have no table of reasons.
        for name in theirs
        if not _plain(ours[name]).equals(_plain(theirs[name]).select(ours[name].columns))
    ]


def _plain(table: pl.DataFrame) -> pl.DataFrame:
    return table.cast({pl.Categorical: pl.String})


def _run(path: Path) -> Verified:
    try:
        files = Sums.at(path)
    except DamageError as error:
        return Verified(0, 0, 0, [Problem(error.file, error.what)])
    if files.of is None:
        what = "missing, as in what older versions wrote: nobody can tell what is damaged"
        return Verified(0, 0, 0, [Problem(path / SUMS, what)])
    return Verified(len(files.of), 0, 0, damaged_files(files))
