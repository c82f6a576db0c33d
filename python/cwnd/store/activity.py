"""Writers of a sweep: their shards, locks and activity logs, which are no part of the result."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import secrets
import shutil
import time
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from cwnd.errors import InputError, UncheckedWarning
from cwnd.files import checksums, portable, read_object
from cwnd.machine import machine
from cwnd.store.layout import ACTIVITY, LOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parses a shard such as `2/8`.

        Raises:
            InputError: It is malformed, or the number exceeds the count.
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(f"--shard takes I/N with I from 1 to N, as in 2/8; not {text!r}")
        return cls(int(found[1]), int(found[2]))

    def mine(self, cells: Iterable[str]) -> set[str]:
        """Selects the cells of this shard; the shards together have each cell once.

        Cells are dealt out in the order of their identifiers, which are hashes. Neighbours in the
        sweep, with similar run times, thus go to different shards.
        """
        return set(sorted(cells)[self.number - 1 :: self.count])

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


_LOG_SUFFIX = ".jsonl"
#: Prefix of the folder in which a writer's files stay until they are complete.
_PARTIAL = "partial-"
#: Minimum interval between two progress entries of a writer, in seconds.
_LOG_INTERVAL_S = 1.0
#: Period of progress entries that a reader keeps for the rate of `cwnd status`, in seconds.
RECENT_S = 60.0


@dataclass
class Session:
    """A writer's session: its log, its locks, and its folder for incomplete files."""

    id: str
    partial: Path
    log: IO[str]
    started: float
    _last_logged: float = field(default=0.0)

    def log_progress(self, *, done: int, failed: int, fraction: float, force: bool = False) -> None:
        """Logs the progress, at most once a second unless `force`."""
        now = time.time()
        if force or now >= self._last_logged + _LOG_INTERVAL_S:
            self._last_logged = now
            self.write("progress", now, done=done, failed=failed, fraction=round(fraction, 6))

    def log_end(self, *, wall_s: float, cpu_s: float, how: str) -> None:
        """Logs the end of the session."""
        self.write("end", time.time(), how=how, wall_s=round(wall_s, 6), cpu_s=round(cpu_s, 6))

    def write(self, event: str, now: float, **what: object) -> None:
        """Appends an event to the log, with its own SHA-256."""
        # On a full disk the log entry is dropped; writing the results raises the error.
        with contextlib.suppress(OSError):
            entry = {"event": event, "time": _utc(now), "unix_s": round(now, 3), **what}
            line = f"{json.dumps(entry)[:-1]}, {checksums.UNSIGNED}}}"
            self.log.write(checksums.signed(line.encode()).decode() + "\n")
            self.log.flush()


@contextlib.contextmanager
def session(root: Path, shard: Shard | None, **about: object) -> Iterator[Session]:
    """Starts a session that writes into a sweep.

    Raises:
        InputError: Another writer holds the lock of the sweep or of the shard.
    """
    folder = root / ACTIVITY
    folder.mkdir(parents=True, exist_ok=True)
    now = time.time()
    name = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}-{secrets.token_hex(2)}"
    with contextlib.ExitStack() as stack:
        # Each lock with whether several may hold it.
        locks = {LOCK: shard is not None}
        if shard is not None:
            locks[f"{LOCK}-{shard.number}-of-{shard.count}"] = False
        for lock, shared in locks.items():
            held = stack.enter_context((folder / lock).open("a"))
            _lock(held, root, shared=shared)
        _remove_abandoned(folder)
        file = folder / f"{name}{_LOG_SUFFIX}"
        log = stack.enter_context(file.open("a", encoding="utf-8", newline="\n"))
        portable.lock(log.fileno(), wait=True)
        partial = folder / f"{_PARTIAL}{name}"
        partial.mkdir()
        stack.callback(shutil.rmtree, partial, ignore_errors=True)
        made = Session(name, partial, log, now)
        made.write(
            "start",
            now,
            host=platform.node(),
            pid=os.getpid(),
            shard=None if shard is None else str(shard),
            machine=machine(),
            **about,
        )
        yield made


