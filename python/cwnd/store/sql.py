"""SQL over a result: its tables as views, each row with the parameters of its run."""

from __future__ import annotations

import glob
import json
import os
import warnings
from collections import Counter
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from cwnd.errors import CwndWarning, InputError
from cwnd.store import read, write
from cwnd.store.dataset import CELL, CELL_SHA, PLAN, Dataset, is_packed
from cwnd.store.layout import CELL_ID, ROWS, RUNS, TABLES
from cwnd.store.manifest import ACTIVITY_COLUMN
from cwnd.store.old_files import FILES, cells_in
from cwnd.store.old_reading import Tables
from cwnd.store.reading import load

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from cwnd.files import Sums
    from cwnd.results import Axis, Header

_T = TypeVar("_T")
_TICK_S = 0.05
#: Time in seconds for which the end of an interrupted statement is awaited.
_STOPS_WITHIN_S = 0.3


def query(directory: str | os.PathLike[str], sql: str, *, unsafe: bool = False) -> pl.DataFrame:
    """Runs a SQL statement on a result.

    The views of a run or sweep are `runs`, `flows`, `links`, `reasons`, `series`, `link_series`,
    `qdelay`, `delays`, `requests`, `sketches` and `unrecorded`; each row has the axes of the sweep
    as columns, with their labels as text and, if they are numbers, their values in SI base units.
    Results of older versions have no `reasons` or no `delays`. Views of other results are the
    tables that their manifest names.

    The statement reads nothing but the result and takes at most half of the machine's memory,
    unless it is `unsafe`. `KeyboardInterrupt` stops it.

    Args:
        directory: Directory of the result.
        sql: One statement in DuckDB's SQL that only reads, such as `"select rtt, avg(goodput_bit_s)
            from flows group by rtt"`.
        unsafe: `True` allows everything that DuckDB can do: reading and writing other files,
            loading extensions, several statements.

    Raises:
        InputError: The statement does more than read, DuckDB refuses it, its answer is no table
            that a data frame can hold, or there is no result or no finished run.
        DamageError: A file is missing or damaged.
    """
    with _views(Path(directory), sql, unsafe=unsafe) as connection:
        # Polars blocks Ctrl-C while it works, so it receives the complete answer only.
        return _run(connection, lambda: pl.DataFrame(_relation(connection, sql).execute()))


def write_parquet(
    directory: str | os.PathLike[str], sql: str, file: Path, *, unsafe: bool = False
) -> None:
    """Writes the answer of a statement as Parquet; it may be larger than memory."""
    with _views(Path(directory), sql, writes=file, unsafe=unsafe) as connection:
        _run(connection, lambda: _relation(connection, sql).write_parquet(str(file)))


def _relation(connection: DuckDBPyConnection, sql: str) -> DuckDBPyRelation:
    relation = connection.sql(sql)
    if relation is None:
        raise InputError("the statement gives no table; it should be a select")
    twice = [name for name, count in Counter(relation.columns).items() if count > 1]
    if twice:
        raise InputError(f"two columns are called `{twice[0]}`: name one of them by `as`")
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if any(word in str(kind) for word in ("INTERVAL", "UNION")):
            raise InputError(
                f"the column `{name}` is of the type {str(kind).lower()}, which no frame has:"
                f" write it as text, as in {_name(name)}::varchar"
            )
    return relation


def _run(connection: DuckDBPyConnection, work: Callable[[], _T]) -> _T:
    """Runs DuckDB's work in another thread: in the main thread it would intercept signals."""
    done: Future[_T] = Future()

    def run() -> None:
        try:
            with _translate_errors():
                done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        # Polars' handler of SIGINT (SA_RESTART) would resume a wait without a timeout.
        while not wait([done], timeout=_TICK_S).done:
            pass
        return done.result()
    except KeyboardInterrupt:
        connection.interrupt()
        thread.join(_STOPS_WITHIN_S)
        raise


