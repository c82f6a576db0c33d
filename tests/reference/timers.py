"""The retransmission timeout, F-RTO, proportional rate reduction, and the pause of RFC 1016.

RFC 6298, TCP*(n) of Mondal & Kuzmanovic 2008, RFC 6937; RFC 5682 § 3.1 (with SACK) and § 2.1
(without).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil


@dataclass
class Rto:
    """RFC 6298 § 2 and § 5 in exact fractions of a nanosecond."""

    min_ns: int
    initial_ns: int
    max_ns: int
    granularity_ns: int
    backoff: str
    backoff_after: int
    backoff_rounds: int | None = None
    #: FreeBSD's TCPT_RANGESET: added to the timeout after the backoff.
    slop_ns: int = 0
    srtt: Fraction | None = None
    rttvar: Fraction = Fraction(0)
    expired: int = 0

    def sample(self, r_ns: int) -> None:
        """(2.2) and (2.3); RTTVAR before SRTT, as (2.3) requires.

        A measurement ends the backoff (§ 5).
        """
        r = Fraction(r_ns)
        if self.srtt is None:
            self.srtt, self.rttvar = r, r / 2
        else:
            self.rttvar = Fraction(3, 4) * self.rttvar + Fraction(1, 4) * abs(self.srtt - r)
            self.srtt = Fraction(7, 8) * self.srtt + Fraction(1, 8) * r
        self.expired = 0

    def raw(self) -> Fraction:
        """SRTT + max (G, 4 RTTVAR), before any bound."""
        if self.srtt is None:
            return Fraction(self.initial_ns)
        return self.srtt + max(Fraction(self.granularity_ns), 4 * self.rttvar)

    def timeout(self) -> Fraction:
        """Returns the current timeout, in whole ticks of the clock (a reading).

        Bounded below (2.4) and above (2.5), backed off (5.5).
        """
        rto = self.raw()
        if self.granularity_ns > 1:
            rto = Fraction(ceil(rto / self.granularity_ns) * self.granularity_ns)
        rto = min(max(rto, Fraction(self.min_ns)), Fraction(self.max_ns))
        for k in range(1, self.expired + 1):
            if self.doubles(k):
                # Bound that Linux lets a program set: the timeout itself, or 1 s if that is more.
                least = self.backoff == "bounded" and k <= self.backoff_after
                bound = max(rto, Fraction(10**9)) if least else Fraction(self.max_ns)
                rto = min(rto * 2, bound, Fraction(self.max_ns))
        if self.srtt is None and self.expired == 0:
            return rto
        return min(rto + self.slop_ns, Fraction(self.max_ns))

    def doubles(self, k: int) -> bool:
        """Returns True if the kth expiry in a row doubles the timeout.

        RFC 6298: always; TCP*(n): after the first n; TCP*(∞): never. With footnote 5 of TCP* the
        seventh timeout in a row is the last, so the sixth expiry is the last to double.
        """
        if self.backoff_rounds is not None and k > self.backoff_rounds:
            return False
        doubles = {"exponential": True, "bounded": True, "off": False}
        return doubles.get(self.backoff, k > self.backoff_after)


#: sys/netinet/tcp_timer.c of FreeBSD 6: factors of the timeout after 0, 1, … expiries.
FREEBSD_SYN_BACKOFF = (1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 64, 64)
FREEBSD_BACKOFF = (1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64)


@dataclass
class RtoByTable(Rto):
    """Backoff by a table instead of doubling; the last entry repeats."""

    table: tuple[int, ...] = (1,)

    def timeout(self) -> Fraction:
        """Returns the current timeout: bounded below, then multiplied and bounded above."""
        rto = max(self.raw(), Fraction(self.min_ns))
        factor = self.table[min(self.expired, len(self.table) - 1)]
        return min(rto * factor, Fraction(self.max_ns))


@dataclass
class RtoLinux(Rto):
    """Linux 6.18's estimator (`tcp_rtt_estimator`) as formulas in whole microseconds.

    The mean is kept in eighths and deviations in quarters, as by Jacobson & Karels; quotients are
    rounded down.
    """

    arithmetic: str = "linux"
    variation_min_ns: int = 200_000_000
    eighths: int = 0
    deviation: int = 0
    #: Largest deviation of this window of data, and the end of the window.
    largest: int = 0
    end: int = 0
    variation: int = 0

    def measured(self, r_ns: int, una: int, sent: int) -> None:
        """Takes a sample, given the acknowledged and sent bytes."""
        least, sample = self.variation_min_ns // 1000, r_ns // 1000
        if self.eighths == 0:
            self.eighths, self.deviation = 8 * sample, 2 * sample
            self.variation = self.largest = max(self.deviation, least)
            self.end = sent
        else:
            error = sample - self.eighths // 8
            self.eighths += error
            excess = abs(error) - self.deviation // 4
            # A deviation that grows because of a shorter RTT grows by an eighth of the excess.
            self.deviation += excess // 8 if error < 0 < excess else excess
            self.largest = max(self.largest, self.deviation)
            # The variation is never below the largest deviation of its window.
            self.variation = max(self.variation, self.largest)
            if una > self.end:
                self.variation -= (self.variation - self.largest) // 4
                self.largest, self.end = least, sent
        self.eighths = max(1, self.eighths)
        self.srtt = Fraction(self.eighths // 8 * 1000)
        self.rttvar = Fraction(self.variation * 1000, 4)
        self.expired = 0


@dataclass
class Prr:
    """RFC 6937 § 3 with the slow-start reduction bound."""

    recover_fs: int
    ssthresh: int
    mss: int
    prr_delivered: int = 0
    prr_out: int = 0

    def ack(self, delivered_data: int, pipe: int) -> int:
        """Returns `sndcnt` after an ACK, at least zero."""
        self.prr_delivered += delivered_data
        if pipe > self.ssthresh:
            sndcnt = (
                ceil(Fraction(self.prr_delivered * self.ssthresh, self.recover_fs)) - self.prr_out
            )
        else:
            limit = max(self.prr_delivered - self.prr_out, delivered_data) + self.mss
            sndcnt = min(self.ssthresh - pipe, limit)
        return max(sndcnt, 0)

    def sent(self, size: int) -> None:
        """Counts data sent, new or again."""
        self.prr_out += size


@dataclass
class PrrLinux(Prr):
    """RFC 9937 § 6 as in Linux 6.18 (`tcp_cwnd_reduction`): whole segments, from the window.

    A segment more than was delivered is sent only if an ACK is safe.
    """

    def answer(self, delivered_data: int, pipe: int, *, safe: bool) -> int:
        """Returns `sndcnt` after an ACK of whole segments."""
        self.prr_delivered += delivered_data
        window, threshold, flight = (
            size // self.mss for size in (self.recover_fs, self.ssthresh, pipe)
        )
        delivered, out = self.prr_delivered // self.mss, self.prr_out // self.mss
        if flight > threshold:
            sndcnt = -(-threshold * delivered // window) - out
        else:
            sndcnt = max(delivered - out, delivered_data // self.mss) + int(safe)
            sndcnt = min(threshold - flight, sndcnt)
        # The fast retransmit is sent, whatever the sums permit.
        return max(sndcnt, 0 if out else 1) * self.mss


@dataclass
class Sent:
    """A segment that was sent, for F-RTO."""

    #: Sent more than once, including the timeout's retransmission.
    again: bool
    #: Sent for the first time after the timeout.
    new: bool
    #: Acknowledged or SACKed.
    reported: bool = False


class Frto:
    """State of F-RTO from a timeout until it is classified.

    Linux's `tcp_process_loss` evaluates the first new ACK as well as the second. Without SACK a
    duplicate before the first new ACK decides nothing.
    """

    def __init__(self, again: list[bool], sacked: list[bool], *, sack: bool = True) -> None:
        self.sack = sack
        self.sent = [Sent(a, new=False, reported=s) for a, s in zip(again, sacked, strict=True)]
        self.sent[0].again = True
        self.outstanding = len(self.sent)
        self.una = 0

    def send_new(self) -> None:
        """Sends a segment for the first time."""
        self.sent.append(Sent(again=False, new=True))

    def ack(self, una: int, blocks: list[tuple[int, int]], *, waits: bool) -> str:
        """Handles an ACK of all segments below `una` and in the blocks; returns the verdict.

        That is "spurious", "lost", "new" (new data is to be sent) or "open". `waits` is True if
        there is new data to send.
        """
        told = {*range(una), *(n for start, end in blocks for n in range(start, end))}
        fresh = [self.sent[n] for n in sorted(told) if not self.sent[n].reported]
        advances = una > self.una
        sacks = any(not self.sent[n].reported for n in told if n >= una)
        if not self.sack:
            # A duplicate reports only that something arrived.
            sacks = not advances
        for segment in fresh:
            segment.reported = True
        self.una = max(una, self.una)
        # Step 3b: data sent once, before the timeout. Without SACK, retransmitted data among it
        # hides which segments arrived.
        hidden = not self.sack and any(segment.again for segment in fresh)
        if not hidden and any(not segment.again and not segment.new for segment in fresh):
            return "spurious"
        if any(segment.new for segment in self.sent):
            # Step 3a.
            return "lost" if sacks else "open"
        if not advances or una >= self.outstanding:
            # Step 2a.
            return "open"
        # Step 2b.
        return "new" if waits else "lost"


@dataclass
class Squid:
    """RFC 1016: D and its two kinds of events, with K, I, J, E and S. All times are ns."""

    k: int
    i: int
    j: int
    e: int
    s: int
    d: int = 0
    #: Start of the period E in which quenches are counted.
    period_began: int | None = None
    #: "S time has passed since D was decreased": or since it was first above zero.
    decreased: int | None = None

    def quench(self, now: int) -> bool:
        """Handles a source quench; returns True if it is an increase event.

        "An increase event is receipt of one or more source quenches in a event period E".
        """
        if self.period_began is not None and now - self.period_began < self.e:
            return False
        self.period_began = now
        if self.decreased is None:
            self.decreased = now
        self.d = max(self.d + self.k, self.i)
        return True

    def send(self, now: int) -> int:
        """Sends a datagram; returns the pause before the next.

        "A decrease event is when S time has passed since D was decreased and there is a datagram to
        send".
        """
        if self.decreased is not None and now - self.decreased >= self.s:
            self.decreased = now
            self.d = max(self.d - self.j, 0)
        return self.d
