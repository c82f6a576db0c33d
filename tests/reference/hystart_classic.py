"""HyStart as Ha & Rhee proposed it (2008), with the constants of Linux 6.18's tcp_cubic.c.

For a sender without pacing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from exact import AmbiguousError

MS = 1_000_000


@dataclass
class HyStartClassic:
    """The two tests of each round: the length of the ACK train, and the minimum delay."""

    LOW_WINDOW = 16
    ACK_DELTA = 2 * MS
    MIN_SAMPLES = 8
    DELAY_MIN = 4 * MS
    DELAY_MAX = 16 * MS
    GSO_MAX_SIZE = 65536
    MOST_ACK_DELAY = 1 * MS

    mss: int
    delay_min: int | None = None
    #: Highest number at which the round ends; the next begins with an ACK beyond it.
    end: int | None = None
    round_start: int = 0
    last_ack: int = 0
    curr_rtt: int | None = None
    samples: int = 0

    def ack(
        self, now: int, snd_una: int, snd_nxt: int, *, window: int, rtt: int, srtt: int
    ) -> bool:
        """Handles an ACK in slow start; True if slow start is over. `window` is in segments."""
        self.delay_min = rtt if self.delay_min is None else min(self.delay_min, rtt)
        if self.end is None or snd_una > self.end:
            self.round_start = self.last_ack = now
            self.end, self.curr_rtt, self.samples = snd_nxt, None, 0
        if window < self.LOW_WINDOW:
            return False
        return self.train(now, srtt, window) or self.delay(rtt)

    def train(self, now: int, srtt: int, window: int) -> bool:
        """Returns True if the round's ACKs came as one train for half a round trip."""
        if now - self.last_ack > self.ACK_DELTA:
            return False
        assert self.delay_min is not None
        self.last_ack = now
        # Time that offloads may add: four of the largest bursts at twice the window per round trip.
        rate = Fraction(2 * window * self.mss, srtt)
        held = min(Fraction(4 * self.GSO_MAX_SIZE) / rate, Fraction(self.MOST_ACK_DELAY))
        return above(now - self.round_start, (self.delay_min + held) / 2)

    def delay(self, rtt: int) -> bool:
        """Returns True if the minimum of at least nine samples is well above delay_min."""
        self.curr_rtt = rtt if self.curr_rtt is None else min(self.curr_rtt, rtt)
        if self.samples < self.MIN_SAMPLES:
            self.samples += 1
            return False
        assert self.delay_min is not None
        rise = Fraction(self.delay_min, 8)
        rise = max(Fraction(self.DELAY_MIN), min(rise, Fraction(self.DELAY_MAX)))
        return above(self.curr_rtt, self.delay_min + rise)


def above(value: int, bound: Fraction) -> bool:
    """Returns True if value > bound; raises if a nanosecond of rounding would decide."""
    if value != bound and abs(value - bound) <= 1:
        raise AmbiguousError(f"{value} is too close to {bound}")
    return value > bound
