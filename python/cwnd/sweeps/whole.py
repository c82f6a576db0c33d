"""Whether the files of cells are what was written, told before anything reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import DamageError
from cwnd.files import checksums
from cwnd.sweeps.cells import MARK, RECORDS, hashes
from cwnd.sweeps.layout import ANEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.sweeps.layout import Dataset

#: Digits of a hash.
_DIGITS = 64


class Whole:
    """The hashes of a sweep's cells, from their marks, and what was compared with them."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._marks: dict[str, bytes] = {}
        self.remedy = ANEW

    def check(self, table: str, cells: Sequence[str]) -> None:
        """Compares a table of cells with its hashes; `DamageError` names the first that is not."""
        unknown = [cell for cell in cells if cell not in self._marks]
        for cell, file in zip(unknown, self._dataset.files(MARK, unknown), strict=True):
            self._mark(cell, file)
        if table == MARK:
            return
        place = RECORDS.index(table) * _DIGITS
        for cell, file in zip(cells, self._dataset.files(table, cells), strict=True):
            expected = self._marks[cell][place : place + _DIGITS].decode()
            checksums.check(file, expected, self.remedy)

    def _mark(self, cell: str, file: str) -> None:
        found = hashes(checksums.read(file, None, self.remedy))
        if found is None:
            raise DamageError(Path(file), checksums.DAMAGED, self.remedy)
        kept = "".join(found[table] for table in RECORDS).encode()
        self._marks[cell] = kept
