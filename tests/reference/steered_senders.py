"""Senders of XCP and RCP.

Katabi, Handley, Rohrs, *Congestion control for high bandwidth-delay product networks*, SIGCOMM
2002, § 3.2, and its program in ns-2.35, xcp-end-sys.cc; Dukkipati, Kobayashi, Zhang-Shen, McKeown,
*Processor sharing flows in the Internet*, 2005, § 3. Windows are whole bytes. An interpretation of
an open point is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from windows import Controller

if TYPE_CHECKING:
    from windows import Event


@dataclass
class Steered(Controller):
    """A controller whose window changes are decided by routers, not by TCP's rules."""

    def avoid(self, e: Event, n: int) -> None:
        """Never called."""

    def reduce(self, e: Event, cause: str) -> None:
        """Never called."""

    def on_restart(self) -> None:
        """Never called."""


@dataclass
class Xcp(Steered):
    """Window changed by the routers' feedback."""

    def on(self, e: Event) -> None:
        """Applies one event to an XCP sender."""
        match e.event:
            case "ack":
                if e.feedback is not None and (e.acked or self.p["hears_duplicates"]):
                    self.change(e.feedback, limited=e.limited)
            case "timeout":
                # RFC 5681 § 3.1: a repeated timeout keeps the threshold.
                if e.nth <= 1:
                    self.ssthresh = self.after_loss()
                self.cwnd = Decimal(self.mss)
            case "idle":
                self.cwnd = min(self.cwnd, Decimal(self.initial_window))
            case _:
                self.ssthresh = self.after_loss()
                self.cwnd = min(self.cwnd, self.ssthresh)

    def change(self, feedback: int, *, limited: bool) -> None:
        """§ 3.2: cwnd = max(cwnd + H_feedback, s); RFC 7661 § 4.3: no growth if it is not used."""
        if feedback < 0 or limited:
            self.cwnd = max(self.cwnd + feedback, Decimal(self.mss))

    def after_loss(self) -> Decimal:
        """Returns a part of the window, at least two segments (RFC 5681 eq. 4)."""
        return Decimal(max(int(self.cwnd * Decimal(self.p["loss_beta"])), 2 * self.mss))


@dataclass
class Rcp(Steered):
    """A sender paced at the rate that routers offer; the window only limits data in flight."""

    #: Limit on data in flight if no number of round trips limits it (a reading).
    MOST = 2**40
    offered_bit_s: int | None = None

    def window(self) -> tuple[int, int | None]:
        """Returns the window in whole bytes; there is no threshold."""
        return int(self.cwnd), None

    def pace(self) -> int | None:
        """Returns the pacing rate in whole bit/s."""
        return self.offered_bit_s

    def on(self, e: Event) -> None:
        """Handles one event: router feedback, or an idle period, after which the rate is old."""
        if e.event == "idle":
            self.offered_bit_s = None
            self.cwnd = min(self.cwnd, Decimal(self.initial_window))
        elif e.event == "ack" and e.offered_bit_s is not None:
            self.offered_bit_s = e.offered_bit_s
            rtts = self.p["window_rtts"]
            out = self.MOST
            if rtts is not None:
                in_one = e.offered_bit_s * e.srtt_ns // (8 * 10**9)
                out = int(Fraction(rtts) * in_one)
            self.cwnd = Decimal(max(out, 2 * self.mss))
