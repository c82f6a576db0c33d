"""Reading of results; every file is compared with its hash."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError, UncheckedWarning
from cwnd.files import SUMS, Sums, read_object
from cwnd.results import (
    AGREE,
    FORMAT,
    INFER,
    LINK,
    RUN,
    Header,
    LazyTables,
    Manifest,
    Resolved,
    Run,
)
from cwnd.store.layout import (
    AGREEMENT,
    CELL_ID,
    CELLS,
    INFERRED,
    LATER,
    LINKED,
    MANIFEST,
    REASONS,
    RESOLVED,
    ROWS,
    SAMPLES,
    SCENARIO,
    SUMS_KEY,
    TABLES,
)
from cwnd.store.write import TEXTS, is_sweep, remedy_of_sweep

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import polars as pl

#: Results without checksums for which a warning was printed.
_warned: set[Path] = set()


def load(directory: str | os.PathLike[str], *, samples_on_disk: bool = False) -> Run:
    """Reads a complete result of `cwnd run`.

    Every file is compared with its checksum when it is read. A result older than checksums causes
    an `UncheckedWarning`.

    `samples_on_disk` leaves the samples on disk until they are requested. It takes less memory, but
    the files must not change.

    Raises:
        InputError: There is no result of `cwnd run`.
        DamageError: A file is missing or damaged.
    """
    path = Path(directory)
    manifest, files = opened(path)
    own = columns_of_file(manifest)
    tables = {
        name: _collected(_scan(files, name).drop(own, strict=False), files.file(f"{name}.parquet"))
        for name in ROWS
    }
    absent = [name for name in LATER if f"{name}.parquet" not in (files.of or ())]

    def scan(name: str) -> pl.LazyFrame:
        return later_table(name, _scan(files, "links")) if name in absent else _scan(files, name)

    samples: Mapping[str, pl.LazyFrame] = LazyTables(SAMPLES, scan)
    if not samples_on_disk:
        samples = {
            name: _collected(scan(name), path / f"{name}.parquet").lazy() for name in SAMPLES
        }
    return Run(
        manifest=manifest,
        source=files.text(SCENARIO),
        resolved=_resolved(files, tables["runs"], own),
        samples=samples,
        runs=tables["runs"],
        flows=tables["flows"],
        links=tables["links"],
    )


def read_lazily(run: Run, path: Path) -> None:
    """Makes a run read its samples and scenarios from the directory that it was written to."""
    manifest, files = opened(path)
    run.samples = LazyTables(SAMPLES, lambda name: _scan(files, name))
    run.resolved = _resolved(files, run.runs, columns_of_file(manifest))


def require_directory(path: Path) -> None:
    """Checks that a path is a directory.

    Raises:
        InputError: It is none, or does not exist.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such directory; `cwnd run` makes one")
    if not path.is_dir():
        raise InputError(f"{path}: not a directory; give the directory that `cwnd run` wrote")


def opened(path: Path) -> tuple[Manifest, Sums]:
    """Opens a result of `cwnd run`: its manifest, and its files with their hashes.

    Raises:
        InputError: There is no result, or one of another command or of a newer version.
        DamageError: The manifest or the list of hashes is damaged or missing.
    """
    data, files = _opened(path)
    kind = data.get("kind", RUN)
    if kind != RUN:
        raise InputError(
            f"{path}: a result of `cwnd {kind}`, which has no runs; `cwnd report`, `cwnd plot`,"
            " `cwnd compare`, `cwnd query` and `cwnd verify` take it"
        )
    return Manifest.from_json(data, str(path / MANIFEST)), files


def header(path: Path) -> tuple[Header, Sums]:
    """Opens a result of any kind: its manifest's common part, and its files with hashes."""
    data, files = _opened(path)
    return Header.from_json(data, str(path / MANIFEST)), files


def tables_of(header: Header) -> list[str]:
    """Names of a result's tables."""
    if header.tables is None:
        return [name for name in TABLES if name not in LATER]
    return list(header.tables)


def is_result(path: Path) -> bool:
    """`True` if a directory has a manifest, a list of hashes or a document of a result."""
    known = (MANIFEST, SUMS, *_DOCUMENTS)
    return any((path / name).exists() for name in known)


#: Documents of results of version 1 without a manifest, with the kind of result of each.
_DOCUMENTS = {LINKED: LINK, INFERRED: INFER, AGREEMENT: AGREE}


def _kind_of_version_1(path: Path) -> str | None:
    return next((kind for name, kind in _DOCUMENTS.items() if (path / name).is_file()), None)


