"""FAST TCP: Wei, Jin, Low, Hegde 2006, with the additions of the authors' ns-2 program.

Windows are real numbers of bytes. An interpretation of an open point is a *reading* in
vectors/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from exact import floor, less, real
from windows import Controller

if TYPE_CHECKING:
    from windows import Event

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
