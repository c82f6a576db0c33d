"""Probes, and what most are made of.

A path and a receiver for the kernel's segments lose, delay and mark what a probe says.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from probes.connection import MSS, Connection, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


#: A copy of a segment: `(3, 1)` is the first transmission of segment 3.
Copy = tuple[int, int]


@dataclass
class Path:
    """Delays, losses and marks of segments and ACKs on a path; times in ms."""

    #: Round-trip time without the queue.
    rtt: float = 60
    #: Time of a segment in the queue.
    gap: float = 5.2
    lost: set[Copy] = field(default_factory=set)
    #: Late copies, and their further delay.
    late: dict[Copy, float] = field(default_factory=dict)
    marked: set[int] = field(default_factory=set)
    #: ACKs that never arrive, by number.
    lost_acks: set[int] = field(default_factory=set)
    #: In-order segments for an ACK; fewer wait for `delay`.
    every: int = 1
    delay: float = 40
    dsack: bool = True
    #: Losses and further delays of any copy, beside `lost` and `late`.
    loses: Callable[[Copy], bool] | None = None
    delays: Callable[[Copy], float] | None = None


@dataclass
class Receiver:
    """A receiver by RFC 9293, RFC 2018 and RFC 2883 (D-SACK), counted in segments."""

    next: int = 0
    above: list[tuple[int, int]] = field(default_factory=list)
    #: The last ACK, and whose timestamp it echoes (TS.Recent, RFC 7323 § 4.3).
    acknowledged: int = 0
    recent: str = "syn"
    duplicate: tuple[int, int] | None = None
    waiting: int = 0

    def take(self, segment: int, echo: str) -> bool:
        """Takes a segment that arrives; `True` if it must be acknowledged at once."""
        self.duplicate = None
        if segment <= self.acknowledged:
            self.recent = echo
        if segment < self.next or any(a <= segment < b for a, b in self.above):
            self.duplicate = (segment, segment + 1)
            return True
        if segment > self.next:
            merged = (segment, segment + 1)
            for block in list(self.above):
                if block[0] <= merged[1] and merged[0] <= block[1]:
                    self.above.remove(block)
                    merged = (min(block[0], merged[0]), max(block[1], merged[1]))
            self.above.insert(0, merged)
            return True
        filled = bool(self.above)
        self.next += 1
        for block in list(self.above):
            if block[0] <= self.next:
                self.above.remove(block)
                self.next = max(self.next, block[1])
        self.waiting += 1
        return filled


class Journey:
    """Lets segments travel over a path until nothing is under way, or after `events` events."""

    def __init__(self, connection: Connection, path: Path, events: int = 45) -> None:
        self.connection = connection
        self.path = path
        self.events = events
        self.receiver = Receiver()
        self.numbers = itertools.count()
        self.acks = itertools.count(1)
        #: (when, order, what), on the clock of the connection's events in ms.
        self.due: list[tuple[float, int, tuple[str, object]]] = []
        self.idle_from = 0.0
        self.seen = 0
        #: `True` if ACKs carry ECE: from a mark until a segment with CWR (RFC 3168 § 6.1.3).
        self.marks = False
        self.cwr: set[Copy] = set()

    def at(self, when: float, segments: float) -> Journey:
        """Lets the application write so many segments `when` ms after now."""
        self._later(self._now() + when, ("write", segments))
        return self

    def run(self, patience: float = 3000) -> None:
        """Plays it; ends, too, if data is outstanding and no timer sends within `patience` ms."""
        connection = self.connection
        while len(connection.events) < self.events:
            self._collect()
            if not self.due:
                if connection.acked >= connection.highest or not connection.wait(patience):
                    break
                continue
            when, _, (what, about) = self.due[0]
            after = max(when - self._now(), 0)
            if after > 0 and connection.sees(after):
                continue
            heapq.heappop(self.due)
            self._happens(round(max(when - self._now(), 0), 1), what, about)

    def _now(self) -> float:
        return (self.connection.now - self.connection.began) * 1000

    def _later(self, when: float, what: tuple[str, object]) -> None:
        heapq.heappush(self.due, (when, next(self.numbers), what))

    def _collect(self) -> None:
        """Puts segments that left since the last call under way."""
        path = self.path
        for event in self.connection.events[self.seen :]:
            for left in event.left:
                if left.start == left.end:
                    continue
                segment = left.start // MSS
                copy = (segment, left.nth)
                if left.cwr:
                    self.cwr.add(copy)
                if copy in path.lost or (path.loses is not None and path.loses(copy)):
                    continue
                self.idle_from = max(self._now(), self.idle_from) + path.gap
                arrives = self.idle_from - path.gap + path.rtt + path.late.get(copy, 0)
                arrives += path.delays(copy) if path.delays is not None else 0
                self._later(arrives, ("arrives", copy))
        self.seen = len(self.connection.events)

    def _happens(self, after: float, what: str, about: object) -> None:
        if what == "write":
            self.connection.write(float(str(about)), after)
            return
        receiver = self.receiver
        if what == "delayed":
            if receiver.waiting > 0 and about == receiver.next:
                self._acknowledge(after)
            return
        assert isinstance(about, tuple)
        segment, nth = about
        at_once = receiver.take(segment, f"{segment}#{nth}")
        marked = nth == 1 and segment in self.path.marked
        self.marks = marked or (self.marks and about not in self.cwr)
        if at_once or marked or receiver.waiting >= self.path.every:
            self._acknowledge(after)
        else:
            self._later(self._now() + after + self.path.delay, ("delayed", receiver.next))

    def _acknowledge(self, after: float) -> None:
        receiver = self.receiver
        receiver.waiting = 0
        receiver.acknowledged = receiver.next
        if next(self.acks) in self.path.lost_acks:
            return
        blocks: list[tuple[float, float]] = []
        if self.connection.options.sack:
            if self.path.dsack and receiver.duplicate is not None:
                blocks.append(receiver.duplicate)
            # Three fit beside timestamps (RFC 2018 § 3).
            blocks += receiver.above[: 3 - len(blocks)]
        self.connection.ack(after, receiver.next, blocks, echo=receiver.recent, ece=self.marks)


@dataclass(frozen=True)
class Probe:
    """A name, what the ends agree on, and what happens."""

    name: str
    options: Options
    play: Callable[[Connection], None]


#: A probe is played with each controller that the endpoint has, too.
BOTH = ("reno", "cubic")


def over(path: Path, written: int = 60, events: int = 45) -> Callable[[Connection], None]:
    """A bulk write over a path."""

    def play(connection: Connection) -> None:
        connection.write(written, 10)
        Journey(connection, path, events).run()

    return play


def each(
    family: str, cases: Mapping[str, Callable[[Connection], None]], **options: Any
) -> Iterator[Probe]:
    """Yields each case with each controller."""
    for case, play in cases.items():
        for cc in BOTH:
            yield Probe(f"{family}/{case}-{cc}", Options(cc=cc, **options), play)
