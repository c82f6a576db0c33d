"""Locks of files, and calls of POSIX that Windows lacks or does otherwise.

Windows deletes and renames no open file, opens no directory, and synchronises only files that are
open for writing.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

try:
    import fcntl

    _WINDOWS: Any = None
except ImportError:
    import msvcrt

    _WINDOWS = msvcrt

#: `True` if the system renames and removes open files.
RENAMES_OPEN = _WINDOWS is None
#: Interval between attempts to get a lock on Windows, in seconds.
_POLL_S = 0.05
#: Bytes that locks cover on Windows. They lie beyond all data, as locked bytes cannot be read. A
#: shared lock takes one of them.
_FIRST, _SLOTS = 1 << 30, 64
#: Flags for reading a file as it is: Windows alone translates line breaks, POSIX alone waits for
#: the other end of a pipe.
READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
#: Flags for creating a file that does not exist.
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
    """Locks an open file until it is closed, against others that lock it.

    Raises:
        BlockingIOError: Another one has locked it, without `wait`.
    """
    if _WINDOWS is None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
        return
    while not _locked(descriptor, range(_SLOTS) if shared else [0], 1 if shared else _SLOTS):
        if not wait:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process has locked it")
        time.sleep(_POLL_S)


def _locked(descriptor: int, slots: range | list[int], count: int) -> bool:
    """Locks `count` bytes from the first free one of these slots; `False` if there is none."""
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        for slot in slots:
            os.lseek(descriptor, _FIRST + slot, os.SEEK_SET)
            try:
                _WINDOWS.locking(descriptor, _WINDOWS.LK_NBLCK, count)
            except OSError:
                continue
            return True
        return False
    finally:
        os.lseek(descriptor, position, os.SEEK_SET)


def release_and_remove(descriptor: int, file: Path) -> None:
    """Closes a locked file and removes it: before it is unlocked, where the system can.

    On Windows it stays if another process has it open, which then removes it.
    """
    removed = _unlinked(file)
    os.close(descriptor)
    if not removed:
        _unlinked(file)


def _unlinked(file: Path) -> bool:
    try:
        file.unlink(missing_ok=True)
    except PermissionError:
        return False
    return True


def sync(path: Path) -> None:
    """Synchronises a file or directory to the disk; on Windows only files."""
    if _WINDOWS is not None and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if _WINDOWS is None else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_data(descriptor: int) -> None:
    """Synchronises an open file without its times; macOS and Windows have only fsync."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def write_at(descriptor: int, data: memoryview, offset: int) -> int:
    """Writes at an offset; returns the number of bytes written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.write(descriptor, data)
