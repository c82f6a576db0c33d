"""Runs of an agreement: a scenario in the simulator and on Linux, repeated where necessary."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import CwndError, InputError
from cwnd.results import ALL
from cwnd.running import Linux, environment_of, failures, fill, plans
from cwnd.store import LINUX, load
from cwnd.study.agreement.comparing import COMPARED, compare, undecided
from cwnd.study.agreement.files import write

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from cwnd.results import Run
    from cwnd.running import OnProgress, Plan, ScenarioLike
    from cwnd.study.agreement.verdict import Agreement

    #: Shows the progress of the simulator or of Linux, given its name.
    Bars: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]

#: Directory of the simulator's result, in the directory of an agreement.
SIMULATOR = "simulator"


def agree(
    scenario: ScenarioLike,
    directory: str | os.PathLike[str],
    *,
    threads: int | None = None,
    up_to: int | None = None,
    progress: Bars | None = None,
    metrics: Sequence[str] = COMPARED,
    group: str | None = None,
    relative_to: str | None = None,
) -> Agreement:
    """Runs a scenario in the simulator and on Linux, and compares the results.

    Existing runs are not repeated: an interrupted comparison continues.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        directory: Directory of both results, the table and the figure.
        threads: Runs on Linux at a time; as many as the machine can route for if not given.
        up_to: Runs in the simulator and on Linux at points where the scenario's own runs scatter
            too much for a verdict; see `undecided`. No more than the scenario's if not given.
        progress: Makes the progress bar of the simulator or of Linux.
        metrics: Metrics to compare besides goodput, completion time and timeouts.
        group: Compare only this group of flows, `*` for all flows together; all flows and, where
            there are several groups, each of them if not given.
        relative_to: Reference group of `goodput_ratio`; the first if not given.

    Raises:
        ScenarioError: Linux cannot provide something; the error shows where and what.
        InputError: `up_to` is less than the scenario's own runs, or there is no such group.
        MachineError: This machine cannot run the testbed.
        CwndError: Runs failed.
    """
    root = Path(directory)
    plan = plans.plan(scenario)
    Linux().check(plan.scenario)
    _check_groups(plan, (group, relative_to))
    repeat = plan.scenario.repeat
    if up_to is not None and up_to < repeat:
        raise InputError(f"--up-to {up_to}: the scenario has {repeat} runs of each point already")
    if up_to is not None and up_to > repeat:
        plan = plans.plan(scenario, overrides={"sweep.repeat": up_to})
    both_runs = _BothRuns(plan, root, threads, progress)
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
                on_progress=on_progress,
            )
        if filled.failed:
            raise CwndError(failures(filled))
        return filled.run or load(self.root / name)
