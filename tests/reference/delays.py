"""Delay-based AIMD and adaptive backoff, from McCullagh 2008, chapters 2 to 4.

Windows are real numbers of bytes. An interpretation of an open point is a *reading* in
vectors/README.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from decimal import Decimal

from exact import floor, less, real
from htcp import growth
from windows import Controller, Event

MS = 1_000_000


def nanoseconds(text: str) -> int:
    """Parses a duration in whole milliseconds; returns ns."""
    number, unit = text.split()
    assert unit == "ms", text
    return int(number) * MS


@dataclass
class DelayAimd(Controller):
    """Eq. 2.5 and 2.6, § 3.3.4 and eq. 4.9; H-TCP's increase; windows below one segment."""

    REAL = True

    late: bool = False
    avoids: bool = False
    alpha: Decimal = Decimal(1)
    #: S_γ, bytes.
    taken: Decimal = Decimal(0)
    mean: Decimal | None = None
    #: Minimum RTT of each round trip.
    rounds: dict[int, int] = field(default_factory=dict)
    #: Time of the last backoff, or else of the first ACK, and its β: for H-TCP's increase.
    since_ns: int | None = None
    beta_of_last: Decimal = Decimal("0.5")
    newest_rtt: int = 0

    def is_below(self) -> bool:
        """Returns True if the window is below one segment."""
        return self.cwnd < self.mss

    def window(self) -> tuple[int, int | None]:
        """Returns at least one segment: a window below that is spaced in time."""
        cwnd, ssthresh = super().window()
        return max(cwnd, self.mss), ssthresh

    def spacing_ns(self) -> int | None:
        """Returns RTT / w for a window of w segments below one, 0 for larger windows.

        None if windows below one segment are off.
        """
        if self.p["below_one"] == "never":
            return None
        return int(self.newest_rtt * self.mss / self.cwnd) if self.is_below() else 0

    def least(self) -> Decimal:
        """Returns the minimum window after a backoff for delay, bytes."""
        if self.p["below_one"] == "never":
            return Decimal(self.p["least_window"] * self.mss)
        return real(self.p["below_one_least"]) * self.mss

    def on_timeout(self, e: Event) -> None:
        """RFC 5681 § 3.1; a window below one segment is not raised, and stays in avoidance."""
        windows = [self.cwnd]
        if e.nth == 1:
            self.reduce(e, "loss")
            windows.append(self.cwnd)
        super().on_timeout(Event(**{**asdict(e), "nth": 2}))
        self.avoids = windows[-1] < self.mss
        self.cwnd = min(windows[-1], self.cwnd)

    def on(self, e: Event) -> None:
        """Applies one event to delay-based AIMD."""
        self.asks = ""
        super().on(e)
        if e.event == "idle":
            self.avoids = False
        if e.event == "timeout":
            self.taken = Decimal(0)

    def in_slow_start(self) -> bool:
        """Returns False after a backoff, until an idle period, and below one segment."""
        return not self.avoids and not self.is_below() and super().in_slow_start()

    def beta(self, rtt: int | None) -> Decimal:
        """Eq. 2.6; δ without an RTT."""
        delta = real(self.p["delta"])
        if rtt is None or self.min_rtt.least is None:
            return delta
        return delta * self.min_rtt.least / max(rtt, self.min_rtt.least)

    def filtered(self, e: Event, rtt: int) -> Decimal:
        """Returns the filtered RTT from which τ is computed."""
        match self.p["filter"]:
            case "newest":
                return Decimal(rtt)
            case "mean":
                mean = Decimal(rtt) if self.mean is None else self.mean
                self.mean = mean + real(self.p["filter_weight"]) * (rtt - mean)
                return self.mean
            case _:
                self.rounds[e.round] = min(rtt, self.rounds.get(e.round, rtt))
                return Decimal(min(self.rounds[e.round], self.rounds.get(e.round - 1, rtt)))

    def on_ack(self, e: Event) -> None:
        """Eq. 2.5, and the first row in § 3.3.4."""
        waited = None
        if self.since_ns is None:
            self.since_ns = e.now_ns
        if e.rtt_ns is not None and self.min_rtt.least is not None:
            self.newest_rtt = e.rtt_ns
            threshold = nanoseconds(self.p["threshold"])
            tau = self.filtered(e, e.rtt_ns) - self.min_rtt.least
            self.late = less(Decimal(threshold), tau)
            if self.p["per_packet"] and tau == threshold:
                self.late = True
            waited = e.rtt_ns - self.min_rtt.least
            if waited > threshold and not self.late and self.p["per_packet"] and e.phase == "open":
                self.take_off(e)
        if self.late:
            self.asks = "delay"
            return
        super().on_ack(e)

    def take_off(self, e: Event) -> None:
        """Subtracts γ from the window for each segment that this ACK acknowledges."""
        gamma = 1 - self.beta(e.rtt_ns) if self.p["gamma"] is None else real(self.p["gamma"])
        after = min(self.cwnd, max(self.cwnd - gamma * e.acked, self.least()))
        self.taken += self.cwnd - after
        self.cwnd = after
        self.avoids = True

    def avoid(self, e: Event, n: int) -> None:
        """Adds α / cwnd per segment, in segments; below one segment α, or α cwnd."""
        alpha = self.alpha
        if self.p["increase"] == "h-tcp":
            since = e.now_ns - (self.since_ns or 0)
            alpha = growth(self.p, since, self.min_rtt.least, self.beta_of_last)
        if not self.is_below():
            self.cwnd += alpha * self.mss * n / self.cwnd
            return
        gain = alpha * real(self.p["below_one_gain"]) * n
        self.cwnd += gain if self.p["below_one"] == "per-ack" else gain * self.cwnd / self.mss

    def reduce(self, e: Event, cause: str) -> None:
        """min[β (cwnd + S_γ), cwnd] for delay, β cwnd for a loss."""
        beta = self.beta(e.rtt_ns)
        window, least = self.cwnd + self.taken, self.least()
        if cause != "delay":
            if self.p["loss_beta"] is not None:
                beta = real(self.p["loss_beta"])
            window = self.cwnd
            if self.p["below_one"] == "never":
                least = Decimal(2 * self.mss)
        reduced = beta * window
        self.cwnd = min(self.cwnd, max(reduced, least))
        self.ssthresh = Decimal(max(floor(reduced), 2 * self.mss))
        if cause == "delay":
            self.taken = Decimal(0)
        if self.p["alpha_factor"] is not None:
            self.alpha = real(self.p["alpha_factor"]) * (1 - beta)
        self.since_ns, self.beta_of_last = e.now_ns, beta
        self.avoids = True
        self.after_signal()

    def on_restart(self) -> None:
        """Does nothing: only the window is reset."""
