"""Lesson 4: flows of different round-trip times share a link."""

from __future__ import annotations

from cwnd.lessons.tasks import given, measured, require, right, value
from cwnd.running import Scenario

#: A near and a far flow over one buffer; five seeds differ in when the flows start.
scenario = Scenario(
    schema=2,
    name="fairness",
    run={"duration": "120 s", "warmup": "20 s"},
    dumbbell={"rate": "20 Mbit/s", "queue": "red"},
    flow={
        name: {"rtt": rtt, "controller": "newreno", "start": "uniform(0 s, 1 s)"}
        for name, rtt in (("near", "20 ms"), ("far", "80 ms"))
    },
    sweep={"repeat": 5},
)
_QUEUE, _FAR = "dumbbell.queue", "flow.far.rtt"


def check_jain(jain: object) -> None:
    """Checks a function of two goodputs, `a` and `b`: Jain's index of fairness."""
    for a, b in ((1.0, 1.0), (3.0, 1.0), (1.0, 0.0)):
        expected = (a + b) ** 2 / (2 * (a**2 + b**2))
        found = value(jain, "jain", a=a, b=b)
        require(
            abs(found - expected) < 1e-6,
            f"of {a:g} and {b:g} the index is {expected:g}, not your {found:g}",
        )
    right("1 if all get the same, 1/n if one gets everything")


def check_ratio(goodput_ratio: object) -> None:
    """Checks a function of `near_rtt` and `far_rtt` in s: goodput of near by that of far."""
    for far in (40, 80, 160):
        found = measured(scenario, {_FAR: f"{far} ms"})
        ratio = found["near"]["goodput_bit_s"] / found["far"]["goodput_bit_s"]
        expected = value(goodput_ratio, "goodput_ratio", near_rtt=0.02, far_rtt=far / 1e3)
        require(
            0.7 < expected / ratio < 1 / 0.7,
            f"at 20 and {far} ms the ratio is {ratio:.2f}, not your {expected:g} (within 30 %);"
            " both see the same loss rate p, and a window grows by a segment a round trip",
        )
    right("a flow's rate is in inverse proportion to its round-trip time")


def check_queue(queue: object) -> None:
    """Checks a queue over which both flows get almost the same: Jain's index of 0.97 or more."""
    given(queue, "the queue")
    found = measured(scenario, {_QUEUE: queue})["*"]
    require(found["jain"] >= 0.97, f"Jain's index is {found['jain']:.4f}, not at least 0.97")
    right(f"Jain's index is {found['jain']:.3f}; which part of it is the queue's work?")
