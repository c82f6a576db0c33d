"""Puts the tables of all runs together, each row with the run it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.manifest import Axis, Manifest, machine, sha256
from cwnd.results import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.runner import Cost, Plan

#: Columns that every frame starts with, besides the axes.
_KEYS = ("run_id", "scenario", "seed")
#: Columns of `Run.runs` besides those and the activity.
_RUN_COLUMNS = (
    "cell",
    "cell_sha",
    "duration_s",
    "warmup_s",
    "events",
    "delivered_packets",
    "digest",
    "n",
)
#: What keeps an axis apart from a column that has its name.
_AXIS_PREFIX = "axis_"


def build(plan: Plan, results: list[_core.Result], cost: Cost) -> Run:
    """Makes the result of a plan's runs."""
    cells = plan.cells
    tables = {
        "flows": _frames(results, lambda result: result.flows),
        "links": _frames(results, lambda result: result.links),
        "series": _frames(results, lambda result: result.flow_series),
        "link_series": _frames(results, lambda result: result.link_series),
        "qdelay": _frames(results, lambda result: result.qdelay),
    }
    taken = {name for frames in tables.values() for frame in frames for name in frame.columns}
    axes = _axes(plan.scenario.axes, cells, taken | set(_KEYS) | set(_RUN_COLUMNS))
    keys = [_keys(plan.scenario.name, cell, axes) for cell in cells]
    joined = {
        name: pl.concat(
            [frame.select(*key, *frame.columns) for key, frame in zip(keys, frames, strict=True)],
            # Runs whose queues differ have different columns of reasons.
            how="diagonal_relaxed",
        )
        for name, frames in tables.items()
    }
    runs = pl.concat(
        [
            pl.DataFrame(
                {
                    "cell": cell.index,
                    "cell_sha": cell.id,
                    "duration_s": cell.duration_s,
                    "warmup_s": cell.warmup_s,
                    "events": result.events,
                    "delivered_packets": result.delivered_packets,
                    "digest": result.digest,
                    **{f"activity_{name}": count for name, count in result.activity.items()},
                }
            ).select(*key, pl.all())
            for cell, result, key in zip(cells, results, keys, strict=True)
        ],
        how="diagonal_relaxed",
    )
    return Run(
        manifest=_manifest(plan, results, cost, axes),
        source=plan.source.text,
        runs=runs,
        resolved=[cell.resolved for cell in cells],
        **joined,
    )


def run_id(cell: _core.Cell) -> str:
    """Names a run: its place in the sweep, and the beginning of the hash of what was run."""
    return f"{cell.index:04d}-{cell.id[:12]}"


def _frames(
    results: list[_core.Result], table: Callable[[_core.Result], _core.Table]
) -> list[pl.DataFrame]:
    # polars takes the Arrow memory over as it is.
    return [pl.DataFrame(table(result)) for result in results]


def _keys(scenario: str, cell: _core.Cell, axes: list[Axis]) -> list[pl.Expr]:
    keys = [
        pl.lit(run_id(cell)).alias("run_id"),
        pl.lit(scenario).alias("scenario"),
        pl.lit(cell.seed, dtype=pl.UInt64).alias("seed"),
    ]
    keys += [pl.lit(cell.axes[axis.name]).alias(axis.column) for axis in axes]
    keys += [
        pl.lit(cell.axis_values[axis.name], dtype=pl.Float64).alias(axis.value_column)
        for axis in axes
        if axis.value_column is not None
    ]
    return keys


def _axes(names: list[str], cells: list[_core.Cell], taken: set[str]) -> list[Axis]:
    axes = []
    for name in names:
        labels = list(dict.fromkeys(cell.axes[name] for cell in cells))
        column = _free(name, taken)
        numeric = all(cell.axis_values.get(name) is not None for cell in cells)
        unit = cells[0].axis_units.get(name) if numeric else None
        value_column = None
        if numeric:
            suffix = unit.replace("/", "_") if unit else "value"
            value_column = _free(f"{name}_{suffix}", taken)
        axes.append(Axis(name, column, value_column, unit, labels))
    return axes


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = _AXIS_PREFIX + name
    taken.add(name)
    return name


def _manifest(plan: Plan, results: list[_core.Result], cost: Cost, axes: list[Axis]) -> Manifest:
    cells = plan.cells
    activity: dict[str, int] = {}
    for result in results:
        for name, count in result.activity.items():
            activity[name] = activity.get(name, 0) + count
    return Manifest(
        name=plan.scenario.name,
        description=plan.scenario.description,
        cwnd_version=_core.__version__,
        scenario_sha256=sha256([plan.source.text]),
        overrides=plan.overrides,
        seed_override=plan.seed,
        seeds=list(dict.fromkeys(cell.seed for cell in cells)),
        runs=len(cells),
        axes=axes,
        warnings=[dict(warning) for warning in plan.scenario.warnings],
        activity=activity,
        records_sha256=sha256([result.digest for result in results]),
        started_at=cost.started_at,
        wall_s=cost.wall_s,
        cpu_s=cost.cpu_s,
        threads=cost.threads,
        machine=machine(),
        steps_hashes=[r.steps_hash for r in results if r.steps_hash is not None] or None,
    )
