"""Cases of explicit feedback: reports of load, and senders of XCP, RCP and DCTCP."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import MS, MSS, Journey, case
from explicit_feedback import Bmcc, Dctcp, Mlcp, Rcp, Vcp, Xcp
from meters import (
    CE,
    ECT0,
    ECT1,
    LEVELS,
    NOT_ECT,
    PLACES,
    AdpmRouter,
    Estimate,
    MlcpRouter,
    Router,
    VcpRouter,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from windows import Controller


VCP_SOURCE = "Xia et al. 2005, § 3.3 and 3.4"
VCP: dict[str, Any] = {
    "xi": 0.0625,
    "alpha": 1.0,
    "beta": 0.875,
    "interval_ns": 200 * MS,
    "ai_rtt_ns": 200 * MS,
    "ai_scaling": "square",
    "mi_rtt_most_ns": 500 * MS,
    "loss_beta": 0.5,
}
VCP_NS2 = {"ai_rtt_ns": 100 * MS, "ai_scaling": "bounded"}

BMCC_SOURCE = "Qazi, Andrew, Znati 2009, eq. 2 to 6"
BMCC: dict[str, Any] = {
    "interval_ns": 200 * MS,
    "mi_step": 0.35,
    "alpha": 1.0,
    "beta_most": 0.875,
    "beta_least": 0.65,
    "least": 0.15,
    "high": 0.75,
    "most": 1.2,
    "multiplies_first": True,
    "apply": "ack",
    "rests": "both",
    "mi_rtt_most_ns": 500 * MS,
    "on_loss": "if-overload",
    "paced": True,
    "ids": "counter",
}

MLCP_SOURCE = "Qazi, Andrew, Znati 2009, eq. 2 to 6, by sixteen levels"
MLCP: dict[str, Any] = {
    **{k: BMCC[k] for k in ("interval_ns", "mi_step", "alpha", "beta_most", "beta_least")},
    **{k: BMCC[k] for k in ("least", "high", "most", "mi_rtt_most_ns", "paced")},
    "loss_beta": 0.5,
}

ROUTER = {"interval_ns": 200 * MS, "queue_samples": 20}
VCP_ROUTER: dict[str, Any] = {
    **ROUTER,
    "target": 0.98,
    "queue_weight": 0.5,
    "queue_gain": 0.25,
    "high": 0.8,
    "over": 1.0,
}
ADPM_ROUTER: dict[str, Any] = {
    **ROUTER,
    "target": 1.0,
    "queue_weight": 0.75,
    "queue_gain": 0.125,
    "least": 0.15,
    "high": 0.75,
    "most": 1.2,
}


def code_point(draw: Random) -> int:
    """Draws a code point that VCP's ACKs may report: mostly low (2) or high (1) load.

    Sometimes it is overload (3), seldom no report (0).
    """
    return draw.choices([0, 1, 2, 3], [1, 10, 14, 5])[0]


def level(draw: Random) -> int:
    """Draws a load level of MLCP, at times beyond the range of a header."""
    levels = list(range(LEVELS))
    return draw.choices([*levels, 40], [2] * 8 + [9] + [1] * 8)[0]


def place(draw: Random) -> int:
    """Draws an estimate of BMCC."""
    low, high, over = (
        (0, PLACES // 4 - 1),
        (PLACES // 4, PLACES // 2 - 1),
        (PLACES // 2, PLACES - 1),
    )
    return draw.randint(*draw.choices([low, high, over], [10, 10, 7])[0])


class Stage:
    """Phase of a random journey, until `left` more events have passed."""

    def __init__(self, draw: Random) -> None:
        self.draw, self.phase, self.left, self.nth = draw, "open", 0, 0

    def interrupts(self, j: Journey, srtt: int, until: tuple[float, float, float]) -> bool:
        """Puts a loss or mark, a timeout or a pause if a draw is below these bounds."""
        self.left -= 1
        if self.left <= 0:
            self.phase, self.nth = "open", 0
        chance = self.draw.random()
        if chance < until[0]:
            lost = self.draw.random() < 0.7
            self.phase, signal = ("recovery", "loss") if lost else ("cwr", "ecn")
            j.put(signal, srtt_ns=srtt)
            self.left = self.draw.randint(1, 6)
        elif chance < until[1]:
            self.nth = self.nth + 1 if self.phase == "loss" else 1
            j.put("timeout", srtt_ns=srtt, nth=self.nth)
            self.phase, self.left = "loss", self.draw.randint(1, 10)
        elif chance < until[2]:
            j.put("idle", flight=0)
        return chance < until[2]


def journey(
    controller: Controller, seed: int, told: Callable[[Random], int], steps: int = 110
) -> Any:
    """Runs ACKs that report the load, requested decreases, losses and timeouts."""
    draw = Random(seed)
    j = Journey(controller)
    stage, load = Stage(draw), told(draw)
    srtt = draw.randint(5 * MS, 900 * MS)
    shortest = srtt
    for _ in range(steps):
        j.now += draw.randint(1, 40) * MS + draw.randint(0, 999)
        if not stage.interrupts(j, srtt, (0.02, 0.035, 0.04)):
            if draw.random() < 0.15:
                load = told(draw)
            if draw.random() < 0.2:
                j.round_number += 1
            srtt = max(MS, srtt + draw.randint(-30 * MS, 30 * MS))
            facts: dict[str, Any] = {
                "acked": draw.choice([MSS, MSS, 2 * MSS, draw.randint(1, 3 * MSS)]),
                "phase": stage.phase,
                "srtt_ns": srtt,
                "ece": draw.random() < 0.02,
                "limited": draw.random() > 0.05,
            }
            if controller.p.get("growth_rtt") == "min":
                shortest = min(shortest, srtt)
                facts["min_rtt_ns"] = shortest * 3 // 4
            if draw.random() < 0.8:
                facts["echo"] = load
            if not facts["limited"]:
                facts["flight"] = int(j.cwnd() * draw.choice([0.3, 0.6, 0.9]))
            j.put("ack", **facts)
            # The transport refuses some, as the window was already reduced in this window of data.
            if j.rows[-1].get("asks") and draw.random() < 0.8:
                j.put("load", srtt_ns=srtt)
                stage.phase, stage.left = "cwr", draw.randint(1, 4)
    return j.rows


def vcp() -> list[dict[str, Any]]:
    """Returns the cases of VCP's senders."""
    settings = {
        "paper": ("paper", {}),
        "ns2": ("ns2", VCP_NS2),
        "no bound, other numbers": (None, {"mi_rtt_most_ns": None, "xi": 0.1, "loss_beta": 0.7}),
        "by the shortest round trip": (None, {"growth_rtt": "min"}),
    }
    return [
        case(
            f"{name}, {seed}",
            VCP_SOURCE + ("; vcp-src.cc" if preset == "ns2" else ""),
            {**VCP, **changes},
            lambda c, seed=900 + 10 * number + seed: journey(c, seed, code_point),
            kind=Vcp,
            segments=2 if seed else 10,
            ssthresh=None,
            **({"preset": preset} if preset else {}),
        )
        for number, (name, (preset, changes)) in enumerate(settings.items())
        for seed in (0, 1)
    ]


