"""Queues with random arrivals: M/D/1, and M/G/1 with processor sharing.

M/D/1 has packets of one size: L. Kleinrock: Queueing systems, volume 1, 1975: the formula of
Pollaczek and Khinchine. With processor sharing all present transfers share the link equally: volume
2, 1976, § 4.4; for links with many short transfers J. Roberts, L. Massoulié: Bandwidth sharing and
admission control for elastic traffic, 1998.
"""

from __future__ import annotations


def md1_wait(load: float, service_s: float) -> float:
    """Mean waiting time before service: W = ρ·S / (2·(1 − ρ)).

    Raises:
        ValueError: There is no steady state.
    """
    if not 0 <= load < 1 or service_s <= 0:
        raise ValueError(f"no steady state at load {load}, service {service_s} s")
    return load * service_s / (2 * (1 - load))


def md1_queue(load: float) -> float:
    """Mean number of waiting packets, by Little's law: ρ² / (2·(1 − ρ)).

    Raises:
        ValueError: There is no steady state.
    """
    return load * md1_wait(load, 1.0)


def ps_response(size: float, capacity: float, load: float) -> float:
    """Mean response time of a transfer: T(x) = x / (C·(1 − ρ)), for any distribution of sizes.

    It is linear in the transfer's own size x, and depends on the others only by their load ρ
    (insensitivity). With the mean size it is the mean over all.

    Args:
        size: Size of the transfer, or the mean of all, in any unit.
        capacity: Capacity of the link, in that unit per second.
        load: Arrivals per second times mean size over the capacity, below 1.

    Returns:
        Seconds.

    Raises:
        ValueError: There is no steady state, or a number is out of range.
    """
    if not 0 <= load < 1 or capacity <= 0 or size < 0:
        raise ValueError(f"no steady state at load {load}, size {size}, capacity {capacity}")
    return size / (capacity * (1 - load))


def ps_transfers(load: float) -> float:
    """Mean number of transfers in progress, by Little's law: ρ / (1 − ρ).

    Raises:
        ValueError: There is no steady state.
    """
    return load * ps_response(1.0, 1.0, load)
