"""Mean windows, rates and utilisation of a TCP flow.

M. Mathis, J. Semke, J. Mahdavi, T. Ott: The macroscopic behavior of the TCP congestion avoidance
algorithm. ACM SIGCOMM CCR 27(3), 1997 (`mathis_window`, `mathis_rate`).

J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP throughput: a simple model and its
empirical validation. ACM SIGCOMM 1998: Reno with timeouts (`padhye_…`).

L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert: CUBIC for fast and long-distance networks. RFC 9438, 2023
(`cubic_window`, `reno_friendly_window`, `response_window`).

N. Khademi, G. Armitage, M. Welzl, S. Zander, G. Fairhurst, D. Ros: Alternative backoff: achieving
low latency and high throughput with ECN and AQM. IFIP Networking 2017, § II: one flow whose window
is a regular sawtooth (`utilisation`, `smallest_full_buffer`).

Numbers of sections, equations and tables are those of these papers.
"""

from __future__ import annotations

import math


def cubic_window(p: float, rtt_s: float, c: float = 0.4, beta: float = 0.7) -> float:
    """Mean window by the cubic function alone: RFC 9438 § 5.1, eq. 5.

    ⁴√(C·(3 + β) / (4·(1 − β))) · RTT^(3/4) / p^(3/4), for one loss in every 1/p packets. With β =
    0.7 (eq. 6): ⁴√(C·3.7/1.2) · RTT^(3/4) / p^(3/4).

    Raises:
        ValueError: p or β is not between 0 and 1.
    """
    _check_cubic(p, beta)
    return math.pow(c * (3 + beta) / (4 * (1 - beta)), 0.25) * math.pow(rtt_s / p, 0.75)


def reno_friendly_window(p: float, beta: float = 0.7, alpha: float | None = None) -> float:
    """Mean window of additive increase α, multiplicative decrease β: RFC 9438 § 4.3, eq. 3.

    √(α·(1 + β) / (2·(1 − β)·p)). The default is CUBIC's α = 3·(1 − β)/(1 + β), which gives Reno's
    mean window √(3/(2p)).

    Raises:
        ValueError: p or β is not between 0 and 1.
    """
    _check_cubic(p, beta)
    slope = 3 * (1 - beta) / (1 + beta) if alpha is None else alpha
    return math.sqrt(slope * (1 + beta) / (2 * (1 - beta) * p))


def response_window(p: float, rtt_s: float, c: float = 0.4, beta: float = 0.7) -> float:
    """Mean window of CUBIC: the larger of the two, by RFC 9438 § 4.3 (Reno-friendly region).

    Raises:
        ValueError: p or β is not between 0 and 1.
    """
    return max(cubic_window(p, rtt_s, c, beta), reno_friendly_window(p, beta))


def _check_cubic(p: float, beta: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a loss probability lies between 0 and 1, not at {p}")
    if not 0 < beta < 1:
        raise ValueError(f"a decrease leaves between nothing and all, not {beta}")


#: C of Mathis et al., eq. 3, for one loss in every 1/p packets and an ACK for each packet: √(3/2).
MATHIS_PERIODIC = math.sqrt(3 / 2)
#: C of Mathis et al., table 1, for independent losses and an ACK for each packet.
MATHIS_RANDOM = 1.31


def mathis_window(p: float, c: float = MATHIS_PERIODIC) -> float:
    """Packets per round trip, C/√p (Mathis et al., eq. 3 over MSS/RTT).

    With one ACK for every b packets a window that grows by ACKs grows 1/b as fast, so that C is
    smaller by √b: table 1 has 0.87 for periodic and 0.93 for random losses at b = 2.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a loss probability lies between 0 and 1, not at {p}")
    return c / math.sqrt(p)


def mathis_rate(p: float, rtt_s: float, mss_bytes: float, c: float = MATHIS_PERIODIC) -> float:
    """Bytes per second: BW = MSS/RTT · C/√p (Mathis et al., eq. 3).

    Raises:
        ValueError: p is not between 0 and 1.
    """
    return mss_bytes / rtt_s * mathis_window(p, c)


def padhye_window(p: float, b: float = 1.0) -> float:
    """Mean window at the end of a period without loss, E[W] (Padhye et al., eq. 13).

    `b` is the number of packets per ACK.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    _check_loss(p)
    k = (2 + b) / (3 * b)
    return k + math.sqrt(8 * (1 - p) / (3 * b * p) + k * k)


def padhye_timeout_share(p: float, window: float) -> float:
    """Share of the loss indications that are timeouts, Q̂(w) (Padhye et al., eq. 24).

    Raises:
        ValueError: p is not between 0 and 1.
    """
    _check_loss(p)
    if window <= 3:  # noqa: PLR2004 - fewer than three duplicate ACKs can follow
        return 1.0
    q = 1 - p
    some = (1 - q**3) * (1 + q**3 * (1 - math.pow(q, window - 3))) / (1 - math.pow(q, window))
    return min(1.0, some)


def padhye_throughput(
    p: float, rtt_s: float, timeout_s: float, b: float = 1.0, max_window: float = math.inf
) -> float:
    """Packets sent per second, B(p) of the full model (Padhye et al., eq. 32).

    Args:
        p: Loss indications per packet sent.
        rtt_s: Round-trip time, s.
        timeout_s: T0, the timeout before any backoff, s; it doubles up to 64 T0.
        b: Packets per ACK.
        max_window: W_m, the receiver's window in packets.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    window = padhye_window(p, b)
    # f(p), eq. 29: sums the backoffs 1, 2, 4, …, 64, 64, …
    backoff = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    if window < max_window:
        top, rounds = window, b / 2 * window + 1
    else:
        top, rounds = max_window, b / 8 * max_window + (1 - p) / (p * max_window) + 2
    timeouts = padhye_timeout_share(p, top)
    packets = (1 - p) / p + top + timeouts / (1 - p)
    return packets / (rtt_s * rounds + timeouts * timeout_s * backoff / (1 - p))


def _check_loss(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a loss probability lies between 0 and 1, not at {p}")


def utilisation(beta: float, buffer: float) -> float:
    """Share of the link's rate that one flow uses, in the fluid limit (Khademi et al., § II).

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
    """Smallest buffer in bandwidth-delay products for U = 1: 1/β − 1 (Khademi et al., eq. 1).

    Raises:
        ValueError: β is not between 0 and 1.
    """
    if not 0 < beta < 1:
        raise ValueError(f"no saw-tooth for β = {beta}")
    return 1 / beta - 1
