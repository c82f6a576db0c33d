"""Conversion between a sweep's journal and the layout of a complete result."""

from __future__ import annotations

import contextlib
import shutil
from itertools import takewhile
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS, Sums, portable
from cwnd.store import read, write
from cwnd.store.dataset import CELL, CELL_SHA, INFO, PLAN, RUN_COLUMNS, SOURCE
from cwnd.store.layout import (
    ACTIVITY,
    CELL_ID,
    JOURNAL,
    MANIFEST,
    RESOLVED,
    RRUL_FILES,
    RUNS,
    SCENARIO,
    SUMMARY,
    TABLES,
    content,
)
from cwnd.store.manifest import ACTIVITY_COLUMN
from cwnd.store.tables import RUN, Batch, pack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from cwnd.store.dataset import Planned

#: Lock that is held while a sweep is packed, as two shards may end at the same time.
_LOCK = "packing"
#: Number of cells in a batch that is made of a result.
_CELLS = 2048


@contextlib.contextmanager
def packing_lock(root: Path) -> Iterator[None]:
    """Waits for the exclusive lock on packing the sweep."""
    with (root / ACTIVITY / _LOCK).open("a") as lock:
        portable.lock(lock.fileno(), wait=True)
        yield


def remove_journal(root: Path) -> None:
    """Removes description, plan, scenario and journal of an incomplete sweep."""
    for name in (INFO, PLAN, SOURCE):
        (root / name).unlink(missing_ok=True)
    shutil.rmtree(root / JOURNAL, ignore_errors=True)


def is_result_of(root: Path, planned: Planned, *, every_file: bool = False) -> bool:
    """`True` if a directory holds the result of a plan, with undamaged descriptions.

    `every_file` also compares the tables with their hashes.
    """
    try:
        manifest, files = read.opened(root)
        for name in files.of or ():
            if every_file:
                files.file(name)
            elif not name.endswith(".parquet"):
                files.data(name)
        runs = pl.read_parquet(files.file(f"{RUNS}.parquet"), columns=["run_id", CELL_ID])
    except (DamageError, InputError, pl.exceptions.ColumnNotFoundError):
        return False
    info = planned.info
    described = ("name", "description", "engine", "scenario_sha256", "overrides", "seed_override")
    axes = [[(a.name, a.labels, a.over) for a in each.axes] for each in (manifest, info)]
    return (
        all(getattr(manifest, name) == getattr(info, name) for name in described)
        and axes[0] == axes[1]
        and manifest.warnings == info.warnings
        and runs.rows() == planned.frame.select("run_id", CELL_ID).rows()
    )


def cells_of(root: Path) -> list[str]:
    """Identifiers of the cells of a complete result; empty for version 1, which lacks them.

    Raises:
        DamageError: The table of runs is damaged.
    """
    runs = pl.scan_parquet(_files(root).file(f"{RUNS}.parquet"), glob=False)
    if CELL_ID not in runs.collect_schema():
        return []
    names = runs.select(CELL_ID).collect()[CELL_ID].drop_nulls()
    return list(names.unique(maintain_order=True))


def _files(root: Path) -> Sums:
    files = Sums.at(root, write.remedy_of_sweep(root))
    if files.of is None:
        raise files.missing_list()
    return files


def remove_result(root: Path) -> None:
    """Removes the files of a result, its list of hashes first."""
    tables = (f"{table}.parquet" for table in TABLES)
    for name in (SUMS, MANIFEST, SCENARIO, SUMMARY, *tables, *RRUL_FILES):
        (root / name).unlink(missing_ok=True)


def unpack_result(root: Path, wanted: Collection[str]) -> Iterator[Batch]:
    """Yields the wanted cells of a complete result as batches for a journal.

    Raises:
        DamageError: A table is damaged.
    """
    files = _files(root)
    tables = {name: pl.scan_parquet(files.file(f"{name}.parquet"), glob=False) for name in TABLES}
    data_columns_of = data_columns(tables)
    runs = tables[RUNS].unique(CELL_ID, keep="first", maintain_order=True)
    chosen = runs.filter(pl.col(CELL_ID).is_in(list(wanted))).collect()
    for first in range(0, chosen.height, _CELLS):
        yield _batch(chosen[first : first + _CELLS], tables, data_columns_of)


def data_columns(tables: Mapping[str, pl.LazyFrame]) -> dict[str, list[str]]:
    """Columns of each table that are no keys.

    Keys come first in all tables, in the same order.
    """
    columns = {name: table.collect_schema().names() for name, table in tables.items()}
    alike = (len(set(names)) == 1 for names in zip(*columns.values(), strict=False))
    keys = sum(takewhile(bool, alike))
    return {name: each[keys:] for name, each in columns.items()}


def recorded_columns(runs: pl.DataFrame) -> list[str]:
    """Columns of the table of runs that a cell recorded, without those that identify the run."""
    run_columns = [
        name for name in RUN_COLUMNS if name in runs.columns and name not in (CELL, CELL_SHA)
    ]
    return run_columns + [name for name in runs.columns if name.startswith(ACTIVITY_COLUMN)]


def _batch(
    runs: pl.DataFrame, tables: dict[str, pl.LazyFrame], data_columns_of: dict[str, list[str]]
) -> Batch:
    numbers = runs.select("run_id").with_row_index(RUN)
    others = {
        name: table.join(numbers.lazy(), on="run_id", how="inner", maintain_order="left")
        .select(RUN, *data_columns_of[name])
        .collect()
        for name, table in tables.items()
        if name != RUNS
    }
    counts = [0] * runs.height
    for table in others.values():
        for run, count in table.group_by(RUN).len().iter_rows():
            counts[run] += count
    texts = [content(text) for text in runs[RESOLVED]]
    rows = runs.select(CELL_ID, *recorded_columns(runs)).with_columns(pl.Series(RESOLVED, texts))
    return Batch(list(runs[CELL_ID]), counts, pack(rows, others))


def remove_damaged_result(root: Path) -> int:
    """Removes the result of a sweep, whose cells are then computed again.

    Returns their number, 0 if the table of runs is unreadable.
    """
    cells = 0
    with contextlib.suppress(OSError, pl.exceptions.PolarsError):
        cells = pl.read_parquet(root / f"{RUNS}.parquet", columns=[CELL_ID]).n_unique()
    remove_journal(root)
    remove_result(root)
    return cells
