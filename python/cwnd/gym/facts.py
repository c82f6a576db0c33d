"""Facts that an agent observes of a step, and the default reward."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    #: Observation of an agent, or of several ones: its last axis has the facts.
    Observation: TypeAlias = NDArray[np.float32]
    #: Reward of a step by its observation; for several observations an array.
    Reward: TypeAlias = Callable[[Observation], "float | NDArray[np.floating]"]


class Fact(IntEnum):
    """Index of a fact in the last axis of an observation.

    Facts of a step cover all connections of the agent's flow group. Those that are measured at ACKs
    keep their value in a step without ACKs.
    """

    #: Payload that ACKs reported as delivered, Mbit/s.
    THROUGHPUT = 0
    #: Share of lost bytes among those that ACKs reported as delivered or lost, 0 to 1.
    LOSS = 1
    #: Share of delivered bytes that ACKs report as marked, 0 to 1: by the receiver's count of CE
    #: (`echo = "ce-count"`), or else the bytes of ACKs with ECE.
    MARKS = 2
    #: Mean round-trip time, seconds; 0 before the first sample.
    RTT = 3
    #: Least round-trip time since the start of the episode, seconds; 0 before the first sample.
    MIN_RTT = 4
    #: Mean of the data in flight at ACKs, segments of one connection.
    IN_FLIGHT = 5
    #: Window at the end of the step, segments of one connection.
    WINDOW = 6
    #: Length of the step, seconds.
    DURATION = 7


#: Throughput that stands for none in a logarithm, Mbit/s.
_LEAST_MBIT_S = 0.01
#: Round-trip time that stands for none yet, seconds.
_LEAST_RTT_S = 1e-6
#: Weight of the share of lost bytes.
_LOSS_WEIGHT = 10.0


def power(observation: Observation) -> float | NDArray[np.floating]:
    """Default reward: ln(throughput in Mbit/s) - ln(RTT / least RTT) - 10 · share of lost bytes.

    The first two terms are the logarithm of throughput over delay. Twice the rate of a link adds a
    constant, so that links of all rates count alike.
    """
    throughput = np.maximum(observation[..., Fact.THROUGHPUT], _LEAST_MBIT_S)
    rtt = np.maximum(observation[..., Fact.RTT], _LEAST_RTT_S)
    min_rtt = np.maximum(observation[..., Fact.MIN_RTT], _LEAST_RTT_S)
    loss = observation[..., Fact.LOSS]
    reward: NDArray[np.floating] = np.log(throughput * min_rtt / rtt) - _LOSS_WEIGHT * loss
    return reward
