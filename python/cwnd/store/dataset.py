"""Layout of a sweep's directory, its description, and the key columns of all tables."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS, checksums, read_object
from cwnd.results import RESERVED, Axis, described
from cwnd.store.journal import frames
from cwnd.store.layout import CELL_ID, DATASET, ERRORS, JOURNAL, MANIFEST, RESOLVED, RUNS, SCENARIO
from cwnd.store.old_files import FOLDER_DIGITS, cell_file, cells_in

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable

    from cwnd import _core

#: Key columns at the start of every frame, besides the axes.
KEYS = ("run_id", "scenario", "seed")
#: Columns of `Run.runs` besides keys and counters.
RUN_COLUMNS = (
    "cell",
    "cell_sha",
    "duration_s",
    "warmup_s",
    "events",
    "delivered_packets",
    "requests",
    "requests_without_row",
    "digest",
    "facts",
    "n",
)
#: Prefix for the column of an axis whose name is taken.
_AXIS_PREFIX = "axis_"
#: Prefix of the columns of counters.
_ACTIVITY_PREFIX = "activity_"


def axes_of(scenario: _core.Scenario, taken: set[str]) -> list[Axis]:
    """Builds the axes of a scenario with unused column names, which are added to `taken`."""
    shapes = [
        (name, labels, values is not None, unit) for name, labels, values, unit in scenario.axes
    ]
    axes = name_axes(shapes, taken)
    return [replace(axis, over=scenario.over.get(axis.name, {})) for axis in axes]


def renamed_axes(axes: list[Axis], columns: set[str]) -> list[Axis]:
    """Renames the columns of a plan's axes so that no table uses them otherwise."""
    shapes = [(a.name, a.labels, a.value_column is not None, a.unit) for a in axes]
    taken = columns | {*KEYS, *RUN_COLUMNS, *RESERVED, CELL_ID, RESOLVED}
    return [
        replace(new, over=old.over) for new, old in zip(name_axes(shapes, taken), axes, strict=True)
    ]


def name_axes(
    shapes: Iterable[tuple[str, list[str], bool, str | None]], taken: set[str]
) -> list[Axis]:
    """Chooses columns for axes, given name, labels, `True` for numeric values, and unit."""
    axes = []
    for name, labels, numeric, unit in shapes:
        column = _unused_name(name, taken)
        value_column = None
        if numeric:
            suffix = unit.replace("/", "_") if unit else "value"
            value_column = _unused_name(f"{name}_{suffix}", taken)
        axes.append(Axis(name, column, value_column, unit, labels))
    return axes


def _unused_name(name: str, taken: set[str]) -> str:
    # The names of counters are known only when the last run has ended.
    while name in taken or name.startswith(_ACTIVITY_PREFIX):
        name = _AXIS_PREFIX + name
    taken.add(name)
    return name


#: Format name that marks a directory as a sweep of cwnd.
FORMAT = "cwnd-dataset"
#: Version of the layout; a reader refuses a newer one.
FORMAT_VERSION = 2

#: Files of an incomplete sweep: description, runs and scenario. The scenario has a name of its own,
#: as a result to be replaced may have a `scenario.toml`.
INFO, PLAN, SOURCE = DATASET, "plan.parquet", "plan.toml"

#: Remedy for files that the next `cwnd run` writes again.
REWRITE_REMEDY = "`cwnd run SCENARIO -o {}` writes it again"
#: Remedy for a damaged sweep of version 1, which is read only.
RECOMPUTE_REMEDY = "`cwnd run SCENARIO -o DIR --replan` computes it anew"
#: Last characters of the description, before which its hash is inserted.
CLOSING = "\n}"

#: Column of the plan with the index of a run.
CELL = "cell"
#: Column of the plan with the hash of a run's scenario, including its name.
CELL_SHA = "cell_sha"


