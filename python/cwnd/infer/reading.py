"""Reading of captures in a background thread, so that Ctrl-C can stop it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.infer.inferred import HAS_DATA, ONE_DIRECTION, Inferred

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Interval between progress reports, in seconds.
_TICK_S = 0.1


def infer(
    files: Sequence[str | Path] | str | Path,
    *,
    connections: int | None = None,
    idle_s: float | None = None,
    on_progress: Callable[[float], object] | None = None,
) -> Inferred:
    """Finds the timeouts of servers in captures made at their clients (TCP*(n), § 2.4).

    Files are merged by time. Captures of runs whose clocks begin at zero are merged only if they
    are in the same directory.

    Args:
        files: pcap or pcapng, plain or compressed by gzip or zstd; "-" is standard input.
        connections: Maximum number of connections that are followed at once, 200,000 by default.
            Beyond it, those that were quiet longest are given up, and counted.
        idle_s: Seconds without a packet after which a connection is over, 600 by default.
        on_progress: Called regularly with the fraction of the files read, 0 to 1.

    Raises:
        InputError: if a file is no capture, is damaged or cannot be sorted, if a limit is invalid,
            or if all connections have packets of one direction only.
        OSError: if a file cannot be read.
    """
    several = [files] if isinstance(files, (str, Path)) else list(files)
    if not several:
        raise InputError("which capture? give a file, as in `cwnd infer client.pcapng`")
    if connections is not None and connections < 1:
        raise InputError(f"--connections {connections}: at least one must be followed")
    if idle_s is not None and not 0 < idle_s < float("inf"):
        raise InputError(f"--idle {idle_s:g}: a connection needs some time without a packet")
    control = _core.Control()
    done: list[_core.Inferred] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            done.append(
                _core.infer_timeouts(several, control, connections=connections, idle_s=idle_s)
            )
        except BaseException as error:
            failed.append(error)

    # A daemon thread does not keep the process alive while standard input never ends.
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_TICK_S)
            if on_progress is not None:
                on_progress(control.fraction)
    except BaseException:
        control.cancel()
        raise
    if failed:
        if isinstance(failed[0], ValueError):
            raise InputError(str(failed[0])) from failed[0]
        raise failed[0]
    read_tables = done[0]
    found = Inferred(
        pl.DataFrame(read_tables.connections),
        pl.DataFrame(read_tables.silences),
        read_tables.counts,
    )
    if (
        found.capture.one_direction
        and found.connections.filter(HAS_DATA & ~ONE_DIRECTION).is_empty()
    ):
        raise InputError(
            f"{', '.join(map(str, several))}: packets of one direction only, and timeouts are told"
            " by data and acknowledgements: capture both directions, or give the file of the other"
            " direction as well"
        )
    return found
