"""Cases of QUIC's loss detection."""

from __future__ import annotations

from fractions import Fraction
from heapq import heappop, heappush
from math import ceil
from random import Random
from typing import Any

from quic import MS, Quic, Sent

Row = dict[str, Any]
SIZE = 1200


class Walk:
    """Events of a case, with the reference's state after each."""

    def __init__(self, **changes: Any) -> None:
        self.quic = Quic(**changes)
        self.rows: list[Row] = []

    def row(self, event: Row, lost: list[int], **more: Any) -> None:
        """Records an event and the state after it."""
        quic, deadline = self.quic, self.quic.deadline()
        state = {
            "lost": lost,
            "in_flight": quic.in_flight(),
            "deadline_ns": None if deadline is None else round(deadline),
            "srtt_ns": None if quic.smoothed is None else round(quic.smoothed),
            "min_rtt_ns": round(quic.min_rtt),
            "pto_count": quic.pto_count,
            "recovery_ns": quic.recovery_start,
        }
        self.rows.append({**event, **state, **more})

    def send(self, now: int, number: int, *, size: int = SIZE, eliciting: bool = True) -> None:
        """Sends a packet."""
        self.quic.sent(Sent(number, now, size, eliciting))
        event = {"event": "sent", "now_ns": now, "number": number, "bytes": size}
        self.row({**event, "ack_eliciting": eliciting}, [])

    def ack(self, now: int, ranges: list[tuple[int, int]], delay: int = 0, ce: int = 0) -> None:
        """Receives an ACK frame."""
        lost, persistent = self.quic.ack(now, ranges, delay, ce)
        event = {"event": "ack", "now_ns": now, "ranges": [list(pair) for pair in ranges]}
        self.row({**event, "delay_ns": delay, "ce": ce}, lost, persistent=persistent)

    def timer(self) -> bool:
        """Expires the timer, a microsecond late; returns True if probes are due."""
        deadline = self.quic.deadline()
        assert deadline is not None
        now = ceil(deadline) + 1000
        lost, probe = self.quic.timer(now)
        self.row({"event": "timer", "now_ns": now}, lost, probe=probe)
        return probe

    def case(self, name: str, source: str) -> dict[str, Any]:
        """Returns the case."""
        quic = self.quic
        parameters = {
            "packet_threshold": quic.packet_threshold,
            "time_threshold": float(quic.time_threshold),
            "initial_rtt_ns": quic.initial_rtt,
            "max_ack_delay_ns": quic.max_ack_delay,
        }
        return {"name": name, "source": source, "parameters": parameters, "events": self.rows}


