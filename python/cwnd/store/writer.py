"""Writer of finished cells to the journal: each complete or not at all."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from typing import TYPE_CHECKING

from cwnd.store.journal import Journal
from cwnd.store.layout import ERRORS, JOURNAL
from cwnd.store.tables import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from cwnd import _core
    from cwnd.store.tables import Batch, MemoryBatch

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
    waiting.rename(target)
