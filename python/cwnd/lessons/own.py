"""Lesson 6: a controller of one's own."""

from __future__ import annotations

import inspect

from cwnd.lessons.tasks import measured, require, right
from cwnd.running import Scenario

#: One flow over a large buffer.
scenario = Scenario(
    schema=2,
    name="own",
    run={"duration": "40 s", "warmup": "10 s"},
    dumbbell={"rate": "20 Mbit/s", "queue": {"kind": "fifo", "limit": "300 packets"}},
    flow={"main": {"rtt": "40 ms", "controller": "mine"}},
)


def _of(controller: object) -> dict[str, float]:
    if not inspect.isclass(controller):
        require(False, f"the answer is to be a class, not {controller!r}")
    return measured(scenario, {}, controllers={"mine": controller})["*"]


def check_aimd(controller: object) -> None:
    """Checks a class that does what NewReno does: goodput and drops within 2 %."""
    own = _of(controller)
    built_in = measured(scenario, {"flow.main.controller": "newreno"})["*"]
    for name, shown in (("goodput_bit_s", "goodput"), ("qdelay_p50_us", "median queueing delay")):
        require(
            abs(own[name] / built_in[name] - 1) < 0.02,
            f"its {shown} is {own[name] / built_in[name]:.2f} of NewReno's",
        )
    right("it acts as NewReno does")


def check_calm(controller: object) -> None:
    """Checks a class that fills the link, 95 %, and lets packets wait 20 ms at most (90 %)."""
    own = _of(controller)
    delay = own["qdelay_p90_us"] / 1e3
    require(own["utilisation"] >= 0.95, f"the link is {own['utilisation']:.0%} busy")
    require(delay <= 20, f"packets wait {delay:.0f} ms; `path.rtt - path.min_rtt` is the wait")
    right(f"{own['utilisation']:.0%} busy, and packets wait {delay:.0f} ms")
