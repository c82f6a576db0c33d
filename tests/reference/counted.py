"""CUBIC in whole segments, as Linux, Linux 3.17 and 2.6.22, and ns-3 count it.

From the behaviour of the sources: net/ipv4/tcp_cubic.c and tcp_cong.c of 6.18 and 3.17, those of
2.6.22 as in ns-2.35, and src/internet/model/tcp-cubic.cc of ns-3.44. Times are whole milliseconds
(HZ = 1000) except in ns-3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from exact import AmbiguousError, floor, less, real, seconds
from windows import INFINITY, Cubic

if TYPE_CHECKING:
    from windows import Event

HZ = 1000
MS = 1_000_000
#: Stacks that count ACKs, and are still in slow start at the threshold.
OLD = ("linux-2.6.22", "linux-3.17")
#: Length of the idle periods in the vectors.
IDLE_NS = 3_000 * MS


def root(cube: int) -> int:
    """Returns the integer part of a cube root; raises if the root is almost whole."""
    x = round(cube ** (1 / 3))
    while x**3 > cube:
        x -= 1
    while (x + 1) ** 3 <= cube:
        x += 1
    if cube - x**3 < x or (x + 1) ** 3 - cube < x:
        raise AmbiguousError(f"the root of {cube} is almost whole")
    return x


@dataclass
class CountedCubic(Cubic):
    """CUBIC of one of the stacks, with the kernels' names."""

    #: The window becomes ssthresh, which is at least two segments, whatever the cause.
    LEAST_AFTER_ECN = 2

    cnt: int = 0
    snd_cwnd_cnt: int = 0
    last_max_cwnd: int = 0
    epoch_start: int | None = None
    origin: int = 0
    k: Decimal = Decimal(0)
    ack_cnt: int = 0
    tcp_cwnd: int = 0
    delay_min: int | None = None
    last: tuple[int, int] | None = None
    delayed_ack: int = 32
    rest: int = 0
    last_in_recovery: int = 0
    stack: str = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stack = self.p["growth"]
        assert not self.p["reno_catches_up"]
        assert self.p["alpha_ecn"] is None

    def segments(self) -> int:
        """Returns the window in segments."""
        return floor(self.cwnd / self.mss)

    def scale(self) -> int:
        """beta_scale: eight times the number of windows in which Reno grows by a segment."""
        if self.stack == "ns-3":
            beta = real(self.p["beta"])
            return floor(8 * (1024 + beta * 1024) / 3 / (1024 - beta * 1024))
        b = round(self.p["beta"] * 1024)
        return 8 * (1024 + b) // 3 // (1024 - b)

    def on(self, e: Event) -> None:
        """Applies one event; Linux shifts the epoch by an idle period, not past the present."""
        super().on(e)
        if e.event == "idle" and self.stack == "linux" and self.epoch_start is not None:
            self.epoch_start = min(self.epoch_start + IDLE_NS, e.now_ns)

    def on_restart(self) -> None:
        """Does nothing: an idle period starts no new epoch."""

    def on_ack(self, e: Event) -> None:
        """Takes the sample of pkts_acked, then changes the window.

        Samples of the first second of an epoch (10 ms in ns-3) do not count.
        """
        sample, guard = (e.srtt_ns, 10 * MS) if self.stack == "ns-3" else (e.rtt_ns, 1_000 * MS)
        if sample is not None and (
            self.epoch_start is None or e.now_ns - self.epoch_start >= guard
        ):
            self.delay_min = min(sample, self.delay_min or sample)
        if self.stack == "ns-3":
            # IncreaseWindow is called for the ACK that ends recovery, once the state is open. A
            # controller learns of it one ACK later (a reading).
            if e.phase == "open":
                self.rest += self.last_in_recovery
            self.last_in_recovery = e.acked if e.phase == "recovery" else 0
        if self.stack in OLD and e.phase == "open" and e.acked >= self.mss:
            self.delayed_ack += e.acked // self.mss - (self.delayed_ack >> 4)
        super().on_ack(e)

    def in_slow_start(self) -> bool:
        """Returns True also at the threshold, for old kernels."""
        if self.stack in OLD:
            return self.cwnd <= self.ssthresh
        return super().in_slow_start()

    def slow_start(self, e: Event) -> int:
        """Grows past the threshold in old kernels and ns-3, by a segment at most in 3.17.

        Each ACK adds a segment in 2.6.22.
        """
        if self.stack == "linux":
            return super().slow_start(e)
        after = self.p["abc_limit_after_timeout"] if self.after_timeout else None
        limit = e.acked if after is None else after * self.mss
        step = self.mss if self.stack == "linux-2.6.22" else min(e.acked, limit)
        if self.stack == "linux-3.17" and self.ssthresh != INFINITY:
            # tcp_slow_start: "if (cwnd > tp->snd_ssthresh) cwnd = tp->snd_ssthresh + 1".
            step = min(step, int(self.ssthresh) + self.mss - floor(self.cwnd))
        self.cwnd += step
        if not less(self.cwnd, self.ssthresh):
            self.end_slow_start()
        return 0

    def avoid(self, e: Event, n: int) -> None:
        """tcp_cong_avoid_ai and its variants."""
        self.rest += n
        acked, self.rest = divmod(self.rest, self.mss)
        grown = 0
        if self.stack == "linux":
            self.update(e, acked)
            if self.snd_cwnd_cnt >= self.cnt:
                self.snd_cwnd_cnt = 0
                grown = 1
            self.snd_cwnd_cnt += acked
            while self.snd_cwnd_cnt >= self.cnt:
                self.snd_cwnd_cnt -= self.cnt
                grown += 1
        elif self.stack in OLD:
            self.update(e, 1)
            if self.snd_cwnd_cnt >= self.cnt:
                self.snd_cwnd_cnt = 0
                grown = 1
            else:
                self.snd_cwnd_cnt += 1
        elif acked > 0:
            self.snd_cwnd_cnt += acked
            self.update(e, acked)
            if self.snd_cwnd_cnt >= self.cnt:
                self.snd_cwnd_cnt -= self.cnt
                grown = 1
        self.cwnd += grown * self.mss

    def update(self, e: Event, acked: int) -> None:
        """bictcp_update."""
        cwnd = self.segments()
        self.ack_cnt += acked
        now = e.now_ns // MS
        cubic = True
        if self.stack != "ns-3":
            if self.last is not None and self.last[0] == cwnd and now - self.last[1] <= HZ // 32:
                return
            same_tick = self.last is not None and self.last[1] == now
            if self.stack == "linux" and self.epoch_start is not None and same_tick:
                cubic = False
            else:
                self.last = (cwnd, now)
        if cubic:
            self.cubic(e.now_ns, cwnd, acked)
        if self.p["reno_friendly"]:
            delta = cwnd * self.scale() >> 3
            while self.ack_cnt > delta:
                self.ack_cnt -= delta
                self.tcp_cwnd += 1
            if self.tcp_cwnd > cwnd:
                self.cnt = min(self.cnt, cwnd // (self.tcp_cwnd - cwnd))
        if self.stack in OLD:
            self.cnt = max((self.cnt << 4) // self.delayed_ack, 1)
        else:
            self.cnt = max(self.cnt, 2)

    def cubic(self, now_ns: int, cwnd: int, acked: int) -> None:
        """The time-dependent part of the update."""
        c = round(self.p["c"] * 1024)
        if self.epoch_start is None:
            self.epoch_start = now_ns
            self.ack_cnt = acked
            self.tcp_cwnd = cwnd
            below = self.last_max_cwnd - cwnd
            self.origin = max(self.last_max_cwnd, cwnd)
            if below <= 0:
                self.k = Decimal(0)
            elif self.stack == "ns-3":
                self.k = (below / real(self.p["c"])) ** (Decimal(1) / 3)
            else:
                self.k = Decimal(root((1 << 40) // c * below))
        if self.stack == "ns-3":
            t = seconds(now_ns + (self.delay_min or 0) - self.epoch_start)
            far = t - self.k
            exact = real(self.p["c"]) * abs(far) ** 3
            # It is not negative, so the value near the plateau is unambiguous.
            distance = floor(exact) if exact > Decimal("0.5") else 0
        else:
            up = MS - 1 if self.stack == "linux" else 0
            ticks = now_ns // MS - self.epoch_start // MS + ((self.delay_min or 0) + up) // MS
            far = Decimal((ticks << 10) // HZ) - self.k
            distance = c * abs(int(far)) ** 3 >> 40
        target = self.origin + (distance if far >= 0 else -distance)
        self.cnt = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
        if self.stack != "linux-2.6.22":
            if self.last_max_cwnd == 0:
                self.cnt = min(self.cnt, 20)
            return
        if self.delay_min is not None and far >= 0:
            # max_increment = 16 per tenth of a second; delay_min is kept times eight.
            eight = self.delay_min // MS * 8
            self.cnt = max(self.cnt, cwnd * HZ * 8 // (10 * 16 * eight))
        if self.last_max_cwnd == 0:
            self.cnt = 50

    def reduce(self, e: Event, cause: str) -> None:
        """recalc_ssthresh; the window as in the RFC (a reading: the transport decides on it)."""
        cwnd = self.segments()
        if self.p["fast_convergence"] and cwnd < self.last_max_cwnd:
            self.last_max_cwnd = floor(cwnd * (1 + real(self.p["beta"])) / 2)
        else:
            self.last_max_cwnd = cwnd
        self.epoch_start = None
        if self.stack != "ns-3":
            self.snd_cwnd_cnt = 0
        super().reduce(e, cause)

    def on_timeout(self, e: Event) -> None:
        """bictcp_reset, CubicReset."""
        super().on_timeout(e)
        self.epoch_start = None
        self.delay_min = None
        if self.stack != "ns-3":
            self.last_max_cwnd = 0
            self.snd_cwnd_cnt = 0
            self.last = None
            self.delayed_ack = 32
