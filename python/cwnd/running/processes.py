"""Computation of cells in processes, for cells whose code is Python.

Python runs one thread at a time, and a user's code must not run with root's rights. Each process
gives them up before it loads any of that code: it becomes the user who called sudo, or `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cwnd import _core
from cwnd.errors import CodeError
from cwnd.running.cells import Captured, Checked, Failure, Outcome, attempt, simulate_twice
from cwnd.running.code import allow
from cwnd.running.environments import SIMULATOR
from cwnd.running.progress import Progress
from cwnd.running.runner import POLL_S
from cwnd.store import BatchBuilder, MemoryBatch, cell_id, content

if TYPE_CHECKING:
    from collections.abc import Generator

    from cwnd.running.cells import PendingCells, Work
    from cwnd.running.progress import OnProgress
    from cwnd.running.runner import CellSource
    from cwnd.store import Batch, Writer

#: Cells for each process that are in progress or wait for it.
_QUEUED_PER_PROCESS = 2
#: User of the code of a scenario that root itself runs.
_NOBODY = "nobody"
#: Interval at which a process looks whether its parent lives, in seconds.
_PARENT_POLL_S = 1.0


def process_backend(
    pending: PendingCells, writer: Writer, threads: int, on_progress: OnProgress
) -> Generator[Outcome | Batch, None, None]:
    """Backend that computes cells in processes of their own."""
    del writer
    for outcome in computed(pending, threads, on_progress, pending.work):
        yield outcome.packed() if isinstance(outcome, MemoryBatch) else outcome


def computed(
    cells: CellSource, processes: int, on_progress: OnProgress | None, work: Work | None = None
) -> Generator[Outcome | MemoryBatch, None, None]:
    """Computes cells in processes, by `work` if given; yields tables, or a failure, of each."""
    workers = max(1, min(processes, cells.runs))
    durations = [cells.duration_s(index) for index in range(cells.runs)]
    total, done, finished = sum(durations), 0.0, 0
    user = _user()
    pool = _Pool(workers, user)
    running: dict[Future[_Computed], _Job] = {}
    left = iter(range(cells.runs))
    reported = time.monotonic()
    try:
        while True:
            if not running:
                pool.renew()
            while not pool.is_broken and len(running) < workers * _QUEUED_PER_PROCESS:
                index = next(left, None)
                if index is None:
                    break
                job = _Job(cells.cell(index), durations[index], work, user)
                arguments = (content(job.cell.resolved), isinstance(work, Checked), job.captures)
                running[pool.submit(*arguments)] = job
            if not running:
                break
            ready, _ = wait(running, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for future in ready:
                job = running.pop(future)
                found = pool.result(future)
                if found is not None:
                    outcome, steps_hash = found
                else:
                    error = CodeError("the process of the code ended before its result was there")
                    name = cell_id(content(job.cell.resolved), _core.engine)
                    outcome, steps_hash = Outcome(name, failure=Failure.of(error)), None
                job.finish(steps_hash)
                yield outcome
                finished += 1
                done += job.duration_s
            if on_progress is not None and time.monotonic() >= reported + POLL_S:
                reported = time.monotonic()
                on_progress(Progress(min(1.0, done / total), finished, 0, cells.runs))
        if on_progress is not None:
            on_progress(Progress(1.0, finished, 0, cells.runs))
    finally:
        # No process writes captures any more once they are moved.
        pool.shutdown(kill=bool(running))
        for job in running.values():
            job.finish(None)


#: Tables of a cell or its failure, and the hash of a checked run's steps.
_Computed: TypeAlias = "tuple[Outcome | MemoryBatch, str | None]"


class _Pool:
    """Processes that compute cells. One that ends takes all cells in progress with it."""

    def __init__(self, workers: int, user: int | None) -> None:
        self._workers, self._user = workers, user
        self._start()

    def _start(self) -> None:
        from loky import ProcessPoolExecutor

        # Nothing is imported from the working directory: a file there that is named as one of
        # Python's modules would run in its place, and before root's rights are given up.
        self._executor = ProcessPoolExecutor(
            self._workers,
            initializer=_begin,
            initargs=(self._user, os.getpid()),
            env={"PYTHONSAFEPATH": "1"},
        )
        #: `True` if a process has ended; no cell is computed before `renew`.
        self.is_broken = False

    def renew(self) -> None:
        """Starts processes in place of broken ones."""
        if self.is_broken:
            self.shutdown(kill=True)
            self._start()

    def submit(
        self, text: str, is_checked: bool, captures: list[tuple[Path, list[str]]]
    ) -> Future[_Computed]:
        """Computes a cell in a process."""
        submitted: Future[_Computed] = Future()
        try:
            submitted = self._executor.submit(_compute, text, is_checked, captures)
        except BrokenExecutor as error:
            submitted.set_exception(error)
        return submitted

    def result(self, future: Future[_Computed]) -> _Computed | None:
        """Returns what a process has computed; `None` if it ended before."""
        try:
            return future.result()
        except BrokenExecutor:
            self.is_broken = True
            return None

    def shutdown(self, *, kill: bool) -> None:
        """Ends the processes."""
        self._executor.shutdown(wait=True, kill_workers=kill)


class _Job:
    """A cell that a process computes, and what else its run gives."""

    def __init__(
        self, cell: _core.Cell, duration_s: float, work: Work | None, user: int | None
    ) -> None:
        self.cell, self.duration_s = cell, duration_s
        self._checked = work if isinstance(work, Checked) else None
        wanted = work.of(cell) if isinstance(work, Captured) else []
        self._wanted = [path for path, _ in wanted]
        #: Directory that the process may write into, where it has another user's rights.
        self._directory: Path | None = None
        if wanted and user is not None:
            self._directory = Path(tempfile.mkdtemp(prefix="cwnd-"))
            os.chown(self._directory, user, -1)
            wanted = [(self._directory / path.name, links) for path, links in wanted]
        #: Capture files of the run, each with its links.
        self.captures = wanted

    def finish(self, steps_hash: str | None) -> None:
        """Keeps the hash of a checked run, and moves capture files to their places."""
        if self._checked is not None and steps_hash is not None:
            self._checked.steps[self.cell.index] = steps_hash
        if self._directory is not None:
            for (made, _), path in zip(self.captures, self._wanted, strict=True):
                if made.exists():
                    shutil.move(made, path)
            shutil.rmtree(self._directory, ignore_errors=True)


def _user() -> int | None:
    """Returns the user whose rights the processes take; `None` keeps those of this process."""
    if os.geteuid() != 0:
        return None
    caller = os.environ.get("SUDO_UID", "0")
    return int(caller) if caller.isdecimal() and caller != "0" else pwd.getpwnam(_NOBODY).pw_uid


def _begin(user: int | None, parent: int) -> None:
    """Prepares a process: it gives up root's rights, and ends with its parent, not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if user is not None:
        # Modules that load at their first use may be in a place that the user cannot read.
        BatchBuilder(_core.engine)
        attempt("")
        group = pwd.getpwuid(user).pw_gid
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    allow()


def _end_with(parent: int) -> None:
    """Ends this process once its parent is gone, as after SIGKILL."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(1)


def _compute(
    text: str, is_checked: bool, captures: list[tuple[Path, list[str]]]
) -> tuple[Outcome | MemoryBatch, str | None]:
    """Computes a cell from its content alone; returns the hash of a checked run's steps, too."""
    capturing = partial(SIMULATOR.run, captures=captures) if captures else None
    outcome = attempt(text, work=simulate_twice if is_checked else capturing)
    return outcome.tabled(), outcome.made[2].steps_hash if outcome.made else None
