"""Text format of probes, and the comparison of two takes."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from probes.connection import WINDOW, Event, Left, in_segments

#: Times may differ by so much, ms: a tick of the kernel's clock, and what a process waits.
TICK, WAKING = 4, 1.5
#: Timers beyond 64 ticks have steps of at most an eighth of their wait (kernel/time/timer.c).
WHEEL = 1 / 8

HEADER = """\
# Linux {release}: what its TCP sender did; by scripts/record_probes.py, {times} times alike each.
# probe NAME CONTROLLER AGREED…
# +MS EVENT|DATA THAT LEFT (w: CWR, e: ECT)|ca_state cwnd ssthresh unacked rto rtt mdev (ms)
#   total_retrans retrans lost sacked, without those that are 0 at the end, and without a ca_state
#   that is as before
# Data is in segments of 1000 bytes; `timer` is what the kernel does by itself, so long after the
# last event. An ACK echoes the segment below it as it went first; `echo 3#2` is that of the second
# time that segment 3 went. The window is {window} bytes unless `win` says otherwise.
"""

DATA = r"\d+(?:\.\d)?"
LEFT = rf"(?:probe|{DATA}:{DATA}w?e?)"
TIMES = r"\d+ \d+\.\d \d+\.\d"
STATE = (
    rf"(?:(?:open|disorder|cwr|recovery|loss) )?\d+ (?:-|\d+) \d+ {TIMES}"
    r"(?:(?: \d+){0,3} [1-9]\d*)?"
)
ACK = rf"ack {DATA}(?: sack(?: {DATA}:{DATA})+)?(?: echo (?:syn|{DATA}#\d+))?(?: ece)?(?: win \d+)?"
#: Pattern of the line of an event.
LINE = re.compile(
    rf"\+\d+(?:\.\d)? (?:synack|write {DATA}|pause|timer|{ACK})"
    rf"\|(?:{LEFT}(?: {LEFT})*)?\|{STATE}"
)


def header(times: int) -> str:
    """Returns the header of the file."""
    return HEADER.format(release=os.uname().release, times=times, window=WINDOW)


def text_of(name: str, options: str, events: list[Event]) -> str:
    """A probe as the file has it."""
    lines = [f"probe {name} {options}"]
    before = ""
    for event in events:
        assert event.state is not None
        left = " ".join(map(_shown, joined(event.left)))
        state = str(event.state).removeprefix(f"{before} ")
        lines.append(f"+{event.after:g} {event.what}|{left}|{state}")
        before = event.state.phase
    return "\n".join(lines) + "\n"


def _shown(part: Left) -> str:
    if part.start == part.end:
        return "probe"
    flags = ("w" if part.cwr else "") + ("e" if part.capable else "")
    return f"{in_segments(part.start)}:{in_segments(part.end)}{flags}"


def joined(left: list[Left]) -> list[Left]:
    """Segments of the same flags that follow each other are one range."""
    found: list[Left] = []
    for part in left:
        last = found[-1] if found else None
        if last is not None and last.start != last.end and _continues(last, part):
            found[-1] = replace(last, end=part.end)
        else:
            found.append(part)
    return found


def _continues(last: Left, part: Left) -> bool:
    return (last.end, last.cwr, last.capable) == (part.start, part.cwr, part.capable)


def differ(one: list[Event], other: list[Event]) -> str:
    """Describes the first difference of two takes of a probe; empty if they are alike."""
    # What follows a timer may be earlier or later than it was, too.
    timers = 0.0
    for n, (a, b) in enumerate(zip(one, other, strict=False), 1):
        if a.what == "timer":
            timers = max(timers, TICK + WHEEL * max(a.after, b.after))
        reason = _differ(a, b, WAKING + timers)
        if reason:
            return f"event {n} ({a.what}): {reason}"
    return "" if len(one) == len(other) else f"{len(one)} events and {len(other)}"


def _differ(a: Event, b: Event, slack: float) -> str:
    assert a.state is not None
    assert b.state is not None
    told = [(a.what, b.what), (a.left, b.left), (a.state.counts(), b.state.counts())]
    apart = [f"{x} and {y}" for x, y in told if x != y]
    if abs(a.after - b.after) > slack:
        apart.append(f"after {a.after} and {b.after} ms")
    for of in ("rto", "rtt", "mdev"):
        x, y = getattr(a.state, of), getattr(b.state, of)
        if abs(x - y) > 2 * TICK + 0.05 * x:
            apart.append(f"{of} {x} and {y}")
    return "; ".join(apart)


def same_lines(one: str, other: str) -> bool:
    """`True` if two texts of a probe differ in times at most."""

    def told(text: str) -> list[tuple[str, ...]]:
        head, *lines = text.splitlines()
        found: list[tuple[str, ...]] = [(head,)]
        for line in lines:
            happened, *left, state = line.split("|")
            words = state.split()
            # Three times follow the state and three counts.
            times = 4 if words[0].isalpha() else 3
            counts = (*words[:times], *words[times + 3 :])
            found.append((*happened.split(" ", 1)[1:], *left, *counts))
        return found

    return told(one) == told(other)
