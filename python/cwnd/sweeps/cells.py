"""A cell: one run, named by what it simulates, and the files that hold what it gave."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.files import checksums, read_object
from cwnd.results import CELL_ID, RESOLVED, cell_id, rows_metadata
from cwnd.running import SIMULATOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.running import World

#: The file that is written last: where it is, the cell is complete.
MARK = "runs"
#: The other files of a cell, one for each table; none is left out, empty or not.
RECORDS = (
    *("flows", "links", "series", "link_series", "qdelay"),
    *("requests", "sketches", "unrecorded"),
)
FILES = (MARK, *RECORDS)
#: What else is known of a run on Linux, as JSON.
FACTS = "facts"

#: Version of the files of a cell.
_VERSION = 1
#: Key of what a mark says about the other files.
_METADATA = "cwnd"
#: Where it holds their hashes.
_SHA256 = re.compile(rb'"sha256": (\{[^{}]*\})')


@dataclass(frozen=True)
class Failure:
    """Why a cell gave nothing."""

    error: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Takes down what was raised."""
        return cls(type(error).__name__, str(error) or type(error).__name__)


@dataclass(frozen=True)
class Outcome:
    """What came of a cell: its files, or why there are none."""

    cell_id: str
    files: dict[str, bytes] | None = None
    failure: Failure | None = None


def attempt(
    text: str,
    cell: _core.Cell | None = None,
    control: _core.Control | None = None,
    world: World = SIMULATOR,
) -> Outcome:
    """Runs a cell, which is made from its scenario if not given; a failure is its outcome."""
    name = cell_id(text, world.engine)
    try:
        made = cell or _core.parse(text, name="cell.toml").cell(0)
        run = simulate if world is SIMULATOR else world.run
        return Outcome(name, encode(text, made, run(made, control), world.engine))
    except (KeyboardInterrupt, SystemExit, _core.Cancelled):
        raise
    except BaseException as error:  # a panic of the extension is no Exception
        return Outcome(name, failure=Failure.of(error))


def simulate(cell: _core.Cell, control: _core.Control | None = None) -> _core.Result:
    """Simulates a cell."""
    return cell.run(control)


def encode(
    text: str, cell: _core.Cell, result: _core.Result, engine: str = _core.engine
) -> dict[str, bytes]:
    """The files of a cell, by table, the mark last; the same bytes wherever they are made."""
    name = cell_id(text, engine)
    tables = {
        "flows": result.flows,
        "links": result.links,
        "series": result.flow_series,
        "link_series": result.link_series,
        "qdelay": result.qdelay,
        "requests": result.requests,
        "sketches": result.sketches,
        "unrecorded": result.unrecorded,
    }
    frames = {table: _keyed(name, pl.DataFrame(tables[table])) for table in RECORDS}
    missing = {
        "requests": result.requests_without_row,
        "flows": int(frames["unrecorded"]["flows"].sum()),
    }
    files = {
        table: _parquet(
            frame,
            rows_metadata(frame.height, frame.height + missing[table])
            if missing.get(table)
            else None,
        )
        for table, frame in frames.items()
    }
    row: dict[str, Any] = {
        CELL_ID: name,
        "seed": cell.seed,
        "duration_s": cell.duration_s,
        "warmup_s": cell.warmup_s,
        "events": result.events,
        "delivered_packets": result.delivered_packets,
        "requests": result.request_count,
        "requests_without_row": result.requests_without_row,
        "digest": result.digest,
        **{f"activity_{key}": count for key, count in result.activity.items()},
        **({FACTS: result.facts} if result.facts is not None else {}),
        RESOLVED: text,
    }
    said = {
        "version": _VERSION,
        "engine": engine,
        "polars": pl.__version__,
        "sha256": {table: checksums.sha256(file) for table, file in files.items()},
    }
    frame = pl.DataFrame(
        {key: [value] for key, value in row.items()}, schema_overrides={"seed": pl.UInt64}
    )
    mark = _parquet(frame, {_METADATA: f"{json.dumps(said)[:-1]}, {checksums.UNSIGNED}}}"})
    return {**files, MARK: checksums.signed(mark)}


def hashes(mark: bytes) -> dict[str, str] | None:
    """The hashes of the other files that a mark holds; `None` if it is not what was written."""
    if not checksums.signature_holds(mark):
        return None
    found = _SHA256.search(mark)
    said = {} if found is None else read_object(found[1])
    return said if said.keys() == set(RECORDS) else None


@dataclass(frozen=True)
class Mark:
    """What the last file of a cell says."""

    engine: str
    #: Version of the library that wrote the files.
    polars: str
    #: SHA-256 of each other file.
    sha256: Mapping[str, str]
    #: The scenario of the cell.
    text: str

    @property
    def cell_id(self) -> str:
        """The cell that it stands for."""
        return cell_id(self.text, self.engine)

    @property
    def other_writer(self) -> bool:
        """Whether another version of the library wrote the files: the same values, other bytes."""
        return self.polars != pl.__version__

    @classmethod
    def read(cls, data: bytes) -> Mark:
        """Reads it; `InputError` if it is not what was written."""
        if not checksums.signature_holds(data):
            raise InputError(checksums.DAMAGED)
        said = read_object(pl.read_parquet_metadata(io.BytesIO(data))[_METADATA])
        text = pl.read_parquet(io.BytesIO(data), columns=[RESOLVED])[RESOLVED][0]
        return cls(said["engine"], said["polars"], said["sha256"], text)


def same_values(ours: bytes, theirs: bytes) -> bool:
    """Whether two files hold the same table, if not in the same bytes."""
    mine, other = (pl.read_parquet(io.BytesIO(each)) for each in (ours, theirs))
    return mine.schema == other.schema and mine.equals(other)


def _keyed(name: str, table: pl.DataFrame) -> pl.DataFrame:
    # The codes of names depend on what else the process has read: files hold the names.
    columns = [
        column.cast(pl.String) if column.dtype == pl.Categorical else column
        for column in table.get_columns()
    ]
    key = pl.Series(CELL_ID, [name], dtype=pl.String)
    return pl.DataFrame([key.new_from_index(0, table.height), *columns])


def _parquet(table: pl.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    table.write_parquet(
        out,
        compression="zstd",
        statistics=False,  # of a row or two, they are longer than the rows
        row_group_size=_ROW_GROUP,
        metadata=metadata,
    )
    return out.getvalue()


#: Rows of a group: fixed, so that the bytes of a file are.
_ROW_GROUP = 1 << 17
