"""Tables of finished cells as bytes: bodies of the journal's frames, answers of workers."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.store.layout import CELL_ID, FACTS, RESOLVED, RUNS, TABLES, cell_id

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Class that concatenates the records of several runs.
GATHERED = _core.Gathered
#: Column of a body's tables with the index of the cell.
RUN = "run"


@dataclass(frozen=True)
class Batch:
    """Finished cells with their packed tables."""

    cells: list[str]
    #: Number of rows of all tables together, for each cell.
    rows: list[int]
    body: bytes


@dataclass(frozen=True)
class MemoryBatch:
    """Finished cells whose tables are in memory."""

    cells: list[str]
    #: Number of rows of all tables together, for each cell.
    rows: list[int]
    tables: dict[str, pl.DataFrame]

    def packed(self) -> Batch:
        """Packs the tables."""
        return Batch(self.cells, self.rows, pack(self.tables[RUNS], self.tables))


class BatchBuilder:
    """Collects finished cells one by one for a batch."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._gathered = GATHERED()
        self._rows: list[dict[str, Any]] = []
        self._counts: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def table_rows(self) -> int:
        """Number of rows of all tables together."""
        return self._gathered.rows

    def add(self, text: str, cell: _core.Cell, result: _core.Result) -> None:
        """Adds a cell: its content, the cell, and its records."""
        before = self._gathered.rows
        self._gathered.add(result)
        self._counts.append(self._gathered.rows - before)
        self._rows.append(
            {
                CELL_ID: cell_id(text, self._engine),
                "seed": cell.seed,
                "duration_s": result.end_s,
                "warmup_s": cell.warmup_s,
                "events": result.events,
                "delivered_packets": result.delivered_packets,
                "requests": result.request_count,
                "requests_without_row": result.requests_without_row,
                "digest": result.digest,
                **({FACTS: result.facts} if result.facts is not None else {}),
                **{f"activity_{key}": count for key, count in result.activity.items()},
                RESOLVED: text,
            }
        )

    def take(self) -> MemoryBatch:
        """Returns the collected cells, and starts anew."""
        tables = {name: pl.DataFrame(table) for name, table in self._gathered.take().items()}
        tables[RUNS] = pl.DataFrame(
            self._rows, schema_overrides={"seed": pl.UInt64}, infer_schema_length=None
        )
        memory_batch = MemoryBatch([row[CELL_ID] for row in self._rows], self._counts, tables)
        self._rows, self._counts = [], []
        return memory_batch


def pack(runs: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> bytes:
    """Packs the tables of cells: `runs` has a row for each, the others refer to it by `run`."""
    parts = []
    lengths = {}
    for name in TABLES:
        out = io.BytesIO()
        (runs if name == RUNS else tables[name]).write_ipc(out, compression="zstd")
        parts.append(out.getvalue())
        lengths[name] = len(parts[-1])
    return b"\n".join((json.dumps(lengths).encode(), b"".join(parts)))


def table_slices(body: bytes) -> dict[str, slice]:
    """Locates the tables in a body."""
    head, _, _ = body.partition(b"\n")
    found, offset = {}, len(head) + 1
    for name, length in json.loads(head).items():
        found[name] = slice(offset, offset + length)
        offset += length
    return found


def table(data: bytes) -> pl.DataFrame:
    """Reads a table from its part of a body."""
    return pl.read_ipc(io.BytesIO(data))
