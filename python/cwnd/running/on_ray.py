"""Ray backend: other processes and machines compute cells, and this process writes the files."""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import InputError, MachineError
from cwnd.running.cells import CellTexts, Outcome, attempt
from cwnd.running.processes import computed
from cwnd.running.progress import Progress
from cwnd.store import Batch, BatchBuilder, MemoryBatch, content

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from cwnd.running.cells import PendingCells
    from cwnd.running.progress import OnProgress
    from cwnd.store import Writer

#: Prefix of `--on` before the address of a cluster of which this machine is a node.
_NODE = "ray:"
#: Prefix of the address of a cluster's client port.
_CLIENT = "ray://"
#: Target duration of a batch in seconds: Ray's overhead of some milliseconds is then below 1 %.
_BATCH_S = 1.0
#: Maximum number of cells in a batch: their results are held in memory until they are written.
_MAX_CELLS = 256
#: Batches submitted for each core, so that none waits for this process.
_BATCHES_PER_CORE = 2
#: Time limit for the first connection to a cluster, in seconds.
_CONNECT_S = 5.0
#: Interval between polls for finished batches, in seconds.
_POLL_S = 0.1


@dataclass(frozen=True)
class Ray:
    """Ray as a backend: processes of this machine, or a cluster."""

    #: Address of the cluster; `None` for the one that RAY_ADDRESS names, or this machine.
    address: str | None

    @classmethod
    def at(cls, on: str) -> Ray:
        """Parses `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`.

        Raises:
            InputError: It is none of them.
        """
        if on == "ray":
            return cls(None)
        if on.startswith(_CLIENT) and on != _CLIENT:
            return cls(on)
        if on.startswith(_NODE) and on.removeprefix(_NODE).strip("/"):
            return cls(on.removeprefix(_NODE))
        raise InputError(
            f"--on takes ray, ray:HOST:PORT (a cluster of which this machine is a node)"
            f" or ray://HOST:PORT (its client port), not {on!r}"
        )

    def __call__(
        self, pending: PendingCells, writer: Writer, threads: int, on_progress: OnProgress
    ) -> Generator[Outcome | Batch, None, None]:
        """Yields failures and batches of cells as they finish; the caller writes them.

        Raises:
            InputError: Captures, logs of senders or checked runs were asked for.
            MachineError: Ray is missing, cannot be reached, or has another version of cwnd.
        """
        del writer
        if pending.work is not None:
            raise InputError(
                "captures, logs and checked runs are for this machine: leave out --on ray"
            )
        if not pending.runs:
            on_progress(Progress(1.0, 0, 0, 0))
            return
        with self._connected(threads) as ray, closing(_Batches(ray, pending)) as batches:
            reported = done = 0.0
            finished, total = 0, sum(map(pending.duration_s, range(pending.runs)))
            while batches.left:
                for indices, outcomes in batches.wait():
                    yield from outcomes
                    finished += len(indices)
                    done += sum(map(pending.duration_s, indices))
                if time.monotonic() >= reported + _POLL_S or not batches.left:
                    reported = time.monotonic()
                    fraction = min(1.0, done / total) if batches.left and total > 0 else 1.0
                    on_progress(Progress(fraction, finished, 0, pending.runs))

    @contextmanager
    def _connected(self, threads: int) -> Iterator[Any]:
        try:
            import ray
        except ImportError as error:
            raise MachineError("Ray is not installed here: pip install 'cwnd[ray]'") from error
        started_here = not ray.is_initialized()
        if started_here:
            self._connect(ray, threads)
        try:
            yield ray
        finally:
            if started_here:
                ray.shutdown()

    def _connect(self, ray: Any, threads: int) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        # Ray installs a SIGTERM handler that ends the process; the sweep's own handler is restored.
        handler = signal.getsignal(signal.SIGTERM)
        try:
            if self.address is not None:
                self._check_reachable(self.address)
                ray.init(address=self.address, **options)
                return
            try:
                ray.init(address="auto", **options)
            except ConnectionError:
                ray.init(num_cpus=threads, include_dashboard=False, **options)
        except (OSError, RuntimeError, ValueError) as error:
            raise MachineError(
                f"Ray at {self.address or 'this machine'}: {_reason(error)}"
            ) from error
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)

    @staticmethod
    def _check_reachable(address: str) -> None:
        """Opens a TCP connection to the cluster, because Ray itself would retry for minutes."""
        host, _, port = address.removeprefix(_CLIENT).rpartition(":")
        with socket.create_connection((host, int(port)), timeout=_CONNECT_S):
            pass


