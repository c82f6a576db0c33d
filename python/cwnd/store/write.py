"""Writing of results, atomically; users' files in a replaced result stay."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from cwnd.errors import CwndError, DamageError, InputError, explain
from cwnd.files import PARTIAL, SUMS, Sums, atomic_directory, checksums, read_object
from cwnd.results import FORMAT, RUN
from cwnd.store.layout import (
    ACTIVITY,
    CELL_ID,
    CELLS,
    DATASET,
    ERRORS,
    JOURNAL,
    LOCK,
    MANIFEST,
    PCAP,
    PLOTS,
    QLOG,
    RESOLVED,
    ROWS,
    RRUL_FILES,
    SAMPLES,
    SCENARIO,
    SUMMARY,
    SUMS_KEY,
    TABLES,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

    from cwnd.results import Data

#: Other files that cwnd writes into a result: figures of each kind, and the page of `cwnd report`.
_FIGURE = re.compile(
    rf"{PLOTS}/(timeseries|windows|qdelay|delay|responses|graph|sweep(-[^/]*)?)\.(svg|png)"
)
_REPORT, _GENERATOR = "report.html", b'<meta name="generator" content="cwnd">'
#: Bytes at the start of a page that contain the name of its generator.
_HEAD = 4096
#: Files of results that have no list of files.
_KNOWN = {SCENARIO, SUMMARY, MANIFEST, *(f"{name}.parquet" for name in TABLES)}
_KNOWN_FILES = re.compile(rf"{CELLS}/[^/]*\.toml|{PCAP}/[^/]*/[^/]*\.pcapng")
_FOLDERS = {CELLS, PLOTS, PCAP, QLOG, JOURNAL, ERRORS}
#: Additional files of an incomplete sweep.
_UNFINISHED = re.compile(
    rf"{DATASET}|plan\.(parquet|toml)|{JOURNAL}/.*|{ERRORS}/[0-9a-f]+\.(json|toml)"
    rf"|{ACTIVITY}/partial-.*"
)
#: Suffixes of files that people may edit, and the suffix under which an edited one is kept.
_TEXT = (".csv", ".toml")
EDITED = ".edited"


def keep(old: Path, new: Path) -> None:
    """Adds files of users and edited files from an old result to a new one.

    Files are linked, or copied if the file system has no links. A program that writes a linked file
    continues to write it, and both results have it until the old one is removed.
    """
    try:
        listed = Sums.at(old).of
    except DamageError:
        listed = None
    edited = []
    for name in _files(old):
        file = old / name
        if not _is_written_by_cwnd(name, file, listed):
            _add(file, new, name)
        elif listed is not None and name.endswith(_TEXT) and _is_edited(file, listed.get(name)):
            edited.append(name)
    # Files edited earlier have been added with their own name by now.
    for name in edited:
        _add(old / name, new, f"{name}{EDITED}")


def _files(root: Path) -> Iterator[str]:
    """Yields relative paths of files, links, empty folders and special files."""
    for directory, folders, files in os.walk(root):
        folder = Path(directory)
        links = [name for name in folders if (folder / name).is_symlink()]
        empty = [] if folder == root or folders or files else [""]
        for name in (*files, *links, *empty):
            yield (folder / name).relative_to(root).as_posix()


def _is_written_by_cwnd(name: str, file: Path, listed: Mapping[str, str] | None) -> bool:
    if PARTIAL.fullmatch(file.name):
        return True
    if file.is_symlink() or not file.is_file():
        return name in _FOLDERS and not file.is_symlink()
    if (
        name in {SUMS, MANIFEST, *RRUL_FILES}
        or _FIGURE.fullmatch(name)
        or _UNFINISHED.fullmatch(name)
    ):
        return True
    if name == _REPORT:
        with file.open("rb") as opened:
            return _GENERATOR in opened.read(_HEAD)
    if listed is not None:
        return name in listed
    return name in _KNOWN or _KNOWN_FILES.fullmatch(name) is not None


def _is_edited(file: Path, expected: str | None) -> bool:
    return expected is not None and checksums.sha256(file.read_bytes()) != expected


def _add(file: Path, new: Path, name: str) -> None:
    """Links a file into the new result, under another name if its name is taken."""
    destination, number = new / name, 1
    while os.path.lexists(destination):
        if _is_same(file, destination):
            return
        number += 1
        destination = new / f"{name}-{number}"
    missing = [
        parent for parent in destination.parents if new in parent.parents and not parent.exists()
    ]
    for parent in reversed(missing):
        parent.mkdir()
        above = len(destination.relative_to(parent).parts) - 1
        shutil.copystat(file.parents[above], parent)
    if file.is_dir() and not file.is_symlink():
        destination.mkdir()
        return
    try:
        os.link(file, destination, follow_symlinks=False)
    except OSError:  # this file system has no links
        shutil.copy2(file, destination, follow_symlinks=False)


def _is_same(file: Path, destination: Path) -> bool:
    """`True` if a file is already there, as a link or as a copy of equal size and time."""
    if file.is_dir() and not file.is_symlink():
        return destination.is_dir()
    one, other = file.lstat(), destination.lstat()
    same = (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    return same or os.path.samestat(one, other)


#: Number of resolved scenarios in memory at a time, and in a row group of their file.
TEXTS = 8192


def save(run: Data, directory: str | os.PathLike[str], *, pcap: Path | None = None) -> Path:
    """Writes a result, which replaces an existing one once it is complete.

    Files of users stay (`keep`). Figures are drawn later, by `cwnd.plots`, so that
    a failing figure does not cost the result. `pcap` is a directory of capture files beside it,
    which moves into the result.

    Raises:
        InputError: The directory holds something else.
        CwndError: The write failed.
    """
    target = Path(directory)
    try:
        recorded = {} if pcap is None else {PCAP: pcap}
        replace_result(run, target, check=check_target, recorded=recorded)
    except OSError as error:
        raise CwndError(f"the result could not be written: {explain(error)}") from error
    return target


def replace_result(
    run: Data,
    target: Path,
    *,
    check: Callable[[Path], None] = lambda _: None,
    recorded: Mapping[str, Path] | None = None,
) -> None:
    """Replaces the contents of a directory by a result in one step.

    Args:
        run: The result.
        target: Its directory.
        check: Raises an error if the target must not be replaced.
        recorded: Directories of files that runs wrote, beside it. Each moves into the result under
            its name there.

    Raises:
        OSError: The write failed; the old contents are unchanged.
    """
    with atomic_directory(target, check=check, keep=keep) as directory:
        for name, files in (recorded or {}).items():
            if files.exists():
                files.rename(directory / name)
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
    """Writes tables, summary, manifest and scenario, and last the hashes of all files.

    The directory holds at most captures, which are hashed as well.
    """
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

    from cwnd.store.layout import cell_id, content

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
