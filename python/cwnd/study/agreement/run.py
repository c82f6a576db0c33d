"""Runs of an agreement, and recorded agreements, repeated with the current simulator."""

from __future__ import annotations

import csv
import io
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import CwndError, InputError
from cwnd.results import ALL, METRICS, Estimate, values_of, welch
from cwnd.running import Linux, environment_of, failures, fill, plans
from cwnd.store import LINUX, load
from cwnd.study.agreement.files import DIGITS, GAIN_OVER, axis_column, table, write
from cwnd.study.agreement.verdict import (
    COMPARED,
    Agreement,
    Gain,
    Row,
    bases,
    compare,
    gain_of,
    parts_of,
    undecided,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from cwnd.results import Axis, Point, Run
    from cwnd.running import OnProgress, Overrides, Plan, ScenarioLike
    from cwnd.study.agreement.verdict import Points

    #: Shows the progress of the simulator or of Linux, given its name.
    Bars: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]

#: Directory of the simulator's result, in the directory of an agreement.
SIMULATOR = "simulator"


def agree(
    scenario: ScenarioLike,
    directory: str | os.PathLike[str],
    *,
    seed: int | None = None,
    overrides: Overrides = (),
    threads: int | None = None,
    up_to: int | None = None,
    progress: Bars | None = None,
    metrics: Sequence[str] = COMPARED,
    group: str | None = None,
    relative_to: str | None = None,
    trust: bool = False,
) -> Agreement:
    """Runs a scenario in the simulator and on Linux, and compares the results.

    Existing runs are not repeated: an interrupted comparison continues.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        directory: Directory of both results, the table and the figure.
        seed: Replaces the scenario's seed.
        overrides: Values that replace the scenario's, such as {"run.duration": "2 s"}.
        threads: Runs on Linux at a time; as many as the machine can route for if not given.
        up_to: Runs in the simulator and on Linux at points where the scenario's own runs scatter
            too much for a verdict; see `undecided`. No more than the scenario's if not given.
        progress: Makes the progress bar of the simulator or of Linux.
        metrics: Metrics to compare besides goodput, completion time and timeouts.
        group: Compare only this group of flows, `*` for all flows together; all flows and, where
            there are several groups, each of them if not given.
        relative_to: Reference group of `goodput_ratio`; the first if not given.
        trust: Trusts the code that the scenario names from now on.

    Raises:
        ScenarioError: Linux cannot provide something; the error shows where and what.
        InputError: `up_to` is less than the scenario's own runs, or there is no such group.
        MachineError: This machine cannot run the testbed.
        CwndError: Runs failed.
    """
    root = Path(directory)
    plan = plans.plan(scenario, seed=seed, overrides=overrides)
    Linux().check(plan.scenario)
    _check_groups(plan, (group, relative_to))
    repeat = plan.scenario.repeat
    if up_to is not None and up_to < repeat:
        raise InputError(f"--up-to {up_to}: the scenario has {repeat} runs of each point already")
    if up_to is not None and up_to > repeat:
        more_runs = [*plans.override_list(overrides), f"sweep.repeat={up_to}"]
        plan = plans.plan(scenario, seed=seed, overrides=more_runs)
    both_runs = _BothRuns(plan, root, threads, progress, trust)
    first = [run for run in range(plan.runs) if run % plan.scenario.repeat < repeat]
    simulated, real = both_runs.run(first)
    seeds = {plan.scenario.cell(run).seed for run in first[:repeat]}
    chosen = partial(compare, directory=root, metrics=metrics, group=group, relative_to=relative_to)
    found = chosen(simulated, real, seeds=seeds)
    again = undecided(found)
    if plan.scenario.repeat > repeat and again:
        more = [
            run for run in range(plan.runs) if tuple(plan.scenario.cell(run).axes.items()) in again
        ]
        simulated, real = both_runs.run([*first, *more])
        repeated = chosen(simulated, real, points=again)
        world = real.manifest.world or {}
        found = replace(found, world=world, repeated=repeated)
    write(found)
    return found


def _check_groups(plan: Plan, asked: Iterable[str | None]) -> None:
    """Refuses an unknown group before anything runs.

    Raises:
        InputError: There is no such group.
    """
    resolved = _core.read_toml(plan.scenario.cell(0).resolved, name=plan.scenario.name)
    groups = list(resolved.get("flow", {}))
    for name in asked:
        if name not in (None, ALL, *groups):
            known = ", ".join(groups)
            raise InputError(f"there is no group `{name}` in this scenario; there are {known}")


@dataclass(frozen=True)
class _BothRuns:
    plan: Plan
    root: Path
    threads: int | None
    bars: Bars | None
    trust: bool

    def run(self, numbers: Collection[int]) -> tuple[Run, Run]:
        return self._run(None, None, numbers), self._run(LINUX, self.threads, numbers)

    def _run(self, on: str | None, threads: int | None, numbers: Collection[int]) -> Run:
        name = on or SIMULATOR
        with nullcontext() if self.bars is None else self.bars(name) as on_progress:
            filled = fill(
                self.plan,
                self.root / name,
                threads=threads,
                environment=environment_of(on),
                replan=True,
                only=numbers,
                trust=self.trust,
                on_progress=on_progress,
            )
        if filled.failed:
            raise CwndError(failures(filled))
        return filled.run or load(self.root / name)


_COLUMN_OF = {metric.label: name for name, metric in METRICS.items()}


def agreement(recorded: Sequence[Mapping[str, Any]]) -> Agreement:
    """Reconstructs an agreement from rows of its table, without gains and Linux's facts."""
    columns = list(recorded[0])
    axes = columns[: columns.index("group")]
    rows = [_recorded(row, axes) for row in recorded if not row["metric"].startswith(GAIN_OVER)]
    return Agreement("", rows, [], {}, Path())