@contextmanager
def _views(
    path: Path, sql: str, *, writes: Path | None = None, unsafe: bool
) -> Iterator[DuckDBPyConnection]:
    import duckdb

    with TemporaryDirectory(prefix="cwnd-query-") as scratch:
        connection = duckdb.connect(":memory:", config={"temp_directory": scratch})
        place = Path(scratch) / "result"
        try:
            if not unsafe:
                # Access is restricted before the statement is parsed: parsing `import database`
                # reads files.
                _run(
                    connection, lambda: _confine(connection, (path, path.resolve(), place), writes)
                )
                _run(connection, lambda: _must_be_select(connection, sql))
            if not Dataset.is_at(path) or is_packed(path):
                header, files = read.header(path)
                tables = read.tables_of(header)
                requested = _run(connection, lambda: _views_read(connection, sql, tables))
                axes, views = header.axes, _of_result(header, files, requested)
            else:
                dataset = Dataset.open(path)
                known = FILES if dataset.is_old else TABLES
                requested = _run(connection, lambda: _views_read(connection, sql, known))
                if dataset.is_old:
                    axes, views = _of_sweep(connection, dataset, requested)
                else:
                    place.mkdir()
                    axes, views = _of_journal(path, place, requested)
            orders = [f"create view {name} as {select}" for name, select in views.items()]
            _run(connection, lambda: connection.execute(";".join(orders)))
            if any(axis.column != axis.name for axis in axes):
                existing = {column for name in views for column in _columns(connection, name)}
                named = _run(connection, lambda: _columns_named(connection, sql))
                _warn_of_renamed(axes, existing, named)
            yield connection
        finally:
            connection.close()


