"""Reading and verification of sweeps of version 1, which are never continued."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import DamageError, InputError
from cwnd.files import Sums, checksums
from cwnd.results import LazyTables, Resolved, Run
from cwnd.store.dataset import (
    CELL,
    CELL_SHA,
    KEYS,
    RECOMPUTE_REMEDY,
    RUN_COLUMNS,
    Dataset,
    renamed_axes,
)
from cwnd.store.integrity import Problem, damage_of
from cwnd.store.layout import CELL_ID, LATER, RESOLVED, ROWS, RUNS, SAMPLES, named
from cwnd.store.manifest import ACTIVITY_COLUMN, manifest, with_activity
from cwnd.store.old_files import FILES, RECORDS, Mark, hashes
from cwnd.store.read import later_table
from cwnd.store.tables import RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Columns that join tables; no axis can have these names.
_KEY, _TEXT = "cell id", "cell text"
#: Files that are read at a time: data about each stay in memory until the last is read.
_FILES = 2048


def load(dataset: Dataset) -> Run:
    """Reads the finished runs of a sweep."""
    plan = dataset.plan()
    finished = plan.filter(pl.col(CELL_ID).is_in(dataset.done()))
    tables = Tables(dataset, finished)
    found = tables.runs()
    activity = [column for column in found.columns if column.startswith(ACTIVITY_COLUMN)]
    run_columns = [column for column in RUN_COLUMNS if column in found.columns]
    runs = found.select(*tables.keys, *run_columns, *activity)
    rows = {name: tables.rows(name) for name in ROWS if name != RUNS}

    # The files of samples are compared with their hashes when they are requested.
    def scan(name: str) -> pl.LazyFrame:
        return later_table(name, tables.table("links")) if name in LATER else tables.table(name)

    samples = LazyTables(SAMPLES, scan)

    texts: list[pl.Series] = []

    def resolved(index: int) -> str:
        if not texts:
            texts.append(tables.resolved())
        return named(texts[0][index], dataset.info.heading)

    def read_samples_of(name: str, run_ids: list[str]) -> pl.LazyFrame:
        if name in LATER:
            return scan(name).filter(pl.col("run_id").is_in(run_ids))
        return tables.of(run_ids).table(name)

    return Run(
        manifest=with_activity(
            manifest(dataset.info, tables.axes, runs, missing=plan.height - finished.height),
            dataset.path,
        ),
        source=dataset.source(),
        runs=runs,
        samples=samples,
        read_samples_of=read_samples_of,
        resolved=Resolved(runs.height, resolved),
        **rows,
    )


class Tables:
    """Tables of all cells, concatenated in the order of the runs."""

    def __init__(self, dataset: Dataset, finished: pl.DataFrame) -> None:
        if finished.is_empty():
            raise InputError(f"{dataset.path}: no run of this sweep is complete yet")
        self._dataset = dataset
        self.hashes = CellHashes(dataset)
        self._cells = finished[CELL_ID].unique(maintain_order=True).to_list()
        #: `True` if several runs share a cell: its rows then appear for each of them.
        self._shared = len(self._cells) < finished.height
        self._schemas: dict[str, pl.Schema] = {}
        self._schemas |= {name: self._schema(name) for name in FILES}
        planned = dataset.info.axes
        taken = {column for name in FILES for column in self.data_columns(name)}
        self.axes = renamed_axes(planned, taken | {RUN})
        pairs = list(zip(planned, self.axes, strict=True))
        #: Key columns of a row, each with its name in the plan.
        self.keys = {key: key for key in KEYS}
        self.keys |= {new.column: old.column for old, new in pairs}
        self.keys |= {
            new.value_column: old.value_column
            for old, new in pairs
            if old.value_column is not None and new.value_column is not None
        }
        self._plan = finished.select(
            pl.col(CELL_ID).alias(_KEY),
            *(pl.col(old).alias(new) for new, old in self.keys.items()),
            CELL,
            CELL_SHA,
        )

    def of(self, run_ids: list[str]) -> Tables:
        """Returns tables restricted to some runs; files of other runs are not opened."""
        some = copy(self)
        some.choose(self._plan.filter(pl.col("run_id").is_in(run_ids)))
        return some

    def choose(self, plan: pl.DataFrame) -> None:
        """Restricts the tables to these rows of the plan, and their cells."""
        self._plan = plan
        self._cells = plan[_KEY].unique(maintain_order=True).to_list()

    def data_columns(self, name: str, columns: Iterable[str] | None = None) -> list[str]:
        """Columns of a table, or of `columns`, without its keys."""
        left_out = (CELL_ID, "seed", RESOLVED) if name == RUNS else (CELL_ID,)
        found = self._schemas[name] if columns is None else columns
        return [column for column in found if column not in left_out]

    def runs(self) -> pl.DataFrame:
        """Reads the table of runs, without scenarios."""
        try:
            marks = self._read(RUNS)
        except InputError as error:
            if not isinstance(error.__cause__, pl.exceptions.SchemaError):
                raise
            # Marks with different columns are rare; finding all columns requires reading each file.
            self._collect_columns()
            marks = self._read(RUNS)
        marks = marks.select(CELL_ID, *self.data_columns(RUNS))
        return self._collect(self._joined(marks.lazy()))

    def resolved(self) -> pl.Series:
        """Reads the resolved scenario of each run."""
        texts = self._read(RUNS, [CELL_ID, RESOLVED]).rename({RESOLVED: _TEXT})
        return self._collect(self._joined(texts.lazy()))[_TEXT]

    def rows(self, name: str) -> pl.DataFrame:
        """Reads a table into memory, with key columns."""
        return self._collect(self._keyed(name, self._read(name).lazy()))

    def table(self, name: str) -> pl.LazyFrame:
        """Scans a table on disk, with key columns."""
        return self._keyed(name, self._scan(name, self._cells))

    def _keyed(self, name: str, rows: pl.LazyFrame) -> pl.LazyFrame:
        # Names are strings on disk; as categories they take four bytes in memory.
        columns = [
            pl.col(column).cast(pl.Categorical) if kind == pl.String else pl.col(column)
            for column, kind in self._schemas[name].items()
            if column != CELL_ID
        ]
        return self._joined(rows).select(*self.keys, *columns)

    def _joined(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        keyed = rows.rename({CELL_ID: _KEY}).join(
            self._plan.lazy(), on=_KEY, how="inner", maintain_order="left"
        )
        return keyed.sort(CELL, maintain_order=True) if self._shared else keyed

    def _scan(self, name: str, cells: list[str]) -> pl.LazyFrame:
        self.hashes.check(name, cells)
        files = self._dataset.files(name, cells)
        if name != RUNS:
            return pl.scan_parquet(files, glob=False)
        marks = pl.scan_parquet(
            files, glob=False, schema=self._schemas.get(RUNS), missing_columns="insert"
        )
        return marks.with_columns(pl.col(f"^{ACTIVITY_COLUMN}.*$").fill_null(0))

    def _collect_columns(self) -> None:
        """Collects the columns of all marks: counters of named parts may be in some marks only."""
        columns: dict[str, pl.DataType] = {}
        with self._translate_errors():
            for file in self._dataset.files(RUNS, self._cells):
                columns |= pl.scan_parquet(file, glob=False).collect_schema()
        self._schemas[RUNS] = pl.Schema(columns)

    def _read(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        parts = []
        for first in range(0, len(self._cells), _FILES):
            part = self._scan(name, self._cells[first : first + _FILES])
            part = part if columns is None else part.select(columns)
            parts.append(self._collect(part).rechunk())
        table = pl.concat(parts)
        if name == RUNS:
            self._check_identity(table[CELL_ID].to_list())
        return table

    def _check_identity(self, found: list[str]) -> None:
        """Compares the identifiers in the marks with the names of their files.

        Raises:
            DamageError: A mark is intact, but of another cell.
        """
        for cell, found_cell in zip(self._cells, found, strict=True):
            if cell != found_cell:
                file = self._dataset.file(RUNS, cell)
                raise DamageError(file, f"holds another cell, {found_cell}", self.hashes.remedy)

    def _schema(self, name: str) -> pl.Schema:
        with self._translate_errors():
            return self._scan(name, self._cells[:1]).collect_schema()

    def _collect(self, table: pl.LazyFrame) -> pl.DataFrame:
        with self._translate_errors():
            return table.collect()

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as error:
            path = self._dataset.path
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(
                f"{path}: a file is missing or damaged ({reason}); `cwnd verify {path}` says which"
            ) from error


#: Hexadecimal digits of a hash.
_DIGITS = 64


class CellHashes:
    """Hashes of a sweep's files, read from the marks of its cells."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._marks: dict[str, bytes] = {}
        self.remedy = RECOMPUTE_REMEDY

    def check(self, table: str, cells: Sequence[str]) -> None:
        """Compares the files of a table with their hashes.

        Raises:
            DamageError: A file is damaged; the first is named.
        """
        unknown = [cell for cell in cells if cell not in self._marks]
        for cell, file in zip(unknown, self._dataset.files(RUNS, unknown), strict=True):
            self._mark(cell, file)
        if table == RUNS:
            return
        place = RECORDS.index(table) * _DIGITS
        for cell, file in zip(cells, self._dataset.files(table, cells), strict=True):
            expected = self._marks[cell][place : place + _DIGITS].decode()
            checksums.check(file, expected, self.remedy)

    def _mark(self, cell: str, file: str) -> None:
        found = hashes(checksums.read(file, None, self.remedy))
        if found is None:
            raise DamageError(Path(file), checksums.DAMAGED, self.remedy)
        kept = "".join(found[table] for table in RECORDS).encode()
        self._marks[cell] = kept


