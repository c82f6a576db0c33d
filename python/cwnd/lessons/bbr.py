"""Lesson 5: BBR, which has a model of the path, against CUBIC, which fills the buffer."""

from __future__ import annotations

from cwnd.lessons.tasks import measured, number, require, right
from cwnd.running import Scenario

#: A flow of each over one buffer; five seeds differ in when the flows start.
scenario = Scenario(
    schema=2,
    name="bbr-cubic",
    run={"duration": "120 s", "warmup": "20 s"},
    dumbbell={"rate": "20 Mbit/s", "queue": {"kind": "fifo", "limit": "1 BDP"}},
    flow={
        name: {"rtt": "40 ms", "controller": name, "start": "uniform(0 s, 1 s)"}
        for name in ("cubic", "bbr")
    },
    sweep={"repeat": 5},
)
_BUFFER = "dumbbell.queue.limit"
_MOST_BDP = 32


def _share_of_bbr(buffer_bdp: float) -> float:
    return measured(scenario, {_BUFFER: f"{buffer_bdp:.3f} BDP"})["bbr"]["goodput_share"]


def _buffer(answer: object) -> float:
    buffer = number(answer, "the buffer")
    require(0 < buffer <= _MOST_BDP, f"the buffer is to be above 0 and up to {_MOST_BDP} BDP")
    return buffer


def check_equal(buffer_bdp: object) -> None:
    """Checks a buffer over which both get the same, within 5 points."""
    buffer = _buffer(buffer_bdp)
    share = _share_of_bbr(buffer)
    require(abs(share - 0.5) <= 0.05, f"over {buffer:g} BDP BBR gets {share:.1%}, not 45 to 55%")
    right(f"over {buffer:g} BDP BBR gets {share:.0%}; at 0.5 BDP {_share_of_bbr(0.5):.0%}")


def check_cubic_wins(buffer_bdp: object) -> None:
    """Checks a buffer over which BBR gets less than 35 %."""
    buffer = _buffer(buffer_bdp)
    share = _share_of_bbr(buffer)
    require(share < 0.35, f"over {buffer:g} BDP BBR gets {share:.1%}, not less than 35%")
    right(f"{share:.0%}: BBR has at most two BDP in flight, and CUBIC fills the rest")


def check_alone(delay_ms: object) -> None:
    """Checks the median queueing delay, in ms, that CUBIC has alone over 4 BDP and BBR has not."""
    answer = number(delay_ms, "the difference")
    alone = []
    for name in ("cubic", "bbr"):
        changes = {_BUFFER: "4 BDP", "flow.*.controller": name}
        alone.append(measured(scenario, changes)["*"]["qdelay_p50_us"] / 1e3)
    require(
        abs(answer - (alone[0] - alone[1])) < 10,
        f"{answer:g} ms is not within 10 ms of the difference; run both groups with CUBIC, then"
        " both with BBR, over 4 BDP, and subtract the medians",
    )
    right(f"CUBIC {alone[0]:.0f} ms, BBR {alone[1]:.0f} ms")
