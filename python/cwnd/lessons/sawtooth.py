"""Lesson 1: the sawtooth of the window, and the buffer that it needs."""

from __future__ import annotations

from cwnd.lessons.tasks import measured, number, require, right, value
from cwnd.running import Scenario, run

#: One flow, whose window halves at each loss, over a link of 83.3 packets of 1500 B.
scenario = Scenario(
    schema=2,
    name="sawtooth",
    run={"duration": "60 s", "warmup": "20 s"},
    dumbbell={"rate": "10 Mbit/s", "queue": {"kind": "fifo", "limit": "1 BDP"}},
    flow={"main": {"rtt": "100 ms", "controller": {"kind": "newreno", "beta": 0.5}}},
)
_BUFFER, _BETA = "dumbbell.queue.limit", "flow.main.controller.beta"
_BUSY = 0.99


def _utilisation(buffer_bdp: float, beta: float) -> float:
    changes = {_BUFFER: f"{buffer_bdp:.3f} BDP", _BETA: beta}
    return measured(scenario, changes)["*"]["utilisation"]


def check_peak(peak_packets: object) -> None:
    """Checks a function of `rate` (bit/s), `rtt` (s) and `buffer_bdp`: the largest window."""
    for buffer in (0.5, 1.0, 1.5):
        expected = value(peak_packets, "peak_packets", rate=10e6, rtt=0.1, buffer_bdp=buffer)
        result = run(scenario, set={_BUFFER: f"{buffer:.3f} BDP"})
        windows = result.series.filter(result.series["time_s"] > 20)["snd_cwnd_pkts"].to_list()
        require(
            abs(expected / max(windows) - 1) < 0.05,
            f"over a buffer of {buffer:g} BDP the window reaches {max(windows):.0f} packets, not"
            f" your {expected:g} (within 5 %); what fits on the path, and what in the buffer?",
        )
    right("your formula is within 5 % of the simulated windows")


def check_smallest_buffer(buffer_bdp: object) -> None:
    """Checks the least buffer, in tenths of the BDP, that keeps the link 99 % busy at β = 0.5."""
    buffer = number(buffer_bdp, "the buffer")
    require(buffer > 0, "a buffer is larger than zero")
    require(
        abs(buffer * 10 - round(buffer * 10)) < 1e-6, "the buffer is to be in tenths of the BDP"
    )
    busy, less = (_utilisation(each, 0.5) for each in (buffer, max(buffer - 0.1, 0.05)))
    require(
        busy >= _BUSY, f"with {buffer:g} BDP the link is {busy:.2%} busy, not at least {_BUSY:.0%}"
    )
    require(
        less < _BUSY,
        f"a tenth less than your {buffer:g} BDP is enough: the link is {less:.2%} busy, and"
        f" {_BUSY:.0%} is the goal",
    )
    right(f"{busy:.1%} busy, and {less:.1%} with a tenth of the BDP less")


def check_formula(buffer_needed: object) -> None:
    """Checks a function of `beta`: the buffer in BDP that never runs empty."""
    for beta in (0.5, 0.6, 0.7, 0.8):
        buffer = value(buffer_needed, "buffer_needed", beta=beta)
        require(buffer > 0, f"buffer_needed({beta:g}) is {buffer:g}")
        busy = _utilisation(buffer, beta)
        require(
            busy >= _BUSY,
            f"β = {beta:g}: with your {buffer:g} BDP the link is {busy:.2%} busy, not at least"
            f" {_BUSY:.0%}",
        )
        require(
            buffer < 1.15 * (1 - beta) / beta,
            f"β = {beta:g}: less than your {buffer:g} BDP is enough; β times the peak, path and"
            " buffer together, is to fill the path just so",
        )
    right("the link stays busy at each β, and not with much more than that needs")
