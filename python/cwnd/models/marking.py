"""Errors of a receiver's estimate of a number in (0, 1) that routers convey by single-bit marks.

Mean square errors of one link's value after n packets, each marked or not: L. L. H. Andrew, S. V.
Hanly, S. Chan, T. Cui: Adaptive deterministic packet marking, IEEE Communications Letters 10(11),
2006; the other schemes by the papers that each function cites.
"""

from __future__ import annotations

import math

import numpy as np


def adpm_mse(gap: float, packets: int, density: float = 1.0) -> float:
    """Mean square error of ADPM for a constant value: each packet compares it with a threshold.

    The estimate is initially `gap` away and moves to each threshold between it and the value. The
    remaining error exceeds x if none of n thresholds fell into an interval of length x: (1 -
    density·x)ⁿ. The mean of the square is the integral of 2x times that from 0 to `gap`, about
    2/(density·n)².

    Args:
        gap: Distance between the first estimate and the value.
        packets: n.
        density: Density of the thresholds there: 1 if they are uniform in (0, 1). BMCC has 1/2 of
            them in (1, 1.2), which is 2.5 (Qazi, Andrew, Znati: § II-B).

    Raises:
        ValueError: A number is out of range.
    """
    if gap < 0 or packets < 0 or density <= 0 or gap * density > 1:
        raise ValueError(f"no {packets} thresholds of density {density} within {gap}")
    missed = 1 - density * gap
    first = (1 - missed ** (packets + 1)) / (packets + 1)
    second = (1 - missed ** (packets + 2)) / (packets + 2)
    return 2 * (first - second) / density**2


def ram_mse(value: float, packets: int) -> float:
    """Mean square error of random additive marking: f·(1 - f)/n for the share of marked packets.

    M. Adler, J.-Y. Cai, J. K. Shapiro, D. Towsley: Estimation of congestion price using
    probabilistic packet marking, INFOCOM 2003. Over one link a packet is marked with probability f.

    Raises:
        ValueError: A number is out of range.
    """
    _check(value, packets)
    return value * (1 - value) / packets


def rem_mse(value: float, packets: int, phi: float = 10.0) -> float:
    """Mean square error of random exponential marking, with mark probability 1 - φ^(-f).

    S. Athuraliya, S. Low, V. Li, Q. Yin: REM: Active queue management, IEEE Network 15(3), 2001.
    The estimate is -log_φ of the share of unmarked packets. It is biased, and infinite if all are
    marked; here it is limited to 1.

    Args:
        value: f.
        packets: n.
        phi: φ, above 1; its best value depends on the distribution of f.

    Raises:
        ValueError: A number is out of range.
    """
    _check(value, packets)
    if phi <= 1:
        raise ValueError(f"φ must be above 1, not {phi}")
    unmarked = np.arange(packets + 1)
    pass_by = phi**-value
    if pass_by == 1:
        return 0.0
    # The number of unmarked packets is binomial.
    log_ways = np.array(
        [
            math.lgamma(packets + 1) - math.lgamma(k + 1) - math.lgamma(packets - k + 1)
            for k in unmarked
        ]
    )
    chances = np.exp(
        log_ways + unmarked * math.log(pass_by) + (packets - unmarked) * math.log1p(-pass_by)
    )
    with np.errstate(divide="ignore"):
        estimates = np.minimum(-np.log(unmarked / packets) / math.log(phi), 1.0)
    return float(chances @ (estimates - value) ** 2)


def static_mse(packets: int, bits: int) -> float:
    """Mean square error of static deterministic marking, over values uniform in (0, 1).

    R. W. Thommes, M. J. Coates: Deterministic packet marking for time-varying congestion price
    estimation, IEEE/ACM Transactions on Networking 14(3), 2006. The value is truncated to `bits`
    bits; the IP identification selects the bit that a packet carries. A bit that no packet has
    carried yet counts as 1/2. All bits are carried with equal probability here.

    Raises:
        ValueError: A number is out of range.
    """
    if packets < 0 or bits < 1:
        raise ValueError(f"no {bits} bits in {packets} packets")
    missing = (1 - 1 / bits) ** packets
    unknown = sum(4.0**-i / 4 for i in range(1, bits + 1))
    return 4.0**-bits / 12 + unknown * missing


def _check(value: float, packets: int) -> None:
    if not 0 <= value <= 1 or packets < 1:
        raise ValueError(f"no value {value} in {packets} packets: it is from 0 to 1, of 1 or more")
