"""Runs scenarios: every cell of a sweep, on as many cores as there are."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from cwnd import _core
from cwnd.errors import DivergedError, InputError
from cwnd.machine import usable_cores
from cwnd.running.pcap import LinksLike, captures
from cwnd.running.plans import Plan, plan
from cwnd.running.progress import Progress
from cwnd.running.scenario import Overrides, ScenarioLike, run_id
from cwnd.running.workers import POLL_S, Workers
from cwnd.running.worlds import SIMULATOR, at_least_one, world_named

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cwnd.results import Run
    from cwnd.running.pcap import Captures
    from cwnd.running.progress import OnProgress
    from cwnd.running.worlds import World


Made = TypeVar("Made")


def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002 - named as the option of the command line
    threads: int | None = None,
    progress: bool | OnProgress = False,
    pcap: LinksLike = (),
    pcap_dir: str | os.PathLike[str] = "pcap",
    check: bool = False,
    on: str | None = None,
) -> Run:
    """Simulates a scenario, with all cells of its sweep and all its seeds.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        seed: Replaces the scenario's seed.
        set: Replaces values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
        threads: Runs at a time; all cores if not given. It never changes the result.
        progress: `True` shows a bar on stderr; a function is called with a `Progress`.
        pcap: Links whose packets are written to capture files: `"bottleneck"`, `"all"`, or
            `"there+back"` for both in one file.
        pcap_dir: Directory of the capture files; each run has its own in it.
        check: Simulates everything twice, step by step, and compares every event and every random
            draw. The manifest gets the hashes of all steps, to compare builds and machines by.
        on: `"linux"` runs it with real endpoints on this machine's kernel, in real time; as root.

    Raises:
        ScenarioError: The scenario cannot be run; the error shows where and why.
        InputError: The file cannot be read, there is no such link, or `check` and `pcap` are
            asked for at once.
        MachineError: This machine cannot do what `on` asks for.
        DivergedError: With `check`: two runs differ; the error shows the first event that does.
        OSError: A capture file cannot be written.
    """
    planned = plan(scenario, seed=seed, overrides=set or ())
    files = captures(pcap, planned.points, pcap_dir) if pcap else None
    if progress is True:
        from cwnd.running.progress import bar

        with bar(planned.scenario.name) as on_progress:
            return execute(
                planned,
                threads=threads,
                on_progress=on_progress,
                pcap=files,
                check=check,
                world=world_named(on),
            )
    return execute(
        planned,
        threads=threads,
        on_progress=progress or None,
        pcap=files,
        check=check,
        world=world_named(on),
    )


def execute(
    planned: Plan,
    *,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
    pcap: Captures | None = None,
    check: bool = False,
    spool: Path | None = None,
    meanwhile: Callable[[], None] | None = None,
    world: World = SIMULATOR,
) -> Run:
    """Runs every cell; Ctrl-C, or any other exception, stops them all at once.

    Real time cannot be had again: of runs on Linux, Ctrl-C leaves those that are finished, and what
    was captured of the others.

    `spool` is a directory for records that would not fit in memory; it must be there for as long
    as the result is. `meanwhile` is called once while the first cells run, such as for imports.
    """
    if check and pcap:
        raise InputError("a checked run is two runs at once: write captures with another")
    if world is not SIMULATOR and check:
        raise InputError("a checked run is the simulator's: real time does not come again")
    world.check(planned.scenario)

    workers = min(world.threads(planned.scenario, threads), planned.runs)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    began = time.perf_counter()

    def work(cell: _core.Cell, control: _core.Control) -> _core.Result:
        if check:
            return _check_cell(cell, control)
        return world.run(cell, control, pcap.of(run_id(cell)) if pcap else ())

    simulated, cpu_s = world is SIMULATOR, time.process_time()
    with running(planned.scenario, work, workers, on_progress, in_order=simulated) as made:
        results, spent = made
        # Data frames take longer to import than a short run takes.
        from cwnd.running.frames import Cost, Recorder

        if meanwhile is not None:
            meanwhile()
        recorder = Recorder(planned, spool, world.engine)
        for cell, result in results if simulated else _finished(results):
            recorder.add(cell, result)
    if not simulated:
        # Routers and hosts have threads of their own.
        spent.cpu_s = time.process_time() - cpu_s
    cost = Cost(started_at, spent.ended - began, spent.cpu_s, workers)
    return recorder.finish(cost)


def _finished(results: Iterator[tuple[_core.Cell, Made]]) -> list[tuple[_core.Cell, Made]]:
    """Those that come before the end or Ctrl-C, in the order of the plan."""
    done = []
    try:
        for each in results:
            done.append(each)  # noqa: PERF402 - what is there is kept
    except KeyboardInterrupt:
        if not done:
            raise
    return sorted(done, key=lambda each: each[0].index)


@dataclass
class Spent:
    """What the simulations took, and nothing beside them."""

    #: When the last one ended, on the clock of `time.perf_counter`.
    ended: float = 0.0
    #: CPU time of the workers' threads.
    cpu_s: float = 0.0


class Cells(Protocol):
    """Runs that are made when they are asked for."""

    @property
    def runs(self) -> int:
        """How many there are."""

    def cell(self, index: int, /) -> _core.Cell:
        """Makes one."""

    def duration_s(self, index: int, /) -> float:
        """How long it is."""


@contextlib.contextmanager
def running(
    cells: Cells,
    work: Callable[[_core.Cell, _core.Control], Made],
    threads: int,
    on_progress: OnProgress | None = None,
    *,
    in_order: bool = True,
) -> Iterator[tuple[Iterator[tuple[_core.Cell, Made]], Spent]]:
    """Begins the work of every cell, on several threads; what it makes comes in their order or not.

    When the block ends, however it ends, no cell is running any more.
    """
    controls: dict[int, _core.Control] = {}
    spent = Spent()
    progress = _Progress(cells, controls, spent, on_progress)

    def one(index: int) -> tuple[_core.Cell, Made]:
        control = controls[index] = _core.Control()
        cpu_s = time.thread_time()
        try:
            cell = cells.cell(index)
            return cell, work(cell, control)
        finally:
            progress.finished(index, time.thread_time() - cpu_s)

    def results() -> Iterator[tuple[_core.Cell, Made]]:
        yield from (workers.results if in_order else workers.as_done)(progress.poll)
        progress.tell()

    workers = Workers(cells.runs, threads, one)
    try:
        workers.start()
        yield results(), spent
    finally:
        workers.stop()
        for control in list(controls.values()):
            control.cancel()
        workers.join()


class _Progress:
    """Counts what is done, and tells it now and then."""

    def __init__(
        self,
        cells: Cells,
        running: dict[int, _core.Control],
        spent: Spent,
        on_progress: OnProgress | None,
    ) -> None:
        self._cells = cells
        self._spent = spent
        self._running = running
        self._on_progress = on_progress
        self._total_s = sum(map(cells.duration_s, range(cells.runs))) if on_progress else 0.0
        self._lock = threading.Lock()
        self._done, self._done_s = 0, 0.0
        self._fraction = 0.0
        self._told = time.monotonic()

    def finished(self, index: int, cpu_s: float) -> None:
        with self._lock:
            self._spent.ended = time.perf_counter()
            self._spent.cpu_s += cpu_s
            del self._running[index]
            self._done += 1
            self._done_s += self._cells.duration_s(index)

    def poll(self) -> None:
        if self._on_progress is not None and time.monotonic() >= self._told + POLL_S:
            self.tell()

    def tell(self) -> None:
        if self._on_progress is None:
            return
        with self._lock:
            done, done_s = self._done, self._done_s
            running = dict(self._running)
        for index, control in running.items():
            done_s += self._cells.duration_s(index) * min(1.0, control.fraction)
        total = self._cells.runs
        fraction = done_s / self._total_s if self._total_s > 0 and done < total else 1.0
        # Sums of parts in another order may fall back by a last digit.
        self._fraction = max(self._fraction, min(1.0, fraction))
        self._on_progress(Progress(self._fraction, done, 0, total))
        self._told = time.monotonic()


def _check_cell(cell: _core.Cell, control: _core.Control) -> _core.Result:
    try:
        return cell.check(control)
    except _core.Diverged as diverged:
        raise DivergedError(f"run {cell.id}: {diverged}") from diverged


def thread_count(threads: int | None) -> int:
    """How many runs at a time: all cores if not given."""
    return usable_cores() if threads is None else at_least_one(threads)
