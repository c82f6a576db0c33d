"""Progress of a sweep, read from its directory."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.store import read
from cwnd.store.activity import sessions
from cwnd.store.dataset import Dataset, is_packed
from cwnd.store.layout import CELL_ID
from cwnd.store.packing import cells_of

if TYPE_CHECKING:
    import os

    from cwnd.store.activity import SessionLog

#: Minimum period for a rate, in seconds.
_MIN_PERIOD_S = 0.5


@dataclass(frozen=True)
class Worker:
    """An active writer of a sweep."""

    who: str
    started: str
    threads: int
    #: Number of cells done since its start.
    done: int
    failed: int
    #: Fraction of its own cells that is done.
    fraction: float
    #: Rate over the last minute; `None` without enough data.
    cells_per_s: float | None
    eta_s: float | None


@dataclass(frozen=True)
class Status:
    """Progress of a sweep."""

    name: str
    directory: str
    cells: int
    done: int
    #: Number of cells whose last attempt failed.
    failed: int
    left: int
    writers: list[Worker]
    #: Rate of all writers together.
    cells_per_s: float | None
    #: Time in seconds until the last writer is ready; cells of no writer are not included.
    eta_s: float | None

    def to_json(self) -> dict[str, Any]:
        """Returns the progress as a JSON object."""
        return asdict(self)


def read_status(directory: str | os.PathLike[str], now: float | None = None) -> Status:
    """Reads the progress of a sweep; it waits for no lock.

    Raises:
        InputError: There is no sweep.
    """
    root = Path(directory)
    if is_packed(root):
        name, cells, failed = read.opened(root)[0].name, set(cells_of(root)), set[str]()
        done = cells
    else:
        dataset = Dataset.open(root)
        name, cells = dataset.info.name, set(dataset.plan()[CELL_ID])
        done = dataset.done() & cells
        failed = (dataset.failed() & cells) - done
    clock = time.time() if now is None else now
    writers = [_worker(log, clock) for log in sessions(root) if log.live]
    rates = [each.cells_per_s for each in writers if each.cells_per_s is not None]
    times = [each.eta_s for each in writers if each.eta_s is not None]
    return Status(
        name=name,
        directory=str(root),
        cells=len(cells),
        done=len(done),
        failed=len(failed),
        left=len(cells) - len(done) - len(failed),
        writers=writers,
        cells_per_s=sum(rates) if rates else None,
        eta_s=max(times) if times else None,
    )


def _worker(log: SessionLog, now: float) -> Worker:
    begin = {"unix_s": log.start.get("unix_s", now), "done": 0, "failed": 0, "fraction": 0.0}
    last = log.progress[-1] if log.progress else begin
    # With older entries outside the list, the first entry in it is the start of the period.
    first = log.progress[0] if log.older else begin
    elapsed = float(last["unix_s"]) - float(first["unix_s"])
    rate = speed = None
    if elapsed >= _MIN_PERIOD_S:
        rate = (int(last["done"]) - int(first["done"])) / elapsed
        speed = (float(last["fraction"]) - float(first["fraction"])) / elapsed
    fraction = float(last["fraction"])
    eta = None
    if speed:
        eta = max(0.0, (1.0 - fraction) / speed - (now - float(last["unix_s"])))
    return Worker(
        who=log.writer,
        started=str(log.start.get("time", "")),
        threads=int(log.start.get("threads", 1)),
        done=int(last["done"]),
        failed=int(last["failed"]),
        fraction=fraction,
        cells_per_s=rate,
        eta_s=eta,
    )
