"""Cases of Vegas over a path with a queue, in each of its readings."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import MS, MSS, Journey, case
from vegas import Vegas

if TYPE_CHECKING:
    from windows import Controller

THESIS: dict[str, Any] = {
    "alpha": 2.0,
    "beta": 4.0,
    "gamma": 1.0,
    "rates": "window",
    "rtt": "least",
    "rounding": "none",
    "double_every": 2,
    "exit": "stay",
    "spread": True,
    "from_round_before": False,
    "least_samples": 1,
    "loss_beta": 0.5,
    "ecn_beta": None,
    "abc_limit": 2,
    "abc_limit_after_timeout": 1,
    "base_from_handshake": False,
    "forgets_when_idle": False,
}
ONE_AND_THREE = {"alpha": 1.0, "beta": 3.0, "loss_beta": 0.75, "ecn_beta": 0.5}
#: Parameters of slow start in Linux.
UNLIMITED = {"abc_limit": None, "abc_limit_after_timeout": None}
KERNEL = {
    "double_every": 1,
    "exit": "actual",
    "spread": False,
    "least_samples": 3,
    "forgets_when_idle": True,
}
#: Changes of each preset, with their source.
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "thesis": ("McCullagh 2008, eq. 2.1 to 2.4", {}),
    "paper": (
        "Brakmo & Peterson 1995, Vegas-1,3",
        {**ONE_AND_THREE, "rates": "sent", "rtt": "first"},
    ),
    "ns2": (
        "ns-2.35 tcp-vegas.cc",
        {
            **ONE_AND_THREE,
            "rates": "in-flight",
            "rtt": "mean",
            "rounding": "nearest",
            "exit": "eighth",
        },
    ),
    "linux": (
        "Linux 6.1 tcp_vegas.c",
        {**KERNEL, "rates": "window-over-base", "rounding": "down", **UNLIMITED},
    ),
    "linux-2.6.22": (
        "Linux 2.6.22 tcp_vegas.c",
        {
            **KERNEL,
            "rates": "acknowledged",
            "rounding": "halves-up",
            "from_round_before": True,
            "abc_limit": 1,
        },
    ),
}

#: Capacity of the path in segments, and the delay of each further one in ns.
HOLDS = 14
EACH = 1_200_007


def path(controller: Controller, seed: int, steps: int = 150) -> list[dict[str, Any]]:
    """Runs a window-limited sender over a link, with occasional signals."""
    draw = Random(seed)
    j = Journey(controller)
    una, sent = 0, j.flight()
    base = draw.randint(15 * MS, 40 * MS)
    #: Segments of others in the queue.
    others = 0.0
    phase, left = "open", 0

    def rtt() -> int:
        waits = max((sent - una) / MSS + others - HOLDS, 0)
        return base + int(waits * EACH) + draw.randint(0, 90_000)

    for _ in range(steps):
        flight = sent - una
        j.now += EACH + draw.randint(0, 400_000)
        others = min(max(others + draw.uniform(-0.7, 0.7), 0), 12)
        left -= 1
        if left <= 0:
            phase = "open"
        chance = draw.random()
        if chance < 0.012 and flight >= 4 * MSS:
            phase, signal = ("recovery", "loss") if draw.random() < 0.6 else ("cwr", "ecn")
            j.put(signal, flight=flight, rtt_ns=rtt())
            left = draw.randint(3, 10)
        elif chance < 0.016:
            j.put("timeout", flight=flight)
            phase, left = "loss", draw.randint(3, 8)
        elif chance < 0.020:
            una = sent
            j.now += 3_000 * MS
            j.put("idle", flight=0)
        else:
            if flight == 0:
                # The data that is sent after the idle period.
                sent = una + j.flight()
                flight = sent - una
            size = draw.choice([MSS, MSS, 2 * MSS, draw.randint(1, 2 * MSS)])
            facts: dict[str, Any] = {"acked": min(size, flight), "flight": flight, "phase": phase}
            # Karn's rule omits some samples.
            if draw.random() < 0.9:
                facts["rtt_ns"] = rtt()
            # RTT of the handshake.
            facts["min_rtt_ns"] = base - 1_100_003
            facts["ece"] = phase == "open" and draw.random() < 0.02
            facts["limited"] = draw.random() > 0.03
            j.put("ack", **facts)
            una += facts["acked"]
        sent = max(sent, una + j.flight())
    return j.rows


def cases() -> list[dict[str, Any]]:
    """Returns all cases of Vegas."""
    made = [
        case(
            f"{name}: a path with a queue, {seed}",
            source,
            {**THESIS, **changes},
            lambda c, seed=700 + 10 * number + seed: path(c, seed),
            kind=Vegas,
            segments=2 if seed else 10,
            ssthresh=22 * MSS if seed else None,
            controller="vegas",
            preset=name,
        )
        for number, (name, (source, changes)) in enumerate(PRESETS.items())
        for seed in (0, 1)
    ]
    mixed = {
        "rates": "sent",
        "rtt": "mean",
        "double_every": 3,
        "exit": "actual",
        "alpha": 1.5,
        "beta": 2.5,
        "gamma": 0.5,
        "base_from_handshake": True,
        "loss_beta": 0.7,
        "abc_limit": None,
    }
    made.append(
        case(
            "a mixture of readings",
            PRESETS["thesis"][0],
            {**THESIS, **mixed},
            lambda c: path(c, 790),
            kind=Vegas,
            segments=4,
            ssthresh=None,
            controller="vegas",
        )
    )
    return made
