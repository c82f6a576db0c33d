"""Work on several threads, with only so many of its results waiting."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Self

Result = TypeVar("Result")

#: How often the caller is told that time passes; a Ctrl-C is noticed as soon.
POLL_S = 0.1
#: Results for each worker that may wait for one before them.
_AHEAD = 64


class Workers(Generic[Result]):
    """Threads that do pieces of work, numbered from 0 on, while the block of a `with` lasts."""

    def __init__(self, count: int, threads: int, work: Callable[[int], Result]) -> None:
        self._numbers = iter(range(count))
        self._count = count
        self._work = work
        self._lock = threading.Lock()
        # Taken before a number is, so that the lowest number is never the one that waits.
        self._room = threading.Semaphore(threads * _AHEAD)
        self._stopped = threading.Event()
        self._done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._loop, name=f"cwnd-{number}") for number in range(threads)
        ]

    def __enter__(self) -> Self:
        """Begins."""
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Begins no more work, and waits until what was begun has ended."""
        self.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def results(self, on_poll: Callable[[], None] = lambda: None) -> Generator[Result, None, None]:
        """Yields what they make, in order; the first failure is raised."""
        waiting: dict[int, Result] = {}
        following = 0
        while following < self._count:
            try:
                number, result, error = self._done.get(timeout=POLL_S)
            except Empty:
                on_poll()
                continue
            if error is not None:
                raise error
            waiting[number] = result  # type: ignore[assignment]
            while following in waiting:
                yield waiting.pop(following)
                self._room.release()
                following += 1
            on_poll()

    def as_done(self, on_poll: Callable[[], None]) -> Generator[Result, None, None]:
        """The same in the order in which they are made: none waits for a slow one."""
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
        """Begins no more work."""
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
            except BaseException as error:  # raised where the results go
                self._done.put((number, None, error))
                return