def _must_be_select(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuses anything but a single statement that only reads.

    Raises:
        InputError: The statement is another one.
    """
    import duckdb

    if _imports(sql):
        raise InputError("`import` reads files that are no result's; or ask with --unsafe")
    found = [statement.type for statement in connection.extract_statements(sql)]
    if found == [duckdb.StatementType.SELECT]:
        return
    more = "; or ask with --unsafe"
    if found == [duckdb.StatementType.CREATE, duckdb.StatementType.SELECT]:
        raise InputError(
            "`pivot` is a single statement only with the values of its columns, as in"
            f" `pivot runs on seed in (1, 2) using count(*)`: name them{more}"
        )
    names = ", ".join(kind.name.lower() for kind in found) or "nothing"
    raise InputError(
        "the statement must be one that reads, such as select, describe or summarize, and is:"
        f" {names}{more}"
    )


def _imports(sql: str) -> bool:
    """`True` if a statement begins with `import`: `import database` runs files when parsed."""
    import duckdb

    text, begins = sql.encode(), True
    for offset, kind in duckdb.tokenize(sql):
        if kind == duckdb.token_type.comment:
            continue
        if begins and text[offset : offset + len(b"import")].lower() == b"import":
            return True
        begins = text[offset : offset + 1] == b";"
    return False


def _confine(
    connection: DuckDBPyConnection, directories: Iterable[Path], writes: Path | None
) -> None:
    """Restricts DuckDB to the files of the result, and the file of the answer."""
    settings: dict[str, bool | str | list[str]] = {
        # Paths in views are patterns, and DuckDB checks their text before it expands them.
        "allowed_directories": [
            text for at in directories for text in (str(at), glob.escape(str(at)))
        ],
        # DuckDB replaces an existing file by way of a file of this name.
        "allowed_paths": [str(writes), str(writes.with_name(f"tmp_{writes.name}"))]
        if writes is not None
        else [],
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "memory_limit": f"{memory_limit_bytes()} B",
        "enable_external_access": False,
        # Last, as it forbids any further setting.
        "lock_configuration": True,
    }
    for name, value in settings.items():
        connection.execute(f"set {name} = {_literal(value)}")


def memory_limit_bytes() -> int:
    """Memory limit of a statement in bytes: half of the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _literal(value: bool | str | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_literal(each) for each in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'"


@contextmanager
def _translate_errors() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise InputError(f"SQL: {str(error).strip()}") from error


def _views_read(connection: DuckDBPyConnection, sql: str, tables: Collection[str]) -> set[str]:
    """Views that a statement reads; only their files are compared with hashes."""
    import duckdb

    try:
        names = {name.strip('"').lower() for name in connection.get_table_names(sql)}
    except duckdb.Error:  # no select: `describe flows`, or nonsense
        return set(tables)
    return names & set(tables) or set(tables)


def _columns_named(connection: DuckDBPyConnection, sql: str) -> set[str]:
    """Columns that a select names, by DuckDB's parser; empty for other statements."""
    (text,) = connection.execute("select json_serialize_sql(?)", [sql]).fetchone() or ("{}",)
    names: set[str] = set()

    def collect(node: dict[str, Any]) -> dict[str, Any]:
        if node.get("class") == "COLUMN_REF":
            names.add(node["column_names"][-1])
        return node

    json.loads(text, object_hook=collect)
    return names


def _warn_of_renamed(axes: list[Axis], existing: set[str], named: set[str]) -> None:
    """Warns of columns in a statement that are an axis's name, and no column of its views.

    Args:
        axes: Axes of the result.
        existing: The columns of the views that the statement reads.
        named: The columns that the statement names.
    """
    for axis in axes:
        if axis.name in named - existing and axis.column not in named | {axis.name}:
            warnings.warn(
                f"the axis `{axis.name}` is the column `{axis.column}`, if you mean that: its own"
                " name is that of a column or table",
                CwndWarning,
                stacklevel=2,
            )


def _of_result(header: Header, files: Sums, requested: set[str]) -> dict[str, str]:
    tables = {name: _read([files.file(f"{name}.parquet")]) for name in requested}
    own = ", ".join(map(_literal, ["", *read.columns_of_file(header)]))
    columns = dict.fromkeys(tables, "*") | {RUNS: f"columns(c -> c not in ({own}))"}
    return {
        name: f"select {columns[name]} from {table}"  # noqa: S608
        for name, table in tables.items()
    }


def _of_journal(
    path: Path, directory: Path, requested: set[str]
) -> tuple[list[Axis], dict[str, str]]:
    """Writes the tables that a statement reads from a journal to files in the order of the plan."""
    run = load(path)
    files = {name: directory / f"{name}.parquet" for name in requested}
    for name, file in files.items():
        table = getattr(run, name).lazy() if name in ROWS else run.samples[name]
        write.write_table(table, file)
    views = {
        name: f"select * from {_read([file])}"  # noqa: S608 - no one else's words
        for name, file in files.items()
    }
    return run.axes, views


def _of_sweep(
    connection: DuckDBPyConnection, dataset: Dataset, requested: set[str]
) -> tuple[list[Axis], dict[str, str]]:
    plan = dataset.plan()
    finished = plan.filter(pl.col(CELL_ID).is_in(dataset.done()))
    tables = Tables(dataset, finished)
    cells = finished[CELL_ID].unique(maintain_order=True).to_list()
    # A mark belongs to its cell only if the records beside it match their hashes.
    for name in {RUNS, _SMALLEST_TABLE, *requested}:
        tables.hashes.check(name, cells)
    keys = [f"p.{_name(old)} as {_name(new)}" for new, old in tables.keys.items()]
    planned = _read([dataset.path / PLAN])
    marks = _cells(dataset, RUNS, cells)
    views = {}
    for name in requested:
        # Marks may have counters that others lack.
        columns = _columns(connection, marks) if name == RUNS else None
        own = [_data_column(column) for column in tables.data_columns(name, columns)]
        if name == RUNS:
            own = [f"p.{CELL}", f"p.{CELL_SHA}", *own]
        views[name] = (
            f"select {', '.join([*keys, *own])}"  # noqa: S608 - no one else's words
            f" from {_cells(dataset, name, cells)} t"
            f" join {planned} p on p.{CELL_ID} = t.{CELL_ID}"
            # Records without a mark are of a killed writer, and of no finished cell.
            f" where t.{CELL_ID} in (select {CELL_ID} from {marks})"
        )
    return tables.axes, views


#: Smallest table of a cell.
_SMALLEST_TABLE = "links"


def _cells(dataset: Dataset, name: str, cells: list[str]) -> str:
    """Formats the SQL expression that reads a table of these cells, and of no incomplete one."""
    options = ", union_by_name = true" if name == RUNS else ""
    if set(cells_in(dataset.path, name)) == set(cells):
        return _read([dataset.path / name], "/*/*.parquet", options)
    return _read([dataset.file(name, cell) for cell in cells], options=options)


def _columns(connection: DuckDBPyConnection, table: str) -> list[str]:
    order = f"describe select * from {table}"  # noqa: S608
    return _run(connection, lambda: [str(row[0]) for row in connection.execute(order).fetchall()])


def _read(files: list[Path], pattern: str = "", options: str = "") -> str:
    """Formats the SQL expression that reads files, or the matches of a pattern in folders."""
    names = (glob.escape(str(file)).replace("'", "''") + pattern for file in files)
    files_of = ", ".join(f"'{name}'" for name in names)
    return f"read_parquet([{files_of}]{options})"


def _data_column(column: str) -> str:
    """Formats a column of a cell's table; counters that a mark lacks are zero."""
    if column.startswith(ACTIVITY_COLUMN):
        return f"coalesce(t.{_name(column)}, 0) as {_name(column)}"
    return f"t.{_name(column)}"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
