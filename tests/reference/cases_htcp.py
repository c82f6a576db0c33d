"""Cases of H-TCP over a path with a queue."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import MS, MSS, Journey, case
from htcp import HTcp

if TYPE_CHECKING:
    from windows import Controller

DRAFT: dict[str, Any] = {
    "delta_low": "1 s",
    "rtt_scaling": False,
    "since_recovery": False,
    "least_beta": 0.5,
    "most_beta": 0.8,
    "bandwidth_switch": 0.2,
    "longest_step": None,
    "fading": 0.95,
    "short_path": "0 ns",
    "adaptive_delta": None,
    "initial_min_rtt": None,
    "abc_limit": 2,
    "abc_limit_after_timeout": 1,
    "slow_start": "standard",
    "grow_in_cwr": True,
}
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "draft": ("Leith & Shorten 2004; draft-leith-tcp-htcp-06", {}),
    "linux": (
        "Linux 6.1 tcp_htcp.c, in real numbers",
        {
            "rtt_scaling": True,
            "since_recovery": True,
            "most_beta": 0.796875,
            "longest_step": "20 ms",
            "short_path": "10 ms",
            "abc_limit": None,
            "abc_limit_after_timeout": None,
            "grow_in_cwr": False,
        },
    ),
    "adaptive-backoff": ("McCullagh 2008, eq. 4.1", {"adaptive_delta": 0.8}),
}


def path(controller: Controller, seed: int, steps: int = 130) -> list[dict[str, Any]]:
    """Runs a sender that fills a queue, with seconds between losses and changes of throughput."""
    draw = Random(seed)
    j = Journey(controller)
    base = draw.randint(8 * MS, 150 * MS)
    least = base + 3
    waits, phase, left = 0, "open", 0
    for _ in range(steps):
        j.now += base // 6 + draw.randint(0, 30 * MS)
        waits = min(max(waits + draw.randint(-4 * MS, 6 * MS), draw.randint(0, MS)), base)
        if draw.random() < 0.02:
            # Times beyond Δ_L.
            j.now += draw.randint(500 * MS, 2500 * MS)
        least = min(least, base + waits)
        facts: dict[str, Any] = {"rtt_ns": base + waits, "min_rtt_ns": least}
        left -= 1
        if left <= 0:
            phase = "open"
        chance = draw.random()
        if chance < 0.035:
            signal = draw.choice(["loss", "loss", "ecn"])
            j.put(signal, **facts)
            phase, left = ("recovery" if signal == "loss" else "cwr"), draw.randint(2, 8)
            waits //= 3
        elif chance < 0.042:
            j.put("timeout", **facts)
            phase, left = "loss", draw.randint(2, 8)
        elif chance < 0.046:
            j.put("idle", flight=0)
        else:
            if draw.random() < 0.25:
                j.round_number += 1
            facts |= {"acked": draw.choice([MSS, 2 * MSS, draw.randint(1, 2 * MSS)])}
            facts |= {"phase": phase, "limited": draw.random() > 0.05}
            if draw.random() < 0.1:
                del facts["rtt_ns"]
            j.put("ack", **facts)
    return j.rows


def cases() -> list[dict[str, Any]]:
    """Returns all cases of H-TCP."""
    made = [
        case(
            f"{name}: a path with a queue, {seed}",
            source,
            {**DRAFT, **changes},
            lambda c, seed=800 + 10 * number + seed: path(
                c, seed, 220 if seed == 802 else 175 if seed == 810 else 130
            ),
            kind=HTcp,
            segments=10,
            ssthresh=30 * MSS,
            controller="htcp",
            preset=name,
        )
        for number, (name, (source, changes)) in enumerate(PRESETS.items())
        for seed in ((0, 1, 2) if name == "draft" else (0, 1))
    ]
    for number, (name, changes) in enumerate(
        (
            ("no switch", {"bandwidth_switch": None}),
            ("a wide switch", {"bandwidth_switch": 3.0, "fading": 0.5}),
            ("a wrong minRTT", {"bandwidth_switch": None, "initial_min_rtt": "90 ms"}),
        )
    ):
        made.append(
            case(
                f"{name}: a path with a queue",
                PRESETS["draft"][0],
                {**DRAFT, **changes},
                lambda c, seed=850 + number: path(c, seed),
                kind=HTcp,
                segments=10,
                ssthresh=30 * MSS,
                controller="htcp",
            )
        )
    return made
