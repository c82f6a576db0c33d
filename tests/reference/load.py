"""Load factors: the routers' measurement and encoding, and the receivers' estimate.

Qazi, Andrew, Znati, *Congestion control using efficient explicit feedback*, 2009, § II-A and II-B;
Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.1 and 3.2.
MLCP's levels: README. Fractions are exact. An interpretation of an open point is a *reading* in
vectors/README.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from exact import MARGIN, NS, AmbiguousError

NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
#: Number of threshold places; every place is below it.
PLACES = 1 << 16


#: Number of MLCP's load levels, and the level of high load.
LEVELS, HIGH_LEVEL = 16, 8


def number(value: float) -> Fraction:
    """Converts a parameter as written."""
    return Fraction(str(value))


def below(a: Fraction, b: Fraction) -> bool:
    """Returns True if a < b; raises if double precision could decide otherwise."""
    if a != b and abs(a - b) < Fraction(MARGIN) * max(abs(a), abs(b)):
        raise AmbiguousError(f"{float(a)} is too close to {float(b)}")
    return a < b


def place(identification: int) -> int:
    """Returns the rank of a packet's threshold among all, from 0 (a reading: the hash)."""
    x = identification
    for shift, factor in ((8, 0x88B5), (7, 0xDB2D), (9, 1)):
        x = (x ^ (x >> shift)) * factor % PLACES
    return x


def threshold(p: dict[str, Any], at: int) -> Fraction:
    """§ II-B: a quarter of them in (η₀, η), a quarter in (η, 1), half in (1, u), evenly spaced."""
    least, high, most = number(p["least"]), number(p["high"]), number(p["most"])
    quarter = PLACES // 4
    if at < quarter:
        return least + (high - least) * at / quarter
    if at < 2 * quarter:
        return high + (1 - high) * (at - quarter) / quarter
    return 1 + (most - 1) * (at - 2 * quarter) / (2 * quarter)


def level_ends(p: dict[str, Any]) -> list[Fraction]:
    """Returns the lower ends of levels, from the second.

    Seven from η₀, one from η, six from 1, one from u.
    """
    least, high, most = number(p["least"]), number(p["high"]), number(p["most"])
    low = [least + (high - least) * i / 7 for i in range(7)]
    over = [1 + (most - 1) * i / 6 for i in range(7)]
    return [*low, high, *over]


def level_load(p: dict[str, Any], level: int) -> Fraction:
    """Returns the load of a level: its upper end if the load is low, otherwise its lower one."""
    ends = level_ends(p)
    return ends[level] if level < HIGH_LEVEL else ends[level - 1]


@dataclass
class Router(ABC):
    """Load factor of one link, and the fields that it writes."""

    p: dict[str, Any]
    rate: int
    arrived: int = 0
    lengths: list[int] = field(default_factory=list)
    average: Fraction = Fraction(0)
    factor: Fraction = Fraction(0)

    def look(self, backlog: int) -> None:
        """Samples the queue; the last sample of an interval ends it: eq. 1."""
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
        """Forwards a packet; returns its ECN field."""
        self.arrived += size
        if ecn in (NOT_ECT, CE):
            return ecn
        return self.written(ecn, identification)

    def raised(self, size: int, level: int) -> int:
        """Forwards a packet with a level; returns its level."""
        self.arrived += size
        mine = sum(not below(self.factor, end) for end in level_ends(self.p))
        return max(level, mine)

    @abstractmethod
    def written(self, ecn: int, identification: int | None) -> int:
        """Returns the field of an ECN-capable packet that is not marked yet."""


class MlcpRouter(Router):
    """Qazi & Znati 2008, of which only the abstract is available: a level in four bits."""

    def written(self, ecn: int, _: int | None) -> int:
        """Leaves the ECN field unchanged."""
        return ecn


class VcpRouter(Router):
    """Xia et al. § 3.1: the highest load on the path, in two bits (a reading: the code points)."""

    def written(self, ecn: int, _: int | None) -> int:
        """Returns the field of an ECN-capable packet that is not marked yet."""
        if below(self.factor, number(self.p["high"])):
            return ecn
        return ECT1 if below(self.factor, number(self.p["over"])) else CE


class AdpmRouter(Router):
    """Qazi et al. § II-B."""

    def written(self, ecn: int, identification: int | None) -> int:
        """Returns the field of an ECN-capable packet that is not marked yet."""
        if not below(self.factor, number(self.p["most"])):
            return CE
        if identification is None:
            return ecn
        under = below(threshold(self.p, place(identification)), self.factor)
        return ECT1 if under else ecn


@dataclass
class Estimate:
    """Qazi et al. § II-B: the receiver's estimate, as the place of a threshold."""

    at: int = 0

    def hear(self, ecn: int, identification: int | None) -> int:
        """Handles an arriving packet; returns the estimate."""
        if ecn == CE:
            self.at = PLACES - 1
        elif identification is not None:
            here = place(identification)
            if (ecn == ECT0 and here < self.at) or (ecn == ECT1 and here > self.at):
                self.at = here
        return self.at
