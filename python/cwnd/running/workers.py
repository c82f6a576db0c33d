"""Work on several threads, with a bounded number of results that wait for the caller."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Self

Result = TypeVar("Result")

#: Longest interval in seconds between calls of `on_poll`, and between checks for Ctrl-C.
POLL_S = 0.1
#: Finished results for each worker that may wait for an unfinished one before them.
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
            threading.Thread(target=self._loop, name=f"cwnd-{number}") for number in range(threads)
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

    def __exit__(self, *_: object) -> None:
        """Starts no more work, and waits for the work in progress."""
        self.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

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
