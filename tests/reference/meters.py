"""XCP's router from Katabi, Handley, Rohrs 2002, and RCP's from Dukkipati et al. 2005.

A meter is called for arrivals, departures and its timer.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from exact import NS, floor, less, real, seconds

US = 1_000_000


def nanoseconds(value: Decimal) -> int:
    """Rounds a time to the nearest nanosecond."""
    return int((value * NS).to_integral_value(ROUND_HALF_UP))


@dataclass
class Header:
    """Header of a packet of an XCP sender."""

    cwnd: int
    rtt_us: int
    feedback: int

    @property
    def rtt(self) -> Decimal:
        """RTT in seconds."""
        return Decimal(self.rtt_us) / US


class Xcp:
    """The paper's § 3.5, in windows: feedback is bytes of window."""

    def __init__(self, parameters: dict[str, Any], rate_bit_per_s: int) -> None:
        self.p = parameters
        self.capacity = Decimal(rate_bit_per_s) / 8
        self.d = seconds(parameters["first_interval_ns"])
        self.control_began = 0
        self.control_at = self.queue_at = int(parameters["first_interval_ns"])
        self.bytes_in = 0
        self.sum_rtt = self.sum_rtt_squared = Decimal(0)
        self.persistent = self.least = 0
        self.xi_p = self.xi_n = Decimal(0)
        self.left_p = self.left_n = Decimal(0)
        self.rest = Decimal(0)

    def next_timer(self) -> int:
        """Returns the time at which the next timer is due."""
        return min(self.control_at, self.queue_at)

    def arrives(self, size: int, waiting: int, header: Header | None) -> None:
        """Handles an arrival that finds `waiting` bytes in the queue."""
        self.bytes_in += size
        if self.p["queue_seen"] == "arriving":
            self.least = min(self.least, waiting)
        if header is not None:
            weight = header.rtt * size / header.cwnd
            self.sum_rtt += weight
            self.sum_rtt_squared += weight * min(header.rtt, seconds(self.p["most_rtt_ns"]))

    def timer(self, now: int, waiting: int) -> None:
        """Handles a timer."""
        if now >= self.queue_at:
            self.persistent, self.least = min(self.least, waiting), waiting
            travel = max(Decimal(0), self.d - waiting / self.capacity)
            after = nanoseconds(travel * real(self.p["queue_interval"]))
            self.queue_at = now + max(after, 2 * int(self.p["least_interval_ns"]))
        if now >= self.control_at:
            self.control(now)

    def control(self, now: int) -> None:
        """§ 3.5: aggregate feedback, and the factors that distribute it."""
        took = seconds(now - self.control_began)
        self.d = seconds(self.p["first_interval_ns"])
        if self.sum_rtt > 0:
            self.d = self.sum_rtt_squared / self.sum_rtt
        self.xi_p = self.xi_n = self.left_p = self.left_n = Decimal(0)
        if self.bytes_in > 0:
            y = self.bytes_in / took * self.d
            spare = self.capacity - self.bytes_in / took
            phi = real(self.p["alpha"]) * self.d * spare - real(self.p["beta"]) * self.persistent
            h = max(Decimal(0), real(self.p["gamma"]) * y - abs(phi))
            # Per second, because the paper spreads p_i and n_i over d.
            gives, takes = (h + max(phi, Decimal(0))) / self.d, (h + max(-phi, Decimal(0))) / self.d
            if self.sum_rtt > 0:
                self.xi_p, self.left_p = gives / self.sum_rtt, gives
            self.xi_n, self.left_n = takes / self.bytes_in, takes
        self.bytes_in = 0
        self.sum_rtt = self.sum_rtt_squared = Decimal(0)
        self.control_began = now
        self.control_at = now + max(nanoseconds(self.d), int(self.p["least_interval_ns"]))

    def leaves(self, size: int, waiting: int, header: Header | None) -> None:
        """Handles a departure that leaves `waiting` bytes, and fills in its header."""
        if self.p["queue_seen"] == "leaving":
            self.least = min(self.least, waiting + size)
        if header is not None:
            self.feedback(size, header)

    def feedback(self, size: int, header: Header) -> None:
        """§ 3.5.2 and 3.5.3."""
        rtt = header.rtt
        if rtt == 0:
            header.feedback = min(header.feedback, 0)
            return
        # p_i and n_i, each for a second of the round trip, and at most the amount left.
        p = min(self.xi_p * rtt * size / header.cwnd, self.left_p)
        n = min(self.xi_n * size, self.left_n)
        ours = (p - n) * rtt
        if less(Decimal(header.feedback), ours):
            # Another router is stricter: less is given here, and more of its feedback is taken.
            n = min(self.left_n, n + p - n - header.feedback / rtt)
            p = max(Decimal(0), header.feedback / rtt + n)
        else:
            exact = ours + self.rest
            written = min(floor(exact), header.feedback)
            self.rest = min(exact - written, Decimal(1))
            header.feedback = written
        self.left_p = max(Decimal(0), self.left_p - p)
        self.left_n = max(Decimal(0), self.left_n - n)


