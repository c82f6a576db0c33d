"""Assembly of results from finished cells, in the order of the plan."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
from polars.io.plugins import register_io_source

from cwnd.errors import DamageError, InputError
from cwnd.results import LazyTables, Resolved, Run
from cwnd.store.dataset import CELL, CELL_SHA, KEYS, REWRITE_REMEDY, RUN_COLUMNS, renamed_axes
from cwnd.store.journal import Frame, frames
from cwnd.store.layout import CELL_ID, JOURNAL, RESOLVED, ROWS, RUNS, TABLES, named
from cwnd.store.manifest import ACTIVITY_COLUMN, manifest
from cwnd.store.read import later_table
from cwnd.store.tables import RUN, Batch, MemoryBatch, pack, table, table_slices

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from cwnd.results import Axis
    from cwnd.store.dataset import Info, Planned

    #: Finished cells, in the journal or in memory.
    CellBatch: TypeAlias = Frame | MemoryBatch

#: Rows of all tables together in a part of a result, about 100 MB.
PART_ROWS = 1 << 19
#: Limit in bytes of decoded tables that are cached: neighbouring runs are mostly in the same
#: frames.
_DECODED_BYTES = 64_000_000
#: Column with the index of a run in the plan.
_POSITION = "position"


@dataclass
class CellIndex:
    """Finished cells, each in the first frame that holds it."""

    frames: list[CellBatch]
    #: Index of each cell's frame, its index there, and its number of rows.
    where: dict[str, tuple[int, int, int]]
    remedy: str
    #: Slices of the tables in each frame whose hash was compared.
    _slices: dict[int, dict[str, slice]] = field(default_factory=dict)
    _decoded: OrderedDict[tuple[int, str], pl.DataFrame] = field(default_factory=OrderedDict)
    _bytes: float = 0.0

    @classmethod
    def of(cls, found: Sequence[CellBatch], remedy: str) -> CellIndex:
        """Indexes the cells of frames."""
        where: dict[str, tuple[int, int, int]] = {}
        for index, frame in enumerate(found):
            for run, (cell, rows) in enumerate(zip(frame.cells, frame.rows, strict=True)):
                where.setdefault(cell, (index, run, rows))
        return cls(list(found), where, remedy)

    def table(self, index: int, name: str) -> pl.DataFrame:
        """Returns a table of a frame.

        Raises:
            DamageError: The frame does not match its hash.
        """
        frame = self.frames[index]
        if isinstance(frame, MemoryBatch):
            return frame.tables[name]
        key = index, name
        if key not in self._decoded:
            body = None
            if index not in self._slices:
                body = frame.body(self.remedy)
                self._slices[index] = table_slices(body)
            part = self._slices[index].get(name)
            if part is None:
                # A journal of an older version has no such table.
                return later_table(name, self.table(index, "links").lazy()).collect()
            data = frame.part(part, self.remedy) if body is None else body[part]
            found = self._decoded[key] = table(data)
            self._bytes += found.estimated_size()
            while self._bytes > _DECODED_BYTES and len(self._decoded) > 1:
                self._bytes -= self._decoded.popitem(last=False)[1].estimated_size()
        self._decoded.move_to_end(key)
        return self._decoded[key]

    def batches(self, wanted: Collection[str]) -> Iterator[Batch]:
        """Yields the wanted cells, in one batch for each frame."""
        for index, frame in enumerate(self.frames):
            chosen = [run for run, cell in enumerate(frame.cells) if cell in wanted]
            if not chosen:
                continue
            numbers = pl.DataFrame({RUN: chosen}, schema={RUN: pl.UInt32}).with_row_index("new")
            others = {
                name: self.table(index, name)
                .join(numbers, on=RUN, how="inner", maintain_order="left")
                .with_columns(pl.col("new").alias(RUN))
                .drop("new")
                for name in TABLES
                if name != RUNS
            }
            body = pack(self.table(index, RUNS)[chosen], others)
            cells = [frame.cells[run] for run in chosen]
            yield Batch(cells, [frame.rows[run] for run in chosen], body)

    def file(self, cell: str) -> Path:
        """Returns the journal file that holds a cell."""
        frame = self.frames[self.where[cell][0]]
        assert isinstance(frame, Frame)
        return frame.file

    def text(self, cell: str) -> str:
        """Returns the content of a cell: its resolved scenario without name and description."""
        index, run, _ = self.where[cell]
        return str(self.table(index, RUNS)[RESOLVED][run])


def journal_frames(root: Path, *, strict: bool = False) -> list[Frame]:
    """Lists the frames of a sweep's journal.

    Raises:
        DamageError: The head of a frame is damaged, if `strict`.
    """
    return list(frames(root / JOURNAL, REWRITE_REMEDY.format(root) if strict else None))


def intact_frames(found: Sequence[Frame]) -> list[Frame]:
    """Selects the frames whose bodies match their hashes."""

    def holds(frame: Frame) -> bool:
        try:
            frame.body("")
        except DamageError:
            return False
        return True

    return [frame for frame in found if holds(frame)]


def assemble(planned: Planned, cells: CellIndex) -> Run:
    """Assembles the result of the finished cells, in the order of the plan.

    Samples are sorted when they are requested, a part at a time, as they may exceed the memory.
    Samples in memory are sorted once.

    Args:
        planned: The sweep: its description, a row for each run, its scenario.
        cells: Its finished cells.

    Raises:
        InputError: No cell is finished.
        DamageError: A frame does not match its hash.
    """
    info, plan = planned.info, planned.frame
    finished = plan.filter(pl.col(CELL_ID).is_in(list(cells.where)))
    if finished.is_empty():
        raise InputError("no run of this sweep is complete yet")
    tables = _Ordered(info, finished, cells)
    runs = _runs(tables.frame(RUNS), finished)
    names = finished[CELL_ID].to_list()

    def one(index: int) -> str:
        return named(cells.text(names[index]), info.heading)

    samples = [name for name in TABLES if name not in ROWS]
    return Run(
        manifest=manifest(info, tables.axes, runs, missing=plan.height - finished.height),
        source=planned.source,
        runs=runs,
        flows=tables.frame("flows"),
        links=tables.frame("links"),
        samples=LazyTables(samples, tables.lazy),
        resolved=Resolved(runs.height, one),
    )


class _Ordered:
    """Tables of cells, extended by the key columns of the plan and sorted in its order."""

    def __init__(self, info: Info, finished: pl.DataFrame, cells: CellIndex) -> None:
        self._cells = cells
        self._names = finished[CELL_ID].to_list()
        first = cells.where[self._names[0]][0]
        self._first = {name: cells.table(first, name) for name in TABLES}
        columns = {column for table in self._first.values() for column in table.columns}
        self.axes = renamed_axes(info.axes, columns)
        self._keys = _keys(finished, info.axes, self.axes)
        self._parts = list(_parts(self._names, cells))
        in_memory = all(isinstance(frame, MemoryBatch) for frame in cells.frames)
        self._once: dict[str, pl.LazyFrame] | None = {} if in_memory else None

    def frame(self, name: str) -> pl.DataFrame:
        """Returns a table in memory."""
        parts = [self._part(name, part) for part in self._parts]
        return pl.concat(parts, how="diagonal" if name == RUNS else "vertical")

    def lazy(self, name: str) -> pl.LazyFrame:
        """Returns a lazy table whose parts are assembled one at a time."""
        if self._once is not None:
            if name not in self._once:
                self._once[name] = self.frame(name).lazy()
            return self._once[name]
        own = self._first[name].drop(RUN)
        schema = pl.Schema([*self._keys.schema.items(), *own.schema.items()])
        return register_io_source(partial(self._rows, name), schema=schema)

    def _rows(
        self,
        name: str,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        _batch_rows: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yields the parts of a table; the source function of a polars I/O plug-in."""
        for part in self._parts:
            if rows == 0:
                return
            found = self._part(name, part)
            if rows is not None:
                found = found.head(rows)
                rows -= found.height
            found = found if predicate is None else found.filter(predicate)
            yield found if columns is None else found.select(columns)

    def _part(self, name: str, part: range) -> pl.DataFrame:
        """Assembles the rows of some runs, in their order."""
        wanted: dict[int, list[tuple[int, int]]] = {}
        for position in part:
            index, run, _ = self._cells.where[self._names[position]]
            wanted.setdefault(index, []).append((run, position))
        found = []
        for index, pairs in wanted.items():
            table = self._cells.table(index, name)
            if len(pairs) == len(self._names) and all(run == position for run, position in pairs):
                return self._with_keys(name, table)
            positions = pl.DataFrame(
                pairs, schema={RUN: pl.UInt32, _POSITION: pl.UInt32}, orient="row"
            )
            if name == RUNS:
                table = table.drop(CELL_ID, RESOLVED, "seed", strict=False).with_row_index(RUN)
            joined = table.join(positions, on=RUN, how="inner", maintain_order="left")
            found.append(joined.drop(RUN))
        # One chunk: row groups on disk follow chunks, which would otherwise depend on the frames.
        rows = pl.concat(found, how="diagonal" if name == RUNS else "vertical").rechunk()
        if not rows[_POSITION].is_sorted():
            rows = rows.sort(_POSITION, maintain_order=True)
        keyed = [self._keys[rows[_POSITION]], rows.drop(_POSITION)]
        return pl.concat(keyed, how="horizontal").rechunk()

    def _with_keys(self, name: str, table: pl.DataFrame) -> pl.DataFrame:
        """Assembles the rows of a frame that holds exactly all runs in their order."""
        if name == RUNS:
            own = table.drop(CELL_ID, RESOLVED, "seed", strict=False)
            return pl.concat([self._keys, own], how="horizontal")
        keyed = [self._keys[table[RUN]], table.drop(RUN)]
        return pl.concat(keyed, how="horizontal").rechunk()


