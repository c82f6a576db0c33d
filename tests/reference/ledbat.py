"""LEDBAT++ from draft-irtf-iccrg-ledbat-plus-plus-01, and LEDBAT from RFC 6817.

Windows are real numbers of bytes. An interpretation of an open point is a *reading* in
vectors/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from exact import floor, less, real
from windows import INFINITY, Controller

if TYPE_CHECKING:
    from windows import Event

MINUTE = 60_000_000_000
MS = 1_000_000


def milliseconds(text: str) -> int:
    """Parses a duration of the parameters, ns."""
    number, unit = text.split()
    assert unit == "ms"
    return int(number) * MS


@dataclass
class Ledbat(Controller):
    """Control of the queueing delay towards a target."""

    REAL = True

    #: All delays, each with the minute in which it was measured.
    heard: list[tuple[int, int]] = field(default_factory=list)
    #: First slow start, "first"; later ones, "again"; avoidance, "answer"; slowdown, "slow".
    doing: str = "first"
    #: Start of the current slowdown, and the window before it.
    began: int | None = None
    before: Decimal = Decimal(0)
    still_until: int = 0
    due: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cwnd = min(self.cwnd, self.fewest())
        if self.p["slow_start_exit"] is None:
            self.doing = "answer"
        self.target = milliseconds(self.p["target"])

    def fewest(self) -> Decimal:
        """INIT_CWND and MIN_CWND."""
        return Decimal(self.p["least_window"] * self.mss)

    # RFC 6817 § 2.4.2: update_base_delay, update_current_delay.

    def base(self) -> int | None:
        """Returns the minimum delay of the last minutes that have samples."""
        minutes: list[int] = []
        for minute, _ in self.heard:
            if not minutes or minutes[-1] != minute:
                minutes.append(minute)
        kept = set(minutes[-self.p["base_history"] :])
        return min((delay for minute, delay in self.heard if minute in kept), default=None)

    def queueing(self) -> int:
        """Returns current delay less base delay."""
        base = self.base()
        if base is None:
            return 0
        return min(delay for _, delay in self.heard[-self.p["current_filter"] :]) - base

    def gain(self) -> Decimal:
        """§ 4.2: 1 / min(16, CEIL(2 * TARGET / base))."""
        if self.p["slowest"] is None:
            return Decimal(1)
        base = self.base() or 1
        return 1 / Decimal(min(self.p["slowest"], -(-2 * self.target // base)))

    def on(self, e: Event) -> None:
        """Applies one event to LEDBAT."""
        match e.event:
            case "loss" | "ecn":
                self.halve(e)
            case "timeout":
                window = self.before if self.doing == "slow" else self.cwnd
                self.after_stop()
                if e.nth == 1:
                    self.ssthresh = self.kept(window)
                self.cwnd = Decimal(self.mss)
            case "idle":
                self.cwnd = min(self.cwnd, self.fewest())
                if self.doing != "first":
                    self.after_stop()
            case _:
                if e.rtt_ns is not None:
                    self.heard.append((e.now_ns // MINUTE, e.rtt_ns))
                self.on_ack(e)

    def kept(self, window: Decimal) -> Decimal:
        """Returns the window after a loss."""
        return Decimal(max(floor(real(self.p["loss_beta"]) * window), 2 * self.mss))

    def halve(self, e: Event) -> None:
        """RFC 6817 § 2.4.2: on data loss."""
        if self.doing == "slow":
            self.before = self.kept(self.before)
            return
        self.ssthresh = self.kept(self.cwnd)
        self.cwnd = min(self.cwnd, self.ssthresh)
        self.begin_answering(e)

    def after_stop(self) -> None:
        """Returns to slow start up to the threshold, after a timeout or idle period."""
        if self.doing == "slow":
            self.ssthresh = self.before
        self.began = None
        self.doing = "answer" if self.p["slow_start_exit"] is None else "again"

    def begin_answering(self, e: Event) -> None:
        """§ 4.4: schedules the next slowdown."""
        self.doing = "answer"
        interval = self.p["slowdown_interval"]
        if interval is None:
            return
        if self.began is not None:
            self.due = e.now_ns + interval * (e.now_ns - self.began)
        elif self.due is None:
            self.due = e.now_ns + self.p["slowdown_rounds"] * e.srtt_ns
        self.began = None

    def on_ack(self, e: Event) -> None:
        """Handles an ACK of new data."""
        if self.doing == "first":
            # § 4.1: "larger than 3/4ths of the target delay".
            limit = real(self.p["slow_start_exit"]) * self.target
            late = less(limit, Decimal(self.queueing()))
            if late or floor(self.cwnd) >= self.ssthresh:
                window = Decimal(max(floor(self.cwnd), 2 * self.mss))
                self.ssthresh = min(self.ssthresh, window)
                self.begin_answering(e)
        if self.doing == "slow" and e.now_ns >= self.still_until:
            self.doing, self.ssthresh = "again", self.before
        elif (
            self.doing == "answer"
            and e.phase == "open"
            and self.due is not None
            and e.now_ns >= self.due
        ):
            self.slow_down(e)
        grows = e.limited and (e.phase == "loss" or (e.phase == "open" and not e.ece))
        match self.doing:
            case "first" | "again" if grows:
                self.cwnd += self.gain() * e.acked
                if self.ssthresh != INFINITY and less(self.ssthresh - self.cwnd, Decimal(1)):
                    self.cwnd = self.ssthresh
                    self.begin_answering(e)
            case "answer":
                self.answer(e, grows=grows)

    def slow_down(self, e: Event) -> None:
        """§ 4.4: two packets for two round trips."""
        self.doing, self.began, self.due = "slow", e.now_ns, None
        self.still_until = e.now_ns + self.p["slowdown_rounds"] * e.srtt_ns
        self.before = Decimal(max(floor(self.cwnd), 2 * self.mss))
        self.cwnd = min(self.cwnd, self.fewest())
        self.ssthresh = self.fewest()

    def answer(self, e: Event, *, grows: bool) -> None:
        """§ 4.3, or RFC 6817 § 2.4.2, for the bytes that this ACK acknowledges."""
        delay = Decimal(self.queueing())
        window = self.cwnd / self.mss
        part = Decimal(e.acked) / self.cwnd
        if self.p["response"] == "linear":
            off_target = (self.target - delay) / self.target
            change = self.gain() * off_target * part * self.mss
        elif delay <= self.target:
            change = self.gain() * part * self.mss
        else:
            lost = real(self.p["constant"]) * window * (delay / self.target - 1)
            least = -real(self.p["most_decrease"]) * window
            change = max(self.gain() - lost, least) * part * self.mss
        if change > 0 and not grows:
            return
        if change <= 0 and e.phase != "open":
            return
        changed = self.cwnd + change
        if self.p["allowed_increase"] is not None:
            changed = min(changed, Decimal(e.flight + self.p["allowed_increase"] * self.mss))
        bottom = self.fewest() if grows else min(self.fewest(), self.cwnd)
        self.cwnd = max(changed, bottom)

    def avoid(self, _: Event, n: int) -> None:
        """Does nothing: see `answer`."""

    def reduce(self, e: Event, cause: str) -> None:
        """Does nothing: see `halve`."""

    def on_restart(self) -> None:
        """Does nothing: see `after_stop`."""
