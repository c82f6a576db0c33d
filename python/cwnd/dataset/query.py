"""SQL over a result: its tables as views, each row with the parameters of its run."""

from __future__ import annotations

import glob
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd.dataset.cells import CELL_ID, MARK
from cwnd.dataset.layout import CELL, CELL_SHA, PLAN, Dataset
from cwnd.dataset.load import Tables
from cwnd.errors import InputError
from cwnd.store import TABLES, read_manifest

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection


def query(directory: str | os.PathLike[str], sql: str) -> pl.DataFrame:
    """Answers a question about a result of `cwnd run` or `cwnd sweep`.

    The views are `runs`, `flows`, `links`, `series`, `link_series` and `qdelay`; each row has the
    axes of the sweep as columns, with their labels as text and their values as numbers.

    Args:
        directory: The result.
        sql: One statement in DuckDB's SQL, such as
            `"select rtt, avg(goodput_bit_s) from flows group by rtt"`.
    """
    with _views(Path(directory)) as connection:
        # The relation must be gone before its connection is.
        return _answer(connection, sql)


def write_parquet(directory: str | os.PathLike[str], sql: str, file: Path) -> None:
    """Writes an answer as Parquet, which may be larger than memory."""
    with _views(Path(directory)) as connection, _explained():
        relation = connection.sql(sql)
        if relation is None:
            raise InputError(_NOTHING)
        relation.write_parquet(str(file))
        del relation


_NOTHING = "the statement gives no table; it should be a select"


def _answer(connection: DuckDBPyConnection, sql: str) -> pl.DataFrame:
    with _explained():
        relation = connection.sql(sql)
        if relation is None:
            raise InputError(_NOTHING)
        return pl.DataFrame(relation)


@contextmanager
def _views(path: Path) -> Iterator[DuckDBPyConnection]:
    views = _of_sweep(Dataset.open(path)) if Dataset.is_at(path) else _of_run(path)
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        with _explained():
            for name, select in views.items():
                connection.execute(f"create view {name} as {select}")
        yield connection
    finally:
        connection.close()


@contextmanager
def _explained() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise InputError(f"SQL: {str(error).strip()}") from error


def _of_run(path: Path) -> dict[str, str]:
    read_manifest(path)
    files = {name: _read(path / f"{name}.parquet") for name in TABLES}
    return {name: f"select * from {file}" for name, file in files.items()}  # noqa: S608


def _of_sweep(dataset: Dataset) -> dict[str, str]:
    plan = dataset.plan()
    tables = Tables(dataset, plan.filter(pl.col(CELL_ID).is_in(dataset.done())))
    keys = [f"p.{_name(old)} as {_name(new)}" for new, old in tables.keys.items()]
    planned = _read(dataset.path / PLAN)
    marks = _read(dataset.path / MARK, folders=True)
    views = {}
    for name in TABLES:
        own = [f"t.{_name(column)}" for column in tables.own(name)]
        if name == MARK:
            own = [f"p.{CELL}", f"p.{CELL_SHA}", *own]
        views[name] = (
            f"select {', '.join([*keys, *own])}"  # noqa: S608 - no one else's words
            f" from {_read(dataset.path / name, folders=True)} t"
            f" join {planned} p on p.{CELL_ID} = t.{CELL_ID}"
            # What a writer that was killed left of a cell is none.
            f" where t.{CELL_ID} in (select {CELL_ID} from {marks})"
        )
    return views


def _read(path: Path, *, folders: bool = False) -> str:
    """Reads a file, or all files in the folders of a folder."""
    pattern = glob.escape(str(path)) + ("/*/*.parquet" if folders else "")
    return "read_parquet('" + pattern.replace("'", "''") + "')"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
