"""Files and directories that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sys
import threading
import time
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.files.portable import CREATE, READ, RENAMES_OPEN, lock, release_and_remove, sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Name of an incomplete file or directory, which is written beside its target. Its writer holds a
#: lock (flock): on a file of its own beside a directory, created before and removed after it; on
#: the incomplete file itself otherwise. A process that gets the lock knows that the writer is dead.
PARTIAL = re.compile(r"\.(?P<target>.+)\.partial-[0-9a-f]{8}(?P<kind>|\.lock|\.old)", re.DOTALL)
_LOCK, _OLD = ".lock", ".old"
#: Flag of renameat2(2) that exchanges two names in one step.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
#: Age in seconds from which an incomplete directory without a lock is abandoned. It comes from a
#: version without such locks, or another program made it.
_FORGOTTEN_S = 3600.0
#: Number of files above which the whole file system is synchronised at once (syncfs): one wait
#: instead of one for each file.
_MANY_FILES = 100
#: Errors of a disk that takes no more.
_FULL = (ENOSPC, EFBIG, EDQUOT)
#: Number of files that are synchronised concurrently.
_SYNCS = 16


@contextlib.contextmanager
def atomic_directory(
    target: Path,
    *,
    check: Callable[[Path], None] = lambda _: None,
    keep: Callable[[Path, Path], None] = lambda _old, _new: None,
) -> Iterator[Path]:
    """Yields a new directory that replaces the target when the block ends without an error.

    The directory stands beside the target, so that it can be renamed into place. It is removed if
    the block fails. If the process is killed it stays behind, hidden, until the next writer in the
    same folder removes it.

    Args:
        target: Path of the finished directory; a symbolic link is followed.
        check: Raises an error if the target must not be replaced; called before and after the
            block.
        keep: Copies files to be kept from the old directory (first argument) to the new one. It
            runs again after the replacement, for files added meanwhile.
    """
    # A symbolic link is followed: its destination is replaced, and the link stays.
    target = target.resolve()
    check(target)
    with scratch_directory(target) as partial:
        yield partial
        check(target)
        _sync_tree(partial)
        if target.exists():
            keep(target, partial)
            sync_all([Path(directory) for directory, _, _ in os.walk(partial)])
        old = _replace_target(partial, target)
        sync(target.parent)
        if old is not None:
            keep(old, target)


@contextlib.contextmanager
def scratch_directory(target: Path) -> Iterator[Path]:
    """Yields a temporary directory beside the target, removed when the block ends."""
    target = target.resolve()
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target.parent)
    with _naming(target):
        partial, descriptor = _locked(target, _LOCK)
        try:
            partial.mkdir()
            yield partial
        finally:
            # After an exchange of names this is the old result.
            _remove(partial, descriptor)
            for parent in made:
                with contextlib.suppress(OSError):  # it holds a result by now
                    parent.rmdir()


def write_atomically(file: Path, content: bytes) -> None:
    """Writes a file that appears complete or not at all, synchronised to the disk.

    Raises:
        InputError: A device or a pipe has that name, which root would replace.
    """
    if file.exists() and not file.is_file() and not file.is_dir():
        raise InputError(f"{file}: a device or a pipe is in the way; give the name of a file")
    remove_abandoned(file.parent)
    with _naming(file):
        temporary, descriptor = _locked(file, "")
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
                if RENAMES_OPEN:
                    temporary.replace(file)
            if not RENAMES_OPEN:
                temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Names the target in errors of an incomplete file, and of a full disk, which name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _FULL:
            error.filename = str(target)
        elif isinstance(error.filename, (str, Path)):
            parts = [(PARTIAL.fullmatch(part), part) for part in Path(error.filename).parts]
            names = (found["target"] if found else part for found, part in parts)
            error.filename = str(Path(*names))
        raise


def remove_abandoned(folder: Path) -> None:
    """Removes incomplete files and directories of killed writers from a folder."""
    with contextlib.suppress(OSError):
        names = [file.name for file in folder.iterdir() if file.name.startswith(".")]
        for name in names:
            found = PARTIAL.fullmatch(name)
            if found is None or found["kind"] == _OLD:
                continue
            if found["kind"] == _LOCK:
                _remove_if_abandoned(folder / name, folder / found["target"])
            elif f"{name}{_LOCK}" not in names:
                _remove_unlocked(folder / name)


def _remove_if_abandoned(held: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(held, os.O_RDWR)
        try:
            lock(descriptor)  # fails while its writer lives
            partial = held.with_name(held.name.removesuffix(_LOCK))
            old = partial.with_name(f"{partial.name}{_OLD}")
            if old.exists() and not target.exists():
                old.rename(target)  # killed between two steps of `_replace_target`
        except BaseException:
            os.close(descriptor)
            raise
        _remove(partial, descriptor)


def _remove_unlocked(file: Path) -> None:
    """Removes an incomplete file that is not locked, or an old directory without a lock file."""
    with contextlib.suppress(OSError):
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            return
        is_old = time.time() - file.stat().st_ctime > _FORGOTTEN_S
        if file.is_dir() or not RENAMES_OPEN:
            # Where open files cannot be renamed, their writers unlock them before.
            if is_old and file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            elif is_old:
                file.unlink()
            return
        descriptor = os.open(file, READ)
        try:
            lock(descriptor)
            file.unlink()
        finally:
            os.close(descriptor)


def _locked(target: Path, suffix: str) -> tuple[Path, int]:
    """Creates a locked file for a new incomplete name beside a target.

    Returns the incomplete name and the descriptor of the locked file, which is that name plus
    `suffix`.
    """
    while True:
        partial = target.with_name(f".{target.name}.partial-{secrets.token_hex(4)}")
        file = partial.with_name(f"{partial.name}{suffix}")
        descriptor = os.open(file, CREATE, 0o666)
        try:
            lock(descriptor, wait=True)
            # Another process may have removed the new file as abandoned before it was locked here.
            if os.path.samestat(os.fstat(descriptor), file.stat()):
                return partial, descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            file.unlink(missing_ok=True)
            raise
        os.close(descriptor)


def _remove(partial: Path, lock: int) -> None:
    """Removes a directory, the directory it replaced, and last its lock, which it releases."""
    old = partial.with_name(f"{partial.name}{_OLD}")
    for each in (partial, old):
        shutil.rmtree(each, ignore_errors=True)
    if partial.exists() or old.exists():
        os.close(lock)
    else:
        release_and_remove(lock, partial.with_name(f"{partial.name}{_LOCK}"))


def _replace_target(partial: Path, target: Path) -> Path | None:
    """Renames a directory to its target and returns the new path of the old one, if any."""
    if not target.exists():
        partial.rename(target)
        return None
    if _exchange(partial, target):
        return partial
    # Without an exchange of names there is no target for a moment. If the process is killed then,
    # the next writer restores the old directory.
    old = partial.with_name(f"{partial.name}{_OLD}")
    target.rename(old)
    try:
        partial.rename(target)
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
    """Looks up a function of the C library that Python does not offer.

    Returns `None` outside Linux, and if the library lacks it.
    """
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
    """Synchronises files and directories to the disk (fsync), several concurrently."""
    # Concurrent calls share a commit of the file system's journal.
    queue, failures = iter(paths), list[OSError]()

    def work() -> None:
        try:
            while (path := next(queue, None)) is not None:
                sync(path)
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
    """Synchronises the file system of `root`; `False` if syncfs(2) is missing or fails."""
    syncfs = _libc("syncfs")
    if syncfs is None:
        return False
    descriptor = os.open(root, os.O_RDONLY)
    try:
        return int(syncfs(descriptor)) == 0
    finally:
        os.close(descriptor)
