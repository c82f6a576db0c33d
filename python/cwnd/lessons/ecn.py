"""Lesson 3: marks in place of drops, and how far to back off on one (RFC 3168, RFC 8511)."""

from __future__ import annotations

from cwnd.lessons.tasks import given, measured, number, require, right, value
from cwnd.running import Scenario, run

#: One flow over CoDel; all losses are CoDel's drops.
scenario = Scenario(
    schema=2,
    name="marks",
    run={"duration": "60 s", "warmup": "10 s"},
    dumbbell={"rate": "20 Mbit/s", "queue": "codel"},
    flow={
        "main": {
            "rtt": "80 ms",
            "controller": {"kind": "newreno", "beta": 0.5, "beta_ecn": 0.5},
            "endpoint": {"ecn": False},
        }
    },
)
_ECN, _BETA, _BETA_ECN = (
    f"flow.main.{key}" for key in ("endpoint.ecn", "controller.beta", "controller.beta_ecn")
)


def check_marks(changes: object) -> None:
    """Checks settings with which the window is reduced and nothing is sent twice."""
    given(changes, "the dictionary of settings")
    if not isinstance(changes, dict):
        require(False, f"the settings are to be a dictionary, not {changes!r}")
        return
    found = measured(scenario, changes)["*"]
    reductions = found["reductions_ecn"] + found["reductions_loss"]
    require(reductions > 0, "no loss or mark reduced the window: the queue is to signal, too")
    require(
        found["retrans"] == 0,
        f"{found['retrans']:.0f} segments were sent twice, and none is the goal; which endpoints"
        " understand marks?",
    )
    right(f"{found['reductions_ecn']:.0f} reductions by marks, no retransmission")


def check_window(window_after_mark: object) -> None:
    """Checks a function of `window`, `beta` and `beta_ecn`: the window that a mark leaves."""
    for beta_ecn in (0.5, 0.8):
        result = run(scenario, set={_ECN: True, _BETA_ECN: beta_ecn})
        windows = result.series.filter(result.series["time_s"] > 10)["snd_cwnd_pkts"].to_list()
        high, low = max(windows), min(windows)
        expected = value(
            window_after_mark, "window_after_mark", window=high, beta=0.5, beta_ecn=beta_ecn
        )
        require(
            abs(expected / low - 1) < 0.15,
            f"beta_ecn = {beta_ecn:g}: a mark at {high:.0f} segments leaves about {low:.0f}, not"
            f" your {expected:g} (within 15 %)",
        )
    right("the answer to a loss is another one")


def check_beta(beta_ecn: object) -> None:
    """Checks a `beta_ecn`: 15 % more goodput than 0.5, and at most 2.5 ms more delay (90 %)."""
    factor = number(beta_ecn, "beta_ecn")
    require(0 < factor < 1, "beta_ecn is between zero and one")
    before, after = (
        measured(scenario, {_ECN: True, _BETA_ECN: each})["*"] for each in (0.5, factor)
    )
    gain = after["goodput_bit_s"] / before["goodput_bit_s"] - 1
    cost = (after["qdelay_p90_us"] - before["qdelay_p90_us"]) / 1e3
    require(gain >= 0.15, f"{factor:g} gains {gain:.2%} of goodput, not at least 15%")
    require(cost <= 2.5, f"{factor:g} costs {cost:.2f} ms of delay (90 %), not at most 2.5 ms")
    right(f"{gain:.1%} more goodput for {cost:.1f} ms; RFC 8511 chose 0.8 for NewReno")
