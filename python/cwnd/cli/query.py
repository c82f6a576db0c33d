"""Command `cwnd query`: SQL over a result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import CwndError, InputError, explain

if TYPE_CHECKING:
    import polars as pl


def query(
    directory: Path,
    sql: str,
    /,
    *,
    csv: Annotated[bool, Parameter(negative=())] = False,
    parquet: Annotated[Path | None, Parameter(negative=())] = None,
    unsafe: Annotated[bool, Parameter(negative=())] = False,
    json: output.Json = False,
) -> int:
    """Ask a result with SQL.

    The views of a run or sweep are runs, flows, links, reasons, series, link_series, qdelay,
    requests, sketches and unrecorded. Each row has the axes of the sweep as columns: labels as
    text, values as numbers in SI units. "describe flows" shows the columns of a view. Views of
    other results are their tables. A statement reads nothing but the result, and takes at most half
    of the machine's memory, unless --unsafe is given.

    Args:
        directory: Result directory of any command of cwnd.
        sql: One statement in DuckDB's SQL, as in "select rtt, avg(goodput_bit_s) from flows group
            by rtt".
        csv: Comma-separated values on stdout.
        parquet: Write the answer to this file.
        unsafe: Allow everything that DuckDB can do: several statements, other files, databases and
            extensions.
        json: Machine-readable output.
    """
    import polars as pl

    from cwnd.store import sql as engine

    if csv + json + (parquet is not None) > 1:
        raise InputError("one form of output at a time: --csv, --json or --parquet FILE")
    if parquet is not None:
        try:
            engine.write_parquet(directory, sql, parquet, unsafe=unsafe)
        except OSError as error:
            raise CwndError(explain(error)) from error
        output.line(str(parquet))
        return 0
    answer = engine.query(directory, sql, unsafe=unsafe)
    if json:
        output.document({"columns": answer.columns, "rows": answer.rows()})
    elif csv:
        for name, kind in answer.schema.items():
            if kind.is_nested() or kind == pl.Binary:
                raise InputError(f"the column `{name}` is a list or bytes: --json can hold it")
        sys.stdout.write(answer.write_csv())
    else:
        _show(answer)
    return 0


def _show(answer: pl.DataFrame) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name, kind in answer.schema.items():
        table.add_column(name, justify="right" if kind.is_numeric() else "left")
    for row in answer.iter_rows():
        table.add_row(*(_text(value) for value in row))
    output.show(table)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace("[", "\\[")
