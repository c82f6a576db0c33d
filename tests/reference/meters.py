"""Meters of routers: XCP, RCP and load factors, with the receivers' estimate of the load.

Katabi, Handley, Rohrs 2002 and Dukkipati et al. 2005: their meters are called for arrivals,
departures and their timer. Load factors, measured and encoded: Qazi, Andrew, Znati, *Congestion
control using efficient explicit feedback*, 2009, § II-A and II-B; Xia, Subramanian, Stoica,
Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.1 and 3.2; MLCP's levels: README. Their
fractions are exact. An interpretation of an open point is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from exact import MARGIN, NS, AmbiguousError, floor, less, real, seconds

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
        #: Size and RTT of each packet with an RTT in the interval.
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


NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
#: Number of threshold places; every place is below it.
PLACES = 1 << 16


#: Number of MLCP's load levels, and the level of high load.
LEVELS, HIGH_LEVEL = 16, 8


def number(value: float) -> Fraction:
    """Converts a parameter as written."""
    return Fraction(str(value))


def below(a: Fraction, b: Fraction) -> bool:
    """Returns True if a < b; raises if double precision could decide otherwise."""
    if a != b and abs(a - b) < Fraction(MARGIN) * max(abs(a), abs(b)):
        raise AmbiguousError(f"{float(a)} is too close to {float(b)}")
    return a < b


def place(identification: int) -> int:
    """Returns the rank of a packet's threshold among all, from 0 (a reading: the hash)."""
    x = identification
    for shift, factor in ((8, 0x88B5), (7, 0xDB2D), (9, 1)):
        x = (x ^ (x >> shift)) * factor % PLACES
    return x


def threshold(p: dict[str, Any], at: int) -> Fraction:
    """§ II-B: a quarter of them in (η₀, η), a quarter in (η, 1), half in (1, u), evenly spaced."""
    least, high, most = number(p["least"]), number(p["high"]), number(p["most"])
    quarter = PLACES // 4
    if at < quarter:
        return least + (high - least) * at / quarter
    if at < 2 * quarter:
        return high + (1 - high) * (at - quarter) / quarter
    return 1 + (most - 1) * (at - 2 * quarter) / (2 * quarter)


def level_ends(p: dict[str, Any]) -> list[Fraction]:
    """Returns the lower ends of levels, from the second.

    Seven from η₀, one from η, six from 1, one from u.
    """
    least, high, most = number(p["least"]), number(p["high"]), number(p["most"])
    low = [least + (high - least) * i / 7 for i in range(7)]
    over = [1 + (most - 1) * i / 6 for i in range(7)]
    return [*low, high, *over]


def level_load(p: dict[str, Any], level: int) -> Fraction:
    """Returns the load of a level: its upper end if the load is low, otherwise its lower one."""
    ends = level_ends(p)
    return ends[level] if level < HIGH_LEVEL else ends[level - 1]


@dataclass
class Router(ABC):
    """Load factor of one link, and the fields that it writes."""

    p: dict[str, Any]
    rate: int
    arrived: int = 0
    lengths: list[int] = field(default_factory=list)
    average: Fraction = Fraction(0)
    factor: Fraction = Fraction(0)

    def look(self, backlog: int) -> None:
        """Samples the queue; the last sample of an interval ends it: eq. 1."""
        self.lengths.append(backlog)
        if len(self.lengths) < self.p["queue_samples"]:
            return
        mean = Fraction(sum(self.lengths), len(self.lengths))
        self.average += number(self.p["queue_gain"]) * (mean - self.average)
        interval = Fraction(self.p["interval_ns"], NS)
        traffic = self.arrived + number(self.p["queue_weight"]) * self.average
        self.factor = 8 * traffic / (number(self.p["target"]) * self.rate * interval)
        self.arrived, self.lengths = 0, []

    def write(self, size: int, ecn: int, identification: int | None) -> int:
        """Forwards a packet; returns its ECN field."""
        self.arrived += size
        if ecn in (NOT_ECT, CE):
            return ecn
        return self.written(ecn, identification)

    def raised(self, size: int, level: int) -> int:
        """Forwards a packet with a level; returns its level."""
        self.arrived += size
        mine = sum(not below(self.factor, end) for end in level_ends(self.p))
        return max(level, mine)

    @abstractmethod
    def written(self, ecn: int, identification: int | None) -> int:
        """Returns the field of an ECN-capable packet that is not marked yet."""


class MlcpRouter(Router):
    """Qazi & Znati 2008, of which only the abstract is available: a level in four bits."""

    def written(self, ecn: int, _: int | None) -> int:
        """Leaves the ECN field unchanged."""
        return ecn


class VcpRouter(Router):
    """Xia et al. § 3.1: the highest load on the path, in two bits (a reading: the code points)."""

    def written(self, ecn: int, _: int | None) -> int:
        """Returns the field of an ECN-capable packet that is not marked yet."""
        if below(self.factor, number(self.p["high"])):
            return ecn
        return ECT1 if below(self.factor, number(self.p["over"])) else CE


class AdpmRouter(Router):
    """Qazi et al. § II-B."""

    def written(self, ecn: int, identification: int | None) -> int:
        """Returns the field of an ECN-capable packet that is not marked yet."""
        if not below(self.factor, number(self.p["most"])):
            return CE
        if identification is None:
            return ecn
        under = below(threshold(self.p, place(identification)), self.factor)
        return ECT1 if under else ecn


@dataclass
class Estimate:
    """Qazi et al. § II-B: the receiver's estimate, as the place of a threshold."""

    at: int = 0

    def hear(self, ecn: int, identification: int | None) -> int:
        """Handles an arriving packet; returns the estimate."""
        if ecn == CE:
            self.at = PLACES - 1
        elif identification is not None:
            here = place(identification)
            if (ecn == ECT0 and here < self.at) or (ecn == ECT1 and here > self.at):
                self.at = here
        return self.at
