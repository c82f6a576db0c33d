"""Cases of routers: queues with recorded arrivals, and meters with packets of senders.

Queues run recorded arrivals of a bottleneck at several link rates. Meters write into the headers of
packets that a link then serves.
"""

from __future__ import annotations

from collections import deque
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from exact import NS, Uniforms, digits
from meters import Header, Rated, Rcp, Xcp
from queues import CoDel, FqCoDel, LinuxPie, Packet, Pie, Queue, RandomQueue, Red

HERE = Path(__file__).parent
MS = 1_000_000
MBIT = 1_000_000
BITS = 8

RED: dict[str, Any] = {
    "min_th_packets": 5,
    "max_th_packets": 15,
    "max_p": 0.1,
    "w_q": 0.002,
    "limit_packets": 1000,
    "mean_packet": 1500,
    "mode": "packets",
    "gentle": False,
    "wait": False,
    "ecn": True,
    "forced": "drop",
}
CODEL: dict[str, Any] = {
    "target_ns": 5 * MS,
    "interval_ns": 100 * MS,
    "limit_packets": 1000,
    "mtu": 1500,
    "ecn": True,
}
FQ_CODEL: dict[str, Any] = {**CODEL, "quantum": 1514, "limit_packets": 10240, "flows": 65536}
PIE: dict[str, Any] = {
    "target_ns": 15 * MS,
    "t_update_ns": 15 * MS,
    "alpha": 0.125,
    "beta": 1.25,
    "max_burst_ns": 150 * MS,
    "limit_packets": 1000,
    "mean_packet": 1500,
    "derandomise": False,
    "byte_mode": False,
    "ecn": True,
    "mark_ecnth": 0.1,
}
LINUX_PIE: dict[str, Any] = {
    **PIE,
    "target_ns": 20 * MS,
    "t_update_ns": 30 * MS,
    "max_burst_ns": 100 * MS,
}


def arrivals(name: str) -> list[Packet]:
    """Reads a recording."""
    lines = (HERE / "arrivals" / f"{name}.csv").read_text().splitlines()[1:]
    rows = (tuple(map(int, line.split(","))) for line in lines)
    return [Packet(i, size, ecn, flow, time) for i, (time, size, ecn, flow) in enumerate(rows)]


def drive(queue: Queue, packets: list[Packet], *, timer_ns: int | None) -> list[list[Any]]:
    """Runs arrivals, a link that serves the queue at its rate, and timers.

    Ends when the queue is empty, or DRAIN packets after the last arrival.

    Order of simultaneous events: link, timer, arrival.
    """
    never = 1 << 62
    rows: list[list[Any]] = []
    free_at = never
    timer_at = timer_ns or never
    waiting = list(reversed(packets))
    drained = 0

    def take(now: int) -> int:
        sent = queue.dequeue(now)
        rows.append(["dequeue", now, sent.id if sent else None, hits()])
        return now + sent.size * BITS * NS // queue.rate if sent else never

    def hits() -> list[list[Any]]:
        told = [list(h) for h in queue.hits]
        queue.hits.clear()
        return told

    while (waiting or free_at != never) and drained < DRAIN:
        arrives = waiting[-1].entered if waiting else never
        if free_at <= min(arrives, timer_at):
            free_at = take(free_at)
            drained += 0 if waiting else 1
        elif timer_at <= arrives:
            queue.timer(timer_at)
            rows.append(["update", timer_at, queue.state()])
            timer_at += timer_ns or never
        else:
            p = waiting.pop()
            queue.enqueue(p)
            row = ["enqueue", p.entered, p.id, p.size, p.ecn, p.flow, hits()]
            state = queue.state() if timer_ns is None else None
            rows.append(row if state is None else [*row, state])
            if free_at == never:
                free_at = take(p.entered)
    return rows


#: Most packets that leave after the last arrival.
DRAIN = 40


