"""Writing of results, atomically."""

from __future__ import annotations

import io
import json
import os
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from cwnd.errors import CwndError, InputError, explain
from cwnd.files import atomic_directory, checksums, read_object
from cwnd.results import FORMAT, RUN
from cwnd.store.layout import (
    ACTIVITY,
    CELL_ID,
    DATASET,
    LOCK,
    MANIFEST,
    PCAP,
    RESOLVED,
    ROWS,
    SAMPLES,
    SCENARIO,
    SUMMARY,
    SUMS_KEY,
    TABLES,
)
from cwnd.store.user_files import keep

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from cwnd.results import Data

#: Number of resolved scenarios in memory at a time, and in a row group of their file.
TEXTS = 8192


def save(run: Data, directory: str | os.PathLike[str], *, pcap: Path | None = None) -> Path:
    """Writes a result, which replaces an existing one once it is complete.

    Files of users stay (`cwnd.store.user_files`). Figures are drawn later, by `cwnd.plots`, so that
    a failing figure does not cost the result. `pcap` is a directory of capture files beside it,
    which moves into the result.

    Raises:
        InputError: The directory holds something else.
        CwndError: The write failed.
    """
    target = Path(directory)
    try:
        replace_result(run, target, check=check_target, pcap=pcap)
    except OSError as error:
        raise CwndError(f"the result could not be written: {explain(error)}") from error
    return target


def replace_result(
    run: Data,
    target: Path,
    *,
    check: Callable[[Path], None] = lambda _: None,
    pcap: Path | None = None,
) -> None:
    """Replaces the contents of a directory by a result in one step.

    Args:
        run: The result.
        target: Its directory.
        check: Raises an error if the target must not be replaced.
        pcap: Directory of capture files beside it, which moves into the result.

    Raises:
        OSError: The write failed; the old contents are unchanged.
    """
    with atomic_directory(target, check=check, keep=keep) as directory:
        if pcap is not None and pcap.exists():
            pcap.rename(directory / PCAP)
        write_into(run, directory)


def check_target(directory: Path) -> None:
    """Refuses to replace anything but an empty directory or a complete result of `cwnd run`.

    Raises:
        InputError: There is something else.
    """
    if not directory.exists():
        if directory.is_symlink():
            raise InputError(f"{directory}: a symbolic link that leads nowhere; remove it first")
        return
    if not directory.is_dir():
        raise InputError(f"{directory}: a file is in the way; give another directory with -o")
    if not any(directory.iterdir()):
        return
    if (directory / DATASET).exists():
        raise InputError(
            f"{directory}: holds a sweep that is not complete, so it is not replaced; `cwnd run`"
            " goes on with it, and -o puts this result elsewhere"
        )
    check_kind(directory)


def check_kind(directory: Path) -> None:
    """Refuses a directory with files of others, or the result of another command.

    Raises:
        InputError: The directory is such a one.
    """
    manifest = stored_manifest(directory)
    kind = manifest.get("kind", RUN)
    if kind != RUN:
        raise InputError(
            f"{directory}: holds a result of `cwnd {kind}`, which is not replaced; give another"
            " directory with -o"
        )
    if is_sweep(directory) and not manifest:
        return
    # A directory with a list of files is a result even if its manifest is damaged.
    if not checksums.is_listed(directory) and manifest.get("format") != FORMAT:
        raise InputError(
            f"{directory}: holds other files and is not a cwnd result, so it is not replaced;"
            " give another directory with -o"
        )


def is_sweep(directory: Path) -> bool:
    """`True` if a directory holds a sweep that `cwnd run` writes or wrote."""
    return (directory / DATASET).exists() or (directory / ACTIVITY / LOCK).is_file()


def remedy_of_sweep(directory: Path) -> str:
    """Formats the remedy for a damaged sweep."""
    return (
        f"run its scenario again; or `cwnd verify --mend {directory}` takes damaged tables out, and"
        " `cwnd run` computes their cells"
    )


def stored_manifest(directory: Path) -> dict[str, Any]:
    """Reads the manifest of a directory; empty if there is none, or a damaged one."""
    try:
        return read_object((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_into(run: Data, directory: Path) -> None:
    """Writes the files of a result into an empty directory."""
    # Callers that only check a target then do not import data frames.
    from cwnd.results import summary

    known = {}

    def put(name: str, text: str) -> None:
        data = text.encode()
        known[name] = checksums.sha256(data)
        (directory / name).write_bytes(data)

    put(SCENARIO, run.source)
    for name in ROWS:
        frame: pl.DataFrame = getattr(run, name)
        table = _with_cells(run) if name == "runs" else frame.lazy()
        write_table(table, directory / f"{name}.parquet", _table_metadata(run, name))
    for name in SAMPLES:
        write_table(run.samples[name], directory / f"{name}.parquet", _table_metadata(run, name))
    put(SUMMARY, summary(run).write_csv())
    # The manifest names the list of files, so that a reader notices its loss.
    tables = dict(zip(TABLES, _rows(directory), strict=True))
    manifest = {**run.manifest.to_json(), "tables": tables, SUMS_KEY: checksums.SUMS}
    put(MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    checksums.write(directory, known)


def _with_cells(run: Data) -> pl.LazyFrame:
    """Adds identifier and resolved scenario of each cell to the table of runs.

    Scenarios are about 3.5 kB long each; they are computed in parts, so that not all are in memory.
    """
    import polars as pl

    from cwnd.store.cell import cell_id, content

    types = {CELL_ID: pl.String, RESOLVED: pl.String}
    engine = run.manifest.engine

    def part(first: int) -> pl.DataFrame:
        texts = run.resolved[first : first + TEXTS]
        # Results of version 1 do not record their engine.
        names = [cell_id(content(text), engine) if engine else None for text in texts]
        cells = pl.DataFrame({CELL_ID: names, RESOLVED: texts}, schema=types)
        return pl.concat([run.runs[first : first + TEXTS], cells], how="horizontal")

    schema = pl.Schema([*run.runs.schema.items(), *types.items()])
    parts = [
        pl.defer(partial(part, first), schema=schema) for first in range(0, run.runs.height, TEXTS)
    ]
    return pl.concat(parts)


def _rows(directory: Path) -> list[int]:
    """Number of rows of each table, read from its file."""
    import polars as pl

    files = [pl.scan_parquet(directory / f"{name}.parquet", glob=False) for name in TABLES]
    counts = pl.collect_all([file.select(pl.len()) for file in files])
    return [int(count.item()) for count in counts]


def _table_metadata(run: Data, table: str) -> dict[str, str] | None:
    """Metadata of a table in which some flows or requests have no row; `None` for others."""
    from cwnd.results import row_counts, rows_metadata

    found = row_counts(run, table)
    return None if found is None else rows_metadata(*found)


class _Output(io.BufferedIOBase):
    """A file that stores its write error, because the Parquet writer hides it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise


def write_table(table: pl.LazyFrame, file: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes a table as Parquet.

    Raises:
        OSError: The write failed.
    """
    import polars as pl

    with file.open("wb") as out:
        output = _Output(out)
        try:
            table.sink_parquet(
                cast("IO[bytes]", output),
                compression="zstd",
                metadata=metadata,
                row_group_size=TEXTS if RESOLVED in table.collect_schema() else None,
            )
        except pl.exceptions.PolarsError as error:
            if output.error is None:
                raise
            # A full disk is an error of the system and not one of the format.
            number = output.error.errno or 0
            raise OSError(number, os.strerror(number), str(file)) from error
