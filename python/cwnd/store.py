"""Results on disk: a directory that is complete, or not there."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import io
import json
import os
import secrets
import shutil
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from cwnd.errors import CwndError, InputError, explain
from cwnd.manifest import FORMAT, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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

#: Held by the writer of a directory that is not complete yet.
_LOCK = ".writing"
#: renameat2(2): exchange two names in one step.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
#: From so many files on the whole file system is synchronised at once: one wait instead of one for
#: each file.
_MANY_FILES = 100
#: Files that are synchronised at a time.
_SYNCS = 16


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
        with atomic_directory(target) as place:
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


@contextlib.contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """A directory to fill that takes the target's place when the block ends well.

    It stands beside the target, so that renaming it is one step. When the block fails it is
    removed; when the process is killed it stays behind, hidden, and the next writer of the same
    target removes it.
    """
    # A link is followed, so that what it points to is replaced and the link stays.
    target = target.resolve()
    check_target(target)
    with scratch_directory(target) as place:
        yield place
        _sync_tree(place)
        check_target(target)
        (place / _LOCK).unlink()
        _sync(place)
        _put_in_place(place, target)
        _sync(target.parent)


@contextlib.contextmanager
def scratch_directory(target: Path) -> Iterator[Path]:
    """A directory beside the target for what becomes part of it, removed when the block ends."""
    target = target.resolve()
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.partial-"
    _remove_abandoned(target.parent, prefix)
    place = target.parent / f"{prefix}{secrets.token_hex(4)}"
    place.mkdir()
    try:
        with (place / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield place
    finally:
        # After an exchange of names this is the old result.
        shutil.rmtree(place, ignore_errors=True)
        for parent in made:
            with contextlib.suppress(OSError):  # it holds a result by now
                parent.rmdir()


def write_atomically(file: Path, content: bytes) -> None:
    """Writes a file that is complete or not there."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


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


def _put_in_place(place: Path, target: Path) -> None:
    if not target.exists():
        place.rename(target)
        return
    if _exchange(place, target):
        return
    # No exchange on this system: for a moment there is no target; the old one is kept until the
    # new one is there.
    old = place.with_name(place.name + ".old")
    target.rename(old)
    try:
        place.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    renameat2 = _libc("renameat2")
    if renameat2 is None:
        return False
    names = (_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE)
    return int(renameat2(*names)) == 0


def _libc(function: str) -> Callable[..., int] | None:
    """A function of the C library that Python does not offer; only Linux has those used here."""
    if sys.platform != "linux":
        return None
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), function, None)


def _remove_abandoned(parent: Path, prefix: str) -> None:
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError):
            lock = left / _LOCK
            if lock.exists():
                with lock.open() as held:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
                    shutil.rmtree(left, ignore_errors=True)


def _sync_tree(root: Path) -> None:
    found = [Path(directory, name) for directory, _, files in os.walk(root) for name in files]
    if len(found) > _MANY_FILES and sync_file_system(root):
        return
    sync_all(found)
    sync_all([Path(directory) for directory, _, _ in os.walk(root)])


def sync_all(paths: list[Path]) -> None:
    """Waits until files and directories are on the disk."""
    # Those that wait together share a commit of the file system's journal.
    queue, failures = iter(paths), list[OSError]()

    def work() -> None:
        try:
            while (path := next(queue, None)) is not None:
                _sync(path)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in paths[:_SYNCS]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def sync_file_system(root: Path) -> bool:
    """Waits until all of a file system is on the disk; false where there is no such call."""
    syncfs = _libc("syncfs")
    if syncfs is None:
        return False
    descriptor = os.open(root, os.O_RDONLY)
    try:
        return int(syncfs(descriptor)) == 0
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
