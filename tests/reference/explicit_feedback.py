"""Senders with feedback of routers: VCP, MLCP and BMCC, XCP and RCP, DCTCP.

Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.3 and 3.4; Qazi,
Andrew, Znati, *Congestion control using efficient explicit feedback*, 2009, § II-C, II-D, III, eq.
2 to 6. MLCP (Qazi & Znati 2008) is BMCC with load levels. Katabi, Handley, Rohrs, *Congestion
control for high bandwidth-delay product networks*, SIGCOMM 2002, § 3.2, and its program in
ns-2.35, xcp-end-sys.cc; Dukkipati, Kobayashi, Zhang-Shen, McKeown, *Processor sharing flows in the
Internet*, 2005, § 3. RFC 8257 § 3.3 to 3.5, as public implementations quote it, with fractions of
50 digits.

Windows are real numbers of bytes, those of XCP, RCP and DCTCP whole ones. An interpretation of an
open point is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from exact import floor, less, real
from meters import CE, HIGH_LEVEL, LEVELS, PLACES, level_load
from windows import Controller, NewReno

if TYPE_CHECKING:
    from windows import Event


@dataclass
class Guided(Controller):
    """Rules that the controllers with load feedback share."""

    REAL = True

    #: End of the rest after a decrease, and of the following time with additive increase only.
    rests_ns: int = 0
    adds_ns: int = 0
    #: Window below which growth doubles it after a timeout.
    goal: Decimal = Decimal(0)

    def window(self) -> tuple[int, int | None]:
        """Returns window and threshold in whole bytes.

        The threshold is the goal while the window grows back to it, else the window; at least two
        segments.
        """
        cwnd = floor(self.cwnd)
        goal = floor(self.goal) if self.repairs() else cwnd
        return cwnd, max(goal, 2 * self.mss)

    def repairs(self) -> bool:
        """Returns True while the window grows back after a timeout."""
        return self.cwnd < self.goal

    def on(self, e: Event) -> None:
        """Applies one event to a sender with load feedback."""
        self.asks = ""
        match e.event:
            case "ack":
                self.told(e)
                if self.overloaded() and e.now_ns >= max(self.rests_ns, self.adds_ns):
                    self.asks = "load"
                rests = self.overloaded() and e.now_ns < self.rests_ns
                if self.may_grow(e) and not (self.asks or rests):
                    self.grow(e)
            case "load":
                self.decrease(e)
            case "timeout":
                self.timeout(e)
            case "idle":
                self.cwnd = min(self.cwnd, Decimal(self.initial_window))
                self.on_restart()
            case signal:
                self.reduce(e, signal)

    def on_restart(self) -> None:
        """Clears the goal: an idle period ends the repair."""
        self.goal = Decimal(0)

    def may_grow(self, e: Event) -> bool:
        """RFC 5681 § 3.2, RFC 7661 § 4.3, RFC 3168 § 6.1.2; after a timeout an echo is old."""
        if e.phase == "loss":
            return e.limited
        return e.limited and e.phase != "recovery" and not e.ece

    def keep(self, part: Decimal) -> None:
        """Reduces the window to this part, but not below one segment."""
        self.cwnd = min(max(self.cwnd * part, Decimal(self.mss)), self.cwnd)

    def rest(self, e: Event) -> None:
        """Stops growth for t_p after a decrease, then permits only AI for a round trip."""
        self.rests_ns = e.now_ns + self.p["interval_ns"]
        self.adds_ns = self.rests_ns + e.srtt_ns

    def counts(self, e: Event) -> Decimal:
        """Returns the bytes that count.

        At most a window: more was sent before the load that is reported (a reading).
        """
        return min(Decimal(e.acked), self.cwnd)

    def rtt(self, e: Event) -> int:
        """Returns T of the growth: the smoothed RTT, or the shortest so far."""
        if self.p.get("growth_rtt") == "min" and e.min_rtt_ns is not None:
            return e.min_rtt_ns
        return e.srtt_ns

    def multiply(self, e: Event, xi: Decimal) -> None:
        """Eq. 3; an RTT above `mi_rtt_most` counts as that."""
        rtt = min(self.rtt(e), self.p["mi_rtt_most_ns"] or self.rtt(e))
        exponent = Decimal(rtt) / self.p["interval_ns"]
        factor = (1 + xi) ** exponent - 1
        if e.phase == "loss":
            # Growth no faster than slow start (a reading).
            factor = min(factor, Decimal(1))
        self.cwnd += self.counts(e) * factor

    def add(self, e: Event, segments: Decimal) -> None:
        """Eq. 4, spread over a round trip."""
        self.cwnd += segments * self.mss * self.counts(e) / self.cwnd

    def avoid(self, e: Event, n: int) -> None:
        """Does nothing: each kind grows as the load permits."""

    @abstractmethod
    def told(self, e: Event) -> None:
        """Handles the load that the ACK reports."""

    @abstractmethod
    def overloaded(self) -> bool:
        """Returns True if the load is 1 or more."""

    @abstractmethod
    def grow(self, e: Event) -> None:
        """Grows the window."""

    @abstractmethod
    def decrease(self, e: Event) -> None:
        """Reduces the window as it asked for."""

    @abstractmethod
    def timeout(self, e: Event) -> None:
        """Handles a timeout."""


@dataclass
class Losing(Guided):
    """Response of VCP and MLCP to losses (a reading)."""

    def reduce(self, _: Event, cause: str) -> None:  # noqa: ARG002
        """Reduces the window as Reno does."""
        self.keep(real(self.p["loss_beta"]))

    def timeout(self, e: Event) -> None:
        """Reduces the window to one segment; from there the load decides (a reading)."""
        if e.nth == 1:
            self.goal = Decimal(0)
        self.cwnd = min(Decimal(self.mss), self.cwnd)


@dataclass
class Vcp(Losing):
    """Xia et al. § 3.3."""

    code: int = 2

    def told(self, e: Event) -> None:
        """Takes the code point of the newest data; 0 reports nothing."""
        if e.echo in (1, 2, 3):
            self.code = e.echo

    def overloaded(self) -> bool:
        """Returns True at the code point of overload."""
        return self.code == 3

    def grow(self, e: Event) -> None:
        """MI at low load, otherwise AI."""
        if self.code == 2:
            self.multiply(e, real(self.p["xi"]))
        else:
            self.add(e, real(self.p["alpha"]) * self.scale(e))

    def scale(self, e: Event) -> Decimal:
        """(T / t)², or in the program linear below 20 ms and above 500 ms."""
        reference = self.p["ai_rtt_ns"]
        ratio = Decimal(self.rtt(e)) / reference
        if self.p["ai_scaling"] == "square":
            return ratio**2
        least, most = (Decimal(ms * 1_000_000) / reference for ms in (20, 500))
        if less(ratio, least):
            return ratio * least
        return ratio**2 if less(ratio, most) else ratio - most + most**2

    def decrease(self, e: Event) -> None:
        """MD, a rest of t_ρ, and a round trip of AI."""
        self.keep(real(self.p["beta"]))
        self.rest(e)


@dataclass
class Paced(Guided):
    """Rules that controllers with pacing share."""

    def may_grow(self, e: Event) -> bool:
        """Three quarters of a paced window in flight count as a full one (a reading)."""
        if super().may_grow(e):
            return True
        used = not less(Decimal(e.flight), Decimal("0.75") * self.cwnd)
        grows = e.phase == "loss" or (e.phase in ("open", "cwr") and not e.ece)
        return bool(self.p["paced"]) and used and grows


@dataclass
class Mlcp(Losing, Paced):
    """BMCC's rules for the load that a level represents (readings: the levels, § VII d i)."""

    level: int = 0

    def told(self, e: Event) -> None:
        """Takes the level of the newest data, limited to the highest."""
        if e.echo is not None:
            self.level = min(e.echo, LEVELS - 1)

    def overloaded(self) -> bool:
        """Returns True above the level of high load."""
        return self.level > HIGH_LEVEL

    def load(self) -> Decimal:
        """Returns the load that the level represents."""
        f = level_load(self.p, self.level)
        return Decimal(f.numerator) / f.denominator

    def grow(self, e: Event) -> None:
        """Eq. 2 and 3 at low load, otherwise eq. 4."""
        if self.level < HIGH_LEVEL:
            f = self.load()
            self.multiply(e, real(self.p["mi_step"]) * (1 - f) / f)
        else:
            self.add(e, real(self.p["alpha"]) * (Decimal(self.rtt(e)) / self.p["interval_ns"]) ** 2)

    def decrease(self, e: Event) -> None:
        """Eq. 5 and 6, a rest of t_p, and a round trip of AI."""
        most, least = real(self.p["beta_most"]), real(self.p["beta_least"])
        self.keep(most - (most - least) * (self.load() - 1) / (real(self.p["most"]) - 1))
        self.rest(e)


