"""Files of cells in sweeps of version 1, which are read only: nine for each cell."""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.files import checksums, read_object
from cwnd.store.layout import RESOLVED, RUNS, cell_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Tables of a cell besides `runs`. The file of `runs` was written last and marks the cell as
#: complete. Every file exists, empty or not.
RECORDS = (
    *("flows", "links", "series", "link_series", "qdelay"),
    *("requests", "sketches", "unrecorded"),
)
FILES = (RUNS, *RECORDS)

#: Metadata key of the mark (the file of `runs`) with the hashes of the other files.
_METADATA = "cwnd"
#: Pattern of these hashes in the mark.
_SHA256 = re.compile(rb'"sha256": (\{[^{}]*\})')
#: Digits of a cell's identifier that name its folder.
FOLDER_DIGITS = 2


def hashes(mark: bytes) -> dict[str, str] | None:
    """Extracts the hashes of the other files from a mark; `None` if the mark is damaged."""
    if not checksums.signature_matches(mark):
        return None
    found = _SHA256.search(mark)
    fields = {} if found is None else read_object(found[1])
    return fields if fields.keys() == set(RECORDS) else None


@dataclass(frozen=True)
class Mark:
    """Contents of a cell's mark."""

    engine: str
    #: SHA-256 of each other file, by table.
    sha256: Mapping[str, str]
    #: Text of the resolved scenario of the cell.
    text: str

    @property
    def cell_id(self) -> str:
        """Identifier of the cell: a hash of its resolved scenario and engine."""
        return cell_id(self.text, self.engine)

    @classmethod
    def read(cls, data: bytes) -> Mark:
        """Parses a mark.

        Raises:
            InputError: It does not match its own hash.
        """
        if not checksums.signature_matches(data):
            raise InputError(checksums.DAMAGED)
        fields = read_object(pl.read_parquet_metadata(io.BytesIO(data))[_METADATA])
        text = pl.read_parquet(io.BytesIO(data), columns=[RESOLVED])[RESOLVED][0]
        return cls(fields["engine"], fields["sha256"], text)


def cell_file(root: Path, table: str, cell: str) -> Path:
    """Path of a table of a cell."""
    return root / table / cell[:FOLDER_DIGITS] / f"{cell}.parquet"


def cells_in(root: Path, table: str) -> Iterator[str]:
    """Yields the cells that have a file of a table."""
    try:
        folders = [entry.path for entry in os.scandir(root / table) if entry.is_dir()]
    except FileNotFoundError:
        return
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                name, dot, suffix = entry.name.partition(".")
                if dot and suffix == "parquet":
                    yield name
