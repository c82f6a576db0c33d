"""Files and directories that are complete, or not there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A directory or file that is not complete yet stands beside its target under such a name. Its
#: writer holds a lock: that of a directory stands beside it, made before it and removed after it; a
#: file is its own. Who gets the lock knows that the writer is dead.
PARTIAL = re.compile(r"\.(?P<target>.+)\.partial-[0-9a-f]{8}(?P<kind>|\.lock|\.old)", re.DOTALL)
_LOCK, _OLD = ".lock", ".old"
#: renameat2(2): exchange two names in one step.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
#: A directory without a lock is none of ours, or what a version without such locks left: nobody
#: fills it when it has not changed for so long.
_FORGOTTEN_S = 3600.0
#: From so many files on the whole file system is synchronised at once: one wait instead of one for
#: each file.
_MANY_FILES = 100
#: Files that are synchronised at a time.
_SYNCS = 16


@contextlib.contextmanager
def atomic_directory(
    target: Path,
    *,
    check: Callable[[Path], None] = lambda _: None,
    keep: Callable[[Path, Path], None] = lambda _old, _new: None,
) -> Iterator[Path]:
    """A directory to fill that takes the target's place when the block ends well.

    `check` raises what speaks against replacing the target. `keep` adds to the new directory what
    is to stay of the old one; it is called again when the new one is in place, for what came
    meanwhile. The directory stands beside the target, so that renaming it is one step. When the
    block fails it is removed; when the process is killed it stays behind, hidden, and the next
    writer in the same folder removes it.
    """
    # A link is followed, so that what it points to is replaced and the link stays.
    target = target.resolve()
    check(target)
    with scratch_directory(target) as place:
        yield place
        check(target)
        _sync_tree(place)
        if target.exists():
            keep(target, place)
            sync_all([Path(directory) for directory, _, _ in os.walk(place)])
        old = _put_in_place(place, target)
        _sync(target.parent)
        if old is not None:
            keep(old, target)


@contextlib.contextmanager
def scratch_directory(target: Path) -> Iterator[Path]:
    """A directory beside the target for what becomes part of it, removed when the block ends."""
    target = target.resolve()
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target.parent)
    place, lock = _locked(target, _LOCK)
    try:
        place.mkdir()
        yield place
    finally:
        # After an exchange of names this is the old result.
        _remove(place)
        os.close(lock)
        for parent in made:
            with contextlib.suppress(OSError):  # it holds a result by now
                parent.rmdir()


def write_atomically(file: Path, content: bytes) -> None:
    """Writes a file that is complete or not there.

    Raises:
        InputError: A device or a pipe has that name, which root would replace.
    """
    if file.exists() and not file.is_file() and not file.is_dir():
        raise InputError(f"{file}: a device or a pipe is in the way; give the name of a file")
    remove_abandoned(file.parent)
    temporary, descriptor = _locked(file, "")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
            temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Removes what writers that were killed left in a folder, whatever they wrote."""
    with contextlib.suppress(OSError):
        names = [file.name for file in folder.iterdir() if file.name.startswith(".")]
        for name in names:
            found = PARTIAL.fullmatch(name)
            if found is None or found["kind"] == _OLD:
                continue
            if found["kind"] == _LOCK:
                _abandoned(folder / name, folder / found["target"])
            elif f"{name}{_LOCK}" not in names:
                _lockless(folder / name)


def _abandoned(lock: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
            place = lock.with_name(lock.name.removesuffix(_LOCK))
            old = place.with_name(f"{place.name}{_OLD}")
            if old.exists() and not target.exists():
                old.rename(target)  # killed between two steps of `_put_in_place`
            _remove(place)
        finally:
            os.close(descriptor)


def _lockless(left: Path) -> None:
    """What has no lock beside it: a file is its own; a directory has lost it."""
    with contextlib.suppress(OSError):
        if left.is_symlink() or not (left.is_file() or left.is_dir()):
            return
        descriptor = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if left.is_file():
                left.unlink()
            elif time.time() - left.stat().st_ctime > _FORGOTTEN_S:
                shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(descriptor)


def _locked(target: Path, suffix: str) -> tuple[Path, int]:
    """A new name beside a target, and the file of that name and suffix, which we hold."""
    while True:
        place = target.with_name(f".{target.name}.partial-{secrets.token_hex(4)}")
        file = place.with_name(f"{place.name}{suffix}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(file, flags, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Before we had it somebody may have taken it for a dead writer's.
            if os.path.samestat(os.fstat(descriptor), file.stat()):
                return place, descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            file.unlink(missing_ok=True)
            raise
        os.close(descriptor)


def _remove(place: Path) -> None:
    """Removes a directory, what it replaced, and at last its lock, which the caller holds."""
    old = place.with_name(f"{place.name}{_OLD}")
    for each in (place, old):
        shutil.rmtree(each, ignore_errors=True)
    if not place.exists() and not old.exists():
        place.with_name(f"{place.name}{_LOCK}").unlink(missing_ok=True)


def _put_in_place(place: Path, target: Path) -> Path | None:
    """Gives a directory the name of its target; returns where the old one is now."""
    if not target.exists():
        place.rename(target)
        return None
    if _exchange(place, target):
        return place
    # No exchange on this system: for a moment there is no target; who is killed then leaves the old
    # one to the next writer, who puts it back.
    old = place.with_name(f"{place.name}{_OLD}")
    target.rename(old)
    try:
        place.rename(target)
    except BaseException:
        old.rename(target)
        raise
    return old


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
