"""Results on disk: a directory that is complete, or not there."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import io
import json
import os
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import CwndError, InputError, explain
from cwnd.manifest import FORMAT, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.results import Run

MANIFEST = "manifest.json"
SCENARIO = "scenario.toml"
CELLS = "cells"
PLOTS = "plots"
PCAP = "pcap"
#: The data frames of a result, each in a Parquet file of its name.
TABLES = ("runs", "flows", "links", "series", "link_series", "qdelay")

#: Held by the writer of a directory that is not complete yet.
_LOCK = ".writing"
#: renameat2(2): exchange two names in one step.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def save(
    run: Run, directory: str | os.PathLike[str], *, plots: bool, pcap: Path | None = None
) -> Path:
    """Writes a result; one that is there is replaced when the new one is complete.

    `pcap` is a directory of capture files beside it, which moves into the result.
    """
    target = Path(directory)
    try:
        with atomic_directory(target) as place:
            _write(run, place)
            if pcap is not None:
                pcap.rename(place / PCAP)
            if plots:
                from cwnd.plots import write_all

                write_all(run, place / PLOTS)
    except OSError as error:
        raise CwndError(f"the result could not be written: {explain(error)}") from error
    return target


def load(directory: str | os.PathLike[str]) -> Run:
    """Reads a result back; `InputError` if it is none, or damaged."""
    from cwnd.results import Run

    path = Path(directory)
    try:
        manifest = read_manifest(path)
        source = (path / SCENARIO).read_text(encoding="utf-8")
        tables = {name: _read_table(path / f"{name}.parquet") for name in TABLES}
        resolved = [
            (path / CELLS / f"{run_id}.toml").read_text(encoding="utf-8")
            for run_id in tables["runs"]["run_id"]
        ]
    except OSError as error:
        raise InputError(f"{explain(error)}; {path} is not a complete cwnd result") from error
    return Run(manifest=manifest, source=source, resolved=resolved, **tables)


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
    for name in TABLES:
        frame: pl.DataFrame = getattr(run, name)
        # Through memory, so that a full disk is the system's error and not one of the format.
        parquet = io.BytesIO()
        frame.write_parquet(parquet, compression="zstd")
        (place / f"{name}.parquet").write_bytes(parquet.getbuffer())
    run.summary().write_csv(place / "summary.csv")
    (place / MANIFEST).write_text(
        json.dumps(run.manifest.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _read_table(file: Path) -> pl.DataFrame:
    if not file.is_file():
        raise InputError(f"{file}: missing; the result is not complete, run it again")
    try:
        return pl.read_parquet(file)
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
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    names = (_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE)
    return int(renameat2(*names)) == 0


def _remove_abandoned(parent: Path, prefix: str) -> None:
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError):
            lock = left / _LOCK
            if lock.exists():
                with lock.open() as held:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
                    shutil.rmtree(left, ignore_errors=True)


def _sync_tree(root: Path) -> None:
    for directory, _, files in os.walk(root, topdown=False):
        for name in files:
            _sync(Path(directory, name))
        _sync(Path(directory))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
