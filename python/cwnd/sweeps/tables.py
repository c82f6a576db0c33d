"""The tables of finished cells as bytes: bodies of the journal's frames, answers of workers."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.results import CELL_ID, RESOLVED, TABLES, cell_id
from cwnd.sweeps.cells import FACTS, MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Makes what puts the records of several runs below each other.
GATHERED = _core.Gathered
#: The column of a body's tables that numbers its cells.
RUN = "run"


@dataclass(frozen=True)
class Batch:
    """Finished cells and their tables."""

    cells: list[str]
    #: Rows of all tables together, for each cell.
    rows: list[int]
    body: bytes


class Finished:
    """Takes in cells one by one and makes a batch of them."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._gathered = GATHERED()
        self._rows: list[dict[str, Any]] = []
        self._counts: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, text: str, cell: _core.Cell, result: _core.Result) -> None:
        """Takes in a cell: its content, and what it recorded."""
        before = self._gathered.rows
        self._gathered.add(result)
        self._counts.append(self._gathered.rows - before)
        self._rows.append(
            {
                CELL_ID: cell_id(text, self._engine),
                "seed": cell.seed,
                "duration_s": cell.duration_s,
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

    def take(self) -> Batch:
        """Returns the cells that were added, and forgets them."""
        tables = {name: pl.DataFrame(table) for name, table in self._gathered.take().items()}
        runs = pl.DataFrame(
            self._rows, schema_overrides={"seed": pl.UInt64}, infer_schema_length=None
        )
        batch = Batch([row[CELL_ID] for row in self._rows], self._counts, pack(runs, tables))
        self._rows, self._counts = [], []
        return batch


def pack(runs: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> bytes:
    """Writes the tables of cells; `runs` has a row for each, the others number them by `run`."""
    parts = []
    lengths = {}
    for name in TABLES:
        out = io.BytesIO()
        (runs if name == MARK else tables[name]).write_ipc(out, compression="zstd")
        parts.append(out.getvalue())
        lengths[name] = len(parts[-1])
    return b"\n".join((json.dumps(lengths).encode(), b"".join(parts)))


def unpack(body: bytes) -> dict[str, pl.DataFrame]:
    """Reads them back."""
    head, _, rest = body.partition(b"\n")
    tables, place = {}, 0
    for name, length in json.loads(head).items():
        tables[name] = pl.read_ipc(io.BytesIO(rest[place : place + length]))
        place += length
    return tables
