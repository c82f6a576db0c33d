"""Cases of routers that write into headers: packets of senders, a queue with a meter, a link."""

from __future__ import annotations

from collections import deque
from decimal import Decimal
from random import Random
from typing import Any

from exact import NS, digits
from meters import Header, Rated, Rcp, Xcp

MS = 1_000_000
MBIT = 1_000_000
#: Feedback, and rate, that a sender without a limit asks for.
ALL = (1 << 31) - 1
ALL_RATE = (1 << 64) - 1

XCP: dict[str, Any] = {
    "alpha": 0.4,
    "beta": 0.226,
    "gamma": 0.1,
    "queue_seen": "arriving",
    "queue_interval": 1.0,
    "first_interval_ns": 50 * MS,
    "least_interval_ns": MS,
    "most_rtt_ns": 1000 * MS,
}
RCP: dict[str, Any] = {
    "alpha": 0.4,
    "beta": 1.0,
    "gamma": 1.0,
    "update_ns": 10 * MS,
    "first_rate": 0.05,
    "first_rtt_ns": 200 * MS,
    "least_packets": 0.01,
}


class XcpTraffic:
    """Packets of XCP's flows, and their treatment by the router."""

    def __init__(self, meter: Xcp, draw: Random) -> None:
        self.meter, self.draw = meter, draw
        self.flows = [
            [draw.choice([0, *range(1, 8)]) * 30_000, draw.randint(1_000, 200_000)]
            for _ in range(12)
        ]

    def arrives(
        self, _now: int, size: int, waiting: int, *, told: bool
    ) -> tuple[Any, list[int] | None]:
        """Makes a packet of some flow arrive; at times another router has lowered its feedback."""
        draw = self.draw
        flow = draw.choice(self.flows)
        flow[1] = max(flow[1] + draw.randint(-500, 800), 1_000)
        rtt = flow[0] and flow[0] + draw.randint(-20_000, 20_000)
        wants = draw.choice([ALL, ALL, ALL, draw.randint(-800, 600)])
        header = Header(flow[1], rtt, wants) if told else None
        self.meter.arrives(size, waiting, header)
        return header, [header.cwnd, header.rtt_us, header.feedback] if header else None

    def leaves(self, size: int, waiting: int, header: Any) -> int | None:
        """Makes a packet leave; returns the feedback in its header."""
        self.meter.leaves(size, waiting, header)
        return header.feedback if header else None


class RcpTraffic:
    """Packets of RCP's flows, and their treatment by the router."""

    def __init__(self, meter: Rcp, draw: Random) -> None:
        self.meter, self.draw = meter, draw
        self.flows = [draw.choice([0, *range(1, 8)]) * 30_000 for _ in range(12)]

    def arrives(
        self, now: int, size: int, _waiting: int, *, told: bool
    ) -> tuple[Any, list[int] | None]:
        """Makes a packet of some flow arrive; at times another router has lowered its rate."""
        draw = self.draw
        rtt = draw.choice(self.flows)
        rtt = rtt and rtt + draw.randint(-20_000, 20_000)
        wants = draw.choice([ALL_RATE, ALL_RATE, draw.randint(50_000, 900_000)])
        header = Rated(Decimal(wants), rtt) if told else None
        self.meter.arrives(now, size, header)
        return header, [wants, rtt] if header else None

    def leaves(self, _size: int, _waiting: int, header: Any) -> float | None:
        """Makes a packet leave; returns the rate in its header."""
        if header is None:
            return None
        self.meter.leaves(header)
        return digits(header.rate)


