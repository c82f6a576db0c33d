"""QUIC's loss detection: RFC 9002 § 5, § 6, § 7.6 and the pseudo-code of appendices A and B.

One packet number space, after the handshake. Times are exact fractions of a nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

MS = 1_000_000
GRANULARITY = MS
PERSISTENT_CONGESTION_THRESHOLD = 3


class AmbiguousError(Exception):
    """Raised if rounding could change a decision."""


@dataclass
class Sent:
    """§ A.1.1."""

    number: int
    time: int
    size: int
    ack_eliciting: bool


@dataclass
class Quic:
    """State of § A.3 and of § B.2, without the window."""

    packet_threshold: int = 3
    time_threshold: Fraction = Fraction(9, 8)
    initial_rtt: int = 333 * MS
    max_ack_delay: int = 25 * MS
    latest: Fraction = Fraction(0)
    smoothed: Fraction | None = None
    rttvar: Fraction = Fraction(0)
    min_rtt: Fraction = Fraction(0)
    first_sample: int | None = None
    largest_acked: int | None = None
    pto_count: int = 0
    last_eliciting: int = 0
    loss_time: Fraction | None = None
    recovery_start: int | None = None
    ce: int = 0
    packets: dict[int, Sent] = field(default_factory=dict)
    #: Acknowledged packet numbers, for § 7.6.2.
    acked: set[int] = field(default_factory=set)

    def sent(self, packet: Sent) -> None:
        """OnPacketSent (§ A.5)."""
        self.packets[packet.number] = packet
        if packet.ack_eliciting:
            self.last_eliciting = packet.time

    def in_flight(self) -> int:
        """Bytes in flight."""
        return sum(packet.size for packet in self.packets.values())

    def ack(
        self, now: int, ranges: list[tuple[int, int]], delay: int, ce: int
    ) -> tuple[list[int], bool]:
        """OnAckReceived (§ A.7): returns lost numbers, and True if congestion is persistent."""
        largest = ranges[0][1]
        self.largest_acked = max(largest, self.largest_acked or 0)
        newly = [
            self.packets.pop(number)
            for number in sorted(self.packets)
            if any(low <= number <= high for low, high in ranges)
        ]
        if not newly:
            return [], False
        self.acked.update(packet.number for packet in newly)
        if newly[-1].number == largest and any(packet.ack_eliciting for packet in newly):
            self.update_rtt(now, now - newly[-1].time, min(delay, self.max_ack_delay))
        if ce > self.ce:
            self.ce = ce
            self.congestion_event(now, newly[-1].time)
        lost = self.detect(now)
        persistent = self.is_persistent(lost)
        if persistent:
            # § 5.2, § B.8.
            self.min_rtt, self.recovery_start = self.latest, None
        self.pto_count = 0
        return [packet.number for packet in lost], persistent

    def update_rtt(self, now: int, latest: int, delay: int) -> None:
        """UpdateRtt (§ A.7)."""
        self.latest = Fraction(latest)
        if self.smoothed is None:
            self.first_sample = now
            self.min_rtt, self.smoothed, self.rttvar = self.latest, self.latest, self.latest / 2
            return
        self.min_rtt = min(self.min_rtt, self.latest)
        adjusted = self.latest - delay if self.latest >= self.min_rtt + delay else self.latest
        self.rttvar = Fraction(3, 4) * self.rttvar + Fraction(1, 4) * abs(self.smoothed - adjusted)
        self.smoothed = Fraction(7, 8) * self.smoothed + Fraction(1, 8) * adjusted

    def detect(self, now: int) -> list[Sent]:
        """DetectAndRemoveLostPackets (§ A.10) and the first half of OnPacketsLost (§ B.8)."""
        self.loss_time = None
        larger = max(self.latest, self.smoothed or 0) or Fraction(self.initial_rtt)
        delay = max(self.time_threshold * larger, Fraction(GRANULARITY))
        lost = []
        for number, packet in sorted(self.packets.items()):
            if self.largest_acked is None or number > self.largest_acked:
                continue
            if abs(now - packet.time - delay) < 100:
                raise AmbiguousError(number)
            by_number = self.largest_acked >= number + self.packet_threshold
            if packet.time <= now - delay or by_number:
                lost.append(self.packets.pop(number))
            else:
                at = packet.time + delay
                self.loss_time = at if self.loss_time is None else min(self.loss_time, at)
        in_flight = [packet.time for packet in lost if packet.size]
        if in_flight:
            self.congestion_event(now, max(in_flight))
        return lost

    def congestion_event(self, now: int, sent: int) -> None:
        """OnCongestionEvent (§ B.6)."""
        if self.recovery_start is None or sent > self.recovery_start:
            self.recovery_start = now

    def pto(self) -> Fraction:
        """§ 6.2.1."""
        smoothed, rttvar = self.smoothed, self.rttvar
        if smoothed is None:
            smoothed, rttvar = Fraction(self.initial_rtt), Fraction(self.initial_rtt, 2)
        return smoothed + max(4 * rttvar, Fraction(GRANULARITY)) + self.max_ack_delay

    def is_persistent(self, lost: list[Sent]) -> bool:
        """§ 7.6.2, after an ACK: checks all pairs of lost packets and those sent between."""
        if self.first_sample is None:
            return False
        counts = [p for p in lost if p.ack_eliciting and p.time > self.first_sample]
        for first in counts:
            for last in counts:
                between = range(first.number, last.number)
                if last.time - first.time > PERSISTENT_CONGESTION_THRESHOLD * self.pto() and not (
                    self.acked.intersection(between)
                ):
                    return True
        return False

    def deadline(self) -> Fraction | None:
        """SetLossDetectionTimer (§ A.8)."""
        if self.loss_time is not None:
            return self.loss_time
        if not any(packet.ack_eliciting for packet in self.packets.values()):
            return None
        return self.last_eliciting + self.pto() * (1 << self.pto_count)

    def timer(self, now: int) -> tuple[list[int], bool]:
        """OnLossDetectionTimeout (§ A.9): returns lost numbers, and True if probes are due."""
        if self.loss_time is not None:
            return [packet.number for packet in self.detect(now)], False
        self.pto_count += 1
        return [], True
