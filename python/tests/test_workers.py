"""Work on several threads comes back in order, and only so much of it waits."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from cwnd.running import plans, runner
from cwnd.running.runner import Workers


def test_results_come_in_order_whoever_is_first():
    def slow_when_even(number: int) -> int:
        time.sleep(0.01 * (number % 2 == 0))
        return number

    with Workers(20, 3, slow_when_even) as crew:
        assert list(crew.results()) == list(range(20))


def test_only_so_many_results_wait_for_a_slow_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "_QUEUED_PER_WORKER", 4)
    first, begun = threading.Event(), []

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            first.wait(10)
        return number

    with Workers(100, 2, work) as crew:
        results = crew.results(lambda: first.set() if len(begun) == 8 else None)

        assert next(results) == 0
        assert sorted(begun)[:8] == list(range(8))
        assert len(begun) <= 8 + 1
        assert list(results) == list(range(1, 100))


def test_the_first_failure_is_raised_and_no_more_work_is_begun():
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise RuntimeError("three")
        time.sleep(0.001)
        return number

    with Workers(100_000, 2, work) as crew, pytest.raises(RuntimeError, match="three"):
        list(crew.results())
    assert len(begun) < 1000


def test_who_stops_waits_for_nothing_more():
    with Workers(5, 2, lambda number: number) as crew:
        crew.stop()
    # Others' threads, such as Ray's, may live on from other tests.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("cwnd-")]


def test_a_cell_that_begins_while_the_others_are_cancelled_is_cancelled(
    scenarios: Path, monkeypatch: pytest.MonkeyPatch
):
    begins, ends = threading.Event(), threading.Event()
    cancelled, leave = [], Workers.__exit__

    class Late:
        def __init__(self) -> None:
            begins.set()
            assert ends.wait(10)

        def cancel(self) -> None:
            cancelled.append(self)

    def end(workers: Workers[object], *error: None) -> None:
        ends.set()
        leave(workers, *error)

    monkeypatch.setattr(runner._core, "Control", Late)
    monkeypatch.setattr(Workers, "__exit__", end)
    cells = plans.plan(scenarios / "short.toml").scenario
    with runner.running(cells, lambda *_: None, threads=1):
        assert begins.wait(10)
    assert len(cancelled) == 1
