"""Computation of cells with code of the user's, in processes.

Python runs one thread at a time, and a user's code must not run with root's rights. Each process
gives them up before it loads any of that code: it becomes the user who called sudo, or `nobody`.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import signal
import struct
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from cwnd import _core
from cwnd.errors import CodeError
from cwnd.machine import code_user, user_named
from cwnd.running.cells import (
    Captured,
    Checked,
    Failure,
    Logged,
    Outcome,
    attempt,
    simulate_twice,
)
from cwnd.running.code import allow, libraries, provide
from cwnd.running.compiling import own_files
from cwnd.running.environments import SIMULATOR
from cwnd.running.progress import Progress
from cwnd.running.runner import POLL_S
from cwnd.store import BatchBuilder, MemoryBatch, cell_id, content

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator

    from cwnd.running.cells import PendingCells, Work
    from cwnd.running.environments import LogFiles, PacketWindow
    from cwnd.running.progress import OnProgress
    from cwnd.running.runner import CellSource
    from cwnd.store import Batch, Writer

#: Cells for each process that are in progress or wait for it.
_QUEUED_PER_PROCESS = 2
#: Progress of a run in the file that processes share.
_FRACTION = struct.Struct("=d")
#: Signal that ends a process in which a call into code in C does not return.
_CALL_LIMIT = "SIGXCPU"
_ENDLESS = "a call into the code did not return for 5 s, so its process was ended"
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
    """Computes cells in processes, by `work` if given; yields tables, or a failure, of each.

    A process that ends takes all cells in progress with it. If there are several, each of them is
    computed again while no other is, and fails if its process ends again.
    """
    workers = max(1, min(processes, cells.runs))
    slots = workers * _QUEUED_PER_PROCESS
    person = code_user()
    user = person.pw_uid if person else None
    jobs, pool = _Jobs(cells, work, user, slots), _Pool(workers, user, slots)
    running: dict[Future[_Computed], _Job] = {}
    reported = time.monotonic()
    try:
        while True:
            if not running:
                pool.renew()
            while not pool.is_broken and (job := jobs.next(running.values())):
                running[pool.submit(job)] = job
            if not running:
                break
            ready, _ = wait(running, timeout=POLL_S, return_when=FIRST_COMPLETED)
            is_only = len(running) == 1
            for future in ready:
                job = running.pop(future)
                found = pool.result(future)
                if found is None and not is_only:
                    jobs.repeat(job)
                    continue
                outcome, steps_hash = found or (job.lost(pool.how_it_ended), None)
                jobs.finish(job, steps_hash)
                yield outcome
            if on_progress is not None and time.monotonic() >= reported + POLL_S:
                reported = time.monotonic()
                on_progress(
                    jobs.progress((job, pool.fraction(job.slot)) for job in running.values())
                )
        if on_progress is not None:
            on_progress(jobs.progress(()))
    finally:
        # No process writes captures any more once they are moved.
        pool.close()
        jobs.abandon(running.values())


#: Content of a cell, `True` if it is checked, capture files, place of progress, and libraries.
_Arguments: TypeAlias = "tuple[str, bool, _Recorded, int, dict[str, bytes | str]]"
#: Tables of a cell or its failure, and the hash of a checked run's steps.
_Computed: TypeAlias = "tuple[Outcome | MemoryBatch, str | None]"


#: Capture files of a run, each with its links, the link and time of logged packets, and the logs
#: of senders.
_Recorded: TypeAlias = "tuple[list[tuple[Path, list[str]]], PacketWindow | None, LogFiles | None]"


class _Pool:
    """Processes that compute cells. One that ends takes all cells in progress with it."""

    def __init__(self, workers: int, user: int | None, slots: int) -> None:
        self._workers, self._user = workers, user
        #: Why a process ended; empty if that is not known.
        self.how_it_ended = ""
        self._fractions = _Fractions.created(slots)
        self._start()

    def _start(self) -> None:
        from loky import ProcessPoolExecutor

        # Nothing is imported from the working directory: a file there that is named as one of
        # Python's modules would run in its place, and before root's rights are given up.
        self._executor = ProcessPoolExecutor(
            self._workers,
            initializer=_begin,
            initargs=(self._user, os.getpid(), self._fractions.path),
            # Hashes of texts, and with them the order of sets, are the same in all processes.
            # An empty PYTHONFAULTHANDLER keeps loky from printing stacks at a crash.
            env={"PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": ""},
        )
        #: `True` if a process has ended; no cell is computed before `renew`.
        self.is_broken = False

    def renew(self) -> None:
        """Starts processes in place of broken ones."""
        if self.is_broken:
            self._end()
            self._start()

    def submit(self, job: _Job) -> Future[_Computed]:
        """Computes a cell in a process."""
        self._fractions.set(job.slot, 0.0)
        submitted: Future[_Computed] = Future()
        try:
            # Processes start here, and would be interrupted before they ignore Ctrl-C.
            with _without_interrupts():
                submitted = self._executor.submit(_compute, *job.arguments)
        except BrokenExecutor as error:
            submitted.set_exception(error)
        return submitted

    def result(self, future: Future[_Computed]) -> _Computed | None:
        """Returns what a process has computed; `None` if it ended before."""
        try:
            return future.result()
        except BrokenExecutor as error:
            self.is_broken = True
            self.how_it_ended = ", ".join(sorted(set(re.findall(r"SIG[A-Z]+", str(error)))))
            return None

    def fraction(self, slot: int) -> float:
        """Progress of the run in a slot, 0 to 1."""
        return self._fractions.get(slot)

    def close(self) -> None:
        """Ends the processes for good."""
        try:
            self._end()
        finally:
            self._fractions.close()

    def _end(self) -> None:
        # All results that count are there: a thread that the code started would delay the end.
        self._executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Delays Ctrl-C; processes that start meanwhile never see it, where the system allows that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Jobs:
    """Cells in their order; those whose process ended come again, each alone."""

    def __init__(self, cells: CellSource, work: Work | None, user: int | None, slots: int) -> None:
        self._cells, self._work, self._user = cells, work, user
        self._slots = list(range(slots))
        self._left = iter(range(cells.runs))
        self._again: list[_Job] = []
        self._total_s = sum(map(cells.duration_s, range(cells.runs)))
        self._done, self._done_s = 0, 0.0

    def next(self, running: Collection[_Job]) -> _Job | None:
        """Returns the cell to compute next; `None` if one must end before."""
        if any(job.is_alone for job in running) or (self._again and running):
            return None
        if self._again:
            job = self._again.pop()
            job.is_alone = True
            return job
        index = next(self._left, None) if self._slots else None
        if index is None:
            return None
        duration_s = self._cells.duration_s(index)
        return _Job(self._cells.cell(index), duration_s, self._work, self._user, self._slots.pop())

    def repeat(self, job: _Job) -> None:
        """Takes a cell back whose process ended."""
        self._again.append(job)

    def finish(self, job: _Job, steps_hash: str | None) -> None:
        """Notes that a cell was computed, or failed."""
        job.finish(steps_hash)
        self._slots.append(job.slot)
        self._done += 1
        self._done_s += job.duration_s

    def abandon(self, running: Iterable[_Job]) -> None:
        """Keeps what cells have that were not computed to the end."""
        for job in (*running, *self._again):
            job.finish(None)

    def progress(self, running: Iterable[tuple[_Job, float]]) -> Progress:
        """Returns the progress, with the parts done of cells in progress."""
        done_s = self._done_s + sum(job.duration_s * fraction for job, fraction in running)
        is_done = self._done == self._cells.runs
        fraction = 1.0 if is_done else min(1.0, done_s / self._total_s)
        return Progress(fraction, self._done, 0, self._cells.runs)


class _Job:
    """A cell that a process computes, and what else its run gives."""

    def __init__(
        self, cell: _core.Cell, duration_s: float, work: Work | None, user: int | None, slot: int
    ) -> None:
        self.cell, self.duration_s = cell, duration_s
        #: Place of its progress.
        self.slot = slot
        #: `True` if no other cell is computed beside it.
        self.is_alone = False
        self._checked = work if isinstance(work, Checked) else None
        self._log = work.log if isinstance(work, Logged) else None
        wanted = work.of(cell) if isinstance(work, Captured) else []
        self._wanted = [path for path, _ in wanted]
        logs = work.logs_of(cell) if isinstance(work, Captured) else None
        self._logs_wanted = logs[0] if logs else None
        #: Directory that the process may write into, where it has another user's rights.
        self._directory: Path | None = None
        if (wanted or logs) and user is not None:
            self._directory = Path(tempfile.mkdtemp(prefix="cwnd-"))
            os.chown(self._directory, user, -1)
            wanted = [(self._directory / path.name, links) for path, links in wanted]
            if logs:
                # The process fills it with files of names that it alone knows.
                logs = (Path(tempfile.mkdtemp(dir=self._directory)), logs[1])
                os.chown(logs[0], user, -1)
        #: Capture files of the run, each with its links.
        self.captures = wanted
        #: Directory of the logs of senders, with their groups.
        self.logs = logs

    @property
    def arguments(self) -> _Arguments:
        """Arguments of `_compute`."""
        text, is_checked = content(self.cell.resolved), self._checked is not None
        return (
            text,
            is_checked,
            (self.captures, self._log, self.logs),
            self.slot,
            libraries(self.cell),
        )

    def lost(self, how: str) -> Outcome:
        """Returns the outcome of a cell whose process ended."""
        names = ", ".join(dict.fromkeys(name for _, _, name, _, _ in self.cell.code))
        what = f"the process of {names} ended before its result was there"
        what += f" ({how})" if how else ""
        error = CodeError(f"{names}: {_ENDLESS}" if how == _CALL_LIMIT else what)
        name = cell_id(content(self.cell.resolved), _core.engine)
        return Outcome(name, failure=Failure.of(error))

    def finish(self, steps_hash: str | None) -> None:
        """Keeps the hash of a checked run, and moves captures and logs to their places."""
        if self._checked is not None and steps_hash is not None:
            self._checked.steps[self.cell.index] = steps_hash
        if self._directory is not None:
            files = [
                (made, path) for (made, _), path in zip(self.captures, self._wanted, strict=True)
            ]
            if self.logs is not None and self._logs_wanted is not None:
                logs = self.logs[0].glob("*.sqlog")
                files += [(made, self._logs_wanted / made.name) for made in logs]
            for made, path in files:
                # The code may have left anything else there.
                if made.is_file() and not made.is_symlink():
                    shutil.move(made, path)
                    os.chown(path, os.getuid(), os.getgid(), follow_symlinks=False)
            shutil.rmtree(self._directory, ignore_errors=True)


class _Fractions:
    """Progress of each slot, 0 to 1, in a file that parent and processes share."""

    #: Those of this process, which computes cells; `None` in the parent.
    of_process: ClassVar[_Fractions | None] = None

    def __init__(self, path: str) -> None:
        self.path = path
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    @classmethod
    def created(cls, slots: int) -> _Fractions:
        """Creates the file."""
        handle, path = tempfile.mkstemp(prefix="cwnd-")
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(_FRACTION.size * slots))
        return cls(path)

    def set(self, slot: int, fraction: float) -> None:
        """Sets the progress of a slot."""
        _FRACTION.pack_into(self._memory, slot * _FRACTION.size, fraction)

    def get(self, slot: int) -> float:
        """Returns the progress of a slot."""
        (fraction,) = _FRACTION.unpack_from(self._memory, slot * _FRACTION.size)
        return min(1.0, max(0.0, float(fraction)))

    def close(self) -> None:
        """Removes the file."""
        self._memory.close()
        Path(self.path).unlink()

    @contextmanager
    def following(self, slot: int, control: _core.Control) -> Iterator[None]:
        """Writes the progress of a run while it lasts."""
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(POLL_S):
                self.set(slot, control.fraction)

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()


def _begin(user: int | None, parent: int, fractions: str) -> None:
    """Prepares a process: it gives up root's rights, and ends with its parent, not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if user is None and hasattr(_core, "give_up_capabilities"):
        # Those of a run on Linux, for its simulated half; threads inherit what is left.
        _core.give_up_capabilities()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _Fractions.of_process = _Fractions(fractions)
    if user is not None:
        # Modules that load at their first use may be in a place that the user cannot read.
        BatchBuilder(_core.engine)
        attempt("")
        own_files()
        try:
            group = user_named(str(user)).pw_gid
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)
        except OSError:  # in a namespace without other users: `classes` then refuses
            return
    allow(gave_up_root=user is not None)


def _end_with(parent: int) -> None:
    """Ends this process once its parent is gone, as after SIGKILL."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(1)


def _compute(
    text: str,
    is_checked: bool,
    recorded: _Recorded,
    slot: int,
    found: dict[str, bytes | str],
) -> tuple[Outcome | MemoryBatch, str | None]:
    """Computes a cell in a process from its content; returns the hash of a checked run's steps."""
    provide(found)
    captures, log, qlog = recorded
    recording = None
    if captures or log or qlog:
        recording = partial(SIMULATOR.run, captures=captures, log=log, qlog=qlog)
    control, fractions = _core.Control(), _Fractions.of_process
    assert fractions is not None
    with fractions.following(slot, control):
        work = simulate_twice if is_checked else recording
        outcome = attempt(text, control=control, work=work)
    return outcome.tabled(), outcome.made[2].steps_hash if outcome.made else None
