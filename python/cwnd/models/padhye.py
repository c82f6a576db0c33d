"""Steady-state throughput of TCP Reno with timeouts.

J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP throughput: a simple model and
its empirical validation. ACM SIGCOMM 1998; equation numbers are those of that paper.
"""

from __future__ import annotations

import math


def padhye_window(p: float, b: float = 1.0) -> float:
    """Mean window at the end of a period without loss, E[W] (eq. 13), b packets per ACK.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    _check(p)
    k = (2 + b) / (3 * b)
    return k + math.sqrt(8 * (1 - p) / (3 * b * p) + k * k)


def padhye_timeout_share(p: float, window: float) -> float:
    """Share of the loss indications that are timeouts, Q̂(w) (eq. 24).

    Raises:
        ValueError: p is not between 0 and 1.
    """
    _check(p)
    if window <= 3:  # noqa: PLR2004 - fewer than three duplicate ACKs can follow
        return 1.0
    q = 1 - p
    some = (1 - q**3) * (1 + q**3 * (1 - math.pow(q, window - 3))) / (1 - math.pow(q, window))
    return min(1.0, some)


def padhye_throughput(
    p: float, rtt_s: float, timeout_s: float, b: float = 1.0, max_window: float = math.inf
) -> float:
    """Packets sent per second, B(p) of the full model (eq. 32).

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


def _check(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a loss probability lies between 0 and 1, not at {p}")