def case(
    name: str,
    source: str,
    kind: type[Queue],
    parameters: dict[str, Any],
    line: tuple[str, float, int],
    **more: Any,
) -> dict[str, Any]:
    """Returns one case; `line` has a recording, the rate in Mbit/s and the number of packets."""
    recording, mbit, count = line
    rate = round(mbit * MBIT)
    uniforms: dict[str, Any] = {}
    packets = arrivals(recording)[:count]
    if shorten := more.get("shortened_by", 0):
        # Sizes differ, so that bytes matter and no two queues of FQ-CoDel hold the same number.
        packets = [p._replace(size=max(p.size - shorten * p.id % 1000, 40)) for p in packets]
    queue = kind(parameters, rate)
    if isinstance(queue, RandomQueue):
        queue.uniforms = Uniforms(1, name)
        uniforms = {"uniforms": queue.uniforms.used}
    events = drive(queue, packets, timer_ns=parameters.get("t_update_ns"))
    return {
        "name": name,
        "source": source,
        **more,
        "recording": recording,
        "rate_bit_per_s": rate,
        "parameters": parameters,
        **uniforms,
        "events": events,
    }


def red() -> list[dict[str, Any]]:
    """Returns all cases of RED."""
    paper = "Floyd & Jacobson 1993 § 4, Fig. 2 and eq. 1 to 3"
    quick = {**RED, "w_q": 0.02}
    in_bytes = {key: value for key, value in quick.items() if not key.endswith("_th_packets")}
    in_bytes |= {"mode": "bytes", "wait": True, "mean_packet": 1000, "min_th": 6000}
    counted = {**in_bytes, "count": "bytes", "max_th": 20000}
    return [
        case(
            "the paper's RED marks",
            paper,
            Red,
            {**quick, "max_p": 0.02, "max_th_packets": 30, "forced": "mark"},
            ("bulk", 5.6, 230),
        ),
        case(
            "idle times age the average",
            paper,
            Red,
            {**quick, "w_q": 0.05, "min_th_packets": 2, "max_th_packets": 16},
            ("on-off", 4.2, 130),
        ),
        case(
            "gentle, and forced drops",
            f"{paper}; Floyd 2000 (gentle); RFC 3168 § 7",
            Red,
            {**quick, "gentle": True, "limit_packets": 36},
            ("overload", 5, 250),
        ),
        case(
            "bytes, marks apart, as ns-2",
            f"{paper}; § 4 (bytes); ns-2 wait_",
            Red,
            {**in_bytes, "max_th": 60000},
            ("overload", 6.5, 180),
        ),
        case(
            "bytes are counted, whatever the average, as ns-2",
            "ns-2 2.35 red.cc, modify_p and drop_early with use_mark_p_",
            Red,
            {**counted, "forced": "spaced"},
            ("overload", 6.5, 335),
            shortened_by=37,
        ),
        case(
            "equal thresholds are a step",
            f"{paper}; Alizadeh et al. 2010 § 3.1",
            Red,
            {**quick, "w_q": 0.3, "min_th_packets": 12, "max_th_packets": 12},
            ("overload", 5, 100),
        ),
        # The names of these three select draws that show the factors and the count.
        case(
            "gentle, a short queue",
            f"{paper}; Floyd 2000 (gentle)",
            Red,
            {**quick, "w_q": 0.05, "min_th_packets": 3, "max_th_packets": 9, "gentle": True},
            ("on-off", 3.5, 31),
        ),
        case(
            "marks by force, then at random",
            paper,
            Red,
            {**quick, "w_q": 0.2, "min_th_packets": 4, "max_th_packets": 6, "forced": "mark"},
            ("bulk", 2.1, 44),
        ),
        case(
            "bytes on a slow link, as ns-2",
            "ns-2 2.35 red.cc, modify_p and drop_early with use_mark_p_",
            Red,
            counted,
            ("overload", 0.7, 49),
        ),
    ]


def codel() -> list[dict[str, Any]]:
    """Returns all cases of CoDel."""
    rfc = "RFC 8289 § 5.2 to 5.6"
    mixed = f"{rfc}; marks: RFC 8289 § 4.1"
    return [
        case("drops only", rfc, CoDel, {**CODEL, "ecn": False}, ("bulk", 5.2, 180)),
        case("marks and drops", mixed, CoDel, CODEL, ("bulk", 5.2, 330)),
        case("overload, dropped only", rfc, CoDel, {**CODEL, "ecn": False}, ("overload", 4.4, 200)),
        case(
            "overload with a short limit",
            mixed,
            CoDel,
            {**CODEL, "limit_packets": 40},
            ("overload", 4.4, 400),
        ),
        case(
            "again and again, 1 ms and 20 ms",
            mixed,
            CoDel,
            {**CODEL, "target_ns": MS, "interval_ns": 20 * MS},
            ("on-off", 2.8, 280),
        ),
    ]


