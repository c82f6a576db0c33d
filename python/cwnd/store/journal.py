"""The journal of a sweep: finished cells, in files that writers append to.

Each writer has a file of its own, of frames:

    magic           8 bytes
    length of head  4 bytes, little-endian
    length of body  8 bytes, little-endian
    CRC-32          4 bytes, over the above
    head            JSON: names of the cells, rows of each, SHA-256 of the body
    SHA-256         32 bytes, over all of the above
    body            the cells' tables

A frame counts when all of it is present. A kill during a write thus costs only the frame that is
being written. Frames behind a damaged head are not found; their cells are computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import struct
import threading
import time
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from cwnd.errors import DamageError, explain
from cwnd.files import checksums, portable, read_object
from cwnd.store.layout import ERRORS, JOURNAL
from cwnd.store.tables import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from cwnd import _core
    from cwnd.store.tables import Batch, MemoryBatch

_MAGIC = b"cwndjrn1"
_LENGTHS = struct.Struct("<8sIQ")
_CRC = struct.Struct("<I")
_BEGIN = _LENGTHS.size + _CRC.size
_SHA256_BYTES = 32


@dataclass(frozen=True)
class Frame:
    """A frame of the journal: cells that finished at about the same time."""

    file: Path
    cells: tuple[str, ...]
    #: Number of rows of all tables together, for each cell.
    rows: tuple[int, ...]
    #: Offset of the body in the file, and its length, in bytes.
    offset: int
    size: int
    sha256: str

    def body(self, remedy: str) -> bytes:
        """Reads the tables of the frame.

        Raises:
            DamageError: The file is unreadable, or the body does not match its hash.
        """
        data = self.part(slice(0, self.size), remedy)
        if checksums.sha256(data) != self.sha256:
            raise DamageError(self.file, checksums.DAMAGED, remedy)
        return data

    def part(self, where: slice, remedy: str) -> bytes:
        """Reads a part of the body without comparing a hash."""
        with _opened(self.file, remedy) as opened:
            opened.seek(self.offset + where.start)
            return opened.read(where.stop - where.start)


def frames(folder: Path, remedy: str | None = None) -> Iterator[Frame]:
    """Yields the frames of all writers, in the order of their files, without reading bodies.

    Args:
        folder: The journal.
        remedy: Remedy in the message of a `DamageError` for a damaged head. With `None`, the rest
            of a file behind a damaged head is skipped.
    """
    for file in sorted(folder.glob("[!.]*")):
        try:
            yield from _frames(file, remedy or "")
        except DamageError:
            if remedy is not None:
                raise


def heads_intact(file: Path) -> bool:
    """`True` if no head in a file is damaged; a file may end within a frame."""
    try:
        for _ in _frames(file, ""):
            pass
    except DamageError:
        return False
    return True


def _frames(file: Path, remedy: str) -> Iterator[Frame]:
    with _opened(file, remedy) as opened:
        length = opened.seek(0, os.SEEK_END)
        position = 0
        while True:
            opened.seek(position)
            begin = opened.read(_BEGIN)
            # A file may end with zeros after a power failure.
            if len(begin) < _BEGIN or not any(begin):
                return
            lengths = begin[: _LENGTHS.size]
            magic, head_size, size = _LENGTHS.unpack(lengths)
            if magic != _MAGIC or _CRC.pack(zlib.crc32(lengths)) != begin[_LENGTHS.size :]:
                raise DamageError(file, checksums.DAMAGED, remedy)
            offset = position + _BEGIN + head_size + _SHA256_BYTES
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
            position = offset + size


@contextlib.contextmanager
def _opened(file: Path, remedy: str) -> Iterator[IO[bytes]]:
    try:
        with os.fdopen(os.open(file, portable.READ), "rb") as opened:
            yield opened
    except FileNotFoundError as error:
        raise DamageError(file, "missing", remedy) from error
    except OSError as error:
        reason = explain(OSError(error.errno, error.strerror))
        raise DamageError(file, f"cannot be read ({reason})", remedy) from error


class Journal:
    """A journal file that this process appends to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1
        #: Offset of the end of the last complete frame, in bytes.
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
        """Appends a frame and synchronises it to the disk.

        Raises:
            OSError: The write failed; the file is truncated to the earlier frames.
        """
        if self._descriptor < 0:
            self._open()
        head_fields = {"cells": list(cells), "rows": list(rows), "sha256": checksums.sha256(body)}
        head = json.dumps(head_fields).encode()
        lengths = _LENGTHS.pack(_MAGIC, len(head), len(body))
        begin = lengths + _CRC.pack(zlib.crc32(lengths))
        digest = hashlib.sha256(begin + head).digest()
        frame = memoryview(b"".join((begin, head, digest, body)))
        try:
            written = 0
            while written < len(frame):
                written += portable.write_at(self._descriptor, frame[written:], self._end + written)
            portable.sync_data(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, self._end)
            raise OSError(error.errno, error.strerror, str(self._file)) from error
        self._end += len(frame)

    def _open(self) -> None:
        folder = self._file.parent
        folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._file, portable.CREATE, 0o666)
        portable.sync(folder)


