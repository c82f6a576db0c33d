"""Closed forms of throughput, utilisation, waiting time and marking, each with its paper.

Rates are in packets (or bytes) per second, windows in packets, times in seconds; `p` is the share
of the packets that are lost.
"""

from __future__ import annotations

from cwnd.models.marking import adpm_mse, ram_mse, rem_mse, static_mse
from cwnd.models.queueing import md1_queue, md1_wait, ps_response, ps_transfers
from cwnd.models.tcp import (
    MATHIS_PERIODIC,
    MATHIS_RANDOM,
    cubic_window,
    mathis_rate,
    mathis_window,
    padhye_throughput,
    padhye_timeout_share,
    padhye_window,
    reno_friendly_window,
    response_window,
    smallest_full_buffer,
    utilisation,
)
from cwnd.models.timeouts import (
    backoff_multipliers,
    backoff_rounds,
    dead_share,
    rejected_connections,
    response_with_backoff,
    response_without_backoff,
    timeout_loss,
)

__all__ = [
    "MATHIS_PERIODIC",
    "MATHIS_RANDOM",
    "adpm_mse",
    "backoff_multipliers",
    "backoff_rounds",
    "cubic_window",
    "dead_share",
    "mathis_rate",
    "mathis_window",
    "md1_queue",
    "md1_wait",
    "padhye_throughput",
    "padhye_timeout_share",
    "padhye_window",
    "ps_response",
    "ps_transfers",
    "ram_mse",
    "rejected_connections",
    "rem_mse",
    "reno_friendly_window",
    "response_window",
    "response_with_backoff",
    "response_without_backoff",
    "smallest_full_buffer",
    "static_mse",
    "timeout_loss",
    "utilisation",
]