@dataclass
class Rated:
    """Header of a packet of an RCP sender; its rate is in bit/s."""

    rate: Decimal
    rtt_us: int


class Rcp:
    """Dukkipati et al. 2005 § 3, with the averages of the authors' rcp.cc."""

    def __init__(self, parameters: dict[str, Any], rate_bit_per_s: int) -> None:
        self.p = parameters
        self.capacity = Decimal(rate_bit_per_s) / 8
        self.rate = self.capacity * real(parameters["first_rate"])
        self.d = seconds(parameters["first_rtt_ns"])
        self.mean = Decimal(0)
        #: Size and RTT of each packet in the interval.
        self.rtts: list[tuple[int, Decimal]] = []
        self.began = 0
        self.due = 0
        self.schedule(0)
        self.came = self.next_came = Decimal(0)

    def schedule(self, now: int) -> None:
        """T = min(T0, d), at least 10 µs."""
        self.began = now
        interval = min(nanoseconds(self.d), int(self.p["update_ns"]))
        # A minimum, so that time passes whatever senders report.
        self.due = now + max(interval, 10_000)

    def next_timer(self) -> int:
        """Returns the time of the next update of the rate."""
        return self.due

    def arrives(self, now: int, size: int, header: Rated | None) -> None:
        """Handles an arrival, spread over its transmission time."""
        lasts = size / self.capacity
        within = seconds(self.due - now)
        share = min(Decimal(1), within / lasts)
        self.came += size * share
        self.next_came += size * (1 - share)
        if header is not None and header.rtt_us > 0:
            self.rtts.append((size, Decimal(header.rtt_us) / US))

    def timer(self, now: int, waiting: int) -> None:
        """R(t) = R(t - T) [1 + (T/d) (alpha (gamma C - y) - beta q / d) / (gamma C)]."""
        t = seconds(now - self.began)
        if self.rtts:
            total = sum(size for size, _ in self.rtts)
            self.mean = sum((size * rtt for size, rtt in self.rtts), Decimal(0)) / total
        gain = t / self.d
        if self.mean < self.d:
            gain *= self.rate / self.capacity * self.mean / self.d
        self.d = self.d + min(gain, Decimal(1)) * (self.mean - self.d)
        goal = real(self.p["gamma"]) * self.capacity
        spare = goal - self.came / t
        bracket = real(self.p["alpha"]) * spare - real(self.p["beta"]) * waiting / self.d
        wanted = self.rate * (1 + t / self.d * bracket / goal)
        least = min(goal, real(self.p["least_packets"]) * 1000 / self.d)
        self.rate = min(max(wanted, least), goal)
        self.came, self.next_came = self.next_came, Decimal(0)
        self.rtts = []
        self.schedule(now)

    def leaves(self, header: Rated) -> None:
        """Handles a departure: the header keeps the lowest rate on the path."""
        header.rate = min(header.rate, self.rate * 8)