def _reason(error: Exception) -> str:
    """Shortens an error of Ray to one line: its client passes on a server's whole traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    message = (
        lines[0] if len(lines) == 1 or not lines[0].endswith(":") else f"{lines[0]} {lines[-1]}"
    )
    if "Failed to connect" in message:
        # Clusters made by `ray start` require a token; a wrong one looks like no cluster at all.
        message += "; does it ask for a token? (RAY_AUTH_MODE, RAY_AUTH_TOKEN)"
    return message


class _Batches:
    """Batches of cells: those submitted to Ray, and those still to be made."""

    def __init__(self, ray: Any, pending: PendingCells) -> None:
        self._ray = ray
        self._pending = pending
        # Batches of a lost machine are started again elsewhere, without a limit on retries.
        self._remote = ray.remote(_compute).options(max_retries=-1, num_cpus=1)
        self._next = 0
        self._running: dict[Any, range] = {}
        #: Measured seconds of computation per simulated second; `None` before the first batch.
        self._s_per_simulated_s: float | None = None

    @property
    def left(self) -> bool:
        """`True` while batches are to be submitted or running."""
        return self._next < self._pending.runs or bool(self._running)

    def wait(self) -> Iterator[tuple[range, list[Outcome | Batch]]]:
        """Submits batches to keep all cores busy, and yields the finished ones.

        Raises:
            MachineError: A worker has another version of cwnd.
        """
        cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        while self._next < self._pending.runs and len(self._running) < cores * _BATCHES_PER_CORE:
            batch = self._size(cores)
            texts = [content(self._pending.cell(index).resolved) for index in batch]
            has_code = self._pending.may_have_code
            made = self._remote.remote(_core.engine, texts, has_code=has_code)
            self._running[made] = batch
            self._next = batch.stop
        ready, _ = self._ray.wait(
            list(self._running), num_returns=len(self._running), timeout=_POLL_S, fetch_local=False
        )
        for reference in ready:
            batch = self._running.pop(reference)
            engine, outcomes, took_s = self._ray.get(reference)
            if engine != _core.engine:
                raise MachineError(
                    f"a worker has cwnd {engine} and this machine {_core.engine}:"
                    " install the same on all"
                )
            self._update_cost(batch, took_s)
            yield batch, outcomes

    def close(self) -> None:
        """Cancels the running batches."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()

    def _size(self, cores: int) -> range:
        left = self._pending.runs - self._next
        if self._s_per_simulated_s is None:
            return range(self._next, self._next + 1)
        # Batches become small towards the end, so that all cores finish at about the same time.
        max_cells = min(_MAX_CELLS, max(1, left // (cores * _BATCHES_PER_CORE)))
        stop, expected_s = self._next, 0.0
        while stop < self._next + max_cells and expected_s < _BATCH_S:
            expected_s += self._pending.duration_s(stop) * self._s_per_simulated_s
            stop += 1
        return range(self._next, stop)

    def _update_cost(self, batch: range, took_s: float) -> None:
        simulated_s = sum(map(self._pending.duration_s, batch))
        cost = took_s / simulated_s if simulated_s > 0 else 0.0
        # Cells differ in cost: an exponentially weighted mean smooths the estimate.
        self._s_per_simulated_s = (
            cost if self._s_per_simulated_s is None else 0.8 * self._s_per_simulated_s + 0.2 * cost
        )


def _compute(
    engine: str, texts: list[str], *, has_code: bool
) -> tuple[str, list[Outcome | Batch], float]:
    """Computes cells in a Ray worker, from their contents alone; `has_code` if some name code.

    Returns the worker's engine, failures and packed results, and the elapsed seconds. A worker of
    another engine computes nothing.
    """
    if engine != _core.engine:
        return _core.engine, [], 0.0
    began = time.perf_counter()
    finished, outcomes = BatchBuilder(engine), list[Outcome | Batch]()
    if has_code:
        # A worker may have root's rights, and its processes give them up.
        made = computed(CellTexts(texts), 1, None)
        outcomes += [each.packed() if isinstance(each, MemoryBatch) else each for each in made]
        return engine, outcomes, time.perf_counter() - began
    for outcome in map(attempt, texts):
        if outcome.made is None:
            outcomes.append(outcome)
        else:
            finished.add(*outcome.made)
    if len(finished):
        outcomes.append(finished.take().packed())
    return engine, outcomes, time.perf_counter() - began
