"""BMCC's analysis: its window from an idle link to fairness, and the detection of overload.

I. A. Qazi, T. Znati, L. L. H. Andrew: Congestion control using efficient explicit feedback, INFOCOM
2009. Windows are in packets. `bdp` is the paper's k, the packets that the link carries in a round
trip. The round trip equals t_p, the interval over which routers measure their load factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: § II-D: u, the largest load factor that thresholds convey.
OVERLOAD = 1.2
#: § II-D: η, at which multiplicative increase ends, η₀, the smallest load factor conveyed, and the
#: step size κ₂.
ETA, ETA_0, KAPPA_2 = 0.75, 0.15, 0.35
#: Load factor above which VCP increases additively, and its growth per round trip below (§ IV-B).
VCP_HIGH, VCP_GROWTH = 0.8, 1.0625
#: Decrease of β below which it counts as constant, since its integral divides by the slope.
_LEVEL = 1e-12


@dataclass(frozen=True)
class Decrease:
    """Fraction of its window that a flow keeps at a load factor above 1 (eq. 6, § II-D).

    Raises:
        ValueError: The parameters are no decrease.
    """

    #: β at a load factor of 1.
    most: float = 0.875
    #: β at load factors from u on.
    least: float = 0.65
    #: u.
    overload: float = OVERLOAD

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most < 1 or self.overload <= 1:
            raise ValueError(
                f"no decrease from {self.most} at 1 to {self.least} at {self.overload}"
            )

    @property
    def slope(self) -> float:
        """Decrease of β per unit of load factor."""
        return (self.most - self.least) / (self.overload - 1)


def overload_growth(flows: int, bdp: float) -> float:
    """F of eq. 10: the first load factor above 1 is uniform in (1, 1 + F), with F = 2N/k.

    Raises:
        ValueError: A number is not positive.
    """
    _positive(flows=flows, bdp=bdp)
    return 2 * flows / bdp


def mean_beta(
    flows: int,
    bdp: float,
    decrease: Decrease = Decrease(),
) -> float:
    """E[β(f)] at the end of an epoch, from eq. 6 and 10.

    Up to F = u - 1 it is β_max - N·Δβ/(k·(u - 1)); beyond, load factors above u count with β_min,
    where the paper gives β_min alone.

    Raises:
        ValueError: A number is out of range.
    """
    growth, bent = _bend(flows, bdp, decrease)
    linear = decrease.most - decrease.slope * bent / 2
    return (bent * linear + (growth - bent) * decrease.least) / growth


def epoch_rtts(
    flows: int,
    bdp: float,
    alpha: float = 1.0,
    decrease: Decrease = Decrease(),
) -> float:
    """E[d_e]: round trips from one decrease to the next, k·(1 - E[β])/(N·α) (§ IV-A).

    Raises:
        ValueError: A number is out of range.
    """
    _positive(alpha=alpha)
    return bdp * (1 - mean_beta(flows, bdp, decrease)) / (flows * alpha)


def epochs_to_fairness(
    flows: int,
    bdp: float,
    unfairness: float,
    decrease: Decrease = Decrease(),
) -> float:
    """E[m] of eq. 8: decreases until a new flow lacks `unfairness` (δ) of its share, or less.

    log(1/δ)/E[log(1/β)]: each decrease shrinks the difference of two windows by β (eq. 7).

    Raises:
        ValueError: A number is out of range.
    """
    if not 0 < unfairness < 1:
        raise ValueError(f"the part that lacks is between 0 and 1, not {unfairness}")
    growth, bent = _bend(flows, bdp, decrease)
    most, slope = decrease.most, decrease.slope
    last = most - slope * bent
    if slope * bent < _LEVEL:
        within = -math.log(most) * bent
    else:
        # The integral of -log(β_max - slope·x) from 0 to `bent`.
        within = (last * (math.log(last) - 1) - most * (math.log(most) - 1)) / slope
    mean_log = (within - (growth - bent) * math.log(decrease.least)) / growth
    return math.log(1 / unfairness) / mean_log


def fairness_rtts(
    flows: int,
    bdp: float,
    unfairness: float,
    alpha: float = 1.0,
    decrease: Decrease = Decrease(),
) -> float:
    """Round trips until then (eq. 9, r): E[m]·E[d_e], an upper bound that grows with k/N.

    Raises:
        ValueError: A number is out of range.
    """
    epochs = epochs_to_fairness(flows, bdp, unfairness, decrease)
    return epochs * epoch_rtts(flows, bdp, alpha, decrease)


def overload_unseen(packets: int, growth: float, overload: float = OVERLOAD) -> float:
    """P(R > d) of eq. 13: none of d packets has conveyed that the load factor exceeds 1.

    (1 - (1 - D)^(d + 1))/(D·(d + 1)) with D = F/(2·(u - 1)): half of the thresholds lie in (1, u),
    and the load factor is uniform in (1, 1 + F).

    Args:
        packets: d.
        growth: F, from `overload_growth`; at most 2·(u - 1).
        overload: u.

    Raises:
        ValueError: A number is out of range.
    """
    _positive(growth=growth)
    reach = growth / 2 / (overload - 1)
    if packets < 0 or not 0 < reach <= 1:
        raise ValueError(f"no chance that {packets} packets miss a load factor up to 1 + {growth}")
    return (1 - (1 - reach) ** (packets + 1)) / (reach * (packets + 1))


def packets_to_overload(packets: int, growth: float, overload: float = OVERLOAD) -> float:
    """Mean number of packets until one conveys overload, limited to `packets`; 0 below one.

    Without that limit the mean is infinite: the load factor may be arbitrarily little above 1. It
    is the sum of P(R > d) for all d below `packets` (§ V-A).

    Raises:
        ValueError: A number is out of range.
    """
    return sum(overload_unseen(d, growth, overload) for d in range(packets))


def start_up_window(
    rtts: float,
    bdp: float,
    *,
    eta: float = ETA,
    eta_0: float = ETA_0,
    kappa_2: float = KAPPA_2,
    alpha: float = 1.0,
) -> float:
    """Window of one flow on an idle link that started with one packet (eq. 11, 12).

    Until the load factor is η₀ it grows by ξ(η₀) = κ₂·(1 - η₀)/η₀ each round trip (about three
    times), then towards k as k·(1 - (1 - η₀)·e^(-κ₂·t)), from η·k on by α packets. With `eta` = 1
    it stays in the second phase, as new flows do until they first see overload (§ II-D).

    Raises:
        ValueError: A number is out of range, or k is below 1/η₀ packets.
    """
    _positive(bdp=bdp, kappa_2=kappa_2)
    if not 0 < eta_0 < eta <= 1 or rtts < 0 or eta_0 * bdp < 1:
        raise ValueError(f"no start-up to {eta_0} and {eta} of {bdp} packets in {rtts} round trips")
    growth = 1 + kappa_2 * (1 - eta_0) / eta_0
    first = math.log(eta_0 * bdp, growth)
    if rtts <= first:
        return float(growth**rtts)
    second = first + math.log((1 - eta_0) / (1 - eta)) / kappa_2 if eta < 1 else math.inf
    if rtts <= second:
        return bdp * (1 - (1 - eta_0) * math.exp(-kappa_2 * (rtts - first)))
    return eta * bdp + alpha * (rtts - second)


def vcp_start_up_window(
    rtts: float,
    bdp: float,
    growth: float = VCP_GROWTH,
    high: float = VCP_HIGH,
    alpha: float = 1.0,
) -> float:
    """Window of one VCP flow on an idle link: G^t up to 0.8·k, then + α per round trip (§ IV-B).

    Raises:
        ValueError: A number is out of range.
    """
    _positive(bdp=bdp)
    if growth <= 1 or rtts < 0:
        raise ValueError(f"no growth by {growth} in {rtts} round trips")
    end = math.log(high * bdp, growth)
    return float(growth ** min(rtts, end)) + alpha * max(rtts - end, 0.0)


def _bend(flows: int, bdp: float, decrease: Decrease) -> tuple[float, float]:
    """F of eq. 10, and the part of it over which β still decreases."""
    growth = overload_growth(flows, bdp)
    return growth, min(growth, decrease.overload - 1)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"{name} must be positive, not {value}")