def _lock(lock: IO[str], root: Path, *, shared: bool) -> None:
    try:
        portable.lock(lock.fileno(), shared=shared)
    except BlockingIOError as error:
        writers = [log for log in sessions(root) if log.live]
        writers_text = f" ({', '.join(log.writer for log in writers)})" if writers else ""
        raise InputError(
            f"{root}: another sweep is writing there{writers_text}; `cwnd status {root}` shows it,"
            " and `--shard I/N` divides the cells between several"
        ) from error


@dataclass(frozen=True)
class SessionLog:
    """State of a session, read from its log."""

    id: str
    start: dict[str, Any]
    #: Progress entries of the `RECENT_S` before the last one, oldest first.
    progress: list[dict[str, Any]]
    #: `True` if there are older progress entries.
    older: bool
    end: dict[str, Any] | None
    #: `True` while the writer holds the lock of its log.
    live: bool

    @property
    def writer(self) -> str:
        """Description of the writer: host, process and shard."""
        shard = f", shard {self.start['shard']}" if self.start.get("shard") else ""
        return f"{self.start.get('host')}, process {self.start.get('pid')}{shard}"

    @property
    def last_s(self) -> float:
        """Unix time of the last entry, in seconds."""
        last = self.end or (self.progress[-1] if self.progress else self.start)
        return float(last.get("unix_s", 0.0))


def sessions(root: Path) -> list[SessionLog]:
    """Reads all sessions of a sweep, oldest first."""
    found = [_read(file) for file in sorted((root / ACTIVITY).glob(f"*{_LOG_SUFFIX}"))]
    # Names have whole seconds, in which a process may write several.
    return sorted(
        (each for each in found if each.start), key=lambda each: each.start.get("unix_s", 0.0)
    )


def _read(file: Path) -> SessionLog:
    start: dict[str, Any] = {}
    progress: list[dict[str, Any]] = []
    end = None
    with contextlib.suppress(OSError):
        *lines, last = file.read_bytes().split(b"\n")
        # A killed writer may leave half a line.
        complete = list(filter(_is_complete, lines))
        if len(complete) < len(lines):
            warnings.warn(
                f"{file}: damaged: who wrote when and for how long is not all that is told;"
                " the numbers of the sweep do not depend on it, and the file may be removed",
                UncheckedWarning,
                stacklevel=2,
            )
        # The last line may have a damaged line break only.
        ends = [line for line in (last, last[:-1]) if _is_complete(line)]
        for line in [*complete, *ends[:1]]:
            entry = read_object(line)
            event = entry.get("event")
            if event == "start":
                start = entry
            elif event == "progress":
                progress.append(entry)
            elif event == "end":
                end = entry
    since = progress[-1].get("unix_s", 0.0) - RECENT_S if progress else 0.0
    recent = [entry for entry in progress if entry.get("unix_s", 0.0) >= since]
    live = end is None and _is_locked(file)
    return SessionLog(file.stem, start, recent, len(recent) < len(progress), end, live)


def _is_complete(line: bytes) -> bool:
    # Building the JSON error message takes forty times as long as this test.
    if not line.lstrip().startswith(b"{"):
        return False
    intact = checksums.signature_matches(line)
    if intact is None:  # lines of older versions have no hash
        with contextlib.suppress(ValueError):
            read_object(line)
            return True
    return bool(intact)


def _is_locked(file: Path) -> bool:
    try:
        with file.open("rb") as log:
            portable.lock(log.fileno(), shared=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def remove_other_logs(root: Path, writing: Session) -> None:
    """Removes logs of ended sessions, whose cells are no longer there."""
    for file in (root / ACTIVITY).glob(f"*{_LOG_SUFFIX}"):
        if file.stem != writing.id and not _is_locked(file):
            file.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """Removes incomplete files of killed writers."""
    for partial in folder.glob(f"{_PARTIAL}*"):
        if not _is_locked(folder / f"{partial.name.removeprefix(_PARTIAL)}{_LOG_SUFFIX}"):
            shutil.rmtree(partial, ignore_errors=True)


def _utc(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