def _keys(finished: pl.DataFrame, planned: list[Axis], axes: list[Axis]) -> pl.DataFrame:
    """Key columns of the finished runs, with the axes renamed as in the tables."""
    pairs = list(zip(planned, axes, strict=True))
    values = [
        (old.value_column, new.value_column)
        for old, new in pairs
        if old.value_column is not None and new.value_column is not None
    ]
    return finished.select(
        *KEYS,
        *(pl.col(old.column).alias(new.column) for old, new in pairs),
        *(pl.col(old).alias(new) for old, new in values),
    )


def _parts(names: list[str], cells: CellIndex) -> Iterator[range]:
    """Splits the runs into ranges of about `PART_ROWS` rows, independent of the frames."""
    begin = rows = 0
    for position, name in enumerate(names):
        rows += cells.where[name][2]
        if rows >= PART_ROWS and position + 1 < len(names):
            yield range(begin, position + 1)
            begin, rows = position + 1, 0
    yield range(begin, len(names))


def _runs(runs: pl.DataFrame, finished: pl.DataFrame) -> pl.DataFrame:
    """Builds the table of runs; counters are ordered by the first run that has them."""
    counters = [column for column in runs.columns if column.startswith(ACTIVITY_COLUMN)]
    first = {name: runs[name].is_not_null().arg_max() or 0 for name in counters}
    counters.sort(key=lambda name: first[name])
    numbered = runs.with_columns(finished[CELL], finished[CELL_SHA])
    keys = [c for c in runs.columns if c not in RUN_COLUMNS and c not in counters]
    run_columns = [column for column in RUN_COLUMNS if column in numbered.columns]
    return numbered.select(*keys, *run_columns, *(pl.col(name).fill_null(0) for name in counters))
