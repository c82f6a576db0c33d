"""Cells on Ray: other processes and machines compute them, and this one writes the files."""

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
from cwnd.running.cells import Outcome, attempt
from cwnd.running.progress import Progress
from cwnd.store import Batch, Finished, content

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from cwnd.running.pending import Todo
    from cwnd.running.progress import OnProgress
    from cwnd.store import Writer

#: What `--on` takes before the address of a cluster of which this machine is a node.
_NODE = "ray:"
#: And before that of a cluster's client port.
_CLIENT = "ray://"
#: So long should a batch take: Ray's own work for it, some milliseconds, is then below 1 %.
_BATCH_S = 1.0
#: Cells of a batch, at most: what they give is held in memory until it is written.
_MOST = 256
#: Batches for each core that are begun or wait to be: none waits for this process.
_AHEAD = 2
#: How long a cluster may take to answer at all.
_KNOCK_S = 5.0
#: How often it is looked what is done.
_POLL_S = 0.1


@dataclass(frozen=True)
class Ray:
    """A backend: this machine's processes, or a cluster."""

    #: `None` for the cluster that RAY_ADDRESS names, or this machine.
    address: str | None

    @classmethod
    def at(cls, on: str) -> Ray:
        """Reads `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`."""
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
        self, todo: Todo, writer: Writer, threads: int, on_progress: OnProgress
    ) -> Generator[Outcome | Batch, None, None]:
        """Computes cells in batches; the caller writes what comes back."""
        del writer
        if todo.work is not None:
            raise InputError("captures and checked runs are for this machine: leave out --on ray")
        if not todo.runs:
            on_progress(Progress(1.0, 0, 0, 0))
            return
        with self._connected(threads) as ray, closing(_Batches(ray, todo)) as batches:
            told = done = 0.0
            finished, total = 0, sum(map(todo.duration_s, range(todo.runs)))
            while batches.left:
                for indices, outcomes in batches.wait():
                    yield from outcomes
                    finished += len(indices)
                    done += sum(map(todo.duration_s, indices))
                if time.monotonic() >= told + _POLL_S or not batches.left:
                    told = time.monotonic()
                    fraction = min(1.0, done / total) if batches.left and total > 0 else 1.0
                    on_progress(Progress(fraction, finished, 0, todo.runs))

    @contextmanager
    def _connected(self, threads: int) -> Iterator[Any]:
        try:
            import ray
        except ImportError as error:
            raise MachineError("Ray is not installed here: pip install 'cwnd[ray]'") from error
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray, threads)
        try:
            yield ray
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any, threads: int) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        # Ray ends the process at a SIGTERM; we end the sweep.
        handler = signal.getsignal(signal.SIGTERM)
        try:
            if self.address is not None:
                self._knock(self.address)
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
    def _knock(address: str) -> None:
        """Sees whether somebody is there: Ray itself would try for minutes."""
        host, _, port = address.removeprefix(_CLIENT).rpartition(":")
        with socket.create_connection((host, int(port)), timeout=_KNOCK_S):
            pass


def _reason(error: Exception) -> str:
    """What Ray says, in a line; its client passes a server's whole traceback on."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    said = lines[0] if len(lines) == 1 or not lines[0].endswith(":") else f"{lines[0]} {lines[-1]}"
    if "Failed to connect" in said:
        # Clusters that `ray start` makes ask for one; a wrong one looks like no cluster at all.
        said += "; does it ask for a token? (RAY_AUTH_MODE, RAY_AUTH_TOKEN)"
    return said


class _Batches:
    """Cells that Ray has, and those that it has not yet."""

    def __init__(self, ray: Any, todo: Todo) -> None:
        self._ray = ray
        self._todo = todo
        # What a machine that is lost had begun is begun again elsewhere, however often.
        self._remote = ray.remote(_compute).options(max_retries=-1, num_cpus=1)
        self._next = 0
        self._begun: dict[Any, range] = {}
        #: Seconds that a simulated second takes, as measured; `None` before.
        self._pace: float | None = None

    @property
    def left(self) -> bool:
        """Whether there is more to come."""
        return self._next < self._todo.runs or bool(self._begun)

    def wait(self) -> Iterator[tuple[range, list[Outcome | Batch]]]:
        """Has all cores busy, and yields what is done."""
        cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        while self._next < self._todo.runs and len(self._begun) < cores * _AHEAD:
            batch = self._size(cores)
            texts = [content(self._todo.cell(index).resolved) for index in batch]
            self._begun[self._remote.remote(_core.engine, texts)] = batch
            self._next = batch.stop
        ready, _ = self._ray.wait(
            list(self._begun), num_returns=len(self._begun), timeout=_POLL_S, fetch_local=False
        )
        for reference in ready:
            batch = self._begun.pop(reference)
            engine, outcomes, took_s = self._ray.get(reference)
            if engine != _core.engine:
                raise MachineError(
                    f"a worker has cwnd {engine} and this machine {_core.engine}:"
                    " install the same on all"
                )
            self._learn(batch, took_s)
            yield batch, outcomes

    def close(self) -> None:
        """Ends what was begun."""
        for reference in self._begun:
            self._ray.cancel(reference, force=True)
        self._begun.clear()

    def _size(self, cores: int) -> range:
        left = self._todo.runs - self._next
        if self._pace is None:
            return range(self._next, self._next + 1)
        # Towards the end batches become small, so that all cores end together.
        most = min(_MOST, max(1, left // (cores * _AHEAD)))
        stop, expected_s = self._next, 0.0
        while stop < self._next + most and expected_s < _BATCH_S:
            expected_s += self._todo.duration_s(stop) * self._pace
            stop += 1
        return range(self._next, stop)

    def _learn(self, batch: range, took_s: float) -> None:
        simulated_s = sum(map(self._todo.duration_s, batch))
        pace = took_s / simulated_s if simulated_s > 0 else 0.0
        # Cells differ: the mean forgets slowly.
        self._pace = pace if self._pace is None else 0.8 * self._pace + 0.2 * pace


def _compute(engine: str, texts: list[str]) -> tuple[str, list[Outcome | Batch], float]:
    """Computes cells in a worker, from their contents alone."""
    if engine != _core.engine:
        return _core.engine, [], 0.0
    began = time.perf_counter()
    finished, outcomes = Finished(engine), list[Outcome | Batch]()
    for outcome in map(attempt, texts):
        if outcome.made is None:
            outcomes.append(outcome)
        else:
            finished.add(*outcome.made)
    if len(finished):
        outcomes.append(finished.take().packed())
    return engine, outcomes, time.perf_counter() - began
