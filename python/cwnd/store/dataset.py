"""Layout of a sweep's directory, and the sweep's description of itself."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS, checksums, read_object
from cwnd.results import Axis, described
from cwnd.store.journal import frames
from cwnd.store.layout import CELL_ID, DATASET, ERRORS, JOURNAL, MANIFEST, MARK, SCENARIO
from cwnd.store.old_files import FOLDER_DIGITS, cell_file, cells_in

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable


#: Marks a directory as a sweep of cwnd.
FORMAT = "cwnd-dataset"
#: Version of the layout; a reader refuses a newer one.
FORMAT_VERSION = 2

#: Description, runs and scenario of a sweep while cells are missing; a result that it will replace
#: has its own `scenario.toml`.
INFO, PLAN, SOURCE = DATASET, "plan.parquet", "plan.toml"

#: Remedy for files that the next call writes again.
REWRITTEN = "`cwnd run SCENARIO -o {}` writes it again"
#: Remedy for a damaged sweep of version 1, which is read only.
ANEW = "`cwnd run SCENARIO -o DIR --replan` computes it anew"
#: End of the description.
CLOSING = "\n}"

#: Column of the plan that numbers the runs.
CELL = "cell"
#: And the one that has the hash of their scenarios, names included.
CELL_SHA = "cell_sha"


@dataclass(frozen=True)
class Info:
    """Description of a sweep; nothing in it depends on when or where it was made."""

    name: str
    description: str
    #: Both as a resolved scenario has them.
    heading: str
    cwnd_version: str
    #: The simulator that made the cells; part of their names.
    engine: str
    #: SHA-256 of the scenario file as given.
    scenario_sha256: str
    overrides: list[str]
    seed_override: int | None
    #: Runs of the plan, and different cells among them.
    runs: int
    cells: int
    #: The axes, and the columns of the plan that hold them.
    axes: list[Axis]
    warnings: list[dict[str, Any]]
    #: SHA-256 of the plan's file.
    plan_sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: object, where: str) -> Info:
        """Reads it back; what it does not know it leaves out."""
        return described(cls, data, where, FORMAT, FORMAT_VERSION)


class Dataset:
    """The directory of a sweep."""

    def __init__(self, path: Path, info: Info) -> None:
        self.path = path
        self.info = info

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Dataset:
        """Finds a sweep; `InputError` if there is none."""
        path = Path(directory)
        if not path.exists():
            raise InputError(f"{path}: there is no such directory; `cwnd run` makes one")
        file = path / INFO
        if not file.exists():
            raise InputError(f"{path}: not a cwnd sweep (it has no {INFO})")
        remedy = REWRITTEN.format(path)
        written = checksums.read(file, None, remedy)
        # Older sweeps have no hash of this file, only of all others.
        if checksums.signature_holds(written) is False:
            raise DamageError(file, checksums.DAMAGED, remedy)
        try:
            data = read_object(written)
        except ValueError as error:
            raise DamageError(file, checksums.DAMAGED, remedy) from error
        return cls(path, Info.from_json(data, str(file)))

    @staticmethod
    def is_at(path: Path) -> bool:
        """Tells whether a directory is a sweep whose cells are not all there, or of version 1."""
        return (path / INFO).is_file()

    @property
    def is_old(self) -> bool:
        """`True` if its cells are in files of their own, as in version 1."""
        return (self.path / MARK).is_dir()

    def plan(self) -> pl.DataFrame:
        """One row for each run: its cell and where it stands in the sweep."""
        remedy = REWRITTEN.format(self.path)
        data = checksums.read(self.path / PLAN, self.info.plan_sha256, remedy)
        return pl.read_parquet(io.BytesIO(data))

    def source(self) -> str:
        """The scenario as given."""
        remedy = REWRITTEN.format(self.path)
        file = self.path / (SCENARIO if self.is_old else SOURCE)
        return checksums.read(file, self.info.scenario_sha256, remedy).decode()

    def file(self, table: str, cell: str) -> Path:
        """Path of a table of a cell of version 1."""
        return cell_file(self.path, table, cell)

    def files(self, table: str, cells: Iterable[str]) -> list[str]:
        """Paths of a table of many cells, as text: objects would take longer to make."""
        root = self.path / table
        return [f"{root}/{cell[:FOLDER_DIGITS]}/{cell}.parquet" for cell in cells]

    def error_file(self, cell: str, kind: str) -> Path:
        """Path of the reason why a cell failed (`json`), or of its scenario (`toml`)."""
        return self.path / ERRORS / f"{cell}.{kind}"

    def done(self) -> set[str]:
        """The cells that are complete, of this plan or another."""
        if self.is_old:
            return set(cells_in(self.path, MARK))
        return {cell for frame in frames(self.path / JOURNAL) for cell in frame.cells}

    def failed(self) -> set[str]:
        """The cells that failed when they were last tried."""
        return {file.stem for file in (self.path / ERRORS).glob("[0-9a-f]*.json")}

    def failure(self, cell: str) -> dict[str, str]:
        """Reads the error and the message of a cell that failed."""
        try:
            said = read_object(self.error_file(cell, "json").read_bytes())
        except (OSError, ValueError):
            return {"error": "unknown", "message": "what it said cannot be read"}
        return {key: str(said.get(key, "")) for key in ("error", "message")}


@dataclass(frozen=True)
class Planned:
    """A sweep as it is to be on disk."""

    info: Info
    frame: pl.DataFrame
    #: The scenario as given.
    source: str

    def cells(self) -> dict[str, int]:
        """Each cell with the first of the runs that it is."""
        first = self.frame.unique(CELL_ID, keep="first", maintain_order=True)
        return dict(zip(first[CELL_ID].to_list(), first[CELL].to_list(), strict=True))

    def of_runs(self, numbers: Collection[int]) -> set[str]:
        """The cells that these runs are."""
        return set(self.frame.filter(pl.col(CELL).is_in(list(numbers)))[CELL_ID])

    def files(self) -> dict[str, bytes]:
        """Files that describe it; the description last, as it makes a sweep of a directory."""
        out = io.BytesIO()
        self.frame.write_parquet(out, compression="zstd", statistics=False)
        runs = out.getvalue()
        hashed = replace(self.info, plan_sha256=checksums.sha256(runs))
        described = json.dumps(hashed.to_json(), indent=2, ensure_ascii=False)
        described = f"{described.removesuffix(CLOSING)},\n  {checksums.UNSIGNED}{CLOSING}\n"
        info = checksums.signed(described.encode())
        return {SOURCE: self.source.encode(), PLAN: runs, INFO: info}


def is_packed(root: Path) -> bool:
    """Tells whether a directory has a complete result, of its plan or of the one before."""
    # A result without its list of hashes is on its way into the journal of the sweep beside it.
    unfinished = (root / INFO).exists() and not (root / SUMS).exists()
    return (root / MANIFEST).exists() and not unfinished
