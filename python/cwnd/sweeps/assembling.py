"""Results from the journal of a sweep: its frames in the order of the plan."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import DamageError, InputError
from cwnd.results import CELL_ID, RESERVED, RESOLVED, TABLES, Resolved, Run, Spool, named
from cwnd.running import KEYS, RUN_COLUMNS, name_axes
from cwnd.sweeps.cells import MARK
from cwnd.sweeps.journal import frames
from cwnd.sweeps.layout import CELL, CELL_SHA, JOURNAL, REWRITTEN
from cwnd.sweeps.manifest import ACTIVITY_COLUMN, manifest
from cwnd.sweeps.tables import RUN, Batch, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from cwnd.results import Axis
    from cwnd.sweeps.journal import Frame
    from cwnd.sweeps.layout import Dataset

#: Rows of all tables together that make a part: some 100 MB.
_PART_ROWS = 1 << 19
#: Frames that stay in memory as tables: neighbours in the plan are in the same ones, mostly.
_DECODED = 8
#: The place of a run in the plan.
_PLACE = "place"


@dataclass
class Cells:
    """The cells of a journal, each by its first whole frame."""

    frames: list[Frame]
    #: The frame of each cell, its number there, and its rows.
    where: dict[str, tuple[int, int, int]]
    remedy: str
    _decoded: OrderedDict[int, dict[str, pl.DataFrame]] = field(default_factory=OrderedDict)

    @classmethod
    def of(cls, found: Sequence[Frame], remedy: str) -> Cells:
        """Finds the cells of frames."""
        where: dict[str, tuple[int, int, int]] = {}
        for index, frame in enumerate(found):
            for run, (cell, rows) in enumerate(zip(frame.cells, frame.rows, strict=True)):
                where.setdefault(cell, (index, run, rows))
        return cls(list(found), where, remedy)

    def tables(self, index: int) -> dict[str, pl.DataFrame]:
        """The tables of a frame; `DamageError` if they are not what was written."""
        if index not in self._decoded:
            self._decoded[index] = unpack(self.frames[index].body(self.remedy))
            if len(self._decoded) > _DECODED:
                self._decoded.popitem(last=False)
        self._decoded.move_to_end(index)
        return self._decoded[index]

    def batches(self, wanted: Collection[str]) -> Iterator[Batch]:
        """The cells that are wanted, in batches as they were finished."""
        for index, frame in enumerate(self.frames):
            chosen = [run for run, cell in enumerate(frame.cells) if cell in wanted]
            if not chosen:
                continue
            tables = self.tables(index)
            numbers = pl.DataFrame({RUN: chosen}, schema={RUN: pl.UInt32}).with_row_index("new")
            others = {
                name: tables[name]
                .join(numbers, on=RUN, how="inner", maintain_order="left")
                .with_columns(pl.col("new").alias(RUN))
                .drop("new")
                for name in TABLES
                if name != MARK
            }
            body = pack(tables[MARK][chosen], others)
            cells = [frame.cells[run] for run in chosen]
            yield Batch(cells, [frame.rows[run] for run in chosen], body)

    def file(self, cell: str) -> Path:
        """The file of the journal that has a cell."""
        return self.frames[self.where[cell][0]].file

    def text(self, cell: str) -> str:
        """The content of a cell."""
        index, run, _ = self.where[cell]
        return str(self.tables(index)[MARK][RESOLVED][run])


def journalled(root: Path, *, strict: bool = False) -> list[Frame]:
    """The frames of a sweep's journal; strict, `DamageError` if a head is damaged."""
    return list(frames(root / JOURNAL, REWRITTEN.format(root) if strict else None))


def sound(found: Sequence[Frame]) -> list[Frame]:
    """The frames whose bodies are what was written."""

    def holds(frame: Frame) -> bool:
        try:
            frame.body("")
        except DamageError:
            return False
        return True

    return [frame for frame in found if holds(frame)]


