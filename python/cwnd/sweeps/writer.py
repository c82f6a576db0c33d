"""Puts finished cells on disk: each whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import secrets
import threading
from typing import TYPE_CHECKING

from cwnd.files import sync_all, sync_file_system
from cwnd.sweeps.cells import FILES, MARK
from cwnd.sweeps.layout import ERRORS, cell_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from cwnd.sweeps.cells import Failure

#: Cells that finish within this time share one wait for the disk; a crash of the machine, or of
#: this process, costs no more of what was finished.
_COMMIT_S = 0.25


class Writer:
    """Writes the files of cells; several threads may use it at once.

    A file is written under another name and renamed when it is whole. The mark of a cell, its file
    in `runs`, is renamed only when the disk has the others, so that where it is, the cell is.
    """

    def __init__(self, root: Path, partial: Path) -> None:
        self._root = root
        self._partial = partial
        self._lock = threading.Lock()
        self._pending: list[str] = []
        self._failure: OSError | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="cwnd-commit")

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._thread.join()
        if kind is None:
            self._raise()

    def put(self, cell: str, files: Mapping[str, bytes]) -> None:
        """Takes a finished cell; it is complete soon after. `OSError` if the disk refuses."""
        self._raise()
        for table in FILES:
            self._waiting(table, cell).write_bytes(files[table])
        for table in FILES:
            if table != MARK:
                self._rename(table, cell)
        with self._lock:
            self._pending.append(cell)

    def fail(self, cell: str, failure: Failure, scenario: str) -> None:
        """Takes down why a cell has no files."""
        self._raise()
        said = {"cell_id": cell, "error": failure.error, "message": failure.message}
        text = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
        for kind, content in {"toml": scenario, "json": text}.items():
            put_file(self._root / ERRORS / f"{cell}.{kind}", content.encode(), self._partial)

    def _waiting(self, table: str, cell: str) -> Path:
        return self._partial / f"{cell}.{table}"

    def _rename(self, table: str, cell: str) -> None:
        _move(self._waiting(table, cell), cell_file(self._root, table, cell))

    def _loop(self) -> None:
        closing = False
        while not closing:
            closing = self._closing.wait(_COMMIT_S)
            try:
                self._commit()
            except OSError as error:
                self._failure = error
                return

    def _commit(self) -> None:
        with self._lock:
            cells, self._pending = self._pending, []
        if not cells:
            return
        if not sync_file_system(self._root):
            files = [cell_file(self._root, t, cell) for cell in cells for t in FILES if t != MARK]
            sync_all([*files, *{file.parent for file in files}])
            sync_all([self._waiting(MARK, cell) for cell in cells])
        for cell in cells:
            self._rename(MARK, cell)
            for kind in ("json", "toml"):
                # It failed before.
                (self._root / ERRORS / f"{cell}.{kind}").unlink(missing_ok=True)

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure


def put_file(target: Path, content: bytes, partial: Path) -> None:
    """Writes a file that is whole and on the disk, or not there; it waits in `partial`."""
    waiting = partial / f"{target.name}.{secrets.token_hex(4)}"
    with waiting.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    _move(waiting, target)


def _move(waiting: Path, target: Path) -> None:
    try:
        waiting.rename(target)
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
        waiting.rename(target)
