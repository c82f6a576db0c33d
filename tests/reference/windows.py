"""NewReno, CUBIC and HyStart++ from the text of RFC 5681, 3465, 3168, 8511, 9438 and 9406.

Windows are real numbers of bytes; CUBIC's formulas count segments, as in the RFC. An interpretation
of a point that the RFCs leave open is called a *reading* here and in vectors/README.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from exact import AmbiguousError, floor, less, real, seconds
from hystart_classic import HyStartClassic

INFINITY = Decimal("Infinity")


@dataclass
class Event:
    """An event of a controller; keys that a vector omits have these values."""

    event: str
    now_ns: int
    flight: int
    acked: int = 0
    ece: bool = False
    phase: str = "open"
    limited: bool = True
    srtt_ns: int = 100_000_000
    rtt_ns: int | None = None
    round: int = 0
    nth: int = 1
    marked: bool = True
    level: int = 0
    min_rtt_ns: int | None = None
    echo: int | None = None
    lost: int = 0
    rate: dict[str, Any] | None = None
    feedback: int | None = None
    offered_bit_s: int | None = None


@dataclass
class MinRtt:
    """McCullagh 2008 § 4.1: the measured minimum RTT, or a deliberately wrong one.

    The wrong one holds from the first reduction on (a reading).
    """

    wrong: int | None
    least: int | None = None
    own: bool = False

    def hear(self, e: Event) -> None:
        """Updates the minimum RTT by one event."""
        measured = e.srtt_ns if e.min_rtt_ns is None else e.min_rtt_ns
        if e.event == "idle":
            return
        if e.event != "ack" and self.wrong is not None:
            self.least = self.wrong if e.rtt_ns is None else min(self.wrong, e.rtt_ns)
            self.wrong, self.own = None, True
        elif not self.own:
            self.least = measured
        elif e.event == "ack" and e.rtt_ns is not None and self.least is not None:
            self.least = min(self.least, e.rtt_ns)


@dataclass
class HyStart:
    """RFC 9406 § 4.2, for a sender without pacing."""

    MIN_RTT_THRESH = 4_000_000
    MAX_RTT_THRESH = 16_000_000
    MIN_RTT_DIVISOR = 8
    N_RTT_SAMPLE = 8
    CSS_GROWTH_DIVISOR = 4
    CSS_ROUNDS = 5
    L = 8

    round: int | None = None
    last_round_min_rtt: Decimal = INFINITY
    current_round_min_rtt: Decimal = INFINITY
    rtt_sample_count: int = 0
    css_baseline_min_rtt: Decimal = INFINITY
    css_rounds: int = 0
    in_css: bool = False

    def start_of_round(self, number: int) -> bool:
        """Handles an ACK of round `number`; returns True if CSS is complete."""
        if self.round is None:
            self.round = number
        if number == self.round:
            return False
        self.round = number
        self.last_round_min_rtt = self.current_round_min_rtt
        self.current_round_min_rtt = INFINITY
        self.rtt_sample_count = 0
        if self.in_css:
            # "If the transition into CSS happens in the middle of a round, that partial round
            # counts."
            self.css_rounds += 1
        return self.in_css and self.css_rounds == self.CSS_ROUNDS

    def growth(self, n: int, smss: int) -> int:
        """Returns the growth of the window by an ACK.

        The first step of "for each arriving ACK", in either phase.
        """
        full = min(n, self.L * smss)
        return full // self.CSS_GROWTH_DIVISOR if self.in_css else full

    def sample(self, rtt: int | None) -> None:
        """The steps that follow: updates the minimum RTT and the phase."""
        if rtt is None:
            return
        self.current_round_min_rtt = min(self.current_round_min_rtt, Decimal(rtt))
        self.rtt_sample_count += 1
        if self.rtt_sample_count < self.N_RTT_SAMPLE:
            return
        if self.in_css:
            if self.current_round_min_rtt < self.css_baseline_min_rtt:
                self.css_baseline_min_rtt = INFINITY
                self.in_css = False
        elif self.last_round_min_rtt != INFINITY:
            thresh = max(
                Decimal(self.MIN_RTT_THRESH),
                min(
                    self.last_round_min_rtt / self.MIN_RTT_DIVISOR,
                    Decimal(self.MAX_RTT_THRESH),
                ),
            )
            if self.current_round_min_rtt >= self.last_round_min_rtt + thresh:
                self.css_baseline_min_rtt = self.current_round_min_rtt
                self.in_css = True
                self.css_rounds = 0


@dataclass
class Controller(ABC):
    """Base of all controllers, with rules that NewReno and CUBIC share.

    These are slow start and the factors of signals.
    """

    p: dict[str, Any]
    mss: int
    initial_window: int
    initial_ssthresh: int | None
    cwnd: Decimal = field(init=False)
    ssthresh: Decimal = field(init=False)
    first_slow_start: bool = True
    after_timeout: bool = False
    hystart: HyStart | None = field(init=False)
    classic: HyStartClassic | None = field(init=False)
    delivered: int = 0
    min_rtt: MinRtt = field(init=False)
    #: None unless a quench was the last of quenches, losses and ECN echoes; True if it was about a
    #: marked packet.
    quenched: bool | None = None
    rests_until_ns: int = 0
    #: Event that the last ACK asked for; empty if none.
    asks: str = ""

    #: True if the window is a real number.
    REAL = False

    def __post_init__(self) -> None:
        wrong = self.p.get("initial_min_rtt")
        self.min_rtt = MinRtt(None if wrong is None else int(str(wrong).split()[0]) * 1_000_000)
        self.cwnd = Decimal(self.initial_window)
        self.ssthresh = (
            INFINITY if self.initial_ssthresh is None else Decimal(self.initial_ssthresh)
        )
        slow_start = self.p.get("slow_start")
        self.hystart = HyStart() if slow_start == "hystart++" else None
        self.classic = HyStartClassic(self.mss) if slow_start == "hystart" else None

    def window(self) -> tuple[int, int | None]:
        """Returns the usable window and the threshold, whole bytes."""
        return floor(self.cwnd), None if self.ssthresh == INFINITY else int(self.ssthresh)

    def on(self, e: Event) -> None:
        """Applies one event: an ACK, a signal, a timeout or an idle period."""
        self.delivered += e.acked
        self.min_rtt.hear(e)
        match e.event:
            case "ack":
                self.on_ack(e)
            case "loss":
                self.quenched = None
                self.reduce(e, "loss")
            case "ecn":
                self.quenched = None
                self.reduce(e, "ecn")
            case "delay":
                self.reduce(e, "delay")
            case "quench":
                self.quenched = e.marked
                if self.p.get("quench_rest") == "srtt" and self.rests():
                    self.rests_until_ns = e.now_ns + e.srtt_ns
                self.reduce(e, "mark" if e.marked else "drop")
            case "timeout":
                self.on_timeout(e)
            case "idle":
                # RFC 5681 § 4.1: RW = min(IW, cwnd).
                self.cwnd = min(Decimal(self.initial_window), self.cwnd)
                self.on_restart()

    def on_ack(self, e: Event) -> None:
        """Handles an ACK of new data."""
        if not self.may_grow(e):
            return
        n = e.acked
        if self.in_slow_start():
            n = self.slow_start(e)
        if n > 0:
            self.avoid(e, n)

    def may_grow(self, e: Event) -> bool:
        """RFC 3168 § 6.1.2: no growth on an ACK with ECE. RFC 5681 § 3.2: none in recovery.

        RFC 7661 § 4.3: none of an unused window.
        """
        if e.ece or not e.limited or e.phase == "recovery" or e.now_ns < self.rests_until_ns:
            return False
        if e.phase != "cwr":
            return True
        # BECN § IV-B: after a quench about a marked packet it "waits an RTT before it starts
        # increasing", after one about a dropped packet it does not.
        by_window = self.p.get("quench_rest", "window") == "window"
        return bool(self.p["grow_in_cwr"]) and not (by_window and self.rests())

    def rests(self) -> bool:
        """Returns True if the last reduction was for a quench that requires a wait."""
        rest = self.p.get("rest_after_quench", "marked")
        return self.quenched is not None and (
            rest == "always" or (rest == "marked" and self.quenched)
        )

    def in_slow_start(self) -> bool:
        """RFC 5681 § 3.1; at equality the sender may choose, and avoidance is chosen here."""
        return floor(self.cwnd) < self.ssthresh

    def slow_start(self, e: Event) -> int:
        """RFC 3465 § 2.2 and RFC 9406.

        Returns the bytes that are left for avoidance (a reading).
        """
        if self.hystart is not None:
            if self.hystart.start_of_round(e.round):
                self.ssthresh = Decimal(floor(self.cwnd))
                self.end_slow_start()
                return e.acked
            growth = self.hystart.growth(e.acked, self.mss)
        elif self.classic is not None and self.found(self.classic, e):
            self.ssthresh = Decimal(floor(self.cwnd))
            self.end_slow_start()
            return e.acked
        elif self.p.get("increase") == "per-ack":
            # RFC 5681 § 3.1, the upper bound of eq. 2 as in 4.4BSD: SMSS for each ACK, even past
            # the threshold.
            self.cwnd += self.mss
            if not self.in_slow_start():
                self.end_slow_start()
            return 0
        else:
            key = "abc_limit_after_timeout" if self.after_timeout else "abc_limit"
            limit = self.p[key]
            growth = e.acked if limit is None else min(e.acked, limit * self.mss)
        step = growth
        if self.ssthresh != INFINITY:
            step = min(growth, int(self.ssthresh) - floor(self.cwnd))
        self.cwnd += step
        if self.hystart is not None:
            self.hystart.sample(e.rtt_ns)
        if not self.in_slow_start():
            self.end_slow_start()
        return growth - step

    def found(self, hystart: HyStartClassic, e: Event) -> bool:
        """Returns True if classic HyStart ends slow start.

        An ACK without a sample has no effect.
        """
        if e.rtt_ns is None:
            return False
        sent = self.delivered - e.acked + e.flight
        window = floor(self.cwnd) // self.mss
        return hystart.ack(
            e.now_ns, self.delivered, sent, window=window, rtt=e.rtt_ns, srtt=e.srtt_ns
        )

    def end_slow_start(self) -> None:
        """Begins congestion avoidance without a signal."""
        self.hystart = self.classic = None
        self.first_slow_start = False
        self.after_timeout = False

    def beta_of_loss(self, e: Event) -> Decimal:
        """β, or with adaptive backoff δ · minRTT / RTT (McCullagh 2008 eq. 4.1)."""
        delta, least = self.p.get("adaptive_delta"), self.min_rtt.least
        if delta is None or e.rtt_ns is None or least is None or least > e.rtt_ns:
            return real(self.p["beta"])
        return real(delta) * least / e.rtt_ns

    def factor(self, cause: str, e: Event) -> Decimal:
        """Returns the decrease factor for this cause, in the current phase."""
        p = self.p
        beta = self.beta_of_loss(e)
        slow_start = self.in_slow_start()
        if slow_start and self.first_slow_start and p["beta_initial"] is not None:
            return real(p["beta_initial"])
        # BECN § IV-B has one response, whatever the phase.
        if cause == "mark" and p.get("beta_quench") is not None:
            levels = str(p["beta_quench"]).split(",")
            return real(float(levels[min(e.level, len(levels) - 1)]))
        milder = p["beta_ecn"]
        if cause in {"loss", "drop"} or milder is None:
            return beta
        # RFC 8511 § 3: β_ecn in congestion avoidance; the paper's § III and several stacks also use
        # it in slow start.
        if slow_start and p["ecn_in_slow_start"] == "beta":
            return beta
        return real(milder)

    def decreased(self, e: Event, cause: str) -> int:
        """β times the data in flight, or the window, in whole bytes or segments.

        RFC 5681 eq. 4, RFC 9438 § 4.6.
        """
        base = e.flight if self.p["base"] == "flight-size" else floor(self.cwnd)
        reduced = int(self.factor(cause, e) * base)
        return reduced if self.p["rounding"] == "bytes" else reduced // self.mss * self.mss

    def after_signal(self) -> None:
        """Ends the first slow start, and HyStart++ for good (RFC 9406 § 4.3)."""
        self.hystart = self.classic = None
        self.first_slow_start = False

    @abstractmethod
    def avoid(self, _: Event, n: int) -> None:
        """Runs congestion avoidance for n acknowledged bytes."""

    @abstractmethod
    def reduce(self, e: Event, cause: str) -> None:
        """Handles a congestion signal."""

    def on_timeout(self, e: Event) -> None:
        """RFC 5681 § 3.1: ssthresh as for a loss, but only for the first timeout in a row.

        The window is one segment.
        """
        if e.nth == 1:
            self.reduce(e, "loss")
        self.cwnd = Decimal(self.mss)
        self.after_signal()
        # Linux restarts it after a timeout (`cubictcp_state`).
        self.classic = HyStartClassic(self.mss) if self.p["slow_start"] == "hystart" else None
        self.after_timeout = True
        self.on_restart()

    @abstractmethod
    def on_restart(self) -> None:
        """Called after the window was reset."""


@dataclass
class NewReno(Controller):
    """RFC 5681 with RFC 3465's counting."""

    bytes_acked: int = 0

    def end_slow_start(self) -> None:
        """Starts counting with avoidance (a reading)."""
        super().end_slow_start()
        self.bytes_acked = 0

    def avoid(self, _: Event, n: int) -> None:
        """RFC 3465 § 2.1, or for growth by ACKs equation 3 of RFC 5681.

        The latter in whole bytes, with a remainder that is carried (a reading).
        """
        cwnd = int(self.cwnd)
        if self.p.get("increase") == "per-ack":
            self.bytes_acked += self.mss * self.mss
            self.cwnd += self.bytes_acked // cwnd
            self.bytes_acked %= cwnd
            return
        self.bytes_acked += n
        if self.bytes_acked >= cwnd:
            self.bytes_acked -= cwnd
            self.cwnd += self.mss

    def reduce(self, e: Event, cause: str) -> None:
        """RFC 5681 equation 4.

        The window follows (§ 3.2 step 6), and is never raised by a signal (a reading).
        """
        reduced = self.decreased(e, cause)
        self.ssthresh = Decimal(max(reduced, 2 * self.mss))
        least = self.p.get("least_window", 2) * self.mss
        self.cwnd = min(self.cwnd, Decimal(max(reduced, least)))
        self.bytes_acked = 0
        self.after_signal()

    def on_restart(self) -> None:
        """Keeps the count over an idle period (a reading)."""

    def on_timeout(self, e: Event) -> None:
        """Resets the count."""
        super().on_timeout(e)
        self.bytes_acked = 0


