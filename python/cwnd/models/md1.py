"""A queue with random arrivals and packets of one size: M/D/1.

L. Kleinrock: Queueing systems, volume 1, 1975, § 5.6: the formula of Pollaczek and Khinchine.
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
