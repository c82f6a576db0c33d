"""Verification of stored cells, packed in a result or in the journal of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import DamageError
from cwnd.files import Sums, checksums
from cwnd.store import packing, read
from cwnd.store.activity import session
from cwnd.store.assembly import CellIndex, intact_frames, journal_frames
from cwnd.store.dataset import REWRITE_REMEDY, Dataset
from cwnd.store.journal import heads_intact, write_journal
from cwnd.store.layout import CELL_ID, JOURNAL, LATER, RESOLVED, RUNS, TABLES, content
from cwnd.store.tables import RUN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """Damage of a file, or a reason why it could not be judged."""

    file: Path
    what: str
    #: `False` if the file may be intact.
    is_damage: bool = True


@dataclass(frozen=True)
class Verified:
    """Result of a verification."""

    #: Number of cells whose files were compared with their hashes, or of files without cells.
    checked: int
    #: Number of cells chosen to be computed again, which is left out if a file is damaged.
    recomputed: int
    #: Number of cells that are not there.
    missing: int
    problems: list[Problem]
    #: Number of removed cells, which the next sweep computes again.
    mended: int = 0

    @property
    def sound(self) -> bool:
        """`True` if nothing is damaged or missing."""
        return not self.problems and not self.missing


def damaged_files(files: Sums) -> list[Problem]:
    """Compares all files of a result with their hashes, and returns the differences."""
    problems = []
    for name, expected in (files.of or {}).items():
        try:
            checksums.check(files.root / name, expected, "")
        except DamageError as error:
            problems.append(Problem(error.file, error.what))
    return problems


class ResultCells:
    """A complete result, whose cells are rows of its tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        manifest, self._files = read.opened(path)
        self.engine = manifest.engine or ""
        self.missing = manifest.missing
        self._tables = {
            name: pl.scan_parquet(file, glob=False)
            for name in TABLES
            # Older results lack some tables.
            if (file := path / f"{name}.parquet").exists() or name not in LATER
        }
        self.stored: list[str] = []
        self._run_ids: dict[str, str] = {}
        if not damaged_files(self._files):
            self._data_columns = packing.data_columns(self._tables)
            found = self._tables[RUNS].select(CELL_ID, "run_id")
            found = found.unique(CELL_ID, keep="first", maintain_order=True)
            self._run_ids = dict(found.collect().iter_rows())
            self.stored = list(self._run_ids)

    def check(self, threads: int) -> list[Problem]:
        """Compares all files with their hashes."""
        del threads
        return damaged_files(self._files)

    def text(self, cell: str) -> str:
        """Returns the content of a cell: its resolved scenario without name and description."""
        return content(str(self._rows(RUNS, cell)[RESOLVED][0]))

    def tables(self, cell: str) -> dict[str, pl.DataFrame]:
        """Returns the rows of a cell by table, without key columns."""
        tables = {
            name: self._rows(name, cell).select(self._data_columns[name])
            for name in self._tables
            if name != RUNS
        }
        runs = self._rows(RUNS, cell)
        tables[RUNS] = runs.select(packing.recorded_columns(runs))
        return tables

    def file(self, table: str, cell: str) -> Path:
        """Path of a table's file, which holds all cells."""
        del cell
        return self.path / f"{table}.parquet"

    def mend(self, problems: list[Problem]) -> int:
        """Removes all cells if one of the tables is damaged; returns their number."""
        if not any(problem.file.suffix == ".parquet" for problem in problems):
            return 0
        return packing.remove_damaged_result(self.path)

    def _rows(self, table: str, cell: str) -> pl.DataFrame:
        run = pl.col("run_id") == self._run_ids[cell]
        return self._tables[table].filter(run).collect()


class JournalCells:
    """An incomplete sweep, whose cells are in its journal."""

    def __init__(self, dataset: Dataset) -> None:
        self.path = dataset.path
        self.engine = dataset.info.engine
        self._dataset = dataset
        self._frames = journal_frames(self.path)
        self._intact = intact_frames(self._frames)
        self._cells = CellIndex.of(self._intact, REWRITE_REMEDY.format(self.path))
        planned = dataset.plan()[CELL_ID].unique(maintain_order=True)
        self.stored = [cell for cell in planned if cell in self._cells.where]
        self.missing = len(planned) - len(self.stored)

    def check(self, threads: int) -> list[Problem]:
        """Compares the frames with their hashes, and the scenario with its own."""
        del threads
        files = sorted((self.path / JOURNAL).glob("[!.]*"))
        damaged_frames = set(self._frames).difference(self._intact)
        lost = {frame.file for frame in damaged_frames}
        damaged = [file for file in files if file in lost or not heads_intact(file)]
        return [
            *(Problem(file, checksums.DAMAGED) for file in damaged),
            *damage_of(self._dataset.source),
        ]

    def text(self, cell: str) -> str:
        """Returns the content of a cell: its resolved scenario without name and description."""
        return self._cells.text(cell)

    def tables(self, cell: str) -> dict[str, pl.DataFrame]:
        """Returns the rows of a cell by table, without key columns."""
        index, run, _ = self._cells.where[cell]
        tables = {name: self._cells.table(index, name) for name in TABLES}
        return {
            name: table[run : run + 1].drop(CELL_ID, RESOLVED)
            if name == RUNS
            else table.filter(pl.col(RUN) == run).drop(RUN)
            for name, table in tables.items()
        }

    def file(self, table: str, cell: str) -> Path:
        """Path of the journal file that holds a cell."""
        del table
        return self._cells.file(cell)

    def mend(self, problems: list[Problem]) -> int:
        """Rewrites damaged files of the journal without their damaged frames.

        Returns the number of lost cells, as far as heads of frames name them.
        """
        folder = self.path / JOURNAL
        damaged = {problem.file for problem in problems if problem.file.parent == folder}
        if not damaged:
            return 0
        damaged_frames = set(self._frames).difference(self._intact)
        lost = {cell for frame in damaged_frames for cell in frame.cells}
        kept = [frame for frame in self._intact if frame.file in damaged]
        with session(self.path, None, engine=self.engine, threads=1) as writing:
            cells = CellIndex.of(kept, "")
            write_journal(folder / f"{writing.id}-kept", cells.batches(cells.where.keys()))
            for file in damaged:
                file.unlink()
            writing.log_end(how="finished", wall_s=0.0, cpu_s=0.0)
        return len(lost - self._cells.where.keys())


def damage_of(check: Callable[[], object]) -> list[Problem]:
    """Runs a check, and returns the damage that it reports."""
    try:
        check()
    except DamageError as error:
        return [Problem(error.file, error.what)]
    return []
