"""LEDBAT++, LEDBAT and Copa, which aim at a short queue.

draft-irtf-iccrg-ledbat-plus-plus-01 and RFC 6817; Arun & Balakrishnan, NSDI 2018, § 2.1 and 2.2.
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
    from collections.abc import Callable, Iterable

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
    """Control of the queueing delay towards a target. Sections are those of the draft."""

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
        """Returns to slow start, or without one to avoidance, after a timeout or idle period."""
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


@dataclass
class Recent:
    """All samples in a sliding window of time, with their minimum or maximum."""

    of: Callable[[Iterable[int]], int]
    samples: list[tuple[int, int]] = field(default_factory=list)
    since: int = 0

    def add(self, now: int, value: int, window: int) -> None:
        """Adds a sample."""
        self.since = max(self.since, now - window)
        self.samples.append((now, value))

    def best(self) -> int:
        """Returns the minimum or maximum."""
        return self.of(value for at, value in self.samples if at >= self.since)


@dataclass
class Copa(Controller):
    """Window control towards the rate 1 / (δ · dq). Sections are those of the paper."""

    REAL = True

    rtt_min: Recent = field(default_factory=lambda: Recent(min))
    rtt_standing: Recent = field(default_factory=lambda: Recent(min))
    rtt_recent: Recent = field(default_factory=lambda: Recent(min))
    rtt_max: Recent = field(default_factory=lambda: Recent(max))
    slow: bool = True
    v: Decimal = Decimal(1)
    #: Direction, "up", "down" or none; windows in which it was the same; windows since the last
    #: check or new start.
    direction: str | None = None
    same: int = 0
    windows: int = 0
    #: Window at the last check or new start; sequence number sent when the present window began.
    window_then: Decimal = Decimal(0)
    sent_then: int = 0
    #: Time of the first RTT, or of the first one after an idle period.
    first_at: int | None = None
    one_over_delta: Decimal | None = None
    loss_in_window: bool = False

    def window(self) -> tuple[int, int | None]:
        """Returns the window and, after slow start, a threshold equal to it or to two segments."""
        cwnd, _ = super().window()
        return cwnd, None if self.slow else max(cwnd, 2 * self.mss)

    def on(self, e: Event) -> None:
        """Applies one event to Copa."""
        match e.event:
            case "loss":
                self.signal(e, self.p["loss_beta"])
            case "ecn":
                self.signal(e, self.p["ecn_beta"])
            case "timeout":
                if e.nth == 1:
                    self.signal(e, None)
                self.cwnd, self.slow = Decimal(self.mss), True
            case "idle":
                self.cwnd = min(self.cwnd, Decimal(self.initial_window))
                self.start_anew(e)
                self.first_at = None
            case _:
                self.delivered += e.acked
                self.on_ack(e)

    def sent(self, e: Event) -> int:
        """Returns the highest sequence number sent."""
        return self.delivered - e.acked + e.flight

    def start_anew(self, e: Event) -> None:
        """Starts a window with velocity 1 and no direction."""
        self.v, self.direction, self.same, self.windows = Decimal(1), None, 0, 0
        self.window_then, self.sent_then = self.cwnd, self.sent(e)

    def signal(self, e: Event, part: float | None) -> None:
        """Handles a loss, a mark or a first timeout; § 2.2: "AIMD on 1/δ"."""
        if self.one_over_delta is not None:
            self.one_over_delta = max(self.one_over_delta / 2, 1 / real(self.p["delta"]))
            self.loss_in_window = True
        if self.slow:
            self.slow = False
            self.start_anew(e)
        if part is not None:
            self.cwnd = max(real(part) * self.cwnd, min(Decimal(2 * self.mss), self.cwnd))
            self.start_anew(e)

    def on_ack(self, e: Event) -> None:
        """§ 2.1, steps 1 to 4."""
        if e.rtt_ns is not None:
            self.rtt_min.add(e.now_ns, e.rtt_ns, 10_000_000_000)
            # Truncated to whole nanoseconds.
            tau = int(real(self.p["standing"]) * e.srtt_ns)
            self.rtt_standing.add(e.now_ns, e.rtt_ns, tau)
            rounds = self.p["empty_rounds"] * e.srtt_ns
            self.rtt_recent.add(e.now_ns, e.rtt_ns, rounds)
            self.rtt_max.add(e.now_ns, e.rtt_ns, self.p["swing_rounds"] * e.srtt_ns)
        if not self.rtt_min.samples:
            return
        standing = self.rtt_standing.best()
        newest = standing if e.rtt_ns is None else e.rtt_ns
        delay = (standing if self.p["delay_of"] == "standing" else newest) - self.rtt_min.best()
        if self.p["competitive"] and e.rtt_ns is not None:
            self.detect(e)
        if not self.slow and self.delivered > self.sent_then:
            self.end_window(e)
        delta = real(self.p["delta"])
        if self.one_over_delta is not None:
            delta = 1 / self.one_over_delta
        grows = e.limited and (e.phase == "loss" or (e.phase == "open" and not e.ece))
        # λ ≤ λt, in packets per nanosecond.
        up = delay == 0 or not less(1 / (delta * delay), self.cwnd / self.mss / standing)
        if self.slow:
            if up:
                # One ACK at most doubles it: bytes beyond the window were sent before a timeout.
                self.cwnd += min(Decimal(e.acked), self.cwnd) if grows else 0
                return
            self.slow = False
            self.start_anew(e)
        wants = "up" if up else "down"
        if self.p["turns_at_once"] and self.v > 1 and self.direction != wants:
            self.start_anew(e)
            self.direction = wants
        # Each packet changes the window by v / (δ · cwnd) packets.
        step = self.v / (delta * self.cwnd / self.mss) * e.acked
        if up and grows:
            self.cwnd += step
        elif not up:
            self.cwnd = max(self.cwnd - step, min(self.cwnd, Decimal(2 * self.mss)))

    def detect(self, e: Event) -> None:
        """§ 2.2: competitive mode, unless the queue was nearly empty or too little is known."""
        if self.first_at is None:
            self.first_at = e.now_ns
        least = self.rtt_min.best()
        waited = self.rtt_recent.best() - least
        swing = real(self.p["nearly_empty"]) * (self.rtt_max.best() - least)
        known = e.now_ns - self.first_at > self.p["empty_rounds"] * e.srtt_ns
        if not known or waited <= 0 or less(Decimal(waited), swing):
            self.one_over_delta = None
            self.loss_in_window = False
        elif self.one_over_delta is None:
            self.one_over_delta = 1 / real(self.p["delta"])

    def end_window(self, e: Event) -> None:
        """§ 2.1, step 4; and § 2.2: 1/δ grows by 1 if nothing was lost."""
        self.sent_then = self.sent(e)
        self.windows += 1
        if self.windows == self.p["velocity_rounds"]:
            self.look()
        if self.one_over_delta is not None:
            if not self.loss_in_window:
                self.one_over_delta += 1
            self.loss_in_window = False

    def look(self) -> None:
        """Updates direction and velocity."""
        direction = None
        if self.cwnd != self.window_then:
            direction = "up" if less(self.window_then, self.cwnd) else "down"
        if direction is not None and direction == self.direction:
            self.same += self.windows
            delta = 1 / (self.one_over_delta or 1 / real(self.p["delta"]))
            moves = 2 * self.v / delta * self.mss
            bounded = not self.p["turns_at_once"] and less(self.cwnd / 8, moves)
            if self.same >= self.p["doubles_after"] and not bounded:
                self.v *= 2
        else:
            self.v, self.same = Decimal(1), 0
        self.direction = direction
        self.window_then, self.windows = self.cwnd, 0

    def avoid(self, _: Event, n: int) -> None:
        """Does nothing: see `on_ack`."""

    def reduce(self, e: Event, cause: str) -> None:
        """Does nothing: see `signal`."""

    def on_restart(self) -> None:
        """Does nothing: see `start_anew`."""
