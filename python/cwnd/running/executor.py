"""Computation of a sweep's missing cells into a directory (`cwnd.sweep`, `cwnd run`)."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import CwndError, InputError, explain
from cwnd.machine import cpu_time_s
from cwnd.results import sha256
from cwnd.running import plans, runner
from cwnd.running.cells import Checked, Outcome, PendingCells, attempt, name_cells
from cwnd.running.code import check_trust
from cwnd.running.environments import SIMULATOR, environment_named
from cwnd.running.processes import process_backend
from cwnd.running.progress import Progress
from cwnd.store import (
    ACTIVITY,
    ERRORS,
    LINUX,
    PART_ROWS,
    RUNS,
    Batch,
    Dataset,
    Policy,
    Shard,
    Target,
    cell_id,
    content,
    is_packed,
    journal_frames,
    load,
    packing,
    session,
    sessions,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping

    from cwnd import _core
    from cwnd.results import Run
    from cwnd.running.cells import Backend, Failure, Work
    from cwnd.running.environments import Environment
    from cwnd.running.plans import Overrides, Plan, ScenarioLike
    from cwnd.running.progress import OnProgress
    from cwnd.store import Planned, Session, Writer


@dataclass(frozen=True)
class FillResult:
    """Result of a call of `fill`: counts of cells, times in seconds, and the run if complete."""

    dataset: Dataset
    #: Number of wanted cells that were stored before, number computed, and failures by cell.
    before: int
    made: int
    failed: dict[str, Failure]
    #: Number of cells of the whole sweep that are still missing.
    missing: int
    wall_s: float
    cpu_s: float
    #: The result, if the sweep is complete.
    run: Run | None = None


@dataclass(frozen=True)
class FillOptions:
    """Arguments of `fill` besides plan and directory."""

    threads: int
    shard: Shard | None
    only: Collection[int] | None
    backend: Backend
    on_progress: OnProgress | None
    environment: Environment
    replan: bool
    replace: bool
    recompute: bool
    work: Work | None
    recorded: Mapping[str, Path] | None


def local_backend(
    pending: PendingCells, writer: Writer, threads: int, on_progress: OnProgress
) -> Generator[Outcome | Batch, None, None]:
    """Backend that computes cells on the threads of this process."""

    def work(cell: _core.Cell, control: _core.Control) -> Outcome:
        text = content(cell.resolved)
        if pending.work is not None:
            outcome = Outcome(cell_id(text, pending.environment.engine))
            writer.add(text, cell, pending.work(cell, control))
            return outcome
        outcome = attempt(text, cell, control, pending.environment)
        if outcome.made is not None:
            writer.add(*outcome.made)
        return Outcome(outcome.cell_id, failure=outcome.failure)

    workers = max(1, min(threads, pending.runs))
    with runner.running(pending, work, workers, on_progress, in_order=False) as (done, _):
        for _, outcome in done:
            yield outcome


class FillJob:
    """The computation of the cells that a directory lacks."""

    def __init__(
        self, root: Path, plan: Plan, planned: Planned, writing: Session, options: FillOptions
    ) -> None:
        self._plan, self._planned = plan, planned
        self._writing, self._options = writing, options
        self._dataset = Dataset(root, planned.info)
        policy = Policy(
            replan=options.replan,
            replace=options.replace,
            recompute=options.recompute,
            exclusive=options.shard is None,
            partial_plan=options.only is not None,
        )
        self._target = Target(root, planned, writing, policy)

    def fill(self) -> FillResult:
        """Computes the missing cells; a complete result is returned as it is."""
        wanted = set(self._target.cells)
        if self._options.only is not None:
            wanted = self._planned.of_runs(self._options.only)
        mine = wanted if self._options.shard is None else self._options.shard.mine(wanted)
        ready = self._target.prepare()
        if ready is not None:
            self._writing.log_end(how="finished", wall_s=0.0, cpu_s=0.0)
            return FillResult(self._dataset, len(mine), 0, {}, 0, 0.0, 0.0, ready)
        return self._fill(mine)

    def _fill(self, mine: Collection[str]) -> FillResult:
        options, writing, target = self._options, self._writing, self._target
        done = target.done
        indices = [i for cell, i in target.cells.items() if cell in mine and cell not in done]
        before = len(mine) - len(indices)
        if options.work is not None:
            # Identical runs are not merged here, as each has capture files of its own.
            indices = list(range(self._plan.runs))
        failed: dict[str, Failure] = {}
        made, fraction = 0, 0.0

        def on_progress(now: Progress) -> None:
            nonlocal fraction
            fraction = now.fraction
            writer.poll()
            writing.log_progress(done=made, failed=len(failed), fraction=fraction)
            if options.on_progress is not None:
                options.on_progress(
                    Progress(fraction, before + made, len(failed), before + len(indices))
                )

        writer = target.writer()
        wall, cpu, end, memory_batch = time.perf_counter(), cpu_time_s(), "failed", None
        try:
            with writer:
                pending = PendingCells(
                    self._plan.scenario, indices, options.environment, options.work
                )
                with closing(
                    options.backend(pending, writer, options.threads, on_progress)
                ) as outcomes:
                    for outcome in outcomes:
                        if isinstance(outcome, Batch):
                            writer.put(outcome)
                            made += len(outcome.cells)
                        elif outcome.failure is None:
                            made += 1
                        else:
                            failed[outcome.cell_id] = outcome.failure
                            self._fail(writer, outcome)
                if not failed and target.cells.keys() <= done | set(mine):
                    memory_batch = writer.take(PART_ROWS)
                else:
                    writer.describe()
            end = "finished"
        except KeyboardInterrupt:
            end = "interrupted"
            raise
        finally:
            wall, cpu = time.perf_counter() - wall, cpu_time_s() - cpu
            writing.log_progress(done=made, failed=len(failed), fraction=fraction, force=True)
            writing.log_end(how=end, wall_s=wall, cpu_s=cpu)
        hashes = None
        if isinstance(options.work, Checked) and not failed:
            hashes = options.work.of_runs(self._plan.runs)
        missing, run = target.finish(
            writer, memory_batch, recorded=options.recorded, steps_hashes=hashes
        )
        return FillResult(self._dataset, before, made, failed, missing, wall, cpu, run)

    def _fail(self, writer: Writer, outcome: Outcome) -> None:
        failure, cell = outcome.failure, outcome.cell_id
        assert failure is not None
        resolved = self._plan.scenario.cell(self._target.cells[cell]).resolved
        writer.fail(cell, failure.error, failure.message, resolved)


def sweep(
    scenario: ScenarioLike,
    directory: str | os.PathLike[str],
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002 - named as the option of the command line
    threads: int | None = None,
    shard: str | None = None,
    on: str | None = None,
    replan: bool = False,
    trust: bool = False,
    progress: bool | OnProgress = False,
) -> Run:
    """Simulates a scenario into a directory, where each run is safe shortly after it is done.

    Runs of an earlier call, even an interrupted or killed one, are not simulated again.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        directory: Directory of the sweep.
        seed: Replaces the scenario's seed.
        set: Replaces values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
        threads: Runs at a time; if not given all cores, or on Linux as many as they can route. It
            never changes a simulated result.
        shard: `"2/8"` does the second of eight parts of the runs.
        on: `"linux"` runs in real time on this machine's kernel. `"ray"` computes on Ray: on the
            cluster of this machine, or in processes of its own; `"ray:HOST:PORT"` names the
            cluster, `"ray://HOST:PORT"` its client port.
        replan: Removes existing runs of another sweep, or of another version of cwnd.
        trust: Trusts the code that the scenario names from now on.
        progress: `True` shows a bar on stderr; a function is called with a `Progress`.

    Returns:
        The finished runs; with a shard they may be a part of all, see `manifest.missing`.

    Raises:
        ScenarioError: The scenario cannot be run; the error shows where and why.
        InputError: The directory holds something else or another sweep, another process writes
            into it, the file cannot be read, or an argument is malformed.
        MachineError: This machine lacks something that `on` needs.
        CwndError: Runs failed, or could not be written; the others are stored.
    """
    from cwnd.running.progress import bar

    plan = plans.plan(scenario, seed=seed, overrides=set or ())
    part = Shard.parse(shard) if shard is not None else None

    shown = bar(plan.scenario.name) if progress is True else nullcontext(progress or None)
    with shown as on_progress:
        filled = fill(
            plan,
            directory,
            threads=threads,
            shard=part,
            backend=backend_of(on),
            environment=environment_of(on),
            replan=replan,
            trust=trust,
            on_progress=on_progress,
        )
    if filled.failed:
        raise CwndError(failures(filled))
    return filled.run or load(directory)


def backend_of(on: str | None) -> Backend | None:
    """Returns Ray as the backend that computes cells; `None` for this machine.

    Raises:
        InputError: `on` is neither `linux` nor an address of Ray.
    """
    if on in (None, LINUX):
        return None
    assert on is not None
    from cwnd.running.on_ray import Ray

    return Ray.at(on)


def environment_of(on: str | None) -> Environment:
    """Returns Linux for `on="linux"`, and the simulator for all else, Ray included."""
    return environment_named(on if on == LINUX else None)


def failures(filled: FillResult) -> str:
    """Formats the number of failed cells, the first error, and the folder with all of them."""
    count = len(filled.failed)
    first = next(iter(filled.failed.values()))
    return (
        f"{count} cell{'s' * (count != 1)} failed, the first with {first.error}: {first.message};"
        f" {filled.dataset.path / ERRORS} has the reason and the scenario of each,"
        " and the next call tries them again"
    )


def fill(
    plan: Plan,
    directory: str | os.PathLike[str],
    *,
    threads: int | None = None,
    shard: Shard | None = None,
    backend: Backend | None = None,
    environment: Environment = SIMULATOR,
    replan: bool = False,
    replace: bool = False,
    recompute: bool = False,
    work: Work | None = None,
    recorded: Mapping[str, Path] | None = None,
    only: Collection[int] | None = None,
    trust: bool = False,
    on_progress: OnProgress | None = None,
) -> FillResult:
    """Computes and stores the cells of a plan, or of a part of it, that a directory lacks.

    Args:
        plan: The parsed scenario.
        directory: Directory of the result.
        threads: Runs at a time; the environment's default if not given.
        shard: The part of the cells to compute; all if not given.
        backend: Computes cells; the threads of this process if not given, or processes for cells
            whose code is simulated.
        environment: Simulator or Linux.
        replan: Removes cells of another plan.
        replace: Keeps a complete result of another plan until the new one is complete.
        recompute: Computes existing cells, too.
        work: Computes the records of every run in place of the environment; existing cells are not
            used.
        recorded: Directories of files that runs write beside the result, which move into it, by
            their names there.
        only: Indices of the wanted runs; all if not given.
        trust: Trusts the code that the scenario names from now on.
        on_progress: Called with the progress.

    Raises:
        ScenarioError: The environment never has something that the scenario asks for.
        InputError: The directory holds something else, or another process writes into it.
        MachineError: This machine lacks something that the environment needs.
        CwndError: The result could not be written.
    """
    root = Path(directory)
    environment.check(plan.scenario)
    workers = environment.threads(plan.scenario, threads)
    check_target(root)
    check_trust(plan.code, plan.source.name, trust=trust)
    planned = name_cells(plan, environment.engine)
    in_processes = bool(plan.code) and environment is SIMULATOR
    options = FillOptions(
        threads=workers,
        shard=shard,
        only=only,
        backend=backend or (process_backend if in_processes else local_backend),
        on_progress=on_progress,
        environment=environment,
        replan=replan,
        replace=replace,
        recompute=recompute or work is not None,
        work=work,
        recorded=recorded,
    )
    made = [each for each in (root, *root.parents) if not each.exists()]
    about = {
        "engine": environment.engine,
        "threads": workers,
        "scenario_file": relative_scenario_path(root, plan),
    }
    try:
        with session(root, shard, **about) as writing:
            try:
                return FillJob(root, plan, planned, writing, options).fill()
            except BaseException:
                if shard is None:
                    _remove_if_empty(root)
                raise
    except OSError as error:
        kept = is_packed(root) or bool(journal_frames(root))
        raise CwndError(
            f"the result could not be written: {explain(error)}"
            + "; what was finished is safe, and the next call goes on" * kept
        ) from error
    finally:
        for each in made:
            with suppress(OSError):  # it holds a result by now
                each.rmdir()


def relative_scenario_path(root: Path, plan: Plan) -> str | None:
    """Path of the scenario file relative to a directory; `None` for a scenario built in Python."""
    if plan.source.base_dir is None:
        return None
    return os.path.relpath(Path(plan.source.name).resolve(), root.resolve())


def check_target(root: Path) -> None:
    """Refuses a directory that holds anything but a result of `cwnd run` or an unfinished sweep.

    Raises:
        InputError: The directory holds something else.
    """
    if not Dataset.is_at(root):
        write.check_target(root)


def check_same(root: Path, plan: Plan) -> None:
    """Refuses to replace the result of another scenario: of another name, or from another file.

    An edited, moved or copied file stays the same scenario.

    Raises:
        InputError: The directory holds the result of another scenario.
    """
    old = write.stored_manifest(root)
    if "name" not in old:
        return
    last = [past.start.get("scenario_file") for past in sessions(root)][-1:]
    file = last[0] if last else old.get("scenario_file")
    what = None
    if old["name"] != plan.scenario.name:
        what = f"scenario `{old['name']}`"
    elif file not in (None, relative_scenario_path(root, plan)) and (
        old.get("scenario_sha256") != sha256([plan.source.text])
    ):
        what = f"another scenario of that name, {file} seen from there"
    if what is not None:
        raise InputError(
            f"{root}: holds the result of {what}; --force replaces it, -o puts this one elsewhere"
        )


def _remove_if_empty(root: Path) -> None:
    """Removes the journal and activity of a session that ended before its first cell was stored."""
    if not journal_frames(root) and not (root / RUNS).is_dir() and not (root / ERRORS).is_dir():
        packing.remove_journal(root)
    if root.is_dir() and {entry.name for entry in root.iterdir()} == {ACTIVITY}:
        shutil.rmtree(root / ACTIVITY, ignore_errors=True)
