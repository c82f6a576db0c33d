"""Rows that do not hold, by the reason that the page gives, and experiments on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cwnd.studies.peers.recorded.scenarios import TCP_LINUX_PARTS

if TYPE_CHECKING:
    from cwnd.studies.peers.recorded.ours import Overrides


@dataclass(frozen=True)
class Explanation:
    """Rows that differ for one reason."""

    rows: tuple[str, ...]
    #: Changes to the scenario of the first row.
    experiments: tuple[Overrides, ...]


CONTROLLER = "flow.main.controller"
ENDPOINT = "flow.main.endpoint"
STACK = "flow.main.stack.with"
DUMBBELL = "dumbbell.queue"
BOTTLENECK = "link.bottleneck.queue"


def _each(count: int, key: str, value: Any) -> Overrides:
    """A change to each of the flows, which have a group each."""
    return tuple((f"flow.from{i}.{key}", value) for i in range(count))


#: Explanations by the names of their tables on the page.
EXPLANATIONS = {
    "codel": Explanation(
        ("ns-3 50",),
        (
            (("flow.main.count", 1),),
            (("link.bottleneck.delay", "50 ms"),),
            (("flow.main.spacing", "50 ms"),),
        ),
    ),
    "pie": Explanation(
        ("ns-3 40", "ns-3 41"),
        (
            ((f"{ENDPOINT}.pipe_rule", "rfc6675"),),
            ((f"{BOTTLENECK}.burst_renewal", "calm"),),
        ),
    ),
    "slow-starts": Explanation(
        ("ns-3 72", "ns-3 36", "ns-3 66"),
        (
            ((f"{CONTROLLER}.slow_start", "hystart"),),
            (("flow.main.spacing", "90 ms"),),
            (("flow.main.spacing", "50 ms"),),
        ),
    ),
    "median": Explanation(
        ("ns-2 2", "ns-2 3", "ns-2 4"),
        (((f"{DUMBBELL}.idle", "emptied"),),),
    ),
    "sack1": Explanation(
        ("ns-2 9", "ns-2 10", "ns-2 11"),
        (
            ((f"{ENDPOINT}.pipe_rule", "rfc6675"),),
            ((f"{DUMBBELL}.idle", "emptied"),),
        ),
    ),
    "long-red": Explanation(
        ("ns-2 78", "ns-2 79", "ns-2 80"),
        ((("sweep.repeat", 40),),),
    ),
    "short-red": Explanation(
        ("ns-2 60", "ns-2 61", "ns-2 62"),
        (
            ((STACK, [part for part in TCP_LINUX_PARTS if part != "lost-retransmissions"]),),
            (
                (STACK, [part for part in TCP_LINUX_PARTS if part != "fack"]),
                (f"{ENDPOINT}.dup_thresh", 3),
            ),
        ),
    ),
    "vegas-median": Explanation(
        tuple(f"ns-2 Vegas {n}" for n in (1, 3, 19, 20, 21, 23, 24, 28, 29, 30)),
        (_each(2, "endpoint.initial_window", 30), _each(2, "controller.exit", "stay")),
    ),
    "vegas-linux": Explanation(
        tuple(f"ns-2 Vegas {n}" for n in (38, 10, 11, 12, 16, 17, 18, 34, 35, 36, 39, 43, 44, 45)),
        (_each(2, "controller.gamma", 0.5), _each(2, "controller.base_from_handshake", False)),
    ),
    "vegas-ten": Explanation(
        tuple(f"ns-2 Vegas {n}" for n in (47, 32, 41, 42, 48)),
        tuple(_each(10, "endpoint.initial_window", n) for n in (1, 3, 4)),
    ),
    "linux-20ms": Explanation(
        ("Linux 1", "Linux 48"),
        (
            (("flow.main.rtt", "20.2 ms"),),
            (("flow.main.rtt", "20.4 ms"),),
        ),
    ),
    "linux-stall": Explanation(
        ("Linux 9",),
        (
            (("dumbbell.jitter", "200 us"),),
            (("dumbbell.jitter", "1 ms"),),
        ),
    ),
}
