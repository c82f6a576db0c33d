"""RED, CoDel, FQ-CoDel and PIE from the pseudo-code of their papers and RFCs.

A queue has three calls: a packet arrives, the link asks for one, a timer fires. Each records the
drops and marks that it causes: (packet, "drop" or "mark", reason).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from exact import AmbiguousError, Uniforms, digits, less, real, seconds


class Packet(NamedTuple):
    """A packet in a queue; `ecn` is the field of the IP header, 0 if not ECN-capable."""

    id: int
    size: int
    ecn: int
    flow: int
    entered: int


Hit = tuple[int, str, str]


@dataclass
class Queue(ABC):
    """Packets in order, and the interface of a discipline."""

    p: dict[str, Any]
    rate: int
    packets: deque[Packet] = field(default_factory=deque)
    bytes: int = 0
    hits: list[Hit] = field(default_factory=list)

    @abstractmethod
    def enqueue(self, packet: Packet) -> None:
        """Handles a packet that arrives at `packet.entered`."""

    @abstractmethod
    def dequeue(self, now: int) -> Packet | None:
        """Returns the next packet for the idle link."""

    def timer(self, _now: int) -> None:
        """Handles a timer."""
        raise AssertionError("this queue keeps no clock")

    def state(self) -> float | None:
        """Returns the state for the vector, at timers or else at arrivals; None if none."""
        return None

    def push(self, packet: Packet) -> None:
        """Appends a packet at the tail."""
        self.packets.append(packet)
        self.bytes += packet.size

    def pop(self) -> Packet | None:
        """Removes a packet at the head."""
        if not self.packets:
            return None
        packet = self.packets.popleft()
        self.bytes -= packet.size
        return packet

    def full(self, _packet: Packet) -> bool:
        """Returns True if the packet would exceed the limit of queued packets."""
        return len(self.packets) >= int(self.p["limit_packets"])

    def hit(self, packet: Packet, reason: str, *, may_mark: bool = True) -> bool:
        """Marks (RFC 3168 § 5) or drops; returns True if the packet is kept."""
        marked = may_mark and self.p["ecn"] and packet.ecn != 0
        self.hits.append((packet.id, "mark" if marked else "drop", reason))
        return marked


@dataclass
class RandomQueue(Queue):
    """A queue with random numbers; the vector lists those that it used."""

    uniforms: Uniforms = field(init=False)


@dataclass
class Red(RandomQueue):
    """Floyd & Jacobson 1993, Fig. 2; `gentle` after Floyd 2000, `wait` after ns-2."""

    avg: Decimal = Decimal(0)
    count: int = -1
    count_bytes: int = 0
    q_time: int | None = 0

    def state(self) -> float:
        """Returns the average queue."""
        return digits(self.avg, 13)

    def queue_length(self) -> int:
        """Returns q, in the unit of the thresholds."""
        return self.bytes if self.p["mode"] == "bytes" else len(self.packets)

    def enqueue(self, packet: Packet) -> None:
        """Fig. 2."""
        p, now = self.p, packet.entered
        w_q = real(p["w_q"])
        if self.packets:
            self.avg = (1 - w_q) * self.avg + w_q * self.queue_length()
        else:
            # m = f(time − q_time): the number of mean packets that could have been sent (§ 4).
            assert self.q_time is not None
            m = seconds(now - self.q_time) * self.rate / 8 / p["mean_packet"]
            self.avg = (1 - w_q) ** m * self.avg
            self.q_time = now
        if self.full(packet):
            # Reading: a full queue drops, and that spaces the next mark as any other drop does.
            self.hits.append((packet.id, "drop", "overlimit"))
            self.count = 0 if self.count >= 0 else -1
            self.count_bytes = 0
            return
        if self.marks(packet) and not self.judged(packet):
            return
        self.push(packet)
        self.q_time = None

    def threshold(self, key: str) -> Decimal:
        """A threshold in the unit of the mode, which its key names unless it is bytes."""
        return real(self.p[f"{key}_packets" if self.p["mode"] == "packets" else key])

    def p_b(self) -> Decimal | None:
        """Returns the probability before spacing; None above the zone of probabilities.

        With equal thresholds it is a step function: DCTCP's switch (Alizadeh et al. 2010 § 3.1).
        """
        min_th, max_th = self.threshold("min_th"), self.threshold("max_th")
        max_p = real(self.p["max_p"])
        if min_th == max_th:
            return Decimal(1)
        if less(self.avg, max_th):
            return max_p * (self.avg - min_th) / (max_th - min_th)
        if self.p["gentle"] and less(self.avg, 2 * max_th):
            return max_p + (1 - max_p) * (self.avg - max_th) / max_th
        return None

    def marks(self, packet: Packet) -> bool:
        """Returns True if the arriving packet is to be marked or dropped."""
        if less(self.avg, self.threshold("min_th")):
            self.count = -1
            return False
        p_b = self.p_b()
        if self.threshold("min_th") == self.threshold("max_th"):
            self.count = self.count_bytes = 0
            return True
        if p_b is None:
            if self.p["forced"] != "spaced":
                self.count = self.count_bytes = 0
                return True
            p_b = Decimal(1)
        self.count_bytes = self.count_bytes + packet.size if self.count >= 0 else 0
        self.count += 1
        if self.p.get("count") == "bytes":
            return self.marks_as_ns2(packet, p_b)
        if self.p["mode"] == "bytes":
            # The paper's § 4 with the mean instead of the largest packet, as in ns-2.
            p_b = min(Decimal(1), p_b * packet.size / self.p["mean_packet"])
        if self.uniforms.below(self.p_a(p_b, self.count)):
            self.count = 0
            return True
        return False

    def marks_as_ns2(self, packet: Packet, p_b: Decimal) -> bool:
        """ns-2 2.35, red.cc: counts whole mean packets, and applies the size after spacing."""
        mean = self.p["mean_packet"]
        p_a = self.p_a(p_b, self.count_bytes // mean)
        if p_a < 1:
            p_a = p_a * packet.size / mean
        if self.uniforms.below(min(p_a, Decimal(1))):
            self.count = self.count_bytes = 0
            return True
        return False

    def p_a(self, p_b: Decimal, count: int) -> Decimal:
        """The paper's eq. 3; one if the denominator is not positive. With `wait`, ns-2's."""
        spent = count * p_b
        if self.p["wait"]:
            if less(spent, Decimal(1)):
                return Decimal(0)
            return p_b / (2 - spent) if less(spent, Decimal(2)) else Decimal(1)
        return p_b / (1 - spent) if less(spent, Decimal(1)) else Decimal(1)

    def judged(self, packet: Packet) -> bool:
        """Marks or drops; above the thresholds the paper marks, RFC 3168 § 7 drops."""
        p_b = self.p_b()
        if p_b is None:
            return self.hit(packet, "red_forced", may_mark=self.p["forced"] == "mark")
        return self.hit(packet, "red_early")

    def dequeue(self, now: int) -> Packet | None:
        """Returns the next packet; idle time begins when the queue becomes empty."""
        packet = self.pop()
        if packet is not None and not self.packets:
            self.q_time = now
        return packet


class Head(NamedTuple):
    """RFC 8289 § 5.5: `dodequeue_result`."""

    packet: Packet | None
    ok_to_drop: bool


@dataclass
class CoDel(Queue):
    """RFC 8289 § 5.

    A mark counts as a drop, and the packet is sent: a reading, as the RFC covers drops only.
    """

    first_above_time: int = 0
    drop_next: Decimal = Decimal(0)
    count: int = 0
    lastcount: int = 0
    dropping: bool = False

    def enqueue(self, packet: Packet) -> None:
        """§ 5.4, with a limit."""
        if self.full(packet):
            self.hits.append((packet.id, "drop", "overlimit"))
        else:
            self.push(packet)

    def control_law(self, t: Decimal) -> Decimal:
        """§ 5.6: t + INTERVAL / sqrt(count)."""
        return t + Decimal(self.p["interval_ns"]) / Decimal(self.count).sqrt()

    def due(self, now: int) -> bool:
        """Returns True if now >= drop_next.

        Raises if rounding to whole nanoseconds could decide otherwise.
        """
        distance = now - self.drop_next
        if distance != 0 and abs(distance) < 1 + self.count + self.lastcount:
            raise AmbiguousError(f"a drop is due within {distance} ns of a packet")
        return distance >= 0

    def dodequeue(self, now: int) -> Head:
        """§ 5.6."""
        packet = self.pop()
        if packet is None:
            self.first_above_time = 0
            return Head(None, ok_to_drop=False)
        if now - packet.entered < self.p["target_ns"] or self.bytes <= self.p["mtu"]:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = now + self.p["interval_ns"]
        elif now >= self.first_above_time:
            return Head(packet, ok_to_drop=True)
        return Head(packet, ok_to_drop=False)

    def dequeue(self, now: int) -> Packet | None:
        """§ 5.5."""
        r = self.dodequeue(now)
        if self.dropping:
            if not r.ok_to_drop:
                self.dropping = False
                return r.packet
            while self.dropping and self.due(now):
                assert r.packet is not None
                if self.hit(r.packet, "codel"):
                    self.count += 1
                    self.drop_next = self.control_law(self.drop_next)
                    return r.packet
                r = self.dodequeue(now)
                if r.ok_to_drop:
                    self.count += 1
                    self.drop_next = self.control_law(self.drop_next)
                else:
                    self.dropping = False
        elif r.ok_to_drop:
            assert r.packet is not None
            if not self.hit(r.packet, "codel"):
                r = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = 1
            if delta > 1 and now - self.drop_next < 16 * self.p["interval_ns"]:
                self.count = delta
            self.drop_next = self.control_law(Decimal(now))
            self.lastcount = self.count
        return r.packet


@dataclass
class Flow:
    """A queue of FQ-CoDel."""

    codel: CoDel
    deficit: int = 0
    active: bool = False


@dataclass
class FqCoDel(Queue):
    """RFC 8290 § 4, for flows that do not share a queue."""

    flows: dict[int, Flow] = field(default_factory=dict)
    new: deque[Flow] = field(default_factory=deque)
    old: deque[Flow] = field(default_factory=deque)

    def enqueue(self, packet: Packet) -> None:
        """§ 4.1."""
        if packet.flow not in self.flows:
            self.flows[packet.flow] = Flow(CoDel(self.p, self.rate, hits=self.hits))
        flow = self.flows[packet.flow]
        flow.codel.push(packet)
        if not flow.active:
            flow.active = True
            flow.deficit = self.p["quantum"]
            self.new.append(flow)
        if sum(len(f.codel.packets) for f in self.flows.values()) > self.p["limit_packets"]:
            self.drop_from_fattest()

    def drop_from_fattest(self) -> None:
        """Drops half of the packets of the queue with the most bytes, from its head (§ 4.1).

        At most 64.
        """
        most = max(f.codel.bytes for f in self.flows.values())
        fattest = [f for f in self.flows.values() if f.codel.bytes == most]
        if len(fattest) > 1:
            raise AmbiguousError("two queues are the fattest")
        codel = fattest[0].codel
        for _ in range(min(64, (len(codel.packets) + 1) // 2)):
            packet = codel.pop()
            assert packet is not None
            self.hits.append((packet.id, "drop", "overlimit"))

    def dequeue(self, now: int) -> Packet | None:
        """§ 4.2."""
        while self.new or self.old:
            queues = self.new or self.old
            flow = queues[0]
            if flow.deficit <= 0:
                flow.deficit += self.p["quantum"]
                self.old.append(queues.popleft())
                continue
            flow.codel.hits = self.hits
            packet = flow.codel.dequeue(now)
            if packet is not None:
                flow.deficit -= packet.size
                return packet
            if queues is self.new:
                self.old.append(queues.popleft())
            else:
                queues.popleft()
                flow.active = False
        return None


@dataclass
class Pie(RandomQueue):
    """RFC 8033 § 4, § 5.1 (ECN), § 5.4 (de-randomisation), § 5.5 (cap); delay by timestamps."""

    drop_prob: Decimal = Decimal(0)
    accu_prob: Decimal = Decimal(0)
    burst_allowance: int = field(init=False)
    current_qdelay: Decimal = Decimal(0)
    qdelay_old: Decimal = Decimal(0)

    #: RFC 8033 § 4.2: divisor of a step below each probability.
    SCALES: ClassVar[tuple[tuple[str, int], ...]] = (
        ("0.000001", 2048),
        ("0.00001", 512),
        ("0.0001", 128),
        ("0.001", 32),
        ("0.01", 8),
        ("0.1", 2),
    )

    def __post_init__(self) -> None:
        self.burst_allowance = self.p["max_burst_ns"]

    def state(self) -> float:
        """Returns the drop probability."""
        return digits(self.drop_prob, 13)

    def reference(self) -> Decimal:
        """QDELAY_REF."""
        return seconds(self.p["target_ns"])

    def enqueue(self, packet: Packet) -> None:
        """§ 4.1 and § 4.4 (Appendix A: `enque`)."""
        if self.full(packet):
            self.accu_prob = Decimal(0)
            self.hits.append((packet.id, "drop", "overlimit"))
            return
        if self.burst_allowance == 0 and self.drop_early(packet):
            # § 5.1: above mark_ecnth packets are dropped, as marks are not answered.
            few = self.p["mark_ecnth"] is None or less(self.drop_prob, real(self.p["mark_ecnth"]))
            if not self.hit(packet, "pie", may_mark=few):
                return
        else:
            self.renew_burst()
        self.push(packet)

    def renew_burst(self) -> None:
        """§ 4.4."""
        half = self.reference() / 2
        if self.drop_prob == 0 and self.current_qdelay < half and self.qdelay_old < half:
            self.burst_allowance = self.p["max_burst_ns"]

    def few_bytes(self) -> bool:
        """§ 4.1: returns True if the queue holds at most the bytes of two mean packets."""
        return self.bytes <= 2 * int(self.p["mean_packet"])

    def drop_early(self, packet: Packet) -> bool:
        """§ 4.1, § 5.4."""
        calm = self.qdelay_old < self.reference() / 2
        if (calm and less(self.drop_prob, Decimal("0.2"))) or self.few_bytes():
            return False
        p = self.drop_prob
        if self.p["byte_mode"]:
            p = min(p, p * packet.size / self.p["mean_packet"])
        if not self.p["derandomise"]:
            return self.uniforms.below(p)
        if self.drop_prob == 0:
            self.accu_prob = Decimal(0)
        self.accu_prob += p
        if less(self.accu_prob, Decimal("0.85")):
            return False
        if less(self.accu_prob, Decimal("8.5")) and not self.uniforms.below(p):
            return False
        self.accu_prob = Decimal(0)
        return True

    def step(self, qdelay: Decimal) -> Decimal:
        """§ 4.2 and § 5.5: returns the change of the probability."""
        p = real(self.p["alpha"]) * (qdelay - self.reference())
        p += real(self.p["beta"]) * (qdelay - self.qdelay_old)
        for below, divisor in self.SCALES:
            if less(self.drop_prob, Decimal(below)):
                p /= divisor
                break
        if not less(self.drop_prob, Decimal("0.1")) and p > Decimal("0.02"):
            p = Decimal("0.02")
        return p

    def timer(self, _now: int) -> None:
        """Runs every T_UPDATE (§ 4.2, § 4.4)."""
        self.update(self.current_qdelay)
        self.burst_allowance = max(0, self.burst_allowance - self.p["t_update_ns"])

    def update(self, qdelay: Decimal) -> None:
        """§ 4.2."""
        self.drop_prob += self.step(qdelay)
        if qdelay == 0 and self.qdelay_old == 0:
            self.drop_prob *= Decimal("0.98")
        self.drop_prob = min(max(self.drop_prob, Decimal(0)), Decimal(1))
        self.qdelay_old = qdelay

    def dequeue(self, now: int) -> Packet | None:
        """§ 4.3: the delay of the departing packet.

        It is zero if no packet waits behind it (a reading, Linux's).
        """
        packet = self.pop()
        if packet is not None:
            self.current_qdelay = seconds(now - packet.entered) if self.packets else Decimal(0)
        return packet


@dataclass
class LinuxPie(Pie):
    """`sch_pie.c` of Linux 3.14 to 4.5, in real numbers instead of its fixed point."""

    QUEUE_THRESHOLD = 10_000
    SCALES: ClassVar[tuple[tuple[str, int], ...]] = (("0.01", 8), ("0.1", 2))

    avg_dq_rate: Decimal = Decimal(0)
    dq_count: int | None = None
    dq_tstamp: int = 0

    def few_bytes(self) -> bool:
        """`drop_early`: fewer than two packets' bytes."""
        return self.bytes < 2 * int(self.p["mean_packet"])

    def renew_burst(self) -> None:
        """Does nothing on arrival."""

    def step(self, qdelay: Decimal) -> Decimal:
        """Adds two per cent each time above a quarter of a second."""
        p = super().step(qdelay)
        return p + Decimal("0.02") if qdelay > Decimal("0.25") else p

    def timer(self, _now: int) -> None:
        """`calculate_probability`."""
        qdelay = Decimal(0)
        if self.avg_dq_rate > 0:
            # Departs from Linux: the delay has a resolution of nanoseconds, not of ticks of 64.
            qdelay = seconds(int(self.bytes / self.avg_dq_rate))
        before = self.qdelay_old
        self.update(qdelay)
        half = self.reference() / 2
        calm = qdelay < half and before < half
        if calm and self.drop_prob == 0 and self.avg_dq_rate > 0:
            self.avg_dq_rate = Decimal(0)
            self.dq_count = None
            self.burst_allowance = self.p["max_burst_ns"]

    def dequeue(self, now: int) -> Packet | None:
        """`pie_process_dequeue`: the departure rate, and the burst allowance."""
        packet = self.pop()
        if packet is None:
            return None
        if self.bytes >= self.QUEUE_THRESHOLD and self.dq_count is None:
            self.dq_tstamp = now
            self.dq_count = 0
        if self.dq_count is None:
            return packet
        self.dq_count += packet.size
        dtime = now - self.dq_tstamp
        if self.dq_count < self.QUEUE_THRESHOLD or dtime == 0:
            return packet
        rate = Decimal(self.dq_count) / dtime
        self.avg_dq_rate += (rate - self.avg_dq_rate) / 8 if self.avg_dq_rate else rate
        if self.bytes < self.QUEUE_THRESHOLD:
            self.dq_count = None
        else:
            self.dq_count = 0
            self.dq_tstamp = now
        self.burst_allowance = max(0, self.burst_allowance - dtime)
        return packet
