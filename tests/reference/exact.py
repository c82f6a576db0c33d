"""Numbers of fifty digits, and the random stream that the vectors' uniform numbers come from."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, getcontext

getcontext().prec = 50

#: No decision in a vector may hang on less than this part of what it compares.
MARGIN = Decimal("1e-9")
#: A window that is this close to a whole byte, and no whole byte, would be ambiguous.
BYTE_MARGIN = Decimal("1e-6")
#: What fifty digits make of a whole number that was divided and multiplied again.
ROUNDING = Decimal("1e-30")
NS = 1_000_000_000

MASK = (1 << 64) - 1


class AmbiguousError(Exception):
    """A decision hangs on the last digits; the case that led to it must be another."""


def real(value: float | str | Decimal) -> Decimal:
    """A parameter as it is written: 0.7 is seven tenths, not the nearest double."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def seconds(ns: int) -> Decimal:
    """A time in seconds."""
    return Decimal(ns) / NS


def floor(value: Decimal) -> int:
    """The whole part, or an error where double precision could see another one."""
    nearest = value.to_integral_value()
    distance = abs(value - nearest)
    if distance < ROUNDING:
        return int(nearest)
    if distance < BYTE_MARGIN:
        raise AmbiguousError(f"{value} is too close to a whole number")
    return int(value.to_integral_value(ROUND_FLOOR))


def less(a: Decimal, b: Decimal) -> bool:
    """True if a < b; an error if double precision could say otherwise.

    Equal numbers are told by name.
    """
    if a != b and abs(a - b) < MARGIN * max(abs(a), abs(b)):
        raise AmbiguousError(f"{a} is too close to {b}")
    return a < b


def digits(value: Decimal, places: int = 15) -> float:
    """For the vector: so many significant digits."""
    return float(f"{value:.{places}g}")


def _splitmix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Uniforms:
    """A stream of uniform numbers in [0, 1): xoshiro256++ (Blackman & Vigna 2019).

    Seeded through SplitMix64. Numbers are multiples of 2^-53, held as their whole multiple. The
    ones that were used are remembered, and are what a vector lists: nothing else of the generator
    matters to its reader.
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
        """The next number."""
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
        """True if the next number is below p; takes none if p is zero."""
        return p > 0 and less(self.next(), p)