def _opened(path: Path) -> tuple[dict[str, Any], Sums]:
    require_directory(path)
    file = path / MANIFEST
    kind = _kind_of_version_1(path)
    remedy = None if kind is None else f"make it again with `cwnd {kind}`"
    if is_sweep(path):
        remedy = remedy_of_sweep(path)
    files = Sums.at(path, remedy)
    if files.of is None and not file.exists():
        if kind is None:
            raise InputError(f"{path}: not a cwnd result (it has no {MANIFEST})")
        _warn_unchecked(path)
        tables = {found.stem: 0 for found in sorted(path.glob("*.parquet"))}
        return {**_VERSION_1_MANIFEST, "kind": kind, "tables": tables}, files
    try:
        data = read_object(files.data(MANIFEST))
    except ValueError as error:
        raise InputError(f"{file}: damaged manifest ({error})") from error
    if files.of is None:
        if data.get(SUMS_KEY):
            raise files.missing_list()
        _warn_unchecked(path)
    return data, files


#: Substitute for the missing manifest of a result of version 1.
_VERSION_1_MANIFEST: dict[str, Any] = {
    "format": FORMAT,
    "format_version": 1,
    "name": "",
    "cwnd_version": "0.1.0",
    "axes": [],
}


def _warn_unchecked(path: Path) -> None:
    if path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"{path}: written before results had checksums, so nobody can tell whether its"
            " numbers are what was written; run its scenario again to have them",
            UncheckedWarning,
            stacklevel=2,
        )


def columns_of_file(manifest: Manifest | Header) -> list[str]:
    """Columns that only the file of runs has. In version 1 an axis may have such a name."""
    axes = {axis.column for axis in manifest.axes}
    return [name for name in (CELL_ID, RESOLVED) if name not in axes]


def _resolved(files: Sums, runs: pl.DataFrame, own: list[str]) -> Sequence[str]:
    """Resolved scenarios of all runs, read in blocks on request, or at once in version 1."""
    table = _scan(files, "runs")
    if RESOLVED not in own or RESOLVED not in table.collect_schema():
        return [files.text(f"{CELLS}/{run_id}.toml") for run_id in runs["run_id"]]

    @lru_cache(maxsize=1)
    def block(number: int) -> pl.Series:
        column = table.select(RESOLVED).slice(number * TEXTS, TEXTS)
        return _collected(column, files.file("runs.parquet"))[RESOLVED]

    def one(index: int) -> str:
        return str(block(index // TEXTS)[index % TEXTS])

    return Resolved(runs.height, one)


def _collected(table: pl.LazyFrame, file: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return table.collect()
    except pl.exceptions.PolarsError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> InputError:
    import polars as pl

    reason = str(error).splitlines()[0]
    return InputError(
        f"{file}: unreadable by polars {pl.__version__} ({reason}); run its scenario again"
    )


def _scan(files: Sums, name: str) -> pl.LazyFrame:
    """Scans a table of a result after comparing its file with its hash."""
    import polars as pl

    file = files.file(f"{name}.parquet")
    try:
        table = pl.scan_parquet(file, glob=False)
        table.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise _unreadable(file, error) from error
    return table


#: Columns of links with a count by reason, such as `drops_codel` and `marks_red_early`.
_COLUMN = re.compile(r"(drop|mark)s_(.+)")
_VERDICTS = {"drop": "dropped", "mark": "marked"}


def later_table(name: str, links: pl.LazyFrame) -> pl.LazyFrame:
    """Builds a table that an older result lacks.

    Args:
        name: `reasons`, which is built from columns of links, or `delays`, which has no rows.
        links: A row for each link, behind the key columns.

    Returns:
        A row for each reason that occurred; `total_packets` is null. Or no row.
    """
    import polars as pl

    columns = list(links.collect_schema())
    keys = columns[: columns.index("link") + 1] if "link" in columns else []
    if name != REASONS:
        types = {"group": pl.String, "what": pl.String, "delay_us": pl.Float64}
        own = [pl.lit(None, kind).alias(column) for column, kind in types.items()]
        packets = pl.lit(None, pl.UInt64).alias("packets")
        # The last two keys are number and name of the link.
        return links.head(0).select(*keys[:-2], *own, packets)
    found = {name: match for name in columns if (match := _COLUMN.fullmatch(name))}
    names = {name: _VERDICTS[match[1]] for name, match in found.items()}
    return (
        links.with_row_index("_row")
        .unpivot(list(found), index=["_row", *keys], variable_name="reason", value_name="packets")
        .filter(pl.col("packets") > 0)
        .sort("_row", maintain_order=True)
        .select(
            *keys,
            pl.col("reason").replace_strict(names, return_dtype=pl.String).alias("verdict"),
            pl.col("reason").str.slice(6),
            "packets",
            pl.lit(None, pl.UInt64).alias("total_packets"),
        )
    )