class CellFiles:
    """Verification of a sweep of version 1, in which each cell has files of its own."""

    def __init__(self, dataset: Dataset) -> None:
        self.path = dataset.path
        self.engine = dataset.info.engine
        self._dataset = dataset
        planned = dataset.plan()[CELL_ID].unique(maintain_order=True)
        done = dataset.done()
        self.stored = [cell for cell in planned if cell in done]
        self.missing = len(planned) - len(self.stored)

    def check(self, threads: int) -> list[Problem]:
        """Compares the files of all cells with the hashes in their marks."""
        problems = damage_of(self._dataset.source)
        problems += damage_of(lambda: check_listed_files(self._dataset.path))
        with ThreadPoolExecutor(threads) as workers:
            for found in workers.map(self._check, self.stored):
                problems += found
        known: dict[Path, Problem] = {}
        for problem in problems:
            known.setdefault(problem.file, problem)
        return list(known.values())

    def text(self, cell: str) -> str:
        """Returns the content of a cell: its resolved scenario without name and description."""
        return Mark.read(self.file(RUNS, cell).read_bytes()).text

    def tables(self, cell: str) -> dict[str, pl.DataFrame]:
        """Returns the rows of a cell by table, without key columns."""
        return {
            name: pl.read_parquet(self.file(name, cell)).drop(CELL_ID, RESOLVED, strict=False)
            for name in FILES
        }

    def file(self, table: str, cell: str) -> Path:
        """Path of a table of a cell."""
        return self._dataset.file(table, cell)

    def mend(self, problems: list[Problem]) -> int:
        """Refuses to remove damaged cells, as no version computes cells of version 1 again.

        Raises:
            InputError: Always.
        """
        del problems
        raise InputError(f"{self.path}: a sweep of version 1 is not mended; {RECOMPUTE_REMEDY}")

    def _check(self, cell: str) -> list[Problem]:
        mark_file = self.file(RUNS, cell)
        try:
            mark = Mark.read(checksums.read(mark_file, None, ""))
        except DamageError as error:
            return [Problem(mark_file, error.what)]
        except InputError as error:
            return [Problem(mark_file, str(error))]
        if mark.cell_id != cell:
            return [Problem(mark_file, f"holds another cell, {mark.cell_id}")]
        problems = []
        for table in RECORDS:
            file = self.file(table, cell)
            expected = mark.sha256.get(table, "none")
            problems += damage_of(lambda: checksums.read(file, expected, ""))  # noqa: B023 - at once
        return problems


def check_listed_files(root: Path) -> None:
    """Compares the files that a sweep of version 1 lists with their hashes.

    Raises:
        DamageError: A file is damaged; the first is named.
    """
    files = Sums.at(root)
    for name in files.of or ():
        files.data(name)
