"""Cases of controllers that aim at a queue: LEDBAT++, LEDBAT, Copa, FAST and Vegas.

Their path has a queue that others share.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from background import Copa, Ledbat
from cases_windows import MS, MSS, Journey, case
from vegas import Fast, Vegas

if TYPE_CHECKING:
    from windows import Controller


LEDBAT: dict[str, Any] = {
    "target": "60 ms",
    "response": "multiplicative",
    "slowest": 16,
    "constant": 1.0,
    "most_decrease": 0.5,
    "slow_start_exit": 0.75,
    "slowdown_interval": 9,
    "slowdown_rounds": 2,
    "least_window": 2,
    "base_history": 10,
    "current_filter": 4,
    "allowed_increase": None,
    "loss_beta": 0.5,
}
RFC6817 = {
    "target": "100 ms",
    "response": "linear",
    "slowest": None,
    "slow_start_exit": None,
    "slowdown_interval": None,
    "allowed_increase": 1,
}
LEDBATS: dict[str, tuple[str, dict[str, Any]]] = {
    "ledbat++": ("draft-irtf-iccrg-ledbat-plus-plus-01 § 4", {}),
    "rfc6817": ("RFC 6817 § 2.4.2, 2.5", RFC6817),
}
COPA: dict[str, Any] = {
    "delta": 0.5,
    "competitive": True,
    "empty_rounds": 8,
    "swing_rounds": 8,
    "nearly_empty": 0.1,
    "min_rtt_window": "10 s",
    "standing": 0.5,
    "delay_of": "standing",
    "doubles_after": 3,
    "velocity_rounds": 2,
    "turns_at_once": True,
    "pacing_gain": 2.0,
    "loss_beta": None,
    "ecn_beta": 0.5,
}
COPAS: dict[str, tuple[str, dict[str, Any]]] = {
    "ccp": ("Arun & Balakrishnan 2018 § 2.1, 2.2; venkatarun95/ccp_copa", {}),
    "paper": (
        "Arun & Balakrishnan 2018 § 2.1, 2.2",
        {"empty_rounds": 5, "swing_rounds": 4, "velocity_rounds": 1, "turns_at_once": False},
    ),
    "default-mode": ("Arun & Balakrishnan 2018 § 2.1", {"competitive": False}),
    "mvfst": (
        "mvfst Copa.cpp, Copa.h",
        {"delta": 0.05, "competitive": False, "delay_of": "newest", "velocity_rounds": 1},
    ),
}


def path(
    controller: Controller,
    seed: int,
    *,
    each: int,
    holds: int,
    most: int,
    pause: int = 3_000,
    steps: int = 190,
) -> list[dict[str, Any]]:
    """Runs a window-limited sender over a link with others in its queue, and occasional signals.

    Args:
        controller: controller of the sender.
        seed: seed of all draws.
        each: delay of one queued segment, ns.
        holds: segments on the path without a queue.
        most: limit on the segments of others.
        pause: length of an idle period, ms.
        steps: number of events.
    """
    draw = Random(seed)
    j = Journey(controller)
    una, sent = 0, j.flight()
    base = draw.randint(20 * MS, 40 * MS)
    others = 0.0
    srtt = base
    phase, left = "open", 0

    def rtt() -> int:
        waits = max((sent - una) / MSS + others - holds, 0)
        return base + int(waits * each) + draw.randint(0, 90_000)

    for _ in range(steps):
        flight = sent - una
        j.now += each + draw.randint(0, 400_000)
        others = min(max(others + draw.uniform(-1.2, 1.3), 0), most)
        left -= 1
        if left <= 0:
            phase = "open"
        chance = draw.random()
        facts: dict[str, Any] = {"srtt_ns": srtt}
        if chance < 0.010 and flight >= 4 * MSS:
            phase, signal = ("recovery", "loss") if draw.random() < 0.6 else ("cwr", "ecn")
            j.put(signal, flight=flight, rtt_ns=rtt(), **facts)
            left = draw.randint(3, 10)
        elif chance < 0.013:
            j.put("timeout", flight=flight, **facts)
            phase, left = "loss", draw.randint(3, 8)
        elif chance < 0.016:
            una = sent
            j.now += pause * MS
            j.put("idle", flight=0, **facts)
        else:
            if flight == 0:
                # The data that is sent after the idle period.
                sent = una + max(j.flight(), MSS)
                flight = sent - una
            size = draw.choice([MSS, MSS, 2 * MSS, draw.randint(1, 2 * MSS)])
            facts |= {"acked": min(size, flight), "flight": flight, "phase": phase}
            # Karn's rule omits some samples.
            if draw.random() < 0.9:
                facts["rtt_ns"] = rtt()
                srtt += (facts["rtt_ns"] - srtt) // 8
                facts["srtt_ns"] = srtt
            facts["ece"] = phase == "open" and draw.random() < 0.01
            facts["limited"] = draw.random() > 0.03
            j.put("ack", **facts)
            una += facts["acked"]
        sent = max(sent, una + j.flight())
    return j.rows


def ledbat() -> list[dict[str, Any]]:
    """Returns all cases of LEDBAT++ and LEDBAT."""
    #: Delay of a queued segment in ns, the most segments of others, and the number of events.
    slow, quick = (3_100_007, 30, 190), (2_100_007, 40, 190)
    paths = {"ledbat++": (slow, quick, (*quick[:2], 420)), "rfc6817": (slow, quick, quick)}
    made = [
        case(
            f"{name}: others in the queue, {seed}",
            source,
            {**LEDBAT, **changes},
            lambda c, seed=900 + 10 * number + seed, pause=30_000 * seed + 3_000, link=link: path(
                c, seed, each=link[0], holds=9, most=link[1], pause=pause, steps=link[2]
            ),
            kind=Ledbat,
            segments=10 - 4 * seed,
            ssthresh=8 * MSS if seed == 1 else None,
            controller="ledbat",
            preset=name,
        )
        for number, (name, (source, changes)) in enumerate(LEDBATS.items())
        for seed, link in enumerate(paths[name])
    ]
    mixed = {
        "target": "25 ms",
        "slowest": 3,
        "constant": 0.5,
        "most_decrease": 0.125,
        "slow_start_exit": 0.5,
        "slowdown_interval": 3,
        "slowdown_rounds": 4,
        "least_window": 3,
        "base_history": 2,
        "current_filter": 7,
        "allowed_increase": 2,
        "loss_beta": 0.7,
    }
    made.append(
        case(
            "a mixture of readings",
            LEDBATS["ledbat++"][0],
            {**LEDBAT, **mixed},
            lambda c: path(c, 950, each=1_200_007, holds=14, most=25, pause=70_000),
            kind=Ledbat,
            segments=4,
            ssthresh=None,
            controller="ledbat",
        )
    )
    return made


def copa() -> list[dict[str, Any]]:
    """Returns all cases of Copa."""
    #: Events of the cases of each preset, alone and with others in the queue.
    lengths = {"ccp": (70, 410), "paper": (240, 240), "default-mode": (60,), "mvfst": (320,)}
    made = [
        case(
            f"{name}: others in the queue, {seed}",
            source,
            {**COPA, **changes},
            lambda c, seed=800 + 10 * number + seed, most=25 * seed, steps=steps: path(
                c, seed, each=1_200_007, holds=14, most=most, steps=steps
            ),
            kind=Copa,
            segments=10 if seed else 2,
            ssthresh=None,
            controller="copa",
            preset=name,
        )
        for number, (name, (source, changes)) in enumerate(COPAS.items())
        for seed, steps in enumerate(lengths[name])
    ]
    mixed = {
        "delta": 0.25,
        "empty_rounds": 3,
        "swing_rounds": 5,
        "nearly_empty": 0.2,
        "standing": 1.0,
        "doubles_after": 2,
        "velocity_rounds": 3,
        "turns_at_once": False,
        "pacing_gain": None,
        "loss_beta": 0.7,
        "ecn_beta": 0.8,
    }
    made.append(
        case(
            "a mixture of readings",
            COPAS["paper"][0],
            {**COPA, **mixed},
            lambda c: path(c, 850, each=1_200_007, holds=10, most=30, steps=250),
            kind=Copa,
            segments=4,
            ssthresh=None,
            controller="copa",
        )
    )
    return made


FAST: dict[str, Any] = {
    "alpha": 100.0,
    "gamma": 0.5,
    "update_rounds": 2,
    "smooths_over": 4,
    "doubles_below": "750 us",
    "loss_beta": 0.5,
}
FAST_SOURCE = "Wei, Jin, Low, Hegde 2006"


def rounds(controller: Controller, seed: int, *, steps: int = 130) -> list[dict[str, Any]]:
    """Runs counted round trips in which others fill the queue at times."""
    draw = Random(seed)
    j = Journey(controller)
    base = draw.randint(30 * MS, 90 * MS)
    waits, una, sent, end = 0, 0, 0, 0
    phase = "open"
    for _ in range(steps):
        j.now += draw.randint(100_000, 3 * MS)
        flight = max(sent - una, 0)
        chance = draw.random()
        if chance < 0.012:
            phase = "recovery"
            j.put("loss", flight=flight)
        elif chance < 0.018:
            phase = "cwr"
            j.put("ecn", flight=flight)
        elif chance < 0.024:
            phase = "loss"
            j.put("timeout", flight=flight, nth=draw.choice([1, 1, 2]))
        elif chance < 0.028:
            una = sent
            j.put("idle", flight=0)
        else:
            flight = flight or max(j.flight(), MSS)
            sent = una + flight
            waits = max(waits + draw.randint(-2 * MS, 2 * MS + 100_000), 0)
            size = min(draw.choice([MSS, 2 * MSS, 2 * MSS, draw.randint(1, 3 * MSS)]), flight)
            facts: dict[str, Any] = {"acked": size, "flight": flight, "phase": phase}
            if draw.random() < 0.9:
                facts["rtt_ns"] = base + waits + draw.randint(0, 90_000)
            facts["limited"] = draw.random() > 0.04
            una += size
            if una >= end:
                j.round_number += 1
                end = sent
                if draw.random() < 0.5:
                    phase = "open"
            j.put("ack", **facts)
        sent = max(sent, una + min(j.flight(), 25 * MSS))
    return j.rows


def fast() -> list[dict[str, Any]]:
    """Returns all cases of FAST."""
    made = [
        case(
            f"{name}: queues that come and go, {seed}",
            FAST_SOURCE,
            {**FAST, **changes},
            lambda c, seed=1000 + seed: rounds(c, seed),
            kind=Fast,
            segments=10 if seed else 3,
            ssthresh=None,
            controller="fast",
            preset=name,
        )
        for name, changes in (("paper", {}), ("ns2", {"smooths_over": 256}))
        for seed in (0, 1)
    ]
    mixed = {
        "alpha": 7.5,
        "gamma": 0.9,
        "update_rounds": 1,
        "smooths_over": 9,
        "doubles_below": "2000 us",
        "loss_beta": 0.7,
    }
    made.append(
        case(
            "another α, and each round trip",
            FAST_SOURCE,
            {**FAST, **mixed},
            lambda c: rounds(c, 1010, steps=180),
            kind=Fast,
            segments=4,
            ssthresh=30 * MSS,
            controller="fast",
        )
    )
    return made


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
VEGAS_PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
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


def vegas_path(controller: Controller, seed: int, steps: int = 150) -> list[dict[str, Any]]:
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


def vegas() -> list[dict[str, Any]]:
    """Returns all cases of Vegas."""
    made = [
        case(
            f"{name}: a path with a queue, {seed}",
            source,
            {**THESIS, **changes},
            lambda c, seed=700 + 10 * number + seed: vegas_path(
                c, seed, 170 if seed == 701 else 150
            ),
            kind=Vegas,
            segments=2 if seed else 10,
            ssthresh=22 * MSS if seed else None,
            controller="vegas",
            preset=name,
        )
        for number, (name, (source, changes)) in enumerate(VEGAS_PRESETS.items())
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
            VEGAS_PRESETS["thesis"][0],
            {**THESIS, **mixed},
            lambda c: vegas_path(c, 790),
            kind=Vegas,
            segments=4,
            ssthresh=None,
            controller="vegas",
        )
    )
    return made