def ranges(numbers: set[int]) -> list[tuple[int, int]]:
    """Returns ranges of numbers from the highest down."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers, reverse=True):
        if found and found[-1][0] == number + 1:
            found[-1] = (number, found[-1][1])
        else:
            found.append((number, number))
    return found


def wild(
    seed: int, *, loss: float, jitter: int = 0, outage: int = 0, marks: float = 0, **changes: Any
) -> Walk:
    """Runs some sixty packets, and probes, over a path that loses, delays and marks.

    Each packet that arrives is acknowledged at once or, in a third of cases, up to 40 ms later.
    """
    draw, walk = Random(seed), Walk(**changes)
    arrivals: list[tuple[int, int, str, Any]] = []
    received: set[int] = set()
    now, next_send, number, order, ce = 0, 0, 0, 0, 0
    out = (400 * MS, 400 * MS + outage)
    while number < 62 or arrivals:
        deadline = walk.quic.deadline()
        timer = None if deadline is None else ceil(deadline) + 1000
        send = next_send if number < 62 else None
        arrival = arrivals[0][0] if arrivals else None
        now = min(at for at in (timer, send, arrival) if at is not None)
        probes = 0
        if now == arrival:
            _, _, kind, what = heappop(arrivals)
            if kind == "ack":
                walk.ack(now, *what)
                continue
            received.add(what)
            held = draw.choice((0, 0, draw.randint(0, 40 * MS)))
            ce += draw.random() < marks
            back = now + held + 20 * MS
            order += 1
            if draw.random() >= loss / 2 and not out[0] <= now < out[1]:
                frame = (ranges(received)[:7], held // 8000 * 8000, ce)
                heappush(arrivals, (back, order, "ack", frame))
            continue
        if now == timer:
            probes = 2 if walk.timer() else 0
        elif walk.quic.in_flight() > 10 * SIZE:
            next_send = now + 5 * MS
        else:
            probes = draw.randint(1, 4)
            pause = 30 * MS if draw.random() < 0.9 else 900 * MS
            next_send = now + draw.randint(1, pause)
        for _ in range(probes):
            eliciting = draw.random() < 0.95
            walk.send(now, number, size=SIZE if eliciting else 0, eliciting=eliciting)
            order += 1
            if draw.random() >= loss and not out[0] <= now < out[1]:
                late = draw.randint(0, jitter) if draw.random() < 0.3 else 0
                heappush(arrivals, (now + 20 * MS + order + late, order, "data", number))
            number += 1 + (draw.random() < 0.02)
        if number > 300:
            break
    return walk


def loss() -> list[dict[str, Any]]:
    """Returns the cases of packet threshold, time threshold and marks."""
    by_number = Walk()
    for number in range(8):
        by_number.send(number * MS, number)
    by_number.ack(50 * MS, [(0, 0)])
    by_number.ack(54 * MS, [(4, 4), (0, 0)])
    by_number.ack(55 * MS, [(5, 5), (4, 4), (0, 0)])
    by_number.ack(56 * MS, [(4, 6), (1, 1)])
    by_time = Walk()
    for number in range(3):
        by_time.send(number * MS, number)
    by_time.ack(52 * MS, [(2, 2)])
    by_time.timer()
    by_time.timer()
    marks = Walk()
    for number in range(6):
        marks.send(number * MS, number)
    marks.ack(50 * MS, [(0, 1)], ce=1)
    marks.ack(52 * MS, [(0, 3)], ce=2)
    marks.send(53 * MS, 6)
    marks.ack(103 * MS, [(0, 6)], ce=3)
    cases = [
        by_number.case("three later packets", "RFC 9002 § 6.1.1"),
        by_time.case("an eighth more than a round trip", "RFC 9002 § 6.1.2"),
        marks.case("marks reduce once in a recovery period", "RFC 9002 § 7.3.2, § B.7"),
    ]
    walks: list[dict[str, Any]] = [
        {"loss": 0.05},
        {"loss": 0.3},
        {"loss": 0.02, "jitter": 60 * MS},
        {"loss": 0.02, "jitter": 60 * MS, "packet_threshold": 8},
        {"loss": 0.05, "jitter": 30 * MS, "time_threshold": Fraction(3, 2)},
        {"loss": 0.02, "marks": 0.1},
    ]
    for seed, changes in enumerate(walks):
        name = ", ".join(f"{key} {float(value):g}" for key, value in changes.items())
        cases.append(wild(seed, **changes).case(name, "RFC 9002 § 6.1, § A.7 to § A.10"))
    return cases


def pto() -> list[dict[str, Any]]:
    """Returns the cases of the probe timeout."""
    first = Walk()
    first.send(0, 0)
    for _ in range(6):
        first.timer()
    restarts = Walk()
    restarts.send(0, 0)
    restarts.ack(80 * MS, [(0, 0)])
    for number in range(1, 4):
        restarts.send((80 + 30 * number) * MS, number)
    restarts.send(200 * MS, 4, size=0, eliciting=False)
    restarts.timer()
    restarts.timer()
    restarts.send(900 * MS, 5)
    restarts.ack(980 * MS, [(5, 5)])
    restarts.send(990 * MS, 6)
    cases = [
        first.case("doubled before the first sample", "RFC 9002 § 6.2.1, § 6.2.2"),
        restarts.case("restarted by what elicits an ACK", "RFC 9002 § 6.2.1"),
    ]
    walks: list[dict[str, Any]] = [
        {"loss": 0.6},
        {"loss": 0.5, "max_ack_delay": 0},
        {"loss": 0.6, "initial_rtt": 50 * MS},
    ]
    for seed, changes in enumerate(walks):
        name = ", ".join(f"{key} {float(value):g}" for key, value in changes.items())
        cases.append(wild(10 + seed, **changes).case(name, "RFC 9002 § 6.2, § A.8, § A.9"))
    return cases


def rtt() -> list[dict[str, Any]]:
    """Returns the cases of the round-trip time."""
    delays = Walk()
    for number, (sample, delay) in enumerate(
        [(100, 20), (120, 16), (104, 16), (200, 60), (90, 10), (90, 25), (300, 25)]
    ):
        delays.send(number * 1000 * MS, number)
        delays.ack((number * 1000 + sample) * MS, [(0, number)], delay * MS)
    none = Walk()
    for number in range(4):
        none.send(number * MS, number, eliciting=number != 2, size=SIZE if number != 2 else 0)
    none.ack(60 * MS, [(3, 3)])
    none.ack(70 * MS, [(3, 3), (0, 0)])
    none.ack(80 * MS, [(2, 3), (0, 0)])
    cases = [
        delays.case("the receiver's delay", "RFC 9002 § 5.3"),
        none.case("ACKs without a sample", "RFC 9002 § 5.1"),
    ]
    for seed in (20, 21):
        walk = wild(seed, loss=0.02, jitter=100 * MS)
        cases.append(walk.case(f"delays that vary, {seed}", "RFC 9002 § 5"))
    return cases


def persistent() -> list[dict[str, Any]]:
    """Returns the cases of persistent congestion."""
    cases = []
    for name, acknowledged, last in (
        ("two lost packets more than three PTOs apart", set(), 1390),
        ("a packet between them is acknowledged", {7}, 1390),
        ("three PTOs are longer", set(), 1310),
    ):
        walk = Walk()
        for number in range(6):
            walk.send(100 * number * MS, number)
            walk.ack((100 * number + 60) * MS, [(0, number)])
        for number, at in enumerate((1000, 1200, last, 1500, 1510, 1520), 6):
            walk.send(at * MS, number)
        walk.ack(1580 * MS, ranges({*range(6), *acknowledged, 9, 10, 11}))
        cases.append(walk.case(name, "RFC 9002 § 7.6"))
    for seed, outage in ((30, 2000), (31, 4000), (32, 700)):
        walk = wild(seed, loss=0.02, outage=outage * MS)
        cases.append(walk.case(f"nothing passes for {outage} ms", "RFC 9002 § 7.6, § 5.2"))
    return cases
