"""Files and directories that are complete, or not there."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@contextlib.contextmanager
def atomic_directory(
    target: Path, *, check: Callable[[Path], None] = lambda _: None
) -> Iterator[Path]:
    """A directory to fill that takes the target's place when the block ends well.

    `check` raises what speaks against replacing the target. The directory stands beside the target,
    so that renaming it is one step. When the block fails it is removed; when the process is killed
    it stays behind, hidden, and the next writer of the same target removes it.
    """
    # A link is followed, so that what it points to is replaced and the link stays.
    target = target.resolve()
    check(target)
    with scratch_directory(target) as place:
        yield place
        _sync_tree(place)
        check(target)
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
