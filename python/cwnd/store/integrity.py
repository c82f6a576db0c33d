"""Cells of sweeps on disk, as they are verified: packed, in a journal, or in files of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import DamageError
from cwnd.files import Sums, checksums
from cwnd.store import packing, read
from cwnd.store.activity import session
from cwnd.store.assembly import FoundCells, journalled, sound
from cwnd.store.cell import content
from cwnd.store.dataset import REWRITTEN, Dataset
from cwnd.store.journal import heads_hold, write_journal
from cwnd.store.layout import CELL_ID, JOURNAL, MARK, RESOLVED, TABLES
from cwnd.store.tables import RUN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """Damage, and the file that has it."""

    file: Path
    what: str


@dataclass(frozen=True)
class Verified:
    """Result of a check."""

    #: Cells whose files were compared with their hashes.
    checked: int
    #: Cells that were computed again.
    recomputed: int
    #: Cells that are not complete.
    missing: int
    problems: list[Problem]
    #: Cells that were taken out, so that the next sweep computes them again.
    mended: int = 0

    @property
    def sound(self) -> bool:
        """`True` if everything is there and as it should be."""
        return not self.problems and not self.missing


def listed(files: Sums) -> list[Problem]:
    """Compares all files of a result with their hashes."""
    problems = []
    for name, expected in (files.of or {}).items():
        try:
            checksums.check(files.root / name, expected, "")
        except DamageError as error:
            problems.append(Problem(error.file, error.what))
    return problems


class Packed:
    """A result whose cells are rows of its tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        manifest, self._files = read.opened(path)
        self.engine = manifest.engine or ""
        self.missing = manifest.missing
        self._tables = {
            name: pl.scan_parquet(path / f"{name}.parquet", glob=False) for name in TABLES
        }
        self.there: list[str] = []
        self._run_ids: dict[str, str] = {}
        if not listed(self._files):
            self._own = packing.own_columns(self._tables)
            found = self._tables[MARK].select(CELL_ID, "run_id")
            found = found.unique(CELL_ID, keep="first", maintain_order=True)
            self._run_ids = dict(found.collect().iter_rows())
            self.there = list(self._run_ids)

    def check(self, threads: int) -> list[Problem]:
        """Compares all files with their hashes."""
        del threads
        return listed(self._files)

    def text(self, cell: str) -> str:
        """The content of a cell."""
        return content(str(self._rows(MARK, cell)[RESOLVED][0]))

    def tables(self, cell: str) -> dict[str, pl.DataFrame]:
        """The rows of a cell, without the columns that say whose they are."""
        tables = {
            name: self._rows(name, cell).select(self._own[name]) for name in TABLES if name != MARK
        }
        runs = self._rows(MARK, cell)
        tables[MARK] = runs.select(packing.recorded(runs))
        return tables

    def file(self, table: str, cell: str) -> Path:
        """The file of a table, which has all cells."""
        del cell
        return self.path / f"{table}.parquet"

    def mend(self, problems: list[Problem]) -> int:
        """Takes out all cells, if one of the tables is damaged."""
        if not any(problem.file.suffix == ".parquet" for problem in problems):
            return 0
        return packing.take_out(self.path)

    def _rows(self, table: str, cell: str) -> pl.DataFrame:
        run = pl.col("run_id") == self._run_ids[cell]
        return self._tables[table].filter(run).collect()


class Journalled:
    """A sweep whose cells are in its journal."""

    def __init__(self, dataset: Dataset) -> None:
        self.path = dataset.path
        self.engine = dataset.info.engine
        self._dataset = dataset
        self._frames = journalled(self.path)
        self._sound = sound(self._frames)
        self._cells = FoundCells.of(self._sound, REWRITTEN.format(self.path))
        planned = dataset.plan()[CELL_ID].unique(maintain_order=True)
        self.there = [cell for cell in planned if cell in self._cells.where]
        self.missing = len(planned) - len(self.there)

    def check(self, threads: int) -> list[Problem]:
        """Compares the frames with their hashes, and the scenario with its own."""
        del threads
        files = sorted((self.path / JOURNAL).glob("[!.]*"))
        unsound = set(self._frames).difference(self._sound)
        lost = {frame.file for frame in unsound}
        damaged = [file for file in files if file in lost or not heads_hold(file)]
        return [
            *(Problem(file, checksums.DAMAGED) for file in damaged),
            *looked(self._dataset.source),
        ]

    def text(self, cell: str) -> str:
        """The content of a cell."""
        return self._cells.text(cell)

    def tables(self, cell: str) -> dict[str, pl.DataFrame]:
        """The rows of a cell, without the columns that say whose they are."""
        index, run, _ = self._cells.where[cell]
        tables = {name: self._cells.table(index, name) for name in TABLES}
        return {
            name: table[run : run + 1].drop(CELL_ID, RESOLVED)
            if name == MARK
            else table.filter(pl.col(RUN) == run).drop(RUN)
            for name, table in tables.items()
        }

    def file(self, table: str, cell: str) -> Path:
        """The file of the journal that has a cell."""
        del table
        return self._cells.file(cell)

    def mend(self, problems: list[Problem]) -> int:
        """Takes damaged frames out of the journal."""
        folder = self.path / JOURNAL
        damaged = {problem.file for problem in problems if problem.file.parent == folder}
        if not damaged:
            return 0
        unsound = set(self._frames).difference(self._sound)
        lost = {cell for frame in unsound for cell in frame.cells}
        kept = [frame for frame in self._sound if frame.file in damaged]
        with session(self.path, None, engine=self.engine, threads=1) as writing:
            cells = FoundCells.of(kept, "")
            write_journal(folder / f"{writing.id}-kept", cells.batches(cells.where.keys()))
            for file in damaged:
                file.unlink()
            writing.end(how="finished", wall_s=0.0, cpu_s=0.0)
        return len(lost - self._cells.where.keys())


def looked(look: Callable[[], object]) -> list[Problem]:
    """The damage that a look finds."""
    try:
        look()
    except DamageError as error:
        return [Problem(error.file, error.what)]
    return []
