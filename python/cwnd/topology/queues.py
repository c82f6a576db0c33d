"""Queues whose settings follow from the rate of their link."""

from __future__ import annotations

import math

#: Packet size in bytes that converts a rate into packets per second: ns-2's `mean_pktsize_`.
MEAN_PACKET = 500
#: Minimum lower threshold, in packets: ns-2, `initialize_params` of red.cc.
_MIN_THRESHOLD_PACKETS = 5.0
#: Minimum round-trip time in seconds that ns-2 assumes for the link.
_RTT_S = 0.1


def red(rate_bit_s: float, delay_s: float, target_s: float = 0.005) -> str:
    """Computes RED's settings for a target delay, like the automatic configuration of ns-2.

    With `c` packets of 500 B per second (Floyd, Gummadi & Shenker 2001, section 5; ns-2.35,
    red.cc): `min_th = max(5, c · target / 2)` packets, `max_th = 3 min_th`, and `w_q = 1 - exp(-1 /
    (10 · RTT · c))` with an RTT of 100 ms, or three times the link's delay plus 1/c if longer.
    `max_p` stays 0.1, without adaptation. The limit is four times `max_th`. Packets are dropped,
    not marked.

    Args:
        rate_bit_s: Rate of the link, in bit/s.
        delay_s: Propagation delay of the link, in seconds.
        target_s: Mean queueing delay in the middle of the thresholds, in seconds.

    Returns:
        The value of `queue` in a scenario file.
    """
    per_s = rate_bit_s / (8 * MEAN_PACKET)
    low = max(_MIN_THRESHOLD_PACKETS, per_s * target_s / 2)
    rtt = max(_RTT_S, 3 * (delay_s + 1 / per_s))
    weight = -math.expm1(-1 / (10 * rtt * per_s))
    low_bytes = round(low * MEAN_PACKET)
    sizes = f'min_th = "{low_bytes} B", max_th = "{3 * low_bytes} B", limit = "{12 * low_bytes} B"'
    rest = 'ecn = false, mark_p = "none"'
    return f'{{ kind = "red", preset = "ns-2", {sizes}, w_q = {weight!r}, {rest} }}'
