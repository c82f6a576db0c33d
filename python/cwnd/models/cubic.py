"""Mean windows of CUBIC in the steady state.

L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert: CUBIC for fast and long-distance networks. RFC 9438,
2023.
"""

from __future__ import annotations

import math


def cubic_window(p: float, rtt_s: float, c: float = 0.4, beta: float = 0.7) -> float:
    """Mean window by the cubic function alone: § 5.1, eq. 5.

    ⁴√(C·(3 + β) / (4·(1 − β))) · RTT^(3/4) / p^(3/4), for one loss in every 1/p packets. With β =
    0.7 (eq. 6): ⁴√(C·3.7/1.2) · RTT^(3/4) / p^(3/4).

    Raises:
        ValueError: p or β is not between 0 and 1.
    """
    _check(p, beta)
    return math.pow(c * (3 + beta) / (4 * (1 - beta)), 0.25) * math.pow(rtt_s / p, 0.75)


def reno_friendly_window(p: float, beta: float = 0.7, alpha: float | None = None) -> float:
    """Mean window of additive increase α, multiplicative decrease β: § 4.3, eq. 3.

    √(α·(1 + β) / (2·(1 − β)·p)). The default is CUBIC's α = 3·(1 − β)/(1 + β), which gives Reno's
    mean window √(3/(2p)).

    Raises:
        ValueError: p or β is not between 0 and 1.
    """
    _check(p, beta)
    slope = 3 * (1 - beta) / (1 + beta) if alpha is None else alpha
    return math.sqrt(slope * (1 + beta) / (2 * (1 - beta) * p))


def response_window(p: float, rtt_s: float, c: float = 0.4, beta: float = 0.7) -> float:
    """Mean window of CUBIC: the larger of the two, by § 4.3 (Reno-friendly region).

    Raises:
        ValueError: p or β is not between 0 and 1.
    """
    return max(cubic_window(p, rtt_s, c, beta), reno_friendly_window(p, beta))


def _check(p: float, beta: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a loss probability lies between 0 and 1, not at {p}")
    if not 0 < beta < 1:
        raise ValueError(f"a decrease leaves between nothing and all, not {beta}")
