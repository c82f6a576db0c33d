"""Mean window and rate by the inverse square root of the loss probability.

M. Mathis, J. Semke, J. Mahdavi, T. Ott: The macroscopic behavior of the TCP congestion avoidance
algorithm. ACM SIGCOMM CCR 27(3), 1997.
"""

from __future__ import annotations

import math

#: C of eq. 3 for one loss in every 1/p packets and an ACK for each packet: √(3/2).
MATHIS_PERIODIC = math.sqrt(3 / 2)
#: C of table 1 for independent losses and an ACK for each packet.
MATHIS_RANDOM = 1.31


def mathis_window(p: float, c: float = MATHIS_PERIODIC) -> float:
    """Packets per round trip, C/√p (eq. 3 over MSS/RTT).

    With one ACK for every b packets a window that grows by ACKs grows 1/b as fast, so that C is
    smaller by √b: table 1 has 0.87 for periodic and 0.93 for random losses at b = 2.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a loss probability lies between 0 and 1, not at {p}")
    return c / math.sqrt(p)


def mathis_rate(p: float, rtt_s: float, mss_bytes: float, c: float = MATHIS_PERIODIC) -> float:
    """Bytes per second: BW = MSS/RTT · C/√p (eq. 3).

    Raises:
        ValueError: p is not between 0 and 1.
    """
    return mss_bytes / rtt_s * mathis_window(p, c)
