"""Cases of DCTCP over a queue that marks."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import MS, MSS, Journey, case
from dctcp import CE, Dctcp

if TYPE_CHECKING:
    from windows import Controller

SOURCE = "RFC 8257 § 3.3 to 3.5; RFC 5681 § 3.1; RFC 3465 § 2.1 to 2.3"
#: ECN field of an unmarked packet.
ECT = 2

DCTCP: dict[str, Any] = {
    "gain": 0.0625,
    "initial_alpha": 1.0,
    "loss_beta": 0.5,
    "abc_limit": 2,
    "abc_limit_after_timeout": 1,
    "slow_start": "standard",
    "grow_in_cwr": True,
}


def windows(controller: Controller) -> list[dict[str, Any]]:
    """Runs round trips with no, some, or all data marked, each answered once."""
    j = Journey(controller)
    j.rounds(3, echo=ECT)
    for marked in (1, 0, 0, 2, 6, 6, 0, 0, 3, 0, 1):
        j.rounds(1, acks=6 - marked, echo=ECT)
        if marked:
            j.rounds(1, acks=marked, echo=CE, phase="open")
            j.signal("ecn")
            j.rounds(1, acks=3, echo=ECT, phase="cwr")
    return j.rows


def losses(controller: Controller) -> list[dict[str, Any]]:
    """Runs § 3.5: losses and timeouts act as in conventional TCP, and α stays."""
    j = Journey(controller)
    j.rounds(3, echo=ECT)
    j.rounds(1, echo=CE)
    j.signal("ecn")
    j.rounds(5, echo=ECT)
    j.signal("loss", flight=j.flight() - 3 * MSS)
    j.rounds(1, echo=ECT, phase="recovery")
    j.rounds(4, echo=ECT)
    j.rounds(1, echo=CE)
    j.signal("ecn")
    j.rounds(3, echo=ECT)
    j.signal("timeout")
    j.signal("timeout", nth=2, flight=MSS)
    j.rounds(4, echo=ECT, phase="loss")
    j.rounds(1, acks=2, echo=CE)
    j.signal("ecn")
    # A window of two segments stays at two.
    for _ in range(4):
        j.rounds(1, echo=CE)
        j.signal("ecn")
    j.rounds(4, echo=ECT)
    j.rounds(2, echo=ECT, limited=False)
    j.now += 3_000 * MS
    j.signal("idle", flight=0)
    j.rounds(4, echo=ECT)
    return j.rows


def wild(controller: Controller, seed: int, steps: int = 110) -> list[dict[str, Any]]:
    """Runs random events; data is marked in runs, as by a queue above its threshold."""
    draw = Random(seed)
    j = Journey(controller)
    phase, left, marked, run = "open", 0, False, 0
    for _ in range(steps):
        j.now += draw.randint(1, 30 * MS)
        left -= 1
        run -= 1
        if left <= 0:
            phase = "open"
        if run <= 0:
            marked, run = draw.random() < 0.3, draw.randint(1, 12)
        cwnd = j.cwnd()
        flight = draw.randint(cwnd // 2, cwnd)
        chance = draw.random()
        if chance < 0.02:
            j.put("loss", flight=flight)
            phase, left = "recovery", draw.randint(1, 8)
        elif chance < 0.03:
            j.put("timeout", flight=flight)
            phase, left = "loss", draw.randint(1, 8)
        elif chance < 0.035:
            j.put("idle", flight=0)
        else:
            acked = min(flight, draw.choice([MSS, 2 * MSS, draw.randint(1, 4 * MSS)]))
            # Some ACKs carry no report, like that of a SYN.
            echo = CE if marked else draw.choice([ECT, ECT, ECT, 0, None])
            limited = draw.random() > 0.08
            j.put("ack", acked=acked, flight=flight, phase=phase, echo=echo, limited=limited)
            if marked and phase == "open":
                j.put("ecn", flight=flight - acked)
                phase, left = "cwr", draw.randint(1, 8)
    return j.rows


def cases() -> list[dict[str, Any]]:
    """Returns all cases of DCTCP."""
    settings: dict[str, tuple[str | None, dict[str, Any]]] = {
        "rfc": ("rfc", {}),
        "a large gain": (None, {"gain": 0.5, "initial_alpha": 0.0, "grow_in_cwr": False}),
        "other numbers": (None, {"gain": 0.01, "initial_alpha": 0.3, "loss_beta": 0.7}),
        "no estimate": (None, {"gain": 1.0, "abc_limit": None}),
    }
    made = []
    for number, (name, (preset, changes)) in enumerate(settings.items()):
        for what, rows in (
            ("windows with marks", windows),
            ("losses beside marks", losses),
            ("a random walk", lambda c, seed=1200 + number: wild(c, seed)),
        ):
            made.append(
                case(
                    f"{name}: {what}",
                    SOURCE,
                    {**DCTCP, **changes},
                    rows,
                    kind=Dctcp,
                    segments=10,
                    ssthresh=30 * MSS,
                    **({"preset": preset} if preset else {}),
                )
            )
    return made