@dataclass
class Bmcc(Paced):
    """Qazi et al. § II-C."""

    at: int = 0
    new: bool = True
    round_trip: int = 0
    collected: int = 0

    def load(self) -> Decimal:
        """Returns the estimated load."""
        least, high, most = (real(self.p[k]) for k in ("least", "high", "most"))
        quarter = PLACES // 4
        at = Decimal(self.at)
        if self.at == PLACES - 1:
            return most
        if self.at < quarter:
            return least + (high - least) * at / quarter
        if self.at < 2 * quarter:
            return high + (1 - high) * (at - quarter) / quarter
        return 1 + (most - 1) * (at - 2 * quarter) / (2 * quarter)

    def told(self, e: Event) -> None:
        """Takes the estimate, if the ACK carries it."""
        if e.echo is not None:
            self.at = e.echo
            self.new = self.new and not self.overloaded()

    def overloaded(self) -> bool:
        """Returns True for a load of 1 or more."""
        return self.at >= PLACES // 2

    def grow(self, e: Event) -> None:
        """Grows with each ACK, or once a round trip for all of them."""
        if self.p["apply"] == "round-trip":
            self.collected += e.acked
            if e.round == self.round_trip:
                return
            self.round_trip = e.round
            # At most the window, in whole bytes, counts (a reading).
            e = type(e)(**{**vars(e), "acked": min(self.collected, floor(self.cwnd))})
            self.collected = 0
        f = self.load()
        if self.repairs():
            self.cwnd += self.counts(e)
        elif self.at < PLACES // 4 or (self.new and self.p["multiplies_first"]):
            # Eq. 2; ξ would be negative above 1.
            self.multiply(e, real(self.p["mi_step"]) * max(1 - f, Decimal(0)) / f)
        else:
            ratio = Decimal(self.rtt(e)) / self.p["interval_ns"]
            self.add(e, real(self.p["alpha"]) * ratio**2)

    def beta(self) -> Decimal:
        """Eq. 6."""
        most, least = real(self.p["beta_most"]), real(self.p["beta_least"])
        over = max(self.load() - 1, Decimal(0)) / (real(self.p["most"]) - 1)
        return most - (most - least) * over

    def decrease(self, e: Event) -> None:
        """MD, eq. 5; then a rest."""
        self.keep(self.beta())
        if self.p["rests"] == "longer":
            longer = max(self.p["interval_ns"], e.srtt_ns)
            self.rests_ns, self.adds_ns = e.now_ns + longer, e.now_ns
        else:
            self.rest(e)

    def takes_a_loss(self, e: Event) -> bool:
        """Returns True if a loss decreases the window; in § I it does not by itself."""
        over = self.overloaded() and e.now_ns >= self.rests_ns
        return {"repair": False, "if-overload": over, "decrease": True}[self.p["on_loss"]]

    def reduce(self, e: Event, cause: str) -> None:
        """A loss has no effect, or that of overload or of the estimate; a mark always decreases."""
        if cause != "loss" or self.takes_a_loss(e):
            self.decrease(e)

    def timeout(self, e: Event) -> None:
        """Reduces the window to one segment.

        The goal is the former window, or what a decrease leaves of it.
        """
        if e.nth == 1:
            part = self.beta() if self.takes_a_loss(e) else Decimal(1)
            self.goal = max(self.cwnd, self.goal) * part
        self.cwnd = min(Decimal(self.mss), self.cwnd)


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


