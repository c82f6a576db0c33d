"""Puts finished cells into the journal: each whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from typing import TYPE_CHECKING

from cwnd.store.journal import Journal
from cwnd.store.layout import ERRORS, JOURNAL
from cwnd.store.tables import Finished

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from cwnd import _core
    from cwnd.store.tables import Batch, Held

#: Cells that finish within this time share a frame, and one wait for the disk; a crash of the
#: machine, or of this process, costs no more of what was finished.
_COMMIT_S = 0.25


class Writer:
    """Writes a frame of finished cells a few times a second; several threads may use it at once."""

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
        #: Writes what describes the sweep, before anything else is written.
        self._describe: Callable[[], None] | None = describe
        self._finished = Finished(engine)
        self._committed = time.monotonic()
        #: Held to take in cells, and to write them; those that finish meanwhile do not wait.
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
            # A disk that refused takes no more.
            if not isinstance(error, OSError) and len(self._finished):
                self._commit()

    def add(self, text: str, cell: _core.Cell, result: _core.Result) -> None:
        """Takes a finished cell; it is safe soon after. `OSError` if the disk refuses."""
        with self._adding:
            self._finished.add(text, cell, result)
        self.poll()

    def take(self, most: int) -> Held | None:
        """Returns what waits, if that is all that was finished, and no more rows than `most`."""
        with self._adding:
            if self._journal.is_begun or self._finished.table_rows > most:
                return None
            finished, self._finished = self._finished, Finished(self._engine)
        return finished.take() if len(finished) else None

    def describe(self) -> None:
        """Writes what describes the sweep, if it is not there."""
        with self._writing:
            if self._describe is not None:
                self._describe()
                self._describe = None

    def put(self, batch: Batch) -> None:
        """Writes finished cells."""
        self.describe()
        with self._writing:
            self._journal.append(batch.cells, batch.rows, batch.body)
        for cell in batch.cells:
            for kind in ("json", "toml"):
                # It failed before.
                (self._root / ERRORS / f"{cell}.{kind}").unlink(missing_ok=True)

    def poll(self) -> None:
        """Writes what waits, if it is time; to be called several times a second."""
        if time.monotonic() >= self._committed + _COMMIT_S:
            self._commit()

    def fail(self, cell: str, error: str, message: str, scenario: str) -> None:
        """Takes down why a cell has no tables."""
        self.describe()
        said = {"cell_id": cell, "error": error, "message": message}
        text = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
        for kind, content in {"toml": scenario, "json": text}.items():
            put_file(self._root / ERRORS / f"{cell}.{kind}", content.encode(), self._partial)

    def _commit(self) -> None:
        with self._adding:
            self._committed = time.monotonic()
            finished, self._finished = self._finished, Finished(self._engine)
        self.describe()
        if len(finished):
            self.put(finished.take().packed())


def put_file(target: Path, content: bytes, partial: Path) -> None:
    """Writes a file that is whole and on the disk, or not there; it waits in `partial`."""
    waiting = partial / f"{target.name}.{secrets.token_hex(4)}"
    with waiting.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    target.parent.mkdir(parents=True, exist_ok=True)
    waiting.rename(target)
