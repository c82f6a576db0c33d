"""Cases of delays: delay-based AIMD, adaptive backoff of other controllers, and H-TCP."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import CUBIC, MS, MSS, NEWRENO, Journey, case
from delays import DelayAimd, HTcp

if TYPE_CHECKING:
    from windows import Controller


AIMD = "McCullagh 2008, eq. 2.5 and 2.6"
FILTERED = "McCullagh 2008, § 3.3.4"
FAIR = "McCullagh 2008, eq. 4.9"
LEAST = "McCullagh 2008, § 3.4.5"
HTCP = "McCullagh 2008, § 2.3.2; Leith & Shorten 2004"
BELOW = "McCullagh 2008, § 3.4.3; Kumar et al. 2020, algorithm 1"
WRONG = "McCullagh 2008, § 4.3"
ADAPTIVE = "McCullagh 2008, eq. 4.1"

DELAY_AIMD: dict[str, Any] = {
    "threshold": "50 ms",
    "delta": 0.8,
    "filter": "newest",
    "filter_weight": 0.125,
    "per_packet": False,
    "gamma": None,
    "loss_beta": None,
    "alpha_factor": None,
    "increase": "reno",
    "delta_low": "1 s",
    "rtt_scaling": False,
    "least_window": 1,
    "initial_min_rtt": None,
    "below_one": "never",
    "below_one_gain": 1.0,
    "below_one_least": 0.01,
    "abc_limit": 2,
    "abc_limit_after_timeout": 1,
    "slow_start": "standard",
    "grow_in_cwr": True,
}
#: Adaptive backoff is relative to the window (§ 4.2), and CUBIC's growth is unchanged.
BACKOFF = {"adaptive_delta": 0.8, "initial_min_rtt": None, "base": "cwnd"}


class Wait:
    """A queueing delay that rises and falls, and the round-trip times with it."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.base = draw.randint(20 * MS, 120 * MS)
        self.waits = 0
        self.least = self.rtt()

    def rtt(self) -> int:
        """Returns the current round-trip time."""
        return self.base + self.waits

    def facts(self) -> dict[str, int]:
        """Returns the RTTs known after a measurement."""
        self.least = min(self.least, self.rtt())
        return {"rtt_ns": self.rtt(), "min_rtt_ns": self.least}

    def goes_on(self) -> None:
        """Advances to the next ACK: the queueing delay changes somewhat."""
        step = self.draw.randint(-11 * MS, 14 * MS)
        self.waits = min(max(self.waits + step, self.draw.randint(0, MS)), 170 * MS)


