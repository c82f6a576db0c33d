"""Lesson 6: a controller of one's own."""

from __future__ import annotations

import inspect
from typing import Any

from cwnd.lessons.tasks import measured, require, right
from cwnd.running import Scenario

#: One flow over a large buffer, in which the window is reduced seldom.
scenario = Scenario(
    schema=2,
    name="own",
    run={"duration": "40 s", "warmup": "10 s"},
    dumbbell={"rate": "20 Mbit/s", "queue": {"kind": "fifo", "limit": "300 packets"}},
    flow={"main": {"rtt": "40 ms", "controller": "mine"}},
)


#: A buffer in which the window is reduced often.
_SHALLOW = {"dumbbell.queue.limit": "1 BDP", "run.duration": "310 s"}


def _of(controller: object, **changes: Any) -> dict[str, float]:
    if not inspect.isclass(controller):
        require(False, f"the answer is to be a class, not {controller!r}")
    return measured(scenario, changes, controllers={"mine": controller})["*"]


def check_aimd(controller: object) -> None:
    """Checks a class that does what NewReno does: goodput within 2 %, reductions within 5 %."""
    own = _of(controller, **_SHALLOW)
    built_in = measured(scenario, {**_SHALLOW, "flow.main.controller": "newreno"})["*"]
    goodput = own["goodput_bit_s"] / built_in["goodput_bit_s"]
    require(
        abs(goodput - 1) < 0.02,
        f"its goodput is {goodput:.3f} times that of NewReno, not 0.98 to 1.02 times",
    )
    reductions = [each["reductions_loss"] for each in (own, built_in)]
    require(
        abs(reductions[0] / reductions[1] - 1) < 0.05,
        f"it reduces its window {reductions[0]:.0f} times, and NewReno {reductions[1]:.0f} times,"
        " which is not within 5 %; does it grow by one segment in a round trip, also where an ACK"
        " acknowledges two (`ack.acked_bytes`), and does half of it stay?",
    )
    right(f"it acts as NewReno does: {reductions[0]:.0f} reductions in five minutes")


def check_calm(controller: object) -> None:
    """Checks a class that fills the link, 95 %, and lets packets wait 20 ms at most (90 %)."""
    own = _of(controller)
    delay = own["qdelay_p90_us"] / 1e3
    busy = own["utilisation"]
    require(busy >= 0.95, f"the link is {busy:.1%} busy, not at least 95%")
    require(
        delay <= 20,
        f"packets wait {delay:.1f} ms (90 %), not at most 20 ms; `path.rtt - path.min_rtt` is the"
        " wait",
    )
    right(f"{busy:.0%} busy, and packets wait {delay:.0f} ms")
