"""Records what this kernel's TCP does about the probes: `make probes`, as root, some minutes.

    record_probes.py crates/tcp/tests/probes/linux-6.18.txt [--only FAMILY]

Each probe is played three times and kept if all agree: what left, and the state after each event. The file says what its columns are.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
from collections import Counter
from pathlib import Path

from probes import kernel
from probes.connection import Connection, Event, ProbeError
from probes.families import all_probes

TIMES = 3
#: Probes that are played beside each other; they sleep most of the time.
WORKERS = 12
#: Times may differ by so much, ms: a tick of 4 ms and what a process waits.
TICK, WAKING = 4, 1.5
#: Timers beyond 64 ticks are kept in wheels whose steps are an eighth of what they wait for (kernel/time/timer.c).
WHEEL = 1 / 8

HEADER = """\
# Linux {release}: what its TCP sender did; recorded by scripts/record_probes.py, {times} times alike each.
# probe NAME CONTROLLER AGREED…
# +MS EVENT | BYTES THAT LEFT (w: CWR, e: ECT) | ca_state cwnd ssthresh unacked sacked lost retrans total_retrans rto rtt rttvar
# Segments have 1000 bytes; `timer` is what the kernel does by itself, so long after the event before; `echo 3000#2` is that of the
# second time that byte 3000 went; the window is {window} bytes unless `win` says otherwise.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="probes whose names begin so")
    options = parser.parse_args()
    chosen = [n for n, probe in enumerate(all_probes()) if probe.name.startswith(options.only)]
    with multiprocessing.Pool(WORKERS, initializer=_begin) as pool:
        outcomes = pool.map(_record, chosen, chunksize=1)
    left_out = [reason for text, reason in outcomes if not text]
    for reason in left_out:
        print(f"left out: {reason}", file=sys.stderr)
    options.file.write_text(header() + "".join(text for text, _ in outcomes))
    print(f"{len(chosen) - len(left_out)} probes, {len(left_out)} left out", file=sys.stderr)
    return 0


def header() -> str:
    """What the file begins with."""
    from probes.connection import WINDOW

    return HEADER.format(release=os.uname().release, times=TIMES, window=WINDOW)


_DEVICE: list[int] = []


def _begin() -> None:
    _DEVICE.append(kernel.enter_namespace())


def _record(number: int) -> tuple[str, str]:
    """The text of a probe, or why there is none."""
    probe = all_probes()[number]
    reason = ""
    for attempt in range(2):
        takes = []
        for take in range(TIMES):
            try:
                connection = Connection(_DEVICE[0], number * 8 + attempt * TIMES + take, probe.options)
            except ProbeError as error:
                return "", f"{probe.name}: {error}"
            try:
                probe.play(connection)
            except ProbeError as error:
                return "", f"{probe.name}: {error}"
            finally:
                connection.close()
            takes.append(connection.events)
        reason = differ(takes[0], takes[1]) or differ(takes[0], takes[2])
        if not reason:
            return text_of(probe.name, str(probe.options), middle(takes)), ""
    return "", f"{probe.name}: {reason}"


def differ(one: list[Event], other: list[Event]) -> str:
    """Where two takes of a probe are not alike."""
    if len(one) != len(other):
        return f"{len(one)} events and {len(other)}"
    # What follows a timer may be earlier or later than it was, too.
    timers = 0.0
    for n, (a, b) in enumerate(zip(one, other, strict=True)):
        if a.what != b.what:
            return f"event {n}: {a.what}, {b.what}"
        if a.what == "timer":
            timers = max(timers, TICK + WHEEL * max(a.after, b.after))
        slack = WAKING + timers
        if abs(a.after - b.after) > slack:
            return f"event {n} ({a.what}): after {a.after} and {b.after} ms"
        if a.left != b.left:
            return f"event {n} ({a.what}): {a.left} and {b.left}"
        assert a.state is not None
        assert b.state is not None
        if _exact(a) != _exact(b):
            return f"event {n} ({a.what}): {a.state} and {b.state}"
        for of in ("rto", "rtt", "rttvar"):
            x, y = getattr(a.state, of), getattr(b.state, of)
            if abs(x - y) > 2 * TICK + 0.05 * x:
                return f"event {n} ({a.what}): {of} {x} and {y}"
    return ""


def _exact(event: Event) -> tuple[object, ...]:
    state = event.state
    assert state is not None
    return (state.phase, state.cwnd, state.ssthresh, state.unacked, state.sacked, state.lost, state.retrans, state.total)


def middle(takes: list[list[Event]]) -> list[Event]:
    """The take whose timers are neither the earliest nor the latest."""
    spans = [sum(event.after for event in take) for take in takes]
    return takes[spans.index(statistics.median(spans))]


def text_of(name: str, options: str, events: list[Event]) -> str:
    """A probe as the file has it."""
    lines = [f"probe {name} {options}"]
    for event in events:
        left = " ".join(
            "probe" if part.start == part.end else f"{part.start}:{part.end}{'w' if part.cwr else ''}{'e' if part.capable else ''}"
            for part in joined(event.left)
        )
        lines.append(f"+{event.after:g} {event.what} | {left} | {event.state}".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def joined(left: list) -> list:
    """Segments that follow each other are one range."""
    from dataclasses import replace

    found: list = []
    for part in left:
        last = found[-1] if found else None
        if last is not None and (last.end, last.cwr, last.capable) == (part.start, part.cwr, part.capable) and last.start != last.end:
            found[-1] = replace(last, end=part.end)
        else:
            found.append(part)
    return found


if __name__ == "__main__":
    sys.exit(main())
