"""Delivery rates: draft-cheng-iccrg-delivery-rate-estimation-00.

Every packet is kept for ever, and the rate sample of an ACK is found by its definition among all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Packet:
    """P of § 3.1.2: state of a packet at its last transmission."""

    seq: int
    end: int
    sent_time: int
    delivered: int
    delivered_time: int
    first_sent_time: int
    is_app_limited: bool
    times: int = 1
    arrived: bool = False


@dataclass
class Connection:
    """C of § 3.1.1, and all of its packets."""

    packets: list[Packet] = field(default_factory=list)
    delivered: int = 0
    delivered_time: int = 0
    first_sent_time: int = 0
    app_limited: int = 0
    #: RTTs of packets sent once.
    rtts: list[int] = field(default_factory=list)
    una: int = 0
    #: Ranges of whole packets reported by SACK.
    sacked: set[tuple[int, int]] = field(default_factory=set)

    def reported(self) -> int:
        """Returns the number of bytes reported as delivered."""
        above = sum(end - max(seq, self.una) for seq, end in self.sacked if end > self.una)
        return self.una + above

    def send(self, now: int, seq: int, end: int) -> None:
        """§ 3.2: a packet is sent, for the first time or again."""
        old = [p for p in self.packets if p.seq < end and p.end > seq]
        if all(p.end <= self.una for p in self.packets) and not old:
            self.first_sent_time = self.delivered_time = now
            # Nothing was in flight, so the application limited the rate (§ 3.4).
            self.app_limited = max(self.reported(), 1)
        state = {
            "sent_time": now,
            "delivered": self.reported(),
            "delivered_time": self.delivered_time,
            "first_sent_time": self.first_sent_time,
            "is_app_limited": self.app_limited != 0,
        }
        for p in old:
            if not p.arrived:
                p.times += 1
                for key, value in state.items():
                    setattr(p, key, value)
        if not old:
            self.packets.append(Packet(seq, end, **state))

    def ack(
        self, now: int, una: int, blocks: list[tuple[int, int]], in_flight: int, *, idle: bool
    ) -> dict[str, Any]:
        """§ 3.3: the rate sample of an ACK."""
        self.una = max(self.una, una)
        new = [
            p
            for p in self.packets
            if not p.arrived
            and (p.end <= self.una or any(a <= p.seq and p.end <= b for a, b in blocks))
        ]
        for p in new:
            p.arrived = True
            if p.end > self.una:
                self.sacked.add((p.seq, p.end))
        total = self.reported()
        rs: dict[str, Any] = {"newly": total - self.delivered, "total": total}
        if total > self.delivered:
            self.delivered, self.delivered_time = total, now
        if new:
            # "The most recently sent".
            p = max(new, key=lambda p: (p.sent_time, p.end))
            self.first_sent_time = p.sent_time
            if p.times == 1:
                self.rtts.append(now - p.sent_time)
                rs["rtt_ns"] = now - p.sent_time
            interval = max(p.sent_time - p.first_sent_time, now - p.delivered_time)
            rs["prior"] = p.delivered
            if interval > 0 and interval >= min(self.rtts, default=0):
                rs["interval_ns"] = interval
            if p.is_app_limited:
                rs["app_limited"] = True
        rs["in_flight"] = in_flight
        if self.delivered > self.app_limited:
            self.app_limited = 0
        if idle:
            self.app_limited = max(total + in_flight, 1)
        return rs