def _recorded(row: Mapping[str, Any], axes: Sequence[str]) -> Row:
    name = _COLUMN_OF[row["metric"]]
    scale = METRICS[name].scale
    simulator, linux, difference = (
        Estimate.of_interval(row["runs"], row[world] / scale, half and half / scale)
        for world in ("simulator", "linux", "difference")
        for half in [row[f"{world}_ci95"]]
    )
    point = {axis.removeprefix("axis_"): str(row[axis]) for axis in axes}
    tolerance = None if row["tolerance"] is None else row["tolerance"] / 100
    return Row(point, row["group"], name, simulator, linux, difference, tolerance)


def rerun_simulator(scenario: ScenarioLike, recorded: Path, directory: Path) -> Agreement:
    """Simulates the points of a recorded table, and compares them with Linux's values in it.

    Each point gets as many runs of the simulator as it had. Metrics that the table or the simulator
    lacks are left out, and tolerances are those of the table.

    Args:
        scenario: The scenario of the table.
        recorded: The table that `cwnd agree` wrote.
        directory: Directory of the simulator's runs; existing ones are not repeated.

    Raises:
        CwndError: Runs failed.
    """
    with recorded.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    plan = plans.plan(scenario)
    axes = [name for name, _ in plan.scenario.cell(0).axes.items()]
    runs: dict[Point, int] = {}
    for row in rows:
        at = _point(row, axes)
        runs[at] = max(int(row["runs"]), runs.get(at, 0))
    max_runs = max(runs.values(), default=1)
    plan = plans.plan(scenario, overrides={"sweep.repeat": max_runs})
    numbers = [
        number
        for number in range(plan.runs)
        if number % max_runs < runs.get(tuple(plan.scenario.cell(number).axes.items()), 0)
    ]
    filled = fill(plan, directory, replan=True, only=numbers)
    if filled.failed:
        raise CwndError(failures(filled))
    simulated = filled.run or load(directory)
    ours = parts_of(simulated)
    return Agreement(
        simulated.name,
        list(_rows(rows, ours, axes)),
        list(_gains(rows, ours, simulated.axes)),
        world={},
        directory=directory,
    )


def renew(scenario: ScenarioLike, recorded: Path, directory: Path) -> bool:
    """Repeats the simulator's side of a recorded table, and writes it if that side moved.

    A side that did not move keeps the table to the last digit. The arguments are those of
    `rerun_simulator`; returns `True` if the table was written.
    """
    text = table(rerun_simulator(scenario, recorded, directory))
    before, after = (
        [(row["simulator"], row["simulator_ci95"]) for row in csv.DictReader(io.StringIO(each))]
        for each in (recorded.read_text(encoding="utf-8"), text)
    )
    if before != after:
        recorded.write_text(text, encoding="utf-8")
    return before != after


def _rows(recorded: list[dict[str, str]], ours: Points, axes: list[str]) -> Iterator[Row]:
    for row in recorded:
        if row["metric"].startswith(GAIN_OVER):
            continue
        name, point = _COLUMN_OF[row["metric"]], _point(row, axes)
        part = ours[point][_group(row)].sort("seed").head(int(row["runs"]))
        simulator = Estimate.of(values_of(part, name))
        if simulator is None:
            continue
        scale = METRICS[name].scale
        linux = _linux(row, scale)
        tolerance = float(row["tolerance"]) / 100 if row["tolerance"] else None
        least = float(row.get("tolerance_least") or 0)
        difference = rounded_difference(simulator, linux, scale)
        yield Row(
            dict(point), _group(row), name, simulator, linux, difference, tolerance, least=least
        )


def _gains(recorded: list[dict[str, str]], ours: Points, axes: Sequence[Axis]) -> Iterator[Gain]:
    for row in recorded:
        if not row["metric"].startswith(GAIN_OVER):
            continue
        base, group = row["metric"].removeprefix(GAIN_OVER), _group(row)
        point = _point(row, [axis.name for axis in axes])
        axis, arm = next(
            (of.name, label)
            for of, (_, label) in zip(axes, point, strict=True)
            if base in bases(of, label)
        )
        other = tuple((a, base if a == axis else label) for a, label in point)
        count = int(row["runs"])
        before, after = ({group: ours[at][group].sort("seed").head(count)} for at in (other, point))
        simulator, linux = gain_of(before, after, group), _linux(row, 1)
        if simulator is None:
            continue
        rest = {a: label for a, label in point if a != axis}
        yield Gain(
            rest, group, axis, base, arm, simulator, linux, rounded_difference(simulator, linux, 1)
        )


def rounded_difference(simulator: Estimate, linux: Estimate, scale: float) -> Estimate:
    """Computes the difference from rounded values, as tables show them.

    Unrounded, a value just within its tolerance could be beyond it by the last digit.
    """

    def rounded(value: float) -> float:
        return round(value * scale, DIGITS) / scale

    width = None if simulator.half_width is None else rounded(simulator.half_width)
    found = welch(Estimate.of_interval(simulator.n, rounded(simulator.mean), width), linux)
    return replace(found, mean=rounded(found.mean))


def _point(row: dict[str, str], axes: list[str]) -> Point:
    return tuple((axis, row[axis_column(axis)]) for axis in axes)


def _group(row: dict[str, str]) -> str:
    """Group of a row; tables older than groups are of all flows."""
    return row.get("group", ALL)


def _linux(row: dict[str, str], scale: float) -> Estimate:
    """Estimate of Linux in a row of a table."""
    half_width = float(row["linux_ci95"]) / scale if row["linux_ci95"] else None
    return Estimate.of_interval(int(row["runs"]), float(row["linux"]) / scale, half_width)
