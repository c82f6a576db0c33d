"""Results on disk: a directory that is complete, or not there."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from cwnd.atomic import atomic_directory
from cwnd.errors import CwndError, InputError, explain
from cwnd.manifest import FORMAT, Manifest

if TYPE_CHECKING:
    import polars as pl

    from cwnd.results import Run

MANIFEST = "manifest.json"
SCENARIO = "scenario.toml"
CELLS = "cells"
PLOTS = "plots"
PCAP = "pcap"
SUMMARY = "summary.csv"
#: What a sweep has instead of a manifest.
DATASET = "dataset.json"
#: Tables with a row for each run, flow or link.
ROWS = ("runs", "flows", "links")
#: Tables that grow with time.
SAMPLES = ("series", "link_series", "qdelay")
#: The data frames of a result, each in a Parquet file of its name.
TABLES = (*ROWS, *SAMPLES)


def save(
    run: Run,
    directory: str | os.PathLike[str],
    *,
    pcap: Path | None = None,
) -> Path:
    """Writes a result; one that is there is replaced when the new one is complete.

    Figures come after it (`cwnd.drawing`): a result is not lost to one that fails. `pcap` is a
    directory of capture files beside it, which moves into the result.
    """
    target = Path(directory)
    try:
        with atomic_directory(target, check=check_target) as place:
            _write(run, place)
            if pcap is not None:
                pcap.rename(place / PCAP)
    except OSError as error:
        raise CwndError(f"the result could not be written: {explain(error)}") from error
    return target


class Spool:
    """Where tables that do not fit in memory wait, in parts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "parts"
        self._counts = dict.fromkeys(TABLES, 0)

    def put(self, name: str, part: pl.DataFrame) -> pl.LazyFrame:
        """Writes the next part of a table; returns it as it will be read."""
        import polars as pl

        self._directory.mkdir(exist_ok=True)
        file = self._directory / f"{name}-{self._counts[name]:06d}.parquet"
        self._counts[name] += 1
        _write_table(part.lazy(), file)
        return pl.scan_parquet(file, glob=False)


def load(directory: str | os.PathLike[str], *, samples_on_disk: bool = False) -> Run:
    """Reads a result of `cwnd run` or `cwnd sweep`; `InputError` if it is none, or damaged.

    `samples_on_disk` leaves the samples where they are until they are asked for: it takes less
    memory, but the files must stay what they are.
    """
    from cwnd.results import Run

    path = Path(directory)
    if (path / DATASET).exists():
        from cwnd.dataset import load as dataset

        return dataset.load(path)
    try:
        manifest = read_manifest(path)
        source = (path / SCENARIO).read_text(encoding="utf-8")
        tables = {name: _read_table(path / f"{name}.parquet", lazy=False) for name in ROWS}
        samples = {
            name: _read_table(path / f"{name}.parquet", lazy=samples_on_disk) for name in SAMPLES
        }
        resolved = [
            (path / CELLS / f"{run_id}.toml").read_text(encoding="utf-8")
            for run_id in tables["runs"].collect()["run_id"]
        ]
    except OSError as error:
        raise InputError(f"{explain(error)}; {path} is not a complete cwnd result") from error
    return Run(
        manifest=manifest,
        source=source,
        resolved=resolved,
        samples=samples,
        runs=tables["runs"].collect(),
        flows=tables["flows"].collect(),
        links=tables["links"].collect(),
    )


def read_manifest(path: Path) -> Manifest:
    """Reads the manifest of a result."""
    if not path.exists():
        raise InputError(f"{path}: there is no such directory; `cwnd run` makes one")
    if not path.is_dir():
        raise InputError(f"{path}: not a directory; give the directory that `cwnd run` wrote")
    file = path / MANIFEST
    if not file.exists():
        raise InputError(f"{path}: not a cwnd result (it has no {MANIFEST})")
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file}: damaged manifest ({error})") from error
    return Manifest.from_json(data, str(file))


def check_target(directory: Path) -> None:
    """Refuses to replace what is not a result of cwnd."""
    if not directory.exists():
        if directory.is_symlink():
            raise InputError(f"{directory}: a symbolic link that leads nowhere; remove it first")
        return
    if not directory.is_dir():
        raise InputError(f"{directory}: a file is in the way; give another directory with -o")
    if not any(directory.iterdir()):
        return
    try:
        data = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(
            f"{directory}: holds other files and is not a cwnd result, so it is not replaced;"
            " give another directory with -o"
        )


def _write(run: Run, place: Path) -> None:
    (place / SCENARIO).write_text(run.source, encoding="utf-8")
    (place / CELLS).mkdir()
    for run_id, resolved in zip(run.runs["run_id"], run.resolved, strict=True):
        (place / CELLS / f"{run_id}.toml").write_text(resolved, encoding="utf-8")
    for name in ROWS:
        frame: pl.DataFrame = getattr(run, name)
        _write_table(frame.lazy(), place / f"{name}.parquet")
    for name in SAMPLES:
        _write_table(run.samples[name], place / f"{name}.parquet")
    run.summary().write_csv(place / SUMMARY)
    (place / MANIFEST).write_text(
        json.dumps(run.manifest.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


class _Output(io.BufferedIOBase):
    """A file that remembers why it could not be written: the format's writer hides it."""

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


def _write_table(table: pl.LazyFrame, file: Path) -> None:
    import polars as pl

    with file.open("wb") as out:
        output = _Output(out)
        try:
            table.sink_parquet(cast("IO[bytes]", output), compression="zstd")
        except pl.exceptions.PolarsError as error:
            if output.error is None:
                raise
            # A full disk is an error of the system and not one of the format.
            number = output.error.errno or 0
            raise OSError(number, os.strerror(number), str(file)) from error


def _read_table(file: Path, *, lazy: bool) -> pl.LazyFrame:
    import polars as pl

    if not file.is_file():
        raise InputError(f"{file}: missing; the result is not complete, run it again")
    try:
        table = pl.scan_parquet(file, glob=False)
        if lazy:
            table.collect_schema()
            return table
        return table.collect().lazy()
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{file}: unreadable ({reason}); the result is damaged, run it again"
        ) from error