def walk(controller: Controller, seed: int, steps: int = 75) -> list[dict[str, Any]]:
    """Runs ACKs with RTTs; a requested reduction follows, once in a window."""
    draw = Random(seed)
    j, wait = Journey(controller), Wait(draw)
    phase, left = "open", 0
    for _ in range(steps):
        j.now += draw.randint(MS // 2, 20 * MS)
        wait.goes_on()
        left -= 1
        if left <= 0:
            phase = "open"
        chance = draw.random()
        if chance < 0.02:
            j.put("loss", **wait.facts())
            phase, left, wait.waits = "recovery", draw.randint(2, 8), wait.waits // 2
        elif chance < 0.03:
            j.put("timeout", **wait.facts())
            phase, left, wait.waits = "loss", draw.randint(2, 8), wait.waits // 4
        elif chance < 0.035:
            j.put("idle", flight=0)
        else:
            if draw.random() < 0.12:
                j.round_number += 1
            facts: dict[str, Any] = {
                "acked": draw.choice([MSS, MSS, 2 * MSS, draw.randint(1, 3 * MSS)]),
                "phase": phase,
                "limited": draw.random() > 0.05,
                "min_rtt_ns": wait.least,
            }
            # Some ACKs give no sample.
            if draw.random() < 0.9:
                facts |= wait.facts()
            j.put("ack", **facts)
            if controller.asks and phase == "open":
                j.put("delay", **wait.facts())
                phase, left, wait.waits = "cwr", draw.randint(2, 8), wait.waits // 3
    return j.rows


def below(controller: Controller, seed: int, steps: int = 65) -> list[dict[str, Any]]:
    """Runs windows that fall below one segment and rise again; timeouts, also in a row."""
    draw = Random(seed)
    j, wait = Journey(controller), Wait(draw)
    nth = 0
    for _ in range(steps):
        j.now += draw.randint(20 * MS, 900 * MS)
        j.round_number += 1
        wait.waits = draw.randint(0, 45 * MS) if draw.random() < 0.4 else draw.randint(51, 170) * MS
        chance = draw.random()
        if chance < 0.03:
            nth += 1
            j.put("timeout", nth=nth, **wait.facts())
        elif chance < 0.05:
            j.put("loss", **wait.facts())
        elif chance < 0.06:
            j.put("idle", flight=0)
        else:
            nth = 0
            acked = draw.choice([MSS, MSS, MSS, draw.randint(1, MSS)])
            phase = draw.choice(["open", "open", "open", "cwr"])
            measured = wait.facts() if draw.random() < 0.95 else {"min_rtt_ns": wait.least}
            j.put("ack", acked=acked, phase=phase, limited=draw.random() > 0.05, **measured)
            if controller.asks and draw.random() < 0.8:
                j.put("delay", **wait.facts())
    return j.rows


def floor_of_windows(controller: Controller) -> list[dict[str, Any]]:
    """Runs a persistent delay, in which the window falls to its minimum, and ACKs after it."""
    j = Journey(controller)
    for n in range(12):
        j.now += 130 * MS
        late = {"rtt_ns": 131 * MS + n * 999_983, "min_rtt_ns": 50_003_111}
        j.put("ack", acked=MSS, **late)
        j.put("delay", **late)
    for _ in range(4):
        j.now += 60 * MS
        j.put("ack", acked=MSS, rtt_ns=57 * MS, min_rtt_ns=50_003_111)
    return j.rows


def delay() -> list[dict[str, Any]]:
    """Returns all cases of delay-based AIMD and adaptive backoff."""
    made = []
    per_packet = {"per_packet": True, "filter": "mean"}
    kinds: tuple[tuple[str, str, dict[str, Any], str | None], ...] = (
        ("the thesis", AIMD, {}, "thesis"),
        ("delayed ACKs", LEAST, {"least_window": 2}, "delayed-acks"),
        ("α = 2 (1 − β)", FAIR, {"alpha_factor": 2.0}, "fair"),
        ("each late packet", FILTERED, per_packet, "per-packet"),
        ("each late packet a γ", FILTERED, {**per_packet, "gamma": 0.3}, None),
        ("each late packet, unfiltered", FILTERED, {"per_packet": True}, None),
        ("a mean", FILTERED, {"filter": "mean", "filter_weight": 0.3}, None),
        ("the least of two rounds", FILTERED, {"filter": "least"}, None),
        ("losses by a half", AIMD, {"loss_beta": 0.5, "threshold": "20 ms"}, None),
        ("a wrong minRTT", WRONG, {"initial_min_rtt": "115 ms", "threshold": "20 ms"}, None),
        ("H-TCP's increase", HTCP, {"increase": "h-tcp"}, "h-tcp"),
        (
            "H-TCP's increase, soon and by the round trip",
            HTCP,
            {"increase": "h-tcp", "delta_low": "100 ms", "rtt_scaling": True},
            None,
        ),
    )
    steps: dict[str | None, int] = {"fair": 145, "per-packet": 180}
    for number, (name, source, changes, preset) in enumerate(kinds):
        more = {"controller": "delay-aimd"} | ({"preset": preset} if preset else {})
        made.append(
            case(
                f"delay-aimd, {name}: at random",
                source,
                {**DELAY_AIMD, **changes},
                lambda c, n=number, key=preset: walk(c, 500 + n, steps.get(key, 75)),
                kind=DelayAimd,
                segments=30,
                ssthresh=45 * MSS,
                **more,
            )
        )
    proportion = {"below_one": "in-proportion"}
    for number, (name, changes, preset) in enumerate(
        (
            ("the same for each ACK", {"below_one": "per-ack"}, "below-one"),
            ("in proportion", proportion, None),
            ("little for each ACK", {"below_one": "per-ack", "below_one_gain": 0.07}, None),
            ("H-TCP's increase", {"increase": "h-tcp", **proportion}, None),
            ("α = 2 (1 − β)", {"below_one": "per-ack", "alpha_factor": 2.0}, None),
        )
    ):
        more = {"controller": "delay-aimd"} | ({"preset": preset} if preset else {})
        made.append(
            case(
                f"delay-aimd, below one segment, {name}: at random",
                BELOW,
                {**DELAY_AIMD, **changes},
                lambda c, seed=700 + number, steps=135 if changes == proportion else 65: below(
                    c, seed, steps
                ),
                kind=DelayAimd,
                segments=3,
                ssthresh=2 * MSS,
                **more,
            )
        )
    for least, preset in ((1, "thesis"), (2, "delayed-acks")):
        made.append(
            case(
                f"delay-aimd, {preset}: {least} segments are the least",
                AIMD,
                {**DELAY_AIMD, "least_window": least},
                floor_of_windows,
                kind=DelayAimd,
                segments=10,
                ssthresh=2 * MSS,
                controller="delay-aimd",
                preset=preset,
            )
        )
    adaptive = (("newreno", NEWRENO), ("cubic", CUBIC))
    for number, (controller, base) in enumerate(adaptive):
        wrong = {"initial_min_rtt": "115 ms", "adaptive_delta": 0.9}
        for name, changes, preset in (
            ("adaptive backoff", {}, "adaptive-backoff"),
            ("adaptive backoff, a wrong minRTT", wrong, None),
            ("adaptive backoff, a milder factor for ECN", {"beta_ecn": 0.85}, None),
        ):
            more = {"controller": controller} | ({"preset": preset} if preset else {})
            made.append(
                case(
                    f"{controller}, {name}: at random",
                    ADAPTIVE,
                    {**base, **BACKOFF, **changes},
                    lambda c, seed=600 + number: losses(c, seed),
                    segments=30,
                    ssthresh=45 * MSS,
                    **more,
                )
            )
    return made


def losses(controller: Controller, seed: int, steps: int = 65) -> list[dict[str, Any]]:
    """Runs losses and ECN echoes at random round-trip times."""
    draw = Random(seed)
    j, wait = Journey(controller), Wait(draw)
    phase, left = "open", 0
    for _ in range(steps):
        j.now += draw.randint(MS // 2, 20 * MS)
        wait.goes_on()
        left -= 1
        if left <= 0:
            phase = "open"
        chance = draw.random()
        if chance < 0.06 and j.cwnd() >= 8 * MSS:
            signal = "loss" if draw.random() < 0.7 else "ecn"
            j.put(signal, **wait.facts())
            phase, left = "recovery" if signal == "loss" else "cwr", draw.randint(2, 8)
            wait.waits //= 3
        elif chance > 0.993:
            j.put("timeout", **wait.facts())
            phase, left = "loss", draw.randint(2, 8)
        else:
            j.put("ack", acked=draw.randint(1, 3 * MSS), phase=phase, **wait.facts())
    return j.rows


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


def htcp() -> list[dict[str, Any]]:
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