def mlcp() -> list[dict[str, Any]]:
    """Returns the cases of MLCP's senders."""
    settings: dict[str, dict[str, Any]] = {
        "as it is": {},
        "not paced, other numbers": {"paced": False, "alpha": 2.5, "loss_beta": 0.7, "most": 1.5},
        "no bound": {"mi_rtt_most_ns": None, "mi_step": 0.2, "least": 0.05, "beta_least": 0.5},
        "by the shortest round trip": {"growth_rtt": "min"},
    }
    return [
        case(
            f"{name}, {seed}",
            MLCP_SOURCE,
            {**MLCP, **changes},
            lambda c, seed=870 + 10 * number + seed: journey(c, seed, level),
            kind=Mlcp,
            segments=2 if seed else 10,
            ssthresh=None,
        )
        for number, (name, changes) in enumerate(settings.items())
        for seed in (0, 1)
    ]


def bmcc() -> list[dict[str, Any]]:
    """Returns the cases of BMCC's senders."""
    settings = {
        "paper": ("paper", {}),
        "a round trip at a time": (None, {"apply": "round-trip", "mi_rtt_most_ns": None}),
        "additive from the start": (None, {"multiplies_first": False, "rests": "longer"}),
        "every loss counts": (None, {"on_loss": "decrease", "alpha": 2.5, "paced": False}),
        "no loss counts": (None, {"on_loss": "repair", "mi_step": 0.2, "most": 1.5}),
        "by the shortest round trip": (None, {"growth_rtt": "min"}),
    }
    return [
        case(
            f"{name}, {seed}",
            BMCC_SOURCE,
            {**BMCC, **changes},
            lambda c, seed=950 + 10 * number + seed: journey(c, seed, place),
            kind=Bmcc,
            segments=2 if seed else 10,
            ssthresh=None,
            **({"preset": preset} if preset else {}),
        )
        for number, (name, (preset, changes)) in enumerate(settings.items())
        for seed in (0, 1)
    ]


RATE = 12_345_678


