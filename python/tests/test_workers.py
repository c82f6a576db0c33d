"""Work on several threads comes back in order, and only so much of it waits."""

from __future__ import annotations

import threading
import time

import pytest

from cwnd.running import workers
from cwnd.running.workers import Workers


def nothing() -> None:
    pass


def test_results_come_in_order_whoever_is_first():
    def slow_when_even(number: int) -> int:
        time.sleep(0.01 * (number % 2 == 0))
        return number

    crew = Workers(20, 3, slow_when_even)
    crew.start()
    assert list(crew.results(nothing)) == list(range(20))
    crew.stop()
    crew.join()


def test_only_so_many_results_wait_for_a_slow_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "_AHEAD", 4)
    first, begun = threading.Event(), []

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            first.wait(10)
        return number

    crew = Workers(100, 2, work)
    crew.start()
    results = crew.results(lambda: first.set() if len(begun) == 8 else None)

    assert next(results) == 0
    assert sorted(begun)[:8] == list(range(8))
    assert len(begun) <= 8 + 1
    assert list(results) == list(range(1, 100))
    crew.stop()
    crew.join()


def test_the_first_failure_is_raised_and_no_more_work_is_begun():
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise RuntimeError("three")
        time.sleep(0.001)
        return number

    crew = Workers(100_000, 2, work)
    crew.start()
    with pytest.raises(RuntimeError, match="three"):
        list(crew.results(nothing))
    crew.stop()
    crew.join()
    assert len(begun) < 1000


def test_who_stops_before_the_start_waits_for_nothing():
    crew = Workers(5, 2, lambda number: number)
    crew.stop()
    crew.join()
    # Others' threads, such as Ray's, may live on from other tests.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cwnd-")]
