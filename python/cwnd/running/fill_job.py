"""The loop that computes and writes the missing cells of a directory."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.running import runner
from cwnd.running.cells import Outcome, attempt
from cwnd.running.pending import PendingCells
from cwnd.running.progress import Progress
from cwnd.running.simulating import Checked
from cwnd.store import PART_ROWS, Batch, Dataset, Policy, Target, cell_id, content

if TYPE_CHECKING:
    from collections.abc import Collection, Generator
    from pathlib import Path

    from cwnd import _core
    from cwnd.results import Run
    from cwnd.running.cells import Failure
    from cwnd.running.environments import Environment
    from cwnd.running.pending import Backend, Work
    from cwnd.running.plans import Plan
    from cwnd.running.progress import OnProgress
    from cwnd.store import Planned, Session, Shard, Writer


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
    pcap: Path | None


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
        wall, cpu, end, memory_batch = time.perf_counter(), time.process_time(), "failed", None
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
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            writing.log_progress(done=made, failed=len(failed), fraction=fraction, force=True)
            writing.log_end(how=end, wall_s=wall, cpu_s=cpu)
        hashes = (
            options.work.of_runs(self._plan.runs) if isinstance(options.work, Checked) else None
        )
        missing, run = target.finish(writer, memory_batch, pcap=options.pcap, steps_hashes=hashes)
        return FillResult(self._dataset, before, made, failed, missing, wall, cpu, run)

    def _fail(self, writer: Writer, outcome: Outcome) -> None:
        failure, cell = outcome.failure, outcome.cell_id
        assert failure is not None
        resolved = self._plan.scenario.cell(self._target.cells[cell]).resolved
        writer.fail(cell, failure.error, failure.message, resolved)
