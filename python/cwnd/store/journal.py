"""The journal of a sweep: finished cells, in files that writers append to.

Each writer has a file of its own, of frames:

    magic           8 bytes
    length of head  4 bytes, little-endian
    length of body  8 bytes, little-endian
    CRC-32          4 bytes, over the above
    head            JSON: names of the cells, rows of each, SHA-256 of the body
    SHA-256         32 bytes, over all of the above
    body            the cells' tables

A frame counts when all of it is there, so a kill at any moment costs only the frame that is being
written. What follows a damaged head is not found; its cells are computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from cwnd.errors import DamageError, explain
from cwnd.files import checksums, read_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from cwnd.store.tables import Batch

_MAGIC = b"cwndjrn1"
_LENGTHS = struct.Struct("<8sIQ")
_CRC = struct.Struct("<I")
_BEGIN = _LENGTHS.size + _CRC.size
_SHA256_BYTES = 32


@dataclass(frozen=True)
class Frame:
    """Cells that were finished at about the same time."""

    file: Path
    cells: tuple[str, ...]
    #: Rows of all tables together, for each cell.
    rows: tuple[int, ...]
    #: Place of the body in the file, and its length in bytes.
    offset: int
    size: int
    sha256: str

    def body(self, remedy: str) -> bytes:
        """Reads the tables; `DamageError` if they are not what was written."""
        data = self.part(slice(0, self.size), remedy)
        if checksums.sha256(data) != self.sha256:
            raise DamageError(self.file, checksums.DAMAGED, remedy)
        return data

    def part(self, where: slice, remedy: str) -> bytes:
        """Reads a part of the body, which is not compared with a hash."""
        with _opened(self.file, remedy) as opened:
            opened.seek(self.offset + where.start)
            return opened.read(where.stop - where.start)


def frames(folder: Path, remedy: str | None = None) -> Iterator[Frame]:
    """Finds the frames of all writers, in the order of their files; bodies are not looked at.

    Args:
        folder: The journal.
        remedy: What mends it; given, a damaged head is a `DamageError`. Else what comes behind it
            is not found.
    """
    for file in sorted(folder.glob("[!.]*")):
        try:
            yield from _frames(file, remedy or "")
        except DamageError:
            if remedy is not None:
                raise


def heads_hold(file: Path) -> bool:
    """Returns `True` if no head in a file is damaged; a file may end within a frame."""
    try:
        for _ in _frames(file, ""):
            pass
    except DamageError:
        return False
    return True


def _frames(file: Path, remedy: str) -> Iterator[Frame]:
    with _opened(file, remedy) as opened:
        length = opened.seek(0, os.SEEK_END)
        place = 0
        while True:
            opened.seek(place)
            begin = opened.read(_BEGIN)
            # After a power failure a file may end with zeros.
            if len(begin) < _BEGIN or not any(begin):
                return
            lengths = begin[: _LENGTHS.size]
            magic, head_size, size = _LENGTHS.unpack(lengths)
            if magic != _MAGIC or _CRC.pack(zlib.crc32(lengths)) != begin[_LENGTHS.size :]:
                raise DamageError(file, checksums.DAMAGED, remedy)
            offset = place + _BEGIN + head_size + _SHA256_BYTES
            if offset > length:
                return
            head, digest = opened.read(head_size), opened.read(_SHA256_BYTES)
            if offset + size > length:
                return
            if hashlib.sha256(begin + head).digest() != digest:
                raise DamageError(file, checksums.DAMAGED, remedy)
            found: dict[str, Any] = read_object(head)
            cells, rows = tuple(found["cells"]), tuple(found["rows"])
            yield Frame(file, cells, rows, offset, size, found["sha256"])
            place = offset + size


@contextlib.contextmanager
def _opened(file: Path, remedy: str) -> Iterator[IO[bytes]]:
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_CLOEXEC), "rb") as opened:
            yield opened
    except FileNotFoundError as error:
        raise DamageError(file, "missing", remedy) from error
    except OSError as error:
        reason = explain(OSError(error.errno, error.strerror))
        raise DamageError(file, f"cannot be read ({reason})", remedy) from error


class Journal:
    """A file of frames that this process appends to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1
        #: End of the last whole frame.
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

    @property
    def is_begun(self) -> bool:
        """`True` once a frame was written."""
        return self._end > 0

    def append(self, cells: Sequence[str], rows: Sequence[int], body: bytes) -> None:
        """Adds a frame and waits until the disk has it.

        Raises:
            OSError: The disk refuses; what was there before stays as it was.
        """
        if self._descriptor < 0:
            self._open()
        said = {"cells": list(cells), "rows": list(rows), "sha256": checksums.sha256(body)}
        head = json.dumps(said).encode()
        lengths = _LENGTHS.pack(_MAGIC, len(head), len(body))
        begin = lengths + _CRC.pack(zlib.crc32(lengths))
        digest = hashlib.sha256(begin + head).digest()
        frame = memoryview(b"".join((begin, head, digest, body)))
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


def write_journal(file: Path, batches: Iterable[Batch]) -> None:
    """Writes batches into a new file; `OSError` if the disk refuses."""
    with Journal(file) as journal:
        for batch in batches:
            journal.append(batch.cells, batch.rows, batch.body)
