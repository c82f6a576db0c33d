"""Lesson 2: a buffer that is too large, and queues that are managed."""

from __future__ import annotations

from typing import Any

from cwnd.lessons.tasks import measured, number, require, right, value
from cwnd.running import Scenario

#: A download beside a call of 64 kbit/s, behind the buffer of a home router.
scenario = Scenario(
    schema=2,
    name="home",
    run={"duration": "40 s", "warmup": "10 s"},
    dumbbell={"rate": "20 Mbit/s", "queue": {"kind": "fifo", "limit": "1000 packets"}},
    flow={
        "download": {"rtt": "40 ms", "controller": "cubic"},
        "call": {
            "rtt": "40 ms",
            "workload": {"kind": "udp", "rate": "64 kbit/s", "size": "200 B"},
        },
    },
)
_QUEUE = "dumbbell.queue"


def _delay_and_goodput(queue: Any, **more: Any) -> tuple[float, float]:
    """90th percentile of the queueing delay in ms, and goodput of the download in Mbit/s."""
    found = measured(scenario, {_QUEUE: queue, **more})
    return found["*"]["qdelay_p90_us"] / 1e3, found["download"]["goodput_bit_s"] / 1e6


def check_full_buffer(wait_ms: object) -> None:
    """Checks a function of `packets` and `rate` (bit/s): the wait in a full buffer, in ms."""
    for packets in (200, 500, 1000):
        expected = value(wait_ms, "wait_ms", packets=packets, rate=20e6)
        delay, _ = _delay_and_goodput({"kind": "fifo", "limit": f"{packets} packets"})
        require(
            abs(expected / delay - 1) < 0.1,
            f"a call behind {packets} packets of 1500 B waits {delay:.0f} ms, not your"
            f" {expected:g} (within 10 %)",
        )
    right("the buffer is full most of the time, and the call waits for all of it")


def check_target(target_ms: object) -> None:
    """Checks CoDel's target: at most 8 ms of waiting, and at least 18.5 Mbit/s."""
    target = number(target_ms, "the target")
    require(target > 0, "a target is longer than zero")
    delay, goodput = _delay_and_goodput({"kind": "codel", "target": f"{target:.6f} ms"})
    require(
        delay <= 8, f"with {target:g} ms the call waits {delay:.2f} ms (90 %), not at most 8 ms"
    )
    require(
        goodput >= 18.5,
        f"with {target:g} ms the download gets {goodput:.2f} Mbit/s, not at least 18.5 Mbit/s",
    )
    large, _ = _delay_and_goodput({"kind": "fifo", "limit": "1000 packets"})
    right(f"{delay:.1f} ms and {goodput:.2f} Mbit/s; with the large buffer {large:.0f} ms")


def check_price(share: object) -> None:
    """Checks the part of its goodput that CoDel costs the download at an RTT of 200 ms."""
    answer = number(share, "the share")
    far = {"flow.download.rtt": "200 ms"}
    (_, managed), (_, full) = (
        _delay_and_goodput(queue, **far) for queue in ("codel", {"kind": "fifo", "limit": "1 BDP"})
    )
    lost = 1 - managed / full
    require(
        abs(answer - lost) < 0.02,
        f"{answer:g} is not within 0.02 of the share; compare the goodput over CoDel with that over"
        " a FIFO of 1 BDP, both at 200 ms",
    )
    right(f"{lost:.0%} of the goodput; the next lesson shows how to get some of it back")
