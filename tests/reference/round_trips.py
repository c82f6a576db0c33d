"""Round-trip times of a controller: RFC 7323 § 4, RFC 6298, McCullagh 2008 chapter 5.

Every segment is kept for ever, and each sample is found by its definition among all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Sent:
    """A segment that was sent."""

    seq: int
    end: int
    at: int
    times: int = 1
    acknowledged: bool = False
    sacked: bool = False


@dataclass
class Ack:
    """An ACK; `ecr` is the echoed timestamp, `took` the data's one-way delay."""

    now: int
    ack: int
    blocks: list[tuple[int, int]]
    ecr: int
    took: int | None = None  # µs


@dataclass
class Sees:
    """RTT samples that a controller sees, with the parameters of a case."""

    p: dict[str, Any]
    segments: list[Sent] = field(default_factory=list)
    una: int = 0
    #: With one sample per window: no sample before this number is acknowledged.
    next_from: int = 0
    #: Measured round trips and one-way delays.
    trips: list[int] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)

    def ticks(self, since: int, now: int, clock: int) -> int:
        """RFC 6298 § 2 with a clock of granularity G: whole ticks, at least one."""
        return max(now // clock - since // clock, 1) * clock

    def own(self, since: int, now: int) -> int:
        """Measures an RTT by the sender's clock."""
        return self.ticks(since, now, self.p["rtt_clock_ns"])

    def handshake(self, now: int, sent: int, ecr: int, *, once: bool) -> int | None:
        """Handles the SYN-ACK.

        If the SYN was sent twice, only timestamps are valid (Karn & Partridge 1987).
        """
        if self.p["rtt_from"] == "timer":
            seen: int | None = self.ticks(ecr, now, self.p["clock_ns"])
        else:
            seen = self.own(sent, now) if once else None
        if seen is not None:
            self.trips.append(seen)
        return seen

    def goes(self, seq: int, end: int, now: int) -> None:
        """Sends data, for the first time or again."""
        old = [s for s in self.segments if s.seq < end and s.end > seq]
        for segment in old:
            segment.times += 1
        if not old:
            self.segments.append(Sent(seq, end, now))

    def hears(self, a: Ack) -> int | None:
        """Handles an ACK; returns the sample that the controller gets."""
        new = [
            s
            for s in self.segments
            if not s.sacked
            and not s.acknowledged
            and any(seq < s.end <= end for seq, end in a.blocks)
        ]
        covered = [s for s in self.segments if not s.acknowledged and s.end <= a.ack]
        # Karn & Partridge 1987: an ACK that covers retransmitted data gives no sample.
        clean = [] if any(s.times > 1 for s in covered) else covered
        sample = self.sample(a, clean, new)
        # § 5.2: the delayed-ACK timer causes ACKs of one segment.
        lone = len(covered) == 1 and not self.p["rtt_lone_acks"] and self.p["ack_every"] > 1
        by_sack = self.p["rtt_from"] == "sack" and any(s.times == 1 for s in new)
        advances = a.ack > self.una
        for segment in new:
            segment.sacked = True
        for segment in covered:
            segment.acknowledged = True
        self.una = max(self.una, a.ack)
        if sample is None or (advances and lone and not by_sack):
            return None
        if self.p["rtt_every"] == "window":
            if self.una < self.next_from:
                return None
            self.next_from = max(s.end for s in self.segments)
        return sample

    def sample(self, a: Ack, clean: list[Sent], new: list[Sent]) -> int | None:
        """Returns a sample by the source that the parameter names."""
        advances = a.ack > self.una
        newest = max((s.at for s in clean), default=None)
        match self.p["rtt_from"]:
            case "timer":
                # RFC 7323 § 4.1: each ACK that advances.
                return self.ticks(a.ecr, a.now, self.p["clock_ns"]) if advances else None
            case "oldest":
                return None if not clean else self.own(min(s.at for s in clean), a.now)
            case "newest":
                return None if newest is None else self.own(newest, a.now)
            case "sack":
                # `tcp_clean_rtx_queue`: data reported by SACK before gives no sample now.
                last = max((s.at for s in new if s.times == 1), default=None)
                if last is None:
                    last = max((s.at for s in clean if not s.sacked), default=None)
                return None if last is None else self.own(last, a.now)
            case _:
                return self.one_way(a, newest)

    def one_way(self, a: Ack, newest: int | None) -> int | None:
        """RFC 6817 § 2.4: the minimum RTT, plus the data's one-way delay above its minimum."""
        if a.ack == self.una:
            return None
        if newest is not None:
            self.trips.append(self.own(newest, a.now))
        if a.took is None:
            return None
        self.delays.append(a.took)
        waited_us = a.took - min(self.delays)
        return min(self.trips) + 1000 * waited_us if self.trips else None