def assemble(
    dataset: Dataset,
    found: Sequence[Frame],
    *,
    spool: Path | None = None,
    resolved: Callable[[int], str] | None = None,
) -> Run:
    """Makes the result of the cells that are there, in the order of the plan.

    Args:
        dataset: The sweep.
        found: Frames of its journal.
        spool: Directory for tables that would not fit in memory.
        resolved: Makes the scenario of a run, by its number in the plan; read from the journal if
            not given.

    Raises:
        InputError: No cell is there.
        DamageError: A frame is not what was written.
    """
    cells = Cells.of(found, REWRITTEN.format(dataset.path))
    plan = dataset.plan()
    here = plan.filter(pl.col(CELL_ID).is_in(list(cells.where)))
    if here.is_empty():
        raise InputError(f"{dataset.path}: no run of this sweep is complete yet")
    first = cells.tables(cells.where[here[CELL_ID][0]][0])
    own = {name: [c for c in first[name].columns if c != RUN] for name in TABLES}
    taken = {column for columns in own.values() for column in columns} - {CELL_ID, RESOLVED}
    axes = renamed(dataset.info.axes, taken)
    keys = _keys(here, dataset.info.axes, axes)
    spooled = Spool(spool) if spool is not None else None
    parts: dict[str, list[pl.LazyFrame]] = {name: [] for name in TABLES}
    for last, part in _parts(here[CELL_ID].to_list(), cells):
        single = last and not parts[MARK]
        for name, frame in _part(part, here[CELL_ID].to_list(), cells).items():
            keyed = pl.concat(
                [keys[frame[_PLACE]], frame.drop(_PLACE)],
                how="horizontal",
            )
            lazy = keyed.lazy() if single or spooled is None else spooled.put(name, keyed)
            parts[name].append(lazy)
    runs = _runs(pl.concat(parts.pop(MARK), how="diagonal").collect(), here)
    tables = {name: pl.concat(each) for name, each in parts.items()}
    numbers, names = here[CELL].to_list(), here[CELL_ID].to_list()

    def one(index: int) -> str:
        if resolved is not None:
            return resolved(numbers[index])
        return named(cells.text(names[index]), dataset.info.heading)

    return Run(
        manifest=manifest(dataset, axes, runs, missing=plan.height - here.height),
        source=dataset.source(),
        runs=runs,
        flows=tables.pop("flows").collect(),
        links=tables.pop("links").collect(),
        samples=tables,
        resolved=Resolved(runs.height, one),
    )


def renamed(axes: list[Axis], taken: set[str]) -> list[Axis]:
    """The axes of a plan with columns that no table has."""
    shapes = [(a.name, a.labels, a.value_column is not None, a.unit) for a in axes]
    all_taken = taken | {*KEYS, *RUN_COLUMNS, *RESERVED, CELL_ID, RESOLVED, RUN}
    return [
        replace(new, over=old.over)
        for new, old in zip(name_axes(shapes, all_taken), axes, strict=True)
    ]


def _keys(here: pl.DataFrame, planned: list[Axis], axes: list[Axis]) -> pl.DataFrame:
    """The columns that say which run a row belongs to, for each run that is there."""
    pairs = list(zip(planned, axes, strict=True))
    values = [
        (old.value_column, new.value_column)
        for old, new in pairs
        if old.value_column is not None and new.value_column is not None
    ]
    return here.select(
        *KEYS,
        *(pl.col(old.column).alias(new.column) for old, new in pairs),
        *(pl.col(old).alias(new) for old, new in values),
    )


def _parts(names: list[str], cells: Cells) -> Iterator[tuple[bool, range]]:
    """Places of runs that make a part, whatever frames they are in; and whether it is the last."""
    begin = rows = 0
    for place, name in enumerate(names):
        rows += cells.where[name][2]
        if rows >= _PART_ROWS and place + 1 < len(names):
            yield False, range(begin, place + 1)
            begin, rows = place + 1, 0
    yield True, range(begin, len(names))


def _part(part: range, names: list[str], cells: Cells) -> dict[str, pl.DataFrame]:
    """The tables of some runs, each row with the place of its run, in their order."""
    wanted: dict[int, list[tuple[int, int]]] = {}
    for place in part:
        index, run, _ = cells.where[names[place]]
        wanted.setdefault(index, []).append((run, place))
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for index, pairs in wanted.items():
        tables = cells.tables(index)
        places = pl.DataFrame(pairs, schema={RUN: pl.UInt32, _PLACE: pl.UInt32}, orient="row")
        for name in TABLES:
            table = tables[name]
            if name == MARK:
                table = table.drop(CELL_ID, RESOLVED, "seed", strict=False).with_row_index(RUN)
            joined = table.join(places, on=RUN, how="inner", maintain_order="left")
            found[name].append(joined.drop(RUN))
    return {
        name: pl.concat(each, how="diagonal" if name == MARK else "vertical").sort(
            _PLACE, maintain_order=True
        )
        for name, each in found.items()
    }


def _runs(runs: pl.DataFrame, here: pl.DataFrame) -> pl.DataFrame:
    """The table of runs as that of `cwnd run`: counters by the first run that has them."""
    counters = [column for column in runs.columns if column.startswith(ACTIVITY_COLUMN)]
    first = {name: runs[name].is_not_null().arg_max() or 0 for name in counters}
    counters.sort(key=lambda name: first[name])
    numbered = runs.with_columns(here[CELL], here[CELL_SHA])
    keys = [c for c in runs.columns if c not in RUN_COLUMNS and c not in counters]
    told = [column for column in RUN_COLUMNS if column in numbered.columns]
    return numbered.select(*keys, *told, *(pl.col(name).fill_null(0) for name in counters))
