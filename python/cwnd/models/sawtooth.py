"""Utilisation of a link by one flow whose window is a regular sawtooth.

N. Khademi, G. Armitage, M. Welzl, S. Zander, G. Fairhurst, D. Ros: Alternative backoff: achieving
low latency and high throughput with ECN and AQM. IFIP Networking 2017, § II.
"""

from __future__ import annotations


def utilisation(beta: float, buffer: float) -> float:
    """Share of the link's rate that is used, in the fluid limit.

    Let the path without its queue hold one unit. The window grows in proportion to the round trips
    until it fills path and buffer, W = 1 + b, and falls to βW. Below one unit there is no queue: a
    round trip takes the same time whatever the window w, and carries w. Above, the link is busy.
    From βW to 1 that takes 1 − βW and carries (1 − β²W²)/2; from 1 to W it takes and carries (W² −
    1)/2. So U = ((1 − β²)W²/2) / (1 − βW + (W² − 1)/2) where βW < 1, else 1 (eq. 2).

    Args:
        beta: Fraction of the window after a loss.
        buffer: b, the buffer as a share of the bandwidth-delay product.

    Raises:
        ValueError: A number is out of range.
    """
    if not 0 < beta < 1 or buffer < 0:
        raise ValueError(f"no saw-tooth for β = {beta}, b = {buffer}")
    top = 1 + buffer
    bottom = beta * top
    if bottom >= 1:
        return 1.0
    carried = (top * top - bottom * bottom) / 2
    return carried / (1 - bottom + (top * top - 1) / 2)


def smallest_full_buffer(beta: float) -> float:
    """Smallest buffer in bandwidth-delay products for U = 1: 1/β − 1 (eq. 1).

    Raises:
        ValueError: β is not between 0 and 1.
    """
    if not 0 < beta < 1:
        raise ValueError(f"no saw-tooth for β = {beta}")
    return 1 / beta - 1
