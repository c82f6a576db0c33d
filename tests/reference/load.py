"""Load factors, what routers write of them, and what receivers make of that.

Qazi, Andrew, Znati, *Congestion control using efficient explicit feedback*, 2009, § II-A and II-B;
Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.1 and 3.2.
MLCP's levels: README. Fractions are exact. What no text says is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from exact import MARGIN, NS, AmbiguousError

NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
#: What none of the places of thresholds reaches.
PLACES = 1 << 16


#: MLCP's levels of load, and the one that is high.
LEVELS, HIGH_LEVEL = 16, 8


def number(value: float) -> Fraction:
    """A parameter as it is written."""
    return Fraction(str(value))


def below(a: Fraction, b: Fraction) -> bool:
    """True if a < b; an error if double precision could say otherwise."""
    if a != b and abs(a - b) < Fraction(MARGIN) * max(abs(a), abs(b)):
        raise AmbiguousError(f"{float(a)} is too close to {float(b)}")
    return a < b


def place(identification: int) -> int:
    """Rank of a packet's threshold among all, counted from 0 (a reading: the hash)."""
    x = identification
    for shift, factor in ((8, 0x88B5), (7, 0xDB2D), (9, 1)):
        x = (x ^ (x >> shift)) * factor % PLACES
    return x


def threshold(p: dict[str, Any], at: int) -> Fraction:
    """§ II-B: a quarter of them in (η₀, η), a quarter in (η, 1), half in (1, u), evenly."""
    least, high, most = number(p["least"]), number(p["high"]), number(p["most"])
    quarter = PLACES // 4
    if at < quarter:
        return least + (high - least) * at / quarter
    if at < 2 * quarter:
        return high + (1 - high) * (at - quarter) / quarter
    return 1 + (most - 1) * (at - 2 * quarter) / (2 * quarter)


def level_ends(p: dict[str, Any]) -> list[Fraction]:
    """Lower ends of levels, from the second: seven from η₀, one from η, six from 1, one from u."""
    least, high, most = number(p["least"]), number(p["high"]), number(p["most"])
    low = [least + (high - least) * i / 7 for i in range(7)]
    over = [1 + (most - 1) * i / 6 for i in range(7)]
    return [*low, high, *over]


def level_load(p: dict[str, Any], level: int) -> Fraction:
    """The load that a level stands for: its upper end where it is low, else its lower one."""
    ends = level_ends(p)
    return ends[level] if level < HIGH_LEVEL else ends[level - 1]


@dataclass
class Router(ABC):
    """One link's load factor, and what it writes."""

    p: dict[str, Any]
    rate: int
    arrived: int = 0
    lengths: list[int] = field(default_factory=list)
    average: Fraction = Fraction(0)
    factor: Fraction = Fraction(0)

    def look(self, backlog: int) -> None:
        """The queue is looked at; the last look in an interval ends it: eq. 1."""
        self.lengths.append(backlog)
        if len(self.lengths) < self.p["queue_samples"]:
            return
        mean = Fraction(sum(self.lengths), len(self.lengths))
        self.average += number(self.p["queue_gain"]) * (mean - self.average)
        interval = Fraction(self.p["interval_ns"], NS)
        traffic = self.arrived + number(self.p["queue_weight"]) * self.average
        self.factor = 8 * traffic / (number(self.p["target"]) * self.rate * interval)
        self.arrived, self.lengths = 0, []

    def write(self, size: int, ecn: int, identification: int | None) -> int:
        """A packet passes; its ECN field then."""
        self.arrived += size
        if ecn in (NOT_ECT, CE):
            return ecn
        return self.written(ecn, identification)

    def raised(self, size: int, level: int) -> int:
        """A packet with a level passes; its level then."""
        self.arrived += size
        mine = sum(not below(self.factor, end) for end in level_ends(self.p))
        return max(level, mine)

    @abstractmethod
    def written(self, ecn: int, identification: int | None) -> int:
        """The field of an ECN-capable packet that is not marked yet."""


class MlcpRouter(Router):
    """Qazi & Znati 2008, of whose text there is the abstract: a level in four bits."""

    def written(self, ecn: int, _: int | None) -> int:
        """ECN stays as it is."""
        return ecn


class VcpRouter(Router):
    """Xia et al. § 3.1: the highest load on the way, in two bits (a reading: which are which)."""

    def written(self, ecn: int, _: int | None) -> int:
        """The field of an ECN-capable packet that is not marked yet."""
        if below(self.factor, number(self.p["high"])):
            return ecn
        return ECT1 if below(self.factor, number(self.p["over"])) else CE


class AdpmRouter(Router):
    """Qazi et al. § II-B."""

    def written(self, ecn: int, identification: int | None) -> int:
        """The field of an ECN-capable packet that is not marked yet."""
        if not below(self.factor, number(self.p["most"])):
            return CE
        if identification is None:
            return ecn
        under = below(threshold(self.p, place(identification)), self.factor)
        return ECT1 if under else ecn


@dataclass
class Estimate:
    """Qazi et al. § II-B: the receiver's estimate, by the place of a threshold."""

    at: int = 0

    def hear(self, ecn: int, identification: int | None) -> int:
        """A packet arrives; the estimate then."""
        if ecn == CE:
            self.at = PLACES - 1
        elif identification is not None:
            here = place(identification)
            if (ecn == ECT0 and here < self.at) or (ecn == ECT1 and here > self.at):
                self.at = here
        return self.at
