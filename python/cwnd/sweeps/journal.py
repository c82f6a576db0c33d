"""The journal of a sweep: finished cells, in files that writers append to.

Each writer has a file of its own, of frames:

    magic           8 bytes
    length of head  4 bytes, little-endian
    length of body  8 bytes, little-endian
    head            JSON: the names of the cells, the SHA-256 of the body
    SHA-256         32 bytes, over all of the above
    body            the cells' tables

A frame counts when all of it is there, so a kill at any moment costs only the frame that is being
written. Bytes that follow a damaged head are not found; their cells are computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cwnd.errors import DamageError
from cwnd.files import checksums, read_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

_MAGIC = b"cwndjrn1"
_LENGTHS = struct.Struct("<8sIQ")
_SHA256_BYTES = 32
#: Heads that are longer are none: a frame has some hundred cells.
_LONGEST_HEAD = 1 << 24


@dataclass(frozen=True)
class Frame:
    """Cells that were finished at about the same time."""

    file: Path
    cells: tuple[str, ...]
    #: Where the body begins, and how long it is.
    offset: int
    size: int
    sha256: str

    def body(self, remedy: str) -> bytes:
        """Reads the tables; `DamageError` if they are not what was written."""
        try:
            with self.file.open("rb") as opened:
                opened.seek(self.offset)
                data = opened.read(self.size)
        except OSError as error:
            raise DamageError(self.file, f"cannot be read ({error.strerror})", remedy) from error
        if checksums.sha256(data) != self.sha256:
            raise DamageError(self.file, checksums.DAMAGED, remedy)
        return data


def frames(folder: Path) -> Iterator[Frame]:
    """Finds the frames of all writers, in the order of their files; bodies are not looked at."""
    for file in sorted(folder.glob("[!.]*")):
        yield from _frames(file)


def ends_whole(file: Path) -> bool:
    """Returns `True` if a file is frames from its beginning to its end."""
    last = None
    for last in _frames(file):  # noqa: B007 - the last one is wanted
        pass
    return (0 if last is None else last.offset + last.size) == file.stat().st_size


def _frames(file: Path) -> Iterator[Frame]:
    with file.open("rb") as opened:
        length = opened.seek(0, os.SEEK_END)
        place = 0
        while True:
            opened.seek(place)
            lengths = opened.read(_LENGTHS.size)
            if len(lengths) < _LENGTHS.size:
                return
            magic, head_size, size = _LENGTHS.unpack(lengths)
            offset = place + _LENGTHS.size + head_size + _SHA256_BYTES
            if magic != _MAGIC or head_size > _LONGEST_HEAD or offset + size > length:
                return
            head, digest = opened.read(head_size), opened.read(_SHA256_BYTES)
            if hashlib.sha256(lengths + head).digest() != digest:
                return
            found: dict[str, Any] = read_object(head)
            yield Frame(file, tuple(found["cells"]), offset, size, found["sha256"])
            place = offset + size


class Journal:
    """A file of frames that this process appends to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1
        #: Where the last whole frame ends.
        self._end = 0

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, cells: Sequence[str], body: bytes) -> None:
        """Adds a frame and waits until the disk has it.

        Raises:
            OSError: The disk refuses; what was there before stays as it was.
        """
        if self._descriptor < 0:
            self._open()
        head = json.dumps({"cells": list(cells), "sha256": checksums.sha256(body)}).encode()
        lengths = _LENGTHS.pack(_MAGIC, len(head), len(body))
        digest = hashlib.sha256(lengths + head).digest()
        frame = memoryview(b"".join((lengths, head, digest, body)))
        try:
            written = 0
            while written < len(frame):
                written += os.pwrite(self._descriptor, frame[written:], self._end + written)
            os.fdatasync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, self._end)
            raise OSError(error.errno, error.strerror, str(self._file)) from error
        self._end += len(frame)

    def _open(self) -> None:
        folder = self._file.parent
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self._file, flags, 0o666)
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)
