"""VCP's, MLCP's and BMCC's senders.

Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.3 and 3.4; Qazi,
Andrew, Znati, *Congestion control using efficient explicit feedback*, 2009, § II-C, II-D, III, eq.
2 to 6. MLCP (Qazi & Znati 2008) is BMCC by levels. Windows are real numbers of bytes. What no text
says is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from exact import floor, less, real
from load import HIGH_LEVEL, LEVELS, PLACES, level_load
from windows import Controller

if TYPE_CHECKING:
    from windows import Event


@dataclass
class Guided(Controller):
    """Parts that controllers guided by the load share."""

    REAL = True

    #: Until when the window rests after a decrease, and until when it then only adds.
    rests_ns: int = 0
    adds_ns: int = 0
    #: Whether the last ACK asked for a decrease.
    asks: bool = False
    #: Below it the window doubles after a timeout.
    goal: Decimal = Decimal(0)

    def window(self) -> tuple[int, int | None]:
        """Whole bytes; there is no threshold but the goal of a repair."""
        cwnd = floor(self.cwnd)
        goal = floor(self.goal) if self.repairs() else cwnd
        return cwnd, max(goal, 2 * self.mss)

    def repairs(self) -> bool:
        """True while the window grows back after a timeout."""
        return self.cwnd < self.goal

    def on(self, e: Event) -> None:
        """One event."""
        self.asks = False
        match e.event:
            case "ack":
                self.told(e)
                self.asks = self.overloaded() and e.now_ns >= max(self.rests_ns, self.adds_ns)
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
        """There is nothing to come back to."""
        self.goal = Decimal(0)

    def may_grow(self, e: Event) -> bool:
        """RFC 5681 § 3.2, RFC 7661 § 4.3, RFC 3168 § 6.1.2; after a timeout an echo is old."""
        if e.phase == "loss":
            return e.limited
        return e.limited and e.phase != "recovery" and not e.ece

    def keep(self, part: Decimal) -> None:
        """This part stays, one segment at the least."""
        self.cwnd = min(max(self.cwnd * part, Decimal(self.mss)), self.cwnd)

    def rest(self, e: Event) -> None:
        """After a decrease: nothing for t_p, then a round trip of AI."""
        self.rests_ns = e.now_ns + self.p["interval_ns"]
        self.adds_ns = self.rests_ns + e.srtt_ns

    def counts(self, e: Event) -> Decimal:
        """A window at the most: more was sent before what the load is of (a reading)."""
        return min(Decimal(e.acked), self.cwnd)

    def multiply(self, e: Event, xi: Decimal) -> None:
        """Eq. 3; a longer round trip than `mi_rtt_most` counts as that."""
        rtt = min(e.srtt_ns, self.p["mi_rtt_most_ns"] or e.srtt_ns)
        exponent = Decimal(rtt) / self.p["interval_ns"]
        factor = (1 + xi) ** exponent - 1
        if e.phase == "loss":
            # No faster than slow start (a reading).
            factor = min(factor, Decimal(1))
        self.cwnd += self.counts(e) * factor

    def add(self, e: Event, segments: Decimal) -> None:
        """Eq. 4, spread over a round trip."""
        self.cwnd += segments * self.mss * self.counts(e) / self.cwnd

    def avoid(self, e: Event, n: int) -> None:
        """Nothing calls it: each kind grows as the load says."""

    @abstractmethod
    def told(self, e: Event) -> None:
        """Takes in the load that the ACK reports."""

    @abstractmethod
    def overloaded(self) -> bool:
        """True if the load is 1 or more."""

    @abstractmethod
    def grow(self, e: Event) -> None:
        """The window grows."""

    @abstractmethod
    def decrease(self, e: Event) -> None:
        """The window shrinks as it asked for."""

    @abstractmethod
    def timeout(self, e: Event) -> None:
        """A timeout."""


@dataclass
class Losing(Guided):
    """Reductions of VCP and MLCP for losses (a reading)."""

    def reduce(self, _: Event, cause: str) -> None:  # noqa: ARG002
        """As Reno."""
        self.keep(real(self.p["loss_beta"]))

    def timeout(self, e: Event) -> None:
        """One segment; what the load says from there (a reading)."""
        if e.nth == 1:
            self.goal = Decimal(0)
        self.cwnd = min(Decimal(self.mss), self.cwnd)


@dataclass
class Vcp(Losing):
    """Xia et al. § 3.3."""

    code: int = 2

    def told(self, e: Event) -> None:
        """The code point of the newest data; 0 says nothing."""
        if e.echo in (1, 2, 3):
            self.code = e.echo

    def overloaded(self) -> bool:
        """Overload."""
        return self.code == 3

    def grow(self, e: Event) -> None:
        """MI where the load is low, else AI."""
        if self.code == 2:
            self.multiply(e, real(self.p["xi"]))
        else:
            self.add(e, real(self.p["alpha"]) * self.scale(e))

    def scale(self, e: Event) -> Decimal:
        """(T / t)², or in the program straight lines below 20 ms and above 500 ms."""
        reference = self.p["ai_rtt_ns"]
        ratio = Decimal(e.srtt_ns) / reference
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
    """Parts that controllers with pacing share."""

    def may_grow(self, e: Event) -> bool:
        """Of a paced window three quarters in flight count as all (a reading)."""
        if super().may_grow(e):
            return True
        used = not less(Decimal(e.flight), Decimal("0.75") * self.cwnd)
        grows = e.phase == "loss" or (e.phase in ("open", "cwr") and not e.ece)
        return bool(self.p["paced"]) and used and grows


@dataclass
class Mlcp(Losing, Paced):
    """BMCC's laws of the load that a level stands for (readings: the levels, § VII d i)."""

    level: int = 0

    def told(self, e: Event) -> None:
        """The level of the newest data; there is none above the highest."""
        if e.echo is not None:
            self.level = min(e.echo, LEVELS - 1)

    def overloaded(self) -> bool:
        """Above the level of high load."""
        return self.level > HIGH_LEVEL

    def load(self) -> Decimal:
        """Load that the level stands for."""
        f = level_load(self.p, self.level)
        return Decimal(f.numerator) / f.denominator

    def grow(self, e: Event) -> None:
        """Eq. 2 and 3 where the load is low, else eq. 4."""
        if self.level < HIGH_LEVEL:
            f = self.load()
            self.multiply(e, real(self.p["mi_step"]) * (1 - f) / f)
        else:
            self.add(e, real(self.p["alpha"]) * (Decimal(e.srtt_ns) / self.p["interval_ns"]) ** 2)

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
        """The estimate."""
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
        """The estimate, if the ACK carries it."""
        if e.echo is not None:
            self.at = e.echo
            self.new = self.new and not self.overloaded()

    def overloaded(self) -> bool:
        """A load of 1 or more."""
        return self.at >= PLACES // 2

    def grow(self, e: Event) -> None:
        """With each ACK, or once a round trip for all of them."""
        if self.p["apply"] == "round-trip":
            self.collected += e.acked
            if e.round == self.round_trip:
                return
            self.round_trip = e.round
            # The window in whole bytes is the most that counts (a reading).
            e = type(e)(**{**vars(e), "acked": min(self.collected, floor(self.cwnd))})
            self.collected = 0
        f = self.load()
        if self.repairs():
            self.cwnd += self.counts(e)
        elif self.at < PLACES // 4 or (self.new and self.p["multiplies_first"]):
            # Eq. 2; above 1 ξ would be below 0.
            self.multiply(e, real(self.p["mi_step"]) * max(1 - f, Decimal(0)) / f)
        else:
            ratio = Decimal(e.srtt_ns) / self.p["interval_ns"]
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
        """§ I: recovery is decoupled from congestion control."""
        over = self.overloaded() and e.now_ns >= self.rests_ns
        return {"repair": False, "if-overload": over, "decrease": True}[self.p["on_loss"]]

    def reduce(self, e: Event, cause: str) -> None:
        """A loss does nothing, or what a load of 1 or the estimate would; a mark always that."""
        if cause != "loss" or self.takes_a_loss(e):
            self.decrease(e)

    def timeout(self, e: Event) -> None:
        """One segment, and back to what was, or what a decrease leaves of it."""
        if e.nth == 1:
            part = self.beta() if self.takes_a_loss(e) else Decimal(1)
            self.goal = max(self.cwnd, self.goal) * part
        self.cwnd = min(Decimal(self.mss), self.cwnd)