@dataclass(frozen=True)
class Info:
    """Description of a sweep; it is independent of the time and place of its computation."""

    name: str
    description: str
    #: Lines of a resolved scenario with name and description.
    heading: str
    cwnd_version: str
    #: Version of the simulator, or of kernel and testbed; part of the cells' identifiers.
    engine: str
    #: SHA-256 of the scenario file as given.
    scenario_sha256: str
    overrides: list[str]
    seed_override: int | None
    #: Number of runs of the plan, and of different cells among them.
    runs: int
    cells: int
    #: Axes, with the columns of the plan that hold them.
    axes: list[Axis]
    warnings: list[dict[str, Any]]
    #: SHA-256 of the plan's file.
    plan_sha256: str = ""
    #: Installed packages whose controllers ran: name, version and hash of the library.
    installed: list[str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the description as the JSON object that is written."""
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: object, where: str) -> Info:
        """Parses a description; unknown fields are ignored.

        Raises:
            InputError: It is damaged, or of a newer version.
        """
        return described(cls, data, where, FORMAT, FORMAT_VERSION)


class Dataset:
    """Directory of an incomplete sweep, or of a sweep of version 1."""

    def __init__(self, path: Path, info: Info) -> None:
        self.path = path
        self.info = info

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Dataset:
        """Opens a sweep.

        Raises:
            InputError: There is none, or it was written by a newer version.
            DamageError: Its description is damaged.
        """
        path = Path(directory)
        if not path.exists():
            raise InputError(f"{path}: there is no such directory; `cwnd run` makes one")
        file = path / INFO
        if not file.exists():
            raise InputError(f"{path}: not a cwnd sweep (it has no {INFO})")
        remedy = REWRITE_REMEDY.format(path)
        written = checksums.read(file, None, remedy)
        # Descriptions of older sweeps have no hash.
        if checksums.signature_matches(written) is False:
            raise DamageError(file, checksums.DAMAGED, remedy)
        try:
            data = read_object(written)
        except ValueError as error:
            raise DamageError(file, checksums.DAMAGED, remedy) from error
        return cls(path, Info.from_json(data, str(file)))

    @staticmethod
    def is_at(path: Path) -> bool:
        """`True` if a directory holds an incomplete sweep, or a sweep of version 1."""
        return (path / INFO).is_file()

    @property
    def is_old(self) -> bool:
        """`True` if each cell has files of its own, as in version 1."""
        return (self.path / RUNS).is_dir()

    def plan(self) -> pl.DataFrame:
        """Reads the plan: one row for each run with its cell and its point of the sweep.

        Raises:
            DamageError: The file is missing or damaged.
        """
        remedy = REWRITE_REMEDY.format(self.path)
        data = checksums.read(self.path / PLAN, self.info.plan_sha256, remedy)
        return pl.read_parquet(io.BytesIO(data))

    def source(self) -> str:
        """Reads the scenario as given.

        Raises:
            DamageError: The file is missing or damaged.
        """
        remedy = REWRITE_REMEDY.format(self.path)
        file = self.path / (SCENARIO if self.is_old else SOURCE)
        return checksums.read(file, self.info.scenario_sha256, remedy).decode()

    def file(self, table: str, cell: str) -> Path:
        """Path of a table of a cell in version 1."""
        return cell_file(self.path, table, cell)

    def files(self, table: str, cells: Iterable[str]) -> list[str]:
        """Paths of a table of many cells in version 1, as strings: `Path` objects are slower."""
        root = self.path / table
        return [f"{root}/{cell[:FOLDER_DIGITS]}/{cell}.parquet" for cell in cells]

    def error_file(self, cell: str, kind: str) -> Path:
        """Path of the error of a failed cell (`json`), or of its scenario (`toml`)."""
        return self.path / ERRORS / f"{cell}.{kind}"

    def done(self) -> set[str]:
        """Identifiers of the finished cells, of this plan or another."""
        if self.is_old:
            return set(cells_in(self.path, RUNS))
        return {cell for frame in frames(self.path / JOURNAL) for cell in frame.cells}

    def failed(self) -> set[str]:
        """Identifiers of the cells whose last attempt failed."""
        return {file.stem for file in (self.path / ERRORS).glob("[0-9a-f]*.json")}

    def failure(self, cell: str) -> dict[str, str]:
        """Reads error and message of a failed cell."""
        try:
            fields = read_object(self.error_file(cell, "json").read_bytes())
        except (OSError, ValueError):
            return {"error": "unknown", "message": "what it said cannot be read"}
        return {key: str(fields.get(key, "")) for key in ("error", "message")}


@dataclass(frozen=True)
class Planned:
    """The intended sweep: description, plan and scenario."""

    info: Info
    frame: pl.DataFrame
    #: Text of the scenario as given.
    source: str

    def cells(self) -> dict[str, int]:
        """Maps each cell to the index of its first run."""
        first = self.frame.unique(CELL_ID, keep="first", maintain_order=True)
        return dict(zip(first[CELL_ID].to_list(), first[CELL].to_list(), strict=True))

    def of_runs(self, numbers: Collection[int]) -> set[str]:
        """Identifiers of the cells of these runs."""
        return set(self.frame.filter(pl.col(CELL).is_in(list(numbers)))[CELL_ID])

    def files(self) -> dict[str, bytes]:
        """Formats the files that describe the sweep.

        The description is the last one, as its presence makes a directory a sweep.
        """
        out = io.BytesIO()
        self.frame.write_parquet(out, compression="zstd", statistics=False)
        runs = out.getvalue()
        hashed = replace(self.info, plan_sha256=checksums.sha256(runs))
        described = json.dumps(hashed.to_json(), indent=2, ensure_ascii=False)
        described = f"{described.removesuffix(CLOSING)},\n  {checksums.UNSIGNED}{CLOSING}\n"
        info = checksums.signed(described.encode())
        return {SOURCE: self.source.encode(), PLAN: runs, INFO: info}


def is_packed(root: Path) -> bool:
    """`True` if a directory holds a complete result, of its plan or of an earlier one."""
    # A result without its list of hashes is being moved into the journal of the sweep beside it.
    unfinished = (root / INFO).exists() and not (root / SUMS).exists()
    return (root / MANIFEST).exists() and not unfinished