@dataclass
class Epoch:
    """A stage of congestion avoidance (RFC 9438 § 4.1.2)."""

    start_ns: int
    cwnd_epoch: Decimal
    w_max: Decimal
    k: Decimal
    w_est: Decimal
    unused_since: int | None = None


@dataclass
class Cubic(Controller):
    """RFC 9438, windows in segments."""

    REAL = True
    #: Least window after ECN, segments (§ 4.6).
    LEAST_AFTER_ECN = 1

    w_max: Decimal = Decimal(0)
    cwnd_prior: Decimal = Decimal(0)
    alpha_now: Decimal = field(init=False)
    epoch: Epoch | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.alpha_now = self.alpha("loss")

    def alpha(self, cause: str) -> Decimal:
        """RFC 9438 § 4.3: α = 3 (1 − β) / (1 + β)."""
        if cause in {"ecn", "mark"} and self.p["alpha_ecn"] is not None:
            return real(self.p["alpha_ecn"])
        beta = real(self.p["beta"])
        return 3 * (1 - beta) / (1 + beta)

    def w_cubic(self, t: Decimal) -> Decimal:
        """RFC 9438 Fig. 1."""
        assert self.epoch is not None
        return real(self.p["c"]) * (t - self.epoch.k) ** 3 + self.epoch.w_max

    def on_ack(self, e: Event) -> None:
        """RFC 9438 § 5.8: time in which the window is not used does not count."""
        if not e.limited and self.epoch is not None and self.epoch.unused_since is None:
            self.epoch.unused_since = e.now_ns
        super().on_ack(e)

    def avoid(self, _: Event, n: int) -> None:
        """RFC 9438 § 4.2 to 4.5."""
        cwnd = self.cwnd / self.mss
        # Readings: growth counts segments acknowledged, at most a window of them, in § 4.4 and 4.5
        # as in § 4.3.
        segments_acked = min(Decimal(n) / self.mss, cwnd)
        if self.epoch is None:
            self.epoch = self.begin(_.now_ns, cwnd)
        epoch = self.epoch
        if epoch.unused_since is not None:
            epoch.start_ns += _.now_ns - epoch.unused_since
            epoch.unused_since = None
        t = seconds(_.now_ns - epoch.start_ns)
        if self.p["reno_friendly"]:
            # § 4.3: one segment per round trip, once W_est has caught up; RFC 8312 § 4.2 keeps α.
            caught_up = not less(epoch.w_est, self.cwnd_prior) and self.p["reno_catches_up"]
            alpha = Decimal(1) if caught_up else self.alpha_now
            epoch.w_est += alpha * segments_acked / cwnd
            if less(self.w_cubic(t), epoch.w_est):
                # Reading: an ACK never lowers the window, which may be ahead of W_est as it aims at
                # t + RTT.
                self.cwnd = max(cwnd, epoch.w_est) * self.mss
                return
        target = self.w_cubic(t + seconds(_.srtt_ns))
        target = min(max(target, cwnd), Decimal("1.5") * cwnd)
        self.cwnd = (cwnd + (target - cwnd) / cwnd * segments_acked) * self.mss

    def begin(self, now_ns: int, cwnd: Decimal) -> Epoch:
        """Begins a stage (§ 4.2).

        Its plateau is the present window if there was no loss before (§ 4.10), after a timeout
        (§ 4.8), or if W_max is not above the window.
        """
        if self.w_max > cwnd:
            if self.w_max - cwnd < Decimal("1e-6"):
                raise AmbiguousError("K is the root of almost nothing")
            k = ((self.w_max - cwnd) / real(self.p["c"])) ** (Decimal(1) / 3)
        else:
            # Reading: also if fast convergence left W_max below the window after a mild β_ecn.
            self.w_max = cwnd
            k = Decimal(0)
        return Epoch(now_ns, cwnd, self.w_max, k, cwnd)

    def reduce(self, e: Event, cause: str) -> None:
        """RFC 9438 § 4.6 and 4.7."""
        cwnd = self.cwnd / self.mss
        reduced = self.decreased(e, cause)
        # cwnd = max(ssthresh, 2) after a loss and max(ssthresh, 1) after ECE; never above its
        # former value (a reading).
        least = (2 if cause == "loss" else self.LEAST_AFTER_ECN) * self.mss
        after = min(self.cwnd, Decimal(max(reduced, least)))
        self.ssthresh = Decimal(max(reduced, 2 * self.mss))
        if cause != "loss" and not self.p["ecn_new_stage"]:
            # W_max, t and W_est remain those of the last loss.
            self.cwnd = after
            self.after_signal()
            return
        self.cwnd_prior = cwnd
        if self.p["fast_convergence"] and less(cwnd, self.w_max):
            if self.p["fast_convergence_point"] == "beta":
                self.w_max = cwnd * (1 + real(self.p["beta"])) / 2
            else:
                self.w_max = (cwnd + after / self.mss) / 2
        else:
            self.w_max = cwnd
        self.cwnd = after
        self.alpha_now = self.alpha(cause)
        self.epoch = None
        self.after_signal()

    def on_timeout(self, e: Event) -> None:
        """§ 4.8: W_max is the window at which avoidance begins, K is 0."""
        super().on_timeout(e)
        self.w_max = Decimal(0)

    def on_restart(self) -> None:
        """Begins avoidance anew."""
        self.epoch = None
