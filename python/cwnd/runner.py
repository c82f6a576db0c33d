"""Runs scenarios: every cell of a sweep, on as many cores as there are."""

from __future__ import annotations

import resource
import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from cwnd import _core
from cwnd.errors import DivergedError, InputError
from cwnd.manifest import usable_cores
from cwnd.pcap import LinksLike, captures
from cwnd.scenario import Overrides, ScenarioLike, Source, override_list

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from cwnd.pcap import Captures
    from cwnd.results import Run

#: How often progress is looked at, and a Ctrl-C is noticed.
_POLL_S = 0.1


class OnProgress(Protocol):
    """Told now and then how far the runs are."""

    def __call__(self, fraction: float, finished: int, total: int) -> None:
        """`fraction` of the simulated time is done, `finished` of `total` runs are complete."""


@dataclass(frozen=True)
class Plan:
    """A scenario that was read and found valid, with all that decides its result."""

    source: Source
    scenario: _core.Scenario
    cells: list[_core.Cell]
    overrides: list[str]
    seed: int | None


@dataclass(frozen=True)
class Cost:
    """When, and how long."""

    started_at: str
    wall_s: float
    cpu_s: float
    threads: int


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
) -> Run:
    """Simulates a scenario, with all cells of its sweep and all its seeds.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        seed: Replaces the scenario's seed.
        set: Replaces values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
        threads: Runs at a time; all cores if not given. It never changes the result.
        progress: `True` shows a bar on stderr; a function is called with the progress.
        pcap: Links whose packets are written to capture files: `"bottleneck"`, `"all"`, or
            `"there+back"` for both in one file.
        pcap_dir: Directory of the capture files; each run has its own in it.
        check: Simulates everything twice, step by step, and compares every event and every random
            draw. The manifest gets the hashes of all steps, to compare builds and machines by.

    Raises:
        ScenarioError: The scenario cannot be run; the error shows where and why.
        InputError: The file cannot be read, there is no such link, or `check` and `pcap` are
            asked for at once.
        DivergedError: With `check`: two runs differ; the error shows the first event that does.
        OSError: A capture file cannot be written.
    """
    planned = plan(scenario, seed=seed, overrides=set or ())
    files = captures(pcap, planned.cells, pcap_dir) if pcap else None
    if progress is True:
        from cwnd.progress import bar

        with bar(planned.scenario.name) as on_progress:
            return execute(
                planned, threads=threads, on_progress=on_progress, pcap=files, check=check
            )
    return execute(planned, threads=threads, on_progress=progress or None, pcap=files, check=check)


def check(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002
) -> list[_core.Diagnostic]:
    """Reads a scenario without running it; returns its warnings, or raises `ScenarioError`."""
    return plan(scenario, seed=seed, overrides=set or ()).scenario.warnings


def plan(scenario: ScenarioLike, *, seed: int | None = None, overrides: Overrides = ()) -> Plan:
    """Reads a scenario into the runs it asks for."""
    source = Source.of(scenario)
    listed = override_list(overrides)
    parsed = source.parse(seed=seed, overrides=listed)
    return Plan(source, parsed, parsed.cells, listed, seed)


def execute(
    planned: Plan,
    *,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
    pcap: Captures | None = None,
    check: bool = False,
) -> Run:
    """Runs every cell; Ctrl-C, or any other exception, stops them all at once."""
    from cwnd.frames import build, run_id

    if check and pcap:
        raise InputError("a checked run is two runs at once: write captures with another")

    cells = planned.cells
    workers = min(_thread_count(threads), len(cells))
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), _cpu_s()
    files = [pcap.of(run_id(cell)) if pcap else [] for cell in cells]
    results = _run_cells(cells, files, workers, on_progress, check=check)
    cost = Cost(started_at, time.perf_counter() - wall, _cpu_s() - cpu, workers)
    return build(planned, results, cost)


def _run_cells(
    cells: list[_core.Cell],
    files: list[list[tuple[Path, list[str]]]],
    workers: int,
    on_progress: OnProgress | None,
    *,
    check: bool,
) -> list[_core.Result]:
    controls = [_core.Control() for _ in cells]
    weights = [cell.duration_s for cell in cells]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="cwnd")
    futures: list[Future[_core.Result]] = []
    try:
        futures = [
            pool.submit(_check_cell, cell, control)
            if check
            else pool.submit(cell.run, control, captured)
            for cell, control, captured in zip(cells, controls, files, strict=True)
        ]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_POLL_S, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            if on_progress is not None:
                fraction = _fraction(futures, controls, weights)
                on_progress(fraction, len(futures) - len(pending), len(futures))
        return [future.result() for future in futures]
    finally:
        for control in controls:
            control.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


def _check_cell(cell: _core.Cell, control: _core.Control) -> _core.Result:
    try:
        return cell.check(control)
    except _core.Diverged as diverged:
        raise DivergedError(f"run {cell.id}: {diverged}") from diverged


def _fraction(
    futures: list[Future[_core.Result]], controls: list[_core.Control], weights: list[float]
) -> float:
    total = sum(weights)
    done = sum(
        weight * (1.0 if future.done() else min(1.0, control.fraction))
        for future, control, weight in zip(futures, controls, weights, strict=True)
    )
    return done / total if total > 0 else 1.0


def _thread_count(threads: int | None) -> int:
    if threads is None:
        return usable_cores()
    if threads < 1:
        raise InputError(f"runs need at least one thread, not {threads}")
    return threads


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
