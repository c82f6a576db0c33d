"""Puts the tables of all runs together, each row with the run it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.machine import machine
from cwnd.results import (
    CELL_ID,
    RESERVED,
    RESOLVED,
    TABLES,
    Axis,
    Manifest,
    Resolved,
    Run,
    Spool,
    sha256,
)
from cwnd.running import worlds
from cwnd.running.scenario import run_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cwnd.running.plans import Plan

#: Columns that every frame starts with, besides the axes.
KEYS = ("run_id", "scenario", "seed")
#: Columns of `Run.runs` besides those and the activity.
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
#: Rows of all tables together that make a batch: some 100 MB.
_BATCH_ROWS = 1 << 19
#: What keeps an axis apart from a column that has its name.
_AXIS_PREFIX = "axis_"
#: What columns of the activity begin with.
_ACTIVITY_PREFIX = "activity_"


@dataclass(frozen=True)
class Cost:
    """When, and how long."""

    started_at: str
    wall_s: float
    cpu_s: float
    threads: int


class Recorder:
    """Takes in what runs recorded, in their order; the columns grow, and go to disk in batches."""

    def __init__(self, plan: Plan, spool: Path | None, engine: str = _core.engine) -> None:
        self._plan = plan
        self._engine = engine
        self._spool = Spool(spool) if spool is not None else None
        self._gathered = _core.Gathered()
        #: Rows of the table of runs that belong to what is gathered.
        self._rows: list[dict[str, object]] = []
        self._axes: list[Axis] | None = None
        self._batches: dict[str, list[pl.LazyFrame]] = {name: [] for name in TABLES}
        self._activity: dict[str, int] = {}
        self._digests: list[str] = []
        self._steps_hashes: list[str] = []
        #: Indices of the cells: all, but of a run on Linux that was interrupted.
        self._cells: list[int] = []
        #: What is known of runs on Linux.
        self._facts: list[str] = []
        self._seeds: dict[int, None] = {}

    def add(self, cell: _core.Cell, result: _core.Result) -> None:
        """Takes in a run."""
        self._gathered.add(result)
        self._cells.append(cell.index)
        activity = result.activity
        labels, values = cell.axes, cell.axis_values
        self._rows.append(
            {
                "run_id": run_id(cell),
                "scenario": self._plan.scenario.name,
                "seed": cell.seed,
                **{f"label {name}": label for name, label in labels.items()},
                **{f"value {name}": value for name, value in values.items()},
                "cell": cell.index,
                "cell_sha": cell.id,
                "duration_s": cell.duration_s,
                "warmup_s": cell.warmup_s,
                "events": result.events,
                "delivered_packets": result.delivered_packets,
                "requests": result.request_count,
                "requests_without_row": result.requests_without_row,
                "digest": result.digest,
                **({"facts": result.facts} if result.facts is not None else {}),
                **{f"{_ACTIVITY_PREFIX}{name}": count for name, count in activity.items()},
            }
        )
        if result.facts is not None:
            self._facts.append(result.facts)
        self._seeds[cell.seed] = None
        self._digests.append(result.digest)
        if result.steps_hash is not None:
            self._steps_hashes.append(result.steps_hash)
        for name, count in activity.items():
            self._activity[name] = self._activity.get(name, 0) + count
        if self._gathered.rows >= _BATCH_ROWS:
            self._close_batch(last=False)

    def finish(self, cost: Cost) -> Run:
        """Makes the result of all runs."""
        if self._rows:
            self._close_batch(last=True)
        cells = self._cells
        # What a mechanism counts of its own may be told of some runs only.
        runs = pl.concat(self._batches.pop("runs"), how="diagonal")
        counted = pl.col([f"{_ACTIVITY_PREFIX}{name}" for name in self._activity])
        tables = {name: pl.concat(batches) for name, batches in self._batches.items()}
        return Run(
            manifest=self._manifest(cost),
            source=self._plan.source.text,
            runs=runs.with_columns(counted.fill_null(0)).collect(),
            flows=tables.pop("flows").collect(),
            links=tables.pop("links").collect(),
            samples=tables,
            resolved=Resolved(
                len(cells), lambda index: self._plan.scenario.cell(cells[index]).resolved
            ),
        )

    def _close_batch(self, *, last: bool) -> None:
        taken = {name: pl.DataFrame(table) for name, table in self._gathered.take().items()}
        columns = {column for frame in taken.values() for column in frame.columns}
        axes = self._axes = self._axes or axes_of(
            self._plan.scenario,
            columns | {*KEYS, *RUN_COLUMNS, *RESERVED, CELL_ID, RESOLVED},
        )
        keys, runs = _runs(self._rows, axes)
        frames = {
            "runs": runs,
            **{
                # The run's number becomes all that is known of it.
                name: pl.concat([keys[frame["run"]], frame.drop("run")], how="horizontal")
                for name, frame in taken.items()
            },
        }
        # What fits in one batch stays in memory.
        spool = None if last and not self._batches["runs"] else self._spool
        for name, frame in frames.items():
            self._batches[name].append(spool.put(name, frame) if spool else frame.lazy())
        self._rows = []

    def _manifest(self, cost: Cost) -> Manifest:
        plan = self._plan
        return Manifest(
            name=plan.scenario.name,
            description=plan.scenario.description,
            cwnd_version=_core.__version__,
            scenario_sha256=sha256([plan.source.text]),
            overrides=plan.overrides,
            seed_override=plan.seed,
            seeds=list(self._seeds),
            runs=len(self._digests),
            axes=self._axes or [],
            warnings=[dict(warning) for warning in plan.scenario.warnings],
            activity=self._activity,
            records_sha256=sha256(self._digests),
            started_at=cost.started_at,
            wall_s=cost.wall_s,
            cpu_s=cost.cpu_s,
            threads=cost.threads,
            machine=machine(),
            steps_hashes=self._steps_hashes or None,
            missing=plan.runs - len(self._digests),
            world=worlds.summary(self._facts),
            engine=self._engine,
        )


def _runs(rows: list[dict[str, object]], axes: list[Axis]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What says which run a row belongs to, and the table of runs."""
    frame = pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64}, infer_schema_length=None)
    keys = frame.select(
        *KEYS,
        *(pl.col(f"label {axis.name}").alias(axis.column) for axis in axes),
        *(
            pl.col(f"value {axis.name}").cast(pl.Float64).alias(axis.value_column)
            for axis in axes
            if axis.value_column is not None
        ),
    )
    told = [
        name
        for name in frame.columns
        if name not in KEYS and not name.startswith(("label ", "value "))
    ]
    return keys, pl.concat([keys, frame.select(told)], how="horizontal")


def axes_of(scenario: _core.Scenario, taken: set[str]) -> list[Axis]:
    """The axes of a scenario with their columns, none of which is taken; it takes them."""
    shapes = [
        (name, labels, values is not None, unit) for name, labels, values, unit in scenario.axes
    ]
    axes = name_axes(shapes, taken)
    return [replace(axis, over=scenario.over.get(axis.name, {})) for axis in axes]


def name_axes(
    shapes: Iterable[tuple[str, list[str], bool, str | None]], taken: set[str]
) -> list[Axis]:
    """The same from name, labels, whether the values are numbers, and their unit."""
    axes = []
    for name, labels, numeric, unit in shapes:
        column = _free(name, taken)
        value_column = None
        if numeric:
            suffix = unit.replace("/", "_") if unit else "value"
            value_column = _free(f"{name}_{suffix}", taken)
        axes.append(Axis(name, column, value_column, unit, labels))
    return axes


def _free(name: str, taken: set[str]) -> str:
    # What is counted has columns that are known only when the last run has ended.
    while name in taken or name.startswith(_ACTIVITY_PREFIX):
        name = _AXIS_PREFIX + name
    taken.add(name)
    return name
