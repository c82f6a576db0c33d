"""Vegas from McCullagh 2008, eq. 2.1 to 2.4, and FAST TCP from Wei, Jin, Low, Hegde 2006.

The variants of Vegas of ns-2 and Linux are from their programs, the additions to FAST from the
authors' ns-2 program. Windows are real numbers of bytes, rates are exact. An interpretation of an
open point is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from exact import floor, less, real
from windows import Controller

if TYPE_CHECKING:
    from windows import Event


def up(x: Decimal) -> Decimal:
    """Rounds up to a whole number."""
    return x.to_integral_value(ROUND_CEILING)


def down(x: Decimal) -> Decimal:
    """Rounds down to a whole number."""
    return x.to_integral_value(ROUND_FLOOR)


@dataclass
class Vegas(Controller):
    """Once per round trip: compares the queued segments with α and β, and moves by a segment."""

    REAL = True

    #: RTTs whose minimum is baseRTT.
    heard: list[int] = field(default_factory=list)
    #: RTTs of the round trip; None from a signal or idle period to the next ACK in state open.
    of_round: list[int] | None = field(default_factory=list)
    #: Data sent when the round trip began, and when the one before began; the window at the start.
    start: int = 0
    start_before: int = 0
    window_before: Decimal | None = None
    #: Growth of the window per acknowledged byte, after slow start.
    slope: Decimal = Decimal(0)
    doubling: bool = False
    rounds: int = 0

    def on(self, e: Event) -> None:
        """Applies one event to Vegas."""
        match e.event:
            case "loss":
                self.answer(real(self.p["loss_beta"]))
            case "ecn":
                ecn = self.p["ecn_beta"]
                self.answer(real(self.p["loss_beta"] if ecn is None else ecn))
            case "timeout":
                # RFC 5681 § 3.1: half, unless this is a repeated timeout.
                if e.nth == 1:
                    self.ssthresh = self.whole(self.cwnd / 2)
                self.cwnd = Decimal(self.mss)
                self.after_timeout = True
                self.forget_round()
            case "idle":
                self.cwnd = min(self.cwnd, Decimal(self.initial_window))
                self.forget_round()
                if self.p["forgets_when_idle"]:
                    self.heard = []
            case _:
                self.delivered += e.acked
                self.on_ack(e)

    def forget_round(self) -> None:
        """Discards the round trip; the next ACK begins another."""
        self.of_round = None
        self.slope, self.doubling, self.rounds = Decimal(0), False, 0

    def whole(self, window: Decimal) -> Decimal:
        """Rounds to whole segments, at least two."""
        return max(down(window / self.mss), Decimal(2)) * self.mss

    def answer(self, part: Decimal) -> None:
        """Handles a loss or an ECN echo."""
        self.ssthresh = self.whole(part * self.cwnd)
        self.cwnd = min(self.cwnd, self.ssthresh)
        self.after_timeout = False
        self.forget_round()

    def on_ack(self, e: Event) -> None:
        """Handles an ACK of new data."""
        if e.rtt_ns is not None:
            self.heard.append(e.rtt_ns)
            if self.p["base_from_handshake"]:
                self.heard.append(e.srtt_ns if e.min_rtt_ns is None else e.min_rtt_ns)
            # tcp-vegas.cc adds the sample after the end of the round trip.
            if self.of_round is not None and self.p["rtt"] != "mean":
                self.of_round.append(e.rtt_ns)
        self.decide(e)
        if e.rtt_ns is not None and self.of_round is not None and self.p["rtt"] == "mean":
            self.of_round.append(e.rtt_ns)

    def decide(self, e: Event) -> None:
        """Applies the effect of this ACK, apart from its RTT."""
        grows = self.may_grow(e)
        if e.phase != "open":
            self.forget_round()
            if grows:
                self.reno(e)
            return
        sent = self.delivered - e.acked + e.flight
        if self.of_round is None:
            self.begin_round(sent, self.delivered)
        elif self.delivered > self.start and self.over(e, sent, grows):
            return
        if not grows:
            return
        if self.in_slow_start():
            if self.doubling:
                self.slow_start(e)
        else:
            self.cwnd += self.slope * e.acked

    def may_grow(self, e: Event) -> bool:
        """Returns False on an ECN echo, if the window is unused, or during a reduction."""
        return e.limited and (e.phase == "loss" or (e.phase == "open" and not e.ece))

    def begin_round(self, sent: int, before: int) -> None:
        """Begins a round trip with the next packet sent."""
        self.of_round = []
        self.start, self.start_before = sent, before
        self.window_before = self.cwnd

    def over(self, e: Event, sent: int, grows: bool) -> bool:
        """Ends a round trip: a packet sent after it began is acknowledged.

        Returns True if this ACK has no other effect.
        """
        samples = self.of_round or []
        start, before, window_before = self.start, self.start_before, self.window_before
        self.begin_round(sent, start)
        rtt: Decimal | None = None
        match self.p["rtt"]:
            case "first":
                rtt = None if e.rtt_ns is None else Decimal(e.rtt_ns)
            case "mean" if samples:
                rtt = Decimal(sum(samples)) / len(samples)
            case "least" if samples:
                rtt = Decimal(min(samples))
        if rtt is None or len(samples) < self.p["least_samples"]:
            self.slope = Decimal(0)
            self.doubling = self.in_slow_start() and self.p["double_every"] == 1
            if grows and (self.doubling or not self.in_slow_start()):
                self.reno(e)
            return True
        diff, holds = self.rates(rtt, sent, start, before)
        self.slope, doubled = Decimal(0), self.doubling
        self.doubling = False
        if self.in_slow_start():
            # In every other round trip; the rates are compared after one without growth.
            self.rounds += 1
            if self.rounds % self.p["double_every"] == 0:
                self.rounds = 0
                if less(real(self.p["gamma"]), diff):
                    self.leave(holds)
                else:
                    self.doubling = True
            assert not (doubled and self.doubling and self.p["double_every"] > 1)
        else:
            self.correct(diff, window_before, grows)
        return False

    def rates(self, rtt: Decimal, sent: int, start: int, before: int) -> tuple[Decimal, Decimal]:
        """Eq. 2.1 to 2.3: returns diff, and Actual · baseRTT, in segments."""
        base = min(Decimal(min(self.heard)), rtt)
        window = self.cwnd / self.mss
        match self.p["rates"]:
            case "window" | "window-over-base":
                expected = actual = window
            case "sent":
                expected, actual = window, Decimal(sent - start) / self.mss
            case "in-flight":
                # t_seqno_ is the next packet to send, last_ack_ the last one acknowledged.
                expected = Decimal(max(sent - self.delivered, 0)) / self.mss + 1
                actual = Decimal(sent - start) / self.mss
            case _:
                expected = actual = Decimal(max(start - before, 0)) / self.mss
        holds = actual * base / rtt
        diff = expected - holds
        if self.p["rates"] == "window-over-base":
            diff = expected * (rtt - base) / base
        match self.p["rounding"]:
            case "nearest":
                diff = down(diff + Decimal("0.5"))
            case "down":
                diff = down(diff)
            case "halves-up":
                diff = up(2 * diff) / 2
        return diff, holds

    def leave(self, holds: Decimal) -> None:
        """Ends slow start because of delay."""
        match self.p["exit"]:
            case "eighth":
                self.lower(self.cwnd * 7 / 8)
            case "actual":
                self.lower((down(holds) + 1) * self.mss)
            case _:
                self.lower(self.cwnd)
        self.after_timeout = False

    def lower(self, window: Decimal) -> None:
        """Lowers the window, at least to two segments, and the threshold to it."""
        two = Decimal(2 * self.mss)
        self.cwnd = min(self.cwnd, max(window, two))
        self.ssthresh = max(min(self.ssthresh, down(self.cwnd)), two)

    def correct(self, diff: Decimal, window_before: Decimal | None, grows: bool) -> None:
        """Eq. 2.4."""
        target = self.cwnd
        if self.p["from_round_before"] and window_before is not None:
            target = window_before
        if less(real(self.p["beta"]), diff):
            target -= self.mss
        elif less(diff, real(self.p["alpha"])):
            target += self.mss
        if target < self.cwnd:
            self.lower(self.cwnd - self.mss)
        elif target > self.cwnd:
            if self.p["spread"]:
                self.slope = self.mss / self.cwnd
            elif grows:
                self.cwnd += self.mss

    def reno(self, e: Event) -> None:
        """RFC 5681 § 3.1."""
        left = self.slow_start(e) if self.in_slow_start() else e.acked
        self.cwnd += self.mss * left / self.cwnd

    def avoid(self, _: Event, n: int) -> None:
        """Does nothing: see `on_ack`."""

    def reduce(self, e: Event, cause: str) -> None:
        """Does nothing: see `answer`."""

    def on_restart(self) -> None:
        """Does nothing: see `forget_round`."""


US = 1_000


@dataclass
class Fast(Controller):
    """Every `update_rounds` round trips, γ of the way to a window with α segments queued."""

    REAL = True

    average: Decimal | None = None
    base: int | None = None
    next_round: int = 0
    #: Target that the window still grows to; zero for no growth.
    goal: Decimal = Decimal(0)
    after_pause: bool = False

    def least(self) -> Decimal:
        """Returns two segments, or the window if it is smaller."""
        return min(Decimal(2 * self.mss), self.cwnd)

    def part(self) -> Decimal:
        """Returns the window after a loss, in whole bytes, at least two segments."""
        return Decimal(max(floor(real(self.p["loss_beta"]) * self.cwnd), 2 * self.mss))

    def on(self, e: Event) -> None:
        """Applies one event to FAST."""
        match e.event:
            case "ack":
                self.on_ack(e)
            case "loss" | "ecn":
                self.ssthresh = self.part()
                self.cwnd = max(min(self.cwnd, self.ssthresh), self.least())
                self.goal, self.after_pause = Decimal(0), False
                self.next_round = e.round + self.p["update_rounds"]
            case "timeout":
                if e.nth <= 1:
                    self.ssthresh = self.part()
                self.cwnd, self.goal, self.after_pause = Decimal(self.mss), Decimal(0), True
            case "idle":
                self.ssthresh = min(self.ssthresh, Decimal(max(floor(self.cwnd), 2 * self.mss)))
                self.cwnd = min(self.cwnd, Decimal(self.initial_window))
                self.goal, self.after_pause = Decimal(0), True

    def estimate(self, rtt: int) -> None:
        """Updates the average, by 3 / w or over a number of samples, and the minimum."""
        self.base = rtt if self.base is None else min(self.base, rtt)
        if self.average is None:
            self.average = Decimal(rtt)
            return
        eta = min(3 * self.mss / self.cwnd, 1 / Decimal(self.p["smooths_over"]))
        self.average += eta * (rtt - self.average)

    def on_ack(self, e: Event) -> None:
        """Handles an ACK."""
        if e.rtt_ns is not None:
            self.estimate(e.rtt_ns)
        if self.average is None or self.base is None or e.acked == 0 or e.phase == "recovery":
            return
        grows = e.limited and not e.ece and e.phase in {"open", "loss"}
        grows = grows or (e.phase == "loss" and e.limited)
        if self.after_pause and self.window()[0] >= self.ssthresh:
            self.after_pause = False
        below = int(self.p["doubles_below"].split()[0]) * US
        if self.after_pause or less(self.average - self.base, Decimal(below)):
            if grows:
                most = max(self.ssthresh, self.cwnd) if self.after_pause else None
                self.cwnd = self.cwnd + e.acked if most is None else min(self.cwnd + e.acked, most)
                self.goal = Decimal(0)
            return
        if e.round >= self.next_round and e.phase == "open":
            self.renew(e)
        if grows and self.goal > self.cwnd:
            self.cwnd = min(self.cwnd + e.acked, self.goal)

    def renew(self, e: Event) -> None:
        """Updates the window by the paper's equation."""
        assert self.average is not None
        assert self.base is not None
        gamma = real(self.p["gamma"])
        kept = self.base / self.average * self.cwnd + real(self.p["alpha"]) * self.mss
        new = min(2 * self.cwnd, (1 - gamma) * self.cwnd + gamma * kept)
        self.next_round = e.round + self.p["update_rounds"]
        self.goal = Decimal(0)
        if new > self.cwnd:
            self.goal = new
        else:
            self.cwnd = max(new, self.least())

    def avoid(self, _: Event, n: int) -> None:
        """Does nothing: see `renew`."""

    def reduce(self, e: Event, cause: str) -> None:
        """Does nothing: see `on`."""

    def on_restart(self) -> None:
        """Does nothing: see `on`."""