def pie() -> list[dict[str, Any]]:
    """Returns all cases of PIE."""
    rfc = "RFC 8033 § 4.1 to 4.4, § 5.1, § 5.5, Appendix A"
    linux = "Linux 3.17 net/sched/sch_pie.c, in real numbers"
    return [
        case("drops only", rfc, Pie, {**PIE, "ecn": False}, ("overload", 5, 270)),
        case("marks up to 10 %", rfc, Pie, PIE, ("bulk", 5.95, 570)),
        case(
            "bursts and pauses",
            rfc,
            Pie,
            {**PIE, "target_ns": 5 * MS, "max_burst_ns": 45 * MS, "mark_ecnth": None},
            ("on-off", 3.4, 250),
        ),
        # The name selects the random stream; in this one 8.5 drops accumulate before a draw
        # succeeds.
        case(
            "one drop is overdue (16)",
            f"{rfc}; § 5.4",
            Pie,
            {**PIE, "derandomise": True},
            ("bulk", 5.2, 360),
        ),
        case(
            "pauses, made even",
            f"{rfc}; § 5.4",
            Pie,
            {**PIE, "derandomise": True, "target_ns": 5 * MS, "max_burst_ns": 15 * MS},
            ("on-off", 3.4, 215),
        ),
        case(
            "bytes, made even",
            f"{rfc}; § 5.4",
            Pie,
            {**PIE, "derandomise": True, "byte_mode": True, "limit_packets": 70},
            ("overload", 5, 610),
        ),
        case("Linux 3.17", linux, LinuxPie, LINUX_PIE, ("bulk", 5.7, 870), preset="linux-3.17"),
        case(
            "Linux 3.17 that marks at any probability",
            f"Khademi et al. 2017 (ABE) § IV-A; {linux}",
            LinuxPie,
            {**LINUX_PIE, "mark_ecnth": None},
            ("bulk", 5.2, 240),
            preset="abe",
        ),
        case(
            "Linux 3.17, overload",
            linux,
            LinuxPie,
            {**LINUX_PIE, "ecn": False},
            ("overload", 3.6, 170),
            preset="linux-3.17",
        ),
        case("a probability of one", rfc, Pie, {**PIE, "ecn": False}, ("overload", 0.2, 20)),
    ]


def fq_codel() -> list[dict[str, Any]]:
    """Returns all cases of FQ-CoDel."""
    rfc = "RFC 8290 § 4.1 and 4.2; RFC 8289 § 5"
    return [
        case("four flows", rfc, FqCoDel, FQ_CODEL, ("bulk", 5, 350)),
        case(
            "sixteen flows, drops only",
            rfc,
            FqCoDel,
            {**FQ_CODEL, "ecn": False, "quantum": 300},
            ("overload", 4.4, 250),
        ),
        case(
            "a short limit: the fattest queue gives way",
            rfc,
            FqCoDel,
            {**FQ_CODEL, "limit_packets": 30, "target_ns": MS, "interval_ns": 20 * MS},
            ("bulk", 2.4, 320),
            shortened_by=37,
        ),
        case("flows come and go", rfc, FqCoDel, FQ_CODEL, ("on-off", 3.2, 200)),
        case(
            "an empty queue turns old",
            rfc,
            FqCoDel,
            {**FQ_CODEL, "quantum": 3000},
            ("overload", 1.3, 30),
        ),
    ]


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

    while number < METERED_PACKETS:
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
            # Periods of higher load alternate with periods of lower load.
            busy = load * (1.6 if number // 75 % 2 else 0.6)
            arrives += int(draw.expovariate(1) * 1000 * 8 * NS / rate / busy)
            if draw.random() < 0.003:
                arrives += 300 * MS
    return rows


#: Number of packets in a case.
METERED_PACKETS = 140


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
