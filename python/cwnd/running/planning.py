"""Names of a plan's cells, and its description as a sweep."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.machine import usable_cores
from cwnd.results import sha256
from cwnd.running.scenario import run_id
from cwnd.running.workers import Workers
from cwnd.store import (
    CELL,
    CELL_ID,
    CELL_SHA,
    KEYS,
    Info,
    Planned,
    axes_of,
    cell_id,
    content,
    heading,
)

if TYPE_CHECKING:
    from cwnd.running.plans import Plan

#: Runs that a thread names at a time.
_BLOCK = 512


def name_cells(plan: Plan, engine: str = _core.engine) -> Planned:
    """Computes identifiers, run ids and axis values of all cells of a plan for an engine."""
    scenario = plan.scenario
    axes = axes_of(scenario, {*KEYS, CELL, CELL_SHA, CELL_ID})
    of_axes = [(axis.name, axis.column, axis.value_column) for axis in axes]

    def row(index: int) -> tuple[object, ...]:
        cell = scenario.cell(index)
        labels, values = cell.axes, cell.axis_values
        point = ([labels[name], values.get(name)] for name, _, _ in of_axes)
        return (
            cell_id(content(cell.resolved), engine),
            run_id(cell),
            scenario.name,
            cell.seed,
            index,
            cell.id,
            *chain.from_iterable(point),
        )

    def rows(block: int) -> list[tuple[object, ...]]:
        first = block * _BLOCK
        return [row(index) for index in range(first, min(first + _BLOCK, scenario.runs))]

    blocks = -(-scenario.runs // _BLOCK)
    with Workers(blocks, min(blocks, usable_cores()), rows) as workers:
        columns = zip(*chain.from_iterable(workers.results()), strict=True)
    names: list[str | None] = [CELL_ID, *KEYS, CELL, CELL_SHA]
    names += chain.from_iterable(pair for _, *pair in of_axes)
    named = {name: column for name, column in zip(names, columns, strict=True) if name}
    types: dict[str, Any] = {"seed": pl.UInt64}
    types.update({value: pl.Float64 for _, _, value in of_axes if value is not None})
    frame = pl.DataFrame(named, schema_overrides=types)
    info = Info(
        name=scenario.name,
        description=scenario.description,
        heading=heading(scenario.cell(0).resolved),
        cwnd_version=_core.__version__,
        engine=engine,
        scenario_sha256=sha256([plan.source.text]),
        overrides=plan.overrides,
        seed_override=plan.seed,
        runs=frame.height,
        cells=frame[CELL_ID].n_unique(),
        axes=axes,
        warnings=[dict(warning) for warning in scenario.warnings],
    )
    return Planned(info, frame, plan.source.text)