def events(
    traffic: XcpTraffic | RcpTraffic, draw: Random, rate: int, load: float
) -> list[list[Any]]:
    """Runs packets that arrive at a load around `load`, and a link that serves them.

    Order of simultaneous events: link, timer, arrival.
    """
    rows: list[list[Any]] = []
    queue: deque[tuple[int, int, Any]] = deque()
    waiting, now, free_at, arrives, number = 0, 0, None, 0, 0

    def take() -> int | None:
        nonlocal waiting
        if not queue:
            return None
        packet, size, carried = queue.popleft()
        waiting -= size
        rows.append(["leave", now, packet, waiting, traffic.leaves(size, waiting, carried)])
        return now + size * 8 * NS // rate

    while number < PACKETS:
        timer = traffic.meter.next_timer()
        if free_at is not None and free_at <= min(timer, arrives):
            now = free_at
            free_at = take()
        elif timer <= arrives:
            now = timer
            traffic.meter.timer(now, waiting)
            rows.append(["timer", now, waiting])
        else:
            now = arrives
            told = draw.random() < 0.9
            size = draw.choice([1000, 1000, 1500, 540]) if told else 40
            carried, header = traffic.arrives(now, size, waiting, told=told)
            rows.append(["arrive", now, number, size, waiting, header])
            queue.append((number, size, carried))
            waiting += size
            number += 1
            if free_at is None:
                free_at = take()
            # Periods of overload alternate with periods of low load.
            busy = load * (1.6 if number // 75 % 2 else 0.6)
            arrives += int(draw.expovariate(1) * 1000 * 8 * NS / rate / busy)
            if draw.random() < 0.003:
                arrives += 300 * MS
    return rows


#: Number of packets in a case.
PACKETS = 140


def rcp() -> list[dict[str, Any]]:
    """Returns all cases of RCP's router."""
    made = []
    for number, (name, mbit, load, changes) in enumerate(
        (
            ("half loaded", 2, 0.5, {}),
            ("loaded", 2, 1.0, {}),
            ("100 Mbit/s", 100, 1.1, {"first_rtt_ns": 20 * MS, "update_ns": 2 * MS}),
            ("recorded with ns-2", 2, 1.0, {"beta": 0.4}),
            ("short of the link", 1, 0.9, {"gamma": 0.9, "first_rate": 0.5}),
            ("a least rate that counts", 5, 2.0, {"alpha": 0.1, "least_packets": 6.0}),
        )
    ):
        parameters = {**RCP, **changes}
        draw = Random(950 + number)
        case = {
            "name": name,
            "source": "Dukkipati et al. 2005 § 3; the authors' rcp.cc",
            "meter": "rcp",
            "rate_bit_per_s": mbit * MBIT,
            "parameters": parameters,
        }
        if name.endswith("ns-2"):
            case["preset"] = "ns2"
        traffic = RcpTraffic(Rcp(parameters, mbit * MBIT), draw)
        case["events"] = events(traffic, draw, mbit * MBIT, load)
        made.append(case)
    return made


def xcp() -> list[dict[str, Any]]:
    """Returns all cases of XCP's router."""
    made = []
    for number, (name, mbit, load, changes) in enumerate(
        (
            ("the paper's router, half loaded", 2, 0.5, {}),
            ("the paper's router, loaded", 2, 1.0, {}),
            ("the paper's router, 100 Mbit/s", 100, 1.1, {"first_interval_ns": 20 * MS}),
            ("ns-2's router", 2, 1.0, {"queue_seen": "leaving", "queue_interval": 0.5}),
            ("no shuffling", 1, 0.9, {"gamma": 0.0}),
            ("other gains, short round trips", 5, 0.9, {"alpha": 0.7, "most_rtt_ns": 60 * MS}),
        )
    ):
        parameters = {**XCP, **changes}
        case = {
            "name": name,
            "source": "Katabi, Handley, Rohrs 2002 § 3.5; draft-falk-xcp-spec-03",
            "meter": "xcp",
            "rate_bit_per_s": mbit * MBIT,
            "parameters": parameters,
        }
        if name.startswith("ns-2"):
            case["preset"] = "ns2"
        draw = Random((900, 901, 902, 911, 904, 905)[number])
        traffic = XcpTraffic(Xcp(parameters, mbit * MBIT), draw)
        case["events"] = events(traffic, draw, mbit * MBIT, load)
        made.append(case)
    return made
