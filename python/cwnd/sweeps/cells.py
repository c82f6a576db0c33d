"""A cell: one run, named by what it simulates; and the files that cells had in version 1."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.errors import InputError, MachineError
from cwnd.files import checksums, read_object
from cwnd.results import RESOLVED, cell_id
from cwnd.running import SIMULATOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.running import World

#: The table of runs. Of a cell of version 1 its file was written last: where it is, the cell is
#: complete.
MARK = "runs"
#: The other files of a cell, one for each table; none is left out, empty or not.
RECORDS = (
    *("flows", "links", "series", "link_series", "qdelay"),
    *("requests", "sketches", "unrecorded"),
)
FILES = (MARK, *RECORDS)
#: What else is known of a run on Linux, as JSON.
FACTS = "facts"

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
    """A cell that was computed, or the reason why there is none."""

    cell_id: str
    #: Its content, and what it recorded.
    made: tuple[str, _core.Cell, _core.Result] | None = None
    failure: Failure | None = None


def attempt(
    text: str,
    cell: _core.Cell | None = None,
    control: _core.Control | None = None,
    world: World = SIMULATOR,
) -> Outcome:
    """Runs a cell, which is made from its content if not given; a failure is its outcome."""
    name = cell_id(text, world.engine)
    try:
        made = cell or _core.parse(text, name="cell.toml").cell(0)
        run = simulate if world is SIMULATOR else world.run
        return Outcome(name, (text, made, run(made, control)))
    except (KeyboardInterrupt, SystemExit, _core.Cancelled, MachineError):
        raise
    except BaseException as error:  # a panic of the extension is no Exception
        return Outcome(name, failure=Failure.of(error))


def simulate(cell: _core.Cell, control: _core.Control | None = None) -> _core.Result:
    """Simulates a cell."""
    return cell.run(control)


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
    #: SHA-256 of each other file.
    sha256: Mapping[str, str]
    #: The scenario of the cell.
    text: str

    @property
    def cell_id(self) -> str:
        """The cell that it stands for."""
        return cell_id(self.text, self.engine)

    @classmethod
    def read(cls, data: bytes) -> Mark:
        """Reads it; `InputError` if it is not what was written."""
        if not checksums.signature_holds(data):
            raise InputError(checksums.DAMAGED)
        said = read_object(pl.read_parquet_metadata(io.BytesIO(data))[_METADATA])
        text = pl.read_parquet(io.BytesIO(data), columns=[RESOLVED])[RESOLVED][0]
        return cls(said["engine"], said["sha256"], text)
