"""H-TCP from Leith & Shorten 2004, and delay-based AIMD and adaptive backoff from McCullagh 2008.

H-TCP has the details of Linux's tcp_htcp.c, in real numbers; the others are of chapters 2 to 4.
Windows are real numbers of bytes. An interpretation of an open point is a *reading* in
vectors/README.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from exact import floor, less, real
from windows import Controller, Event

NS = 1_000_000_000


def nanoseconds(text: str) -> int:
    """Parses a duration in whole s, ms or ns; returns ns."""
    number, unit = text.split()
    return int(number) * {"s": NS, "ms": NS // 1000, "ns": 1}[unit]


def growth(p: dict[str, Any], ns: int, least: int | None, beta: Decimal) -> Decimal:
    """α = 2 (1 − β) times 1 + 10 (Δ − Δ_L) + ((Δ − Δ_L) / 2)², Δ = `ns` after the last backoff.

    The second factor is 1 up to Δ_L, and may scale with the minimum RTT.
    """
    t = Decimal(max(ns - nanoseconds(p["delta_low"]), 0)) / NS
    factor = 1 + 10 * t + (t / 2) ** 2
    if p["rtt_scaling"] and least is not None:
        # HZ / (10 minRTT) in [0.5, 10], by which Linux divides.
        scale = 1 / (10 * Decimal(least) / NS)
        scale = min(max(scale, Decimal("0.5")), Decimal(10))
        factor = max(factor / scale, Decimal(1))
    return 2 * (1 - beta) * factor


@dataclass
class HTcp(Controller):
    """Growth by the time since the last backoff, with β from RTTmin / RTTmax."""

    REAL = True

    factor_of_last: Decimal = Decimal("0.5")
    backed_off_ns: int | None = None
    longest: Decimal | None = None
    modeswitch: bool = False
    #: Throughputs of the round trips since the backoff, bytes per nanosecond.
    throughputs: list[Decimal] = field(default_factory=list)
    #: Highest throughput at the backoff before.
    most_before: Decimal = Decimal(0)
    #: Throughput of the latest of the first three round trips after a backoff, then the highest
    #: average.
    most: Decimal = Decimal(0)
    counted: tuple[int, int, int] | None = None

    def on_ack(self, e: Event) -> None:
        """Handles an ACK of new data."""
        if self.backed_off_ns is None:
            self.backed_off_ns = e.now_ns
        # `htcp_state`: the time restarts when the state returns to TCP_CA_Open.
        if self.p["since_recovery"] and e.phase != "open":
            self.backed_off_ns = e.now_ns
        self.throughput(e)
        least = self.min_rtt.least
        if e.rtt_ns is not None and least is not None and e.phase == "open":
            longest = max(self.longest or Decimal(least), Decimal(least))
            step = self.p["longest_step"]
            if step is None or e.rtt_ns - longest <= nanoseconds(step):
                longest = max(longest, Decimal(e.rtt_ns))
            self.longest = longest
        super().on_ack(e)

    def throughput(self, e: Event) -> None:
        """Measures the bytes acknowledged in each round trip over its duration."""
        if e.phase != "open":
            self.counted = None
            return
        if self.counted is not None:
            number, began, delivered = self.counted
            if number == e.round or e.now_ns == began:
                return
            rate = Decimal(self.delivered - delivered) / (e.now_ns - began)
            self.throughputs.append(rate)
            if len(self.throughputs) <= 3:
                self.most = rate
            else:
                # An average from the third on, of which each later one is a quarter.
                mean = self.throughputs[2]
                self.most = mean
                for later in self.throughputs[3:]:
                    mean = (3 * mean + later) / 4
                    self.most = max(self.most, mean)
        self.counted = (e.round, e.now_ns, self.delivered)

    def avoid(self, e: Event, n: int) -> None:
        """Adds α / cwnd per segment."""
        assert self.backed_off_ns is not None
        since = e.now_ns - self.backed_off_ns
        alpha = growth(self.p, since, self.min_rtt.least, self.factor_of_last)
        self.cwnd += alpha * self.mss * n / self.cwnd

    def beta_now(self) -> Decimal:
        """`htcp_beta_update`."""
        low, high = real(self.p["least_beta"]), real(self.p["most_beta"])
        switch = self.p["bandwidth_switch"]
        if switch is not None:
            most, before = self.most, self.most_before
            self.most_before = most
            self.throughputs = []
            if less(real(switch) * before, abs(most - before)):
                self.modeswitch = False
                return low
        least = self.min_rtt.least
        short = nanoseconds(self.p["short_path"])
        if self.modeswitch and least is not None and least > short and self.longest:
            return min(max(least / self.longest, low), high)
        self.modeswitch = True
        return low

    def reduce(self, e: Event, cause: str) -> None:
        """Backs off, for any cause."""
        del cause
        beta = self.beta_now()
        least = self.min_rtt.least
        delta = self.p["adaptive_delta"]
        if delta is not None and least is not None and e.rtt_ns is not None:
            beta = real(delta) * least / max(e.rtt_ns, least)
        if least is not None and self.longest is not None:
            kept = max(self.longest - least, Decimal(0)) * real(self.p["fading"])
            self.longest = least + Decimal(floor(kept))
        reduced = beta * self.cwnd
        self.ssthresh = Decimal(max(floor(reduced), 2 * self.mss))
        self.cwnd = min(self.cwnd, max(reduced, Decimal(2 * self.mss)))
        self.factor_of_last = beta
        self.backed_off_ns = e.now_ns
        self.after_signal()

    def on_restart(self) -> None:
        """Does nothing: only the window is reset."""


@dataclass
class DelayAimd(Controller):
    """McCullagh 2008 eq. 2.5 and 2.6, § 3.3.4, eq. 4.9; H-TCP's increase; windows below one."""

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
        """Returns False after a backoff, until a timeout or idle period, and below one segment."""
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