@dataclass
class Dctcp(NewReno):
    """RFC 8257 § 3.3 to 3.5: conventional TCP, except for marks."""

    alpha: Decimal | None = None
    window_end: int = 0
    bytes_acked_of_window: int = 0
    bytes_marked: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.alpha = real(self.p["initial_alpha"])

    def on(self, e: Event) -> None:
        """Applies one event to DCTCP."""
        self.asks = ""
        super().on(e)

    def on_ack(self, e: Event) -> None:
        """§ 3.3, steps 1 to 9: an acceptable ACK."""
        assert self.alpha is not None
        congested = e.echo == CE
        snd_nxt = self.delivered - e.acked + e.flight
        self.bytes_acked_of_window += e.acked
        if congested:
            self.bytes_marked += e.acked
        if self.delivered > self.window_end and e.acked > 0:
            m = Decimal(self.bytes_marked) / self.bytes_acked_of_window
            g = real(self.p["gain"])
            self.alpha = self.alpha * (1 - g) + g * m
            self.window_end = snd_nxt
            self.bytes_acked_of_window = self.bytes_marked = 0
        # The transport enforces RFC 3168's "not more than once every window".
        self.asks = "ecn" if congested else ""
        if not congested:
            super().on_ack(e)

    def decreased(self, e: Event, cause: str) -> int:
        """Step 9, or RFC 5681 equation 4 for a loss."""
        assert self.alpha is not None
        if cause == "ecn":
            return floor(self.cwnd * (1 - self.alpha / 2))
        return floor(real(self.p["loss_beta"]) * e.flight)
