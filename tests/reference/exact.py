"""Numbers of fifty digits, and the random stream behind the vectors' uniform numbers."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, getcontext

getcontext().prec = 50

#: Relative margin of comparisons of real numbers.
MARGIN = Decimal("1e-9")
#: Distance from a whole byte below which a window would be ambiguous, unless it is a whole byte.
BYTE_MARGIN = Decimal("1e-6")
#: Rounding error of fifty digits for a whole number that was divided and multiplied again.
ROUNDING = Decimal("1e-30")
NS = 1_000_000_000

MASK = (1 << 64) - 1


class AmbiguousError(Exception):
    """Raised if a decision depends on the last digits; the case must be replaced."""


def real(value: float | str | Decimal) -> Decimal:
    """Converts a parameter as written: 0.7 is seven tenths, not the nearest double."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def seconds(ns: int) -> Decimal:
    """Converts a time to seconds."""
    return Decimal(ns) / NS


def floor(value: Decimal) -> int:
    """Returns the integer part; raises if double precision could give another one."""
    nearest = value.to_integral_value()
    distance = abs(value - nearest)
    if distance < ROUNDING:
        return int(nearest)
    if distance < BYTE_MARGIN:
        raise AmbiguousError(f"{value} is too close to a whole number")
    return int(value.to_integral_value(ROUND_FLOOR))


def less(a: Decimal, b: Decimal) -> bool:
    """Returns True if a < b; raises if double precision could decide otherwise.

    Exactly equal numbers are not ambiguous.
    """
    if a != b and abs(a - b) < MARGIN * max(abs(a), abs(b)):
        raise AmbiguousError(f"{a} is too close to {b}")
    return a < b


def digits(value: Decimal, places: int = 15) -> float:
    """Rounds to significant digits, for the vector."""
    return float(f"{value:.{places}g}")


def _splitmix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Uniforms:
    """Stream of uniform numbers in [0, 1): xoshiro256++ (Blackman & Vigna 2019).

    Seeded through SplitMix64. Numbers are multiples of 2^-53, held as that multiple. The numbers
    used are recorded, and a vector lists them: its reader needs nothing else of the generator.
    """

    def __init__(self, seed: int, name: str) -> None:
        fnv1a = 0xCBF29CE484222325
        for byte in name.encode():
            fnv1a = ((fnv1a ^ byte) * 0x100000001B3) & MASK
        golden = 0x9E3779B97F4A7C15
        state = _splitmix((seed + golden) & MASK) ^ fnv1a
        self._s = [_splitmix((state + golden * (i + 1)) & MASK) for i in range(4)]
        self.used: list[int] = []

    def next(self) -> Decimal:
        """Returns the next number."""
        s0, s1, s2, s3 = self._s
        sum_ = (s0 + s3) & MASK
        bits = ((((sum_ << 23) | (sum_ >> 41)) & MASK) + s0) & MASK
        t = (s1 << 17) & MASK
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = ((s3 << 45) | (s3 >> 19)) & MASK
        self._s = [s0, s1, s2, s3]
        self.used.append(bits >> 11)
        return Decimal(bits >> 11) / (1 << 53)

    def below(self, p: Decimal) -> bool:
        """Returns True if the next number is below p; draws none if p is zero."""
        return p > 0 and less(self.next(), p)