def traffic(router: Router, seed: int, intervals: int) -> list[list[Any]]:
    """Runs packets at a wandering load and queue samples.

    Packets then reach BMCC's receiver, except those of MLCP.
    """
    draw = Random(seed)
    estimate = Estimate()
    rows: list[list[Any]] = []
    interval, samples = router.p["interval_ns"], router.p["queue_samples"]
    identification, load, backlog = draw.randrange(PLACES), 0.1, 0
    capacity = RATE * interval // (8 * 1_000_000_000)
    for number in range(intervals):
        load = min(max(load + draw.uniform(-0.25, 0.35), 0.02), 1.4)
        # Before each sample, a large packet without ECT makes up the load, and a small one may
        # follow.
        for look in range(samples):
            base = number * interval + look * interval // samples
            bulk = int(load * capacity / samples)
            packets = [(bulk, NOT_ECT)] + [(draw.randint(40, 1500), -1)] * draw.randint(0, 1)
            for nth, (size, kind) in enumerate(packets, start=1):
                ecn = kind if kind >= 0 else draw.choice([NOT_ECT, ECT1, *[ECT0] * 6, CE])
                known = draw.random() < 0.9
                identification = (identification + 1) % PLACES
                name = identification if known else None
                if isinstance(router, MlcpRouter):
                    before = draw.randrange(LEVELS) if kind < 0 and known else 0
                    rows.append(
                        ["level", base + nth * 1000, size, before, router.raised(size, before)]
                    )
                    continue
                after = router.write(size, ecn, name)
                place = estimate.hear(after, name)
                rows.append(["packet", base + nth * 1000, size, ecn, name, after, place])
            backlog = max(0, backlog + draw.randint(-9000, 9000))
            router.look(backlog)
            now = number * interval + (look + 1) * interval // samples
            rows.append(["look", now, backlog, round(float(router.factor), 15)])
    return rows


def routers() -> list[dict[str, Any]]:
    """Returns the cases of all routers."""
    settings: dict[str, tuple[str, type[Router], str, str | None, dict[str, Any]]] = {
        "VCP": ("vcp", VcpRouter, "Xia et al. 2005, § 3.1 and 3.2", "paper", VCP_ROUTER),
        "VCP, its program": (
            "vcp",
            VcpRouter,
            "vcp-queue.cc",
            "ns2",
            {**VCP_ROUTER, "target": 0.95, "high": 0.79, "over": 0.99},
        ),
        "BMCC": ("adpm", AdpmRouter, "Qazi et al. 2009, eq. 1, § II-B", "paper", ADPM_ROUTER),
        "other numbers": (
            "adpm",
            AdpmRouter,
            "Qazi et al. 2009, eq. 1, § II-B",
            None,
            {**ADPM_ROUTER, "interval_ns": 30 * MS, "queue_samples": 3, "least": 0.05, "most": 1.3},
        ),
        "MLCP": ("mlcp", MlcpRouter, "Qazi et al. 2009, eq. 1; README", None, ADPM_ROUTER),
    }
    #: Intervals of the cases that need more than seven.
    longer = {"other numbers": 24, "MLCP": 21}
    made = []
    for number, (name, (meter, kind, source, preset, p)) in enumerate(settings.items()):
        made.append(
            {
                "name": name,
                "source": source,
                "meter": meter,
                **({"preset": preset} if preset else {}),
                "parameters": p,
                "rate_bit_per_s": RATE,
                "events": traffic(kind(p, RATE), 1000 + number, longer.get(name, 7)),
            }
        )
    return made


XCP_SOURCE = "Katabi et al. 2002, § 3.2"
XCP: dict[str, Any] = {"loss_beta": 0.5, "whole_segments": False, "hears_duplicates": True}
XCP_NS2 = {"whole_segments": True, "hears_duplicates": False}

RCP_SOURCE = "Dukkipati et al. 2005, § 3"
RCP: dict[str, Any] = {"window_rtts": 4.0}


def steered_journey(controller: Controller, seed: int, steps: int = 80) -> list[dict[str, Any]]:
    """Runs ACKs with router feedback, duplicates, losses, timeouts and pauses."""
    draw = Random(seed)
    j = Journey(controller)
    stage, rate = Stage(draw), 3_000_000
    srtt = draw.randint(5 * MS, 900 * MS)
    for _ in range(steps):
        j.now += draw.randint(1, 40) * MS + draw.randint(0, 999)
        if not stage.interrupts(j, srtt, (0.03, 0.05, 0.06)):
            srtt = max(MS, srtt + draw.randint(-30 * MS, 30 * MS))
            facts: dict[str, Any] = {
                "acked": draw.choice([0, MSS, MSS, 2 * MSS, draw.randint(1, 3 * MSS)]),
                "phase": stage.phase,
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
            lambda c, seed=first + 10 * number + segments: steered_journey(c, seed),
            kind=kind,
            segments=segments,
            ssthresh=None,
            **({"preset": preset} if preset else {}),
        )
        for number, (name, (preset, changes)) in enumerate(settings.items())
        for segments in (2, 10)
    ]


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


def dctcp() -> list[dict[str, Any]]:
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
