"""H-TCP from Leith & Shorten 2004, with the details of Linux's tcp_htcp.c, in real numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from exact import floor, less, real
from windows import Controller

if TYPE_CHECKING:
    from windows import Event

NS = 1_000_000_000


def nanoseconds(text: str) -> int:
    """Parses a time of a scenario, in whole units."""
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
