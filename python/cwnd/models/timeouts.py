"""Timeouts with exponential backoff and without it: the models of the TCP*(n) paper.

A. Mondal, A. Kuzmanovic: Removing exponential backoff from TCP. ACM SIGCOMM Computer
Communication Review 38(5), 2008; equation numbers are those of that paper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Consecutive expiries after which a timeout grows no more (footnote 5).
LAST_DOUBLING = 6


def backoff_multipliers(n: float, rounds: int = 7) -> list[int]:
    """Factors of the timeout in TCP*(n), round by round (Fig. 1 and footnote 5).

    Args:
        n: Consecutive expiries that leave the timeout unchanged: 0 is TCP, `math.inf` no backoff at
            all; so is 6, as nothing doubles at seven consecutive timeouts.
        rounds: Number of consecutive timeouts; Fig. 1 has seven.

    Returns:
        One whole number a round: 1, 2, 4, … for n = 0.

    Raises:
        ValueError: If n is negative or not a whole number, or `rounds` is negative.
    """
    if n != math.inf and (n < 0 or n != int(n)):
        raise ValueError(f"TCP*(n) has whole n from 0 on, or infinity, not {n}")
    if rounds < 0:
        raise ValueError(f"there are no {rounds} rounds")
    doublings = (max(0, min(expired, LAST_DOUBLING) - n) for expired in range(rounds))
    return [1 if d == 0 else 2 ** int(d) for d in doublings]


def timeout_loss(timeouts_s: Sequence[float], capacity_pkts_s: float) -> float:
    """Share of the packets lost if each flow sends one per timeout, p (eq. 1).

    Args:
        timeouts_s: RTO_i of each flow, s.
        capacity_pkts_s: C, packets per second.

    Returns:
        p, from 0 (all packets fit) to below 1.

    Raises:
        ValueError: If there is no flow, or a timeout or the capacity is not above 0.
    """
    offered = _offered(timeouts_s, capacity_pkts_s)
    return max(0.0, (offered - capacity_pkts_s) / offered)


def response_without_backoff(
    size_pkts: float, timeout_s: float, timeouts_s: Sequence[float], capacity_pkts_s: float
) -> float:
    """Mean response time of a flow that never backs off, r_i (eq. 2 and 3), s.

    Args:
        size_pkts: L_i, packets.
        timeout_s: RTO_i of this flow, s.
        timeouts_s: RTO of every flow at the bottleneck, this one included, s.
        capacity_pkts_s: C, packets per second.

    Raises:
        ValueError: As `timeout_loss`; and if the size or the timeout is not above 0.
    """
    _positive(size=size_pkts, timeout=timeout_s)
    return size_pkts * timeout_s / (1 - timeout_loss(timeouts_s, capacity_pkts_s))


def backoff_rounds(timeouts_s: Sequence[float], capacity_pkts_s: float) -> int:
    """Smallest k at which one packet per 2^k RTO from each flow fits the link (eq. 4 and 5).

    Raises:
        ValueError: As `timeout_loss`.
    """
    offered = _offered(timeouts_s, capacity_pkts_s)
    return max(0, math.ceil(math.log2(offered / capacity_pkts_s)))


def response_with_backoff(
    size_pkts: float, timeout_s: float, timeouts_s: Sequence[float], capacity_pkts_s: float
) -> float:
    """Mean response time of a flow that backs off until nothing is lost, r'_i (eq. 6), s.

    Never less than `response_without_backoff`: Theorem 2.1. Arguments and errors as there.
    """
    _positive(size=size_pkts, timeout=timeout_s)
    return size_pkts * timeout_s * 2.0 ** backoff_rounds(timeouts_s, capacity_pkts_s)


def dead_share(both: float, p1: float, p2: float) -> float:
    """Share of the upstream link that dead packets take, α (eq. 7).

    A packet is dead if it is served upstream and dropped downstream.

    Args:
        both: L0 / (L0 + L1), the share of the upstream load that crosses both bottlenecks.
        p1: Share of the packets that the upstream link drops.
        p2: Share that the downstream link drops.

    Raises:
        ValueError: If an argument is not between 0 and 1.
    """
    for name, value in (("both", both), ("p1", p1), ("p2", p2)):
        _share(name, value)
    return both * (1 - p1) * p2


def rejected_connections(p: float, syns: int) -> float:
    """Probability that a connection is given up because all its SYNs are lost, p^k (§ 4.1).

    Args:
        p: Probability that a packet is lost.
        syns: k, the number of SYNs until then: 3, or 5 in Fedora.

    Raises:
        ValueError: If p is not between 0 and 1, or no SYN is sent.
    """
    _share("p", p)
    if syns < 1:
        raise ValueError(f"a connection that sends {syns} SYNs does not begin")
    return float(p**syns)


def _offered(timeouts_s: Sequence[float], capacity_pkts_s: float) -> float:
    if not timeouts_s:
        raise ValueError("there is no flow at the bottleneck")
    _positive(capacity=capacity_pkts_s, timeout=min(timeouts_s))
    return math.fsum(1 / timeout for timeout in timeouts_s)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"the {name} must be above 0, not {value}")


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"`{name}` lies between 0 and 1, not at {value}")
