"""Work on several threads with a bounded number of waiting results, and cells run so."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from cwnd import _core
from cwnd.machine import usable_cores
from cwnd.running.environments import at_least_one
from cwnd.running.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Self

    from cwnd.running.progress import OnProgress

Result = TypeVar("Result")

#: Timeout in seconds of a wait for a result, and minimum interval between reports of progress.
POLL_S = 0.1
#: Longest wait for work in progress after Ctrl-C, in seconds: code of a program may never return.
_WAIT_S = 5.0
#: Results for each worker that are in progress or wait for the consumer, at most.
_QUEUED_PER_WORKER = 64


class Workers(Generic[Result]):
    """Threads that run `work` on the numbers from 0 to `count` − 1 inside a `with` block."""

    def __init__(self, count: int, threads: int, work: Callable[[int], Result]) -> None:
        self._numbers = iter(range(count))
        self._count = count
        self._work = work
        self._lock = threading.Lock()
        # Acquired before a number is drawn, so that the lowest unfinished number never waits for
        # it.
        self._room = threading.Semaphore(threads * _QUEUED_PER_WORKER)
        self._stopped = threading.Event()
        self._done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
        self._threads = [
            # A daemon: one that never ends does not keep the process.
            threading.Thread(target=self._loop, name=f"cwnd-{number}", daemon=True)
            for number in range(threads)
        ]

    def __enter__(self) -> Self:
        """Starts the threads."""
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        """Starts no more work, and waits for the work in progress; after Ctrl-C not for long."""
        self.stop()
        until = time.monotonic() + _WAIT_S
        for thread in self._threads:
            if thread.ident is not None:
                is_urgent = kind is KeyboardInterrupt
                thread.join(max(0.0, until - time.monotonic()) if is_urgent else None)

    def results(self, on_poll: Callable[[], None] = lambda: None) -> Generator[Result, None, None]:
        """Yields the results in the order of their numbers; the first exception is raised."""
        waiting: dict[int, Result] = {}
        next_number = 0
        while next_number < self._count:
            try:
                number, result, error = self._done.get(timeout=POLL_S)
            except Empty:
                on_poll()
                continue
            if error is not None:
                raise error
            waiting[number] = result  # type: ignore[assignment]
            while next_number in waiting:
                yield waiting.pop(next_number)
                self._room.release()
                next_number += 1
            on_poll()

    def as_done(self, on_poll: Callable[[], None]) -> Generator[Result, None, None]:
        """Yields the results in the order in which they finish; the first exception is raised."""
        for _ in range(self._count):
            while True:
                try:
                    _, result, error = self._done.get(timeout=POLL_S)
                    break
                except Empty:
                    on_poll()
            if error is not None:
                raise error
            self._room.release()
            yield result  # type: ignore[misc]
            on_poll()

    def stop(self) -> None:
        """Starts no more work; waiting threads end."""
        self._stopped.set()
        self._room.release(len(self._threads))

    def _loop(self) -> None:
        while True:
            self._room.acquire()
            with self._lock:
                number = next(self._numbers, None)
            if number is None or self._stopped.is_set():
                return
            try:
                self._done.put((number, self._work(number), None))
            except BaseException as error:  # raised by the consumer of the results
                self._done.put((number, None, error))
                return


Made = TypeVar("Made")


@dataclass
class Elapsed:
    """Time taken by the simulations themselves."""

    #: End of the last simulation, on the clock of `time.perf_counter`.
    ended: float = 0.0
    #: CPU time of the workers' threads, in seconds.
    cpu_s: float = 0.0


class CellSource(Protocol):
    """A sequence of cells, each created when it is requested."""

    @property
    def runs(self) -> int:
        """Number of cells."""

    def cell(self, index: int, /) -> _core.Cell:
        """Creates the cell of an index."""

    def duration_s(self, index: int, /) -> float:
        """Simulated duration of a cell, in seconds."""


@contextlib.contextmanager
def running(
    cells: CellSource,
    work: Callable[[_core.Cell, _core.Control], Made],
    threads: int,
    on_progress: OnProgress | None = None,
    *,
    in_order: bool = True,
) -> Iterator[tuple[Iterator[tuple[_core.Cell, Made]], Elapsed]]:
    """Runs `work` on every cell with several threads; yields the results and the time taken.

    Results come in the order of cells, or as they finish if not `in_order`. At the end of the block
    the remaining cells are cancelled, and no cell is running any more.
    """
    controls: dict[int, _core.Control] = {}
    ended = threading.Event()
    elapsed = Elapsed()
    progress = _Progress(cells, controls, elapsed, on_progress)

    def one(index: int) -> tuple[_core.Cell, Made]:
        control = controls[index] = _core.Control()
        # It may have begun after the others were cancelled.
        if ended.is_set():
            control.cancel()
        cpu_s = time.thread_time()
        try:
            cell = cells.cell(index)
            return cell, work(cell, control)
        finally:
            progress.finished(index, time.thread_time() - cpu_s)

    def results() -> Iterator[tuple[_core.Cell, Made]]:
        yield from (workers.results if in_order else workers.as_done)(progress.poll)
        progress.report()

    with Workers(cells.runs, threads, one) as workers:
        try:
            yield results(), elapsed
        finally:
            workers.stop()
            ended.set()
            for control in list(controls.values()):
                control.cancel()


class _Progress:
    """Counts finished cells, and reports the progress at intervals."""

    def __init__(
        self,
        cells: CellSource,
        running: dict[int, _core.Control],
        elapsed: Elapsed,
        on_progress: OnProgress | None,
    ) -> None:
        self._cells = cells
        self._elapsed = elapsed
        self._running = running
        self._on_progress = on_progress
        self._total_s = sum(map(cells.duration_s, range(cells.runs))) if on_progress else 0.0
        self._lock = threading.Lock()
        self._done, self._done_s = 0, 0.0
        self._fraction = 0.0
        self._last_reported = time.monotonic()

    def finished(self, index: int, cpu_s: float) -> None:
        with self._lock:
            self._elapsed.ended = time.perf_counter()
            self._elapsed.cpu_s += cpu_s
            del self._running[index]
            self._done += 1
            self._done_s += self._cells.duration_s(index)

    def poll(self) -> None:
        if self._on_progress is not None and time.monotonic() >= self._last_reported + POLL_S:
            self.report()

    def report(self) -> None:
        if self._on_progress is None:
            return
        with self._lock:
            done, done_s = self._done, self._done_s
            running = dict(self._running)
        for index, control in running.items():
            done_s += self._cells.duration_s(index) * min(1.0, control.fraction)
        total = self._cells.runs
        fraction = done_s / self._total_s if self._total_s > 0 and done < total else 1.0
        # A sum in another order may be smaller by rounding; the fraction must not decrease.
        self._fraction = max(self._fraction, min(1.0, fraction))
        self._on_progress(Progress(self._fraction, done, 0, total))
        self._last_reported = time.monotonic()


def thread_count(threads: int | None) -> int:
    """Returns the number of concurrent runs: all cores if not given.

    Raises:
        InputError: The number is below one.
    """
    return usable_cores() if threads is None else at_least_one(threads)