def write_journal(file: Path, batches: Iterable[Batch]) -> None:
    """Writes batches into a new journal file.

    Raises:
        OSError: The write failed.
    """
    with Journal(file) as journal:
        for batch in batches:
            journal.append(batch.cells, batch.rows, batch.body)


#: Period in seconds whose cells share a frame and one synchronisation. A crash of the machine, or
#: of this process, loses the cells of one period, and those that finish while it is written.
_COMMIT_S = 0.25


class Writer:
    """Writes frames of finished cells a few times a second; thread-safe."""

    def __init__(
        self,
        root: Path,
        name: str,
        partial: Path,
        engine: str,
        describe: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._partial = partial
        self._engine = engine
        #: Writes the description of the sweep; called before the first frame.
        self._describe: Callable[[], None] | None = describe
        self._finished = BatchBuilder(engine)
        self._committed = time.monotonic()
        #: Locks for adding cells and for writing them: cells that finish during a write do not
        #: wait.
        self._adding, self._writing = threading.Lock(), threading.Lock()
        self._journal = Journal(root / JOURNAL / name)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        with self._journal:
            # After a write error the file takes no more frames.
            if not isinstance(error, OSError) and len(self._finished):
                self._commit()

    def add(self, text: str, cell: _core.Cell, result: _core.Result) -> None:
        """Adds a finished cell, which is on the disk shortly after.

        Raises:
            OSError: A write failed.
        """
        with self._adding:
            self._finished.add(text, cell, result)
        self.poll()

    def take(self, max_rows: int) -> MemoryBatch | None:
        """Returns the waiting cells if none was written yet and at most `max_rows` rows wait."""
        with self._adding:
            if self._journal.is_begun or self._finished.table_rows > max_rows:
                return None
            finished, self._finished = self._finished, BatchBuilder(self._engine)
        return finished.take() if len(finished) else None

    def describe(self) -> None:
        """Writes the description of the sweep, once."""
        with self._writing:
            if self._describe is not None:
                self._describe()
                self._describe = None

    def put(self, batch: Batch) -> None:
        """Writes a batch of finished cells, and removes errors of their earlier attempts."""
        self.describe()
        with self._writing:
            self._journal.append(batch.cells, batch.rows, batch.body)
        for cell in batch.cells:
            for kind in ("json", "toml"):
                (self._root / ERRORS / f"{cell}.{kind}").unlink(missing_ok=True)

    def poll(self) -> None:
        """Writes the waiting cells if a period has passed; to be called several times a second."""
        if time.monotonic() >= self._committed + _COMMIT_S:
            self._commit()

    def fail(self, cell: str, error: str, message: str, scenario: str) -> None:
        """Records the error of a failed cell, and its scenario."""
        self.describe()
        description = {"cell_id": cell, "error": error, "message": message}
        text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
        for kind, content in {"toml": scenario, "json": text}.items():
            put_file(self._root / ERRORS / f"{cell}.{kind}", content.encode(), self._partial)

    def _commit(self) -> None:
        with self._adding:
            self._committed = time.monotonic()
            finished, self._finished = self._finished, BatchBuilder(self._engine)
        self.describe()
        if len(finished):
            self.put(finished.take().packed())


def put_file(target: Path, content: bytes, partial: Path) -> None:
    """Writes a file atomically and synchronises it; the incomplete file is in `partial`."""
    waiting = partial / f"{target.name}.{secrets.token_hex(4)}"
    with waiting.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    target.parent.mkdir(parents=True, exist_ok=True)
    waiting.replace(target)
