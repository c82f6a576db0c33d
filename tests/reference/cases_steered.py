"""Cases of feedback and rates given to senders of XCP and RCP."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import MS, MSS, Journey, case
from steered_senders import Rcp, Xcp

if TYPE_CHECKING:
    from windows import Controller

XCP_SOURCE = "Katabi et al. 2002, § 3.2"
XCP: dict[str, Any] = {"loss_beta": 0.5, "whole_segments": False, "hears_duplicates": True}
XCP_NS2 = {"whole_segments": True, "hears_duplicates": False}

RCP_SOURCE = "Dukkipati et al. 2005, § 3"
RCP: dict[str, Any] = {"window_rtts": 4.0}


def journey(controller: Controller, seed: int, steps: int = 80) -> list[dict[str, Any]]:
    """Runs ACKs with router feedback, duplicates, losses, timeouts and pauses."""
    draw = Random(seed)
    j = Journey(controller)
    phase, left, nth, rate = "open", 0, 0, 3_000_000
    srtt = draw.randint(5 * MS, 900 * MS)
    for _ in range(steps):
        j.now += draw.randint(1, 40) * MS + draw.randint(0, 999)
        left -= 1
        if left <= 0:
            phase, nth = "open", 0
        chance = draw.random()
        if chance < 0.03:
            phase, signal = ("recovery", "loss") if draw.random() < 0.7 else ("cwr", "ecn")
            j.put(signal, srtt_ns=srtt)
            left = draw.randint(1, 6)
        elif chance < 0.05:
            nth = nth + 1 if phase == "loss" else 1
            j.put("timeout", srtt_ns=srtt, nth=nth)
            phase, left = "loss", draw.randint(1, 10)
        elif chance < 0.06:
            j.put("idle", flight=0)
        else:
            srtt = max(MS, srtt + draw.randint(-30 * MS, 30 * MS))
            facts: dict[str, Any] = {
                "acked": draw.choice([0, MSS, MSS, 2 * MSS, draw.randint(1, 3 * MSS)]),
                "phase": phase,
                "srtt_ns": srtt,
                "limited": draw.random() > 0.1,
            }
            if not facts["limited"]:
                facts["flight"] = j.cwnd() // 2
            if draw.random() < 0.85:
                if "window_rtts" in controller.p:
                    rate = max(1, int(rate * draw.choice([0.3, 0.9, 1, 1, 1.1, 4])))
                    facts["offered_bit_s"] = rate
                else:
                    facts["feedback"] = draw.choice([draw.randint(-900, 1200), 0, 40_000, -9000])
            j.put("ack", **facts)
    return j.rows


def xcp() -> list[dict[str, Any]]:
    """Returns the cases of XCP's senders."""
    settings = {"paper": (None, {}), "ns2": ("ns2", XCP_NS2), "0.8": (None, {"loss_beta": 0.8})}
    return _cases(Xcp, XCP_SOURCE, XCP, settings, 1011)


def rcp() -> list[dict[str, Any]]:
    """Returns the cases of RCP's senders."""
    settings = {
        "paper": (None, {}),
        "ns2": ("ns2", {"window_rtts": None}),
        "two round trips and a half": (None, {"window_rtts": 2.5}),
    }
    return _cases(Rcp, RCP_SOURCE, RCP, settings, 1050)


def _cases(
    kind: type[Controller],
    source: str,
    defaults: dict[str, Any],
    settings: dict[str, Any],
    first: int,
) -> list[dict[str, Any]]:
    return [
        case(
            f"{name}, {segments} segments at first",
            source,
            {**defaults, **changes},
            lambda c, seed=first + 10 * number + segments: journey(c, seed),
            kind=kind,
            segments=segments,
            ssthresh=None,
            **({"preset": preset} if preset else {}),
        )
        for number, (name, (preset, changes)) in enumerate(settings.items())
        for segments in (2, 10)
    ]
