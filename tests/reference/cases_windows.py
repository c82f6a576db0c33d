"""Cases of the window-based controllers, and their parameters."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from random import Random
from typing import Any

from bbr import Bbr
from counted import CountedCubic
from delays import DelayAimd
from explicit_feedback import Rcp
from windows import Controller, Cubic, Event, NewReno

MSS = 1448
MS = 1_000_000
RFC5681 = "RFC 5681 § 3.1 and § 4.1; RFC 3465 § 2.1 to 2.3; RFC 3168 § 6.1.2"
RFC9438 = "RFC 9438 § 4.2 to 4.8, 4.10 and 5.8"

NEWRENO: dict[str, Any] = {
    "beta": 0.5,
    "beta_ecn": None,
    "beta_initial": None,
    "base": "flight-size",
    "ecn_in_slow_start": "beta",
    "rounding": "bytes",
    "increase": "abc",
    "abc_limit": 2,
    "abc_limit_after_timeout": 1,
    "slow_start": "standard",
    "grow_in_cwr": True,
}
CUBIC: dict[str, Any] = {
    "beta": 0.7,
    "beta_ecn": None,
    "beta_initial": None,
    "base": "flight-size",
    "ecn_in_slow_start": "beta",
    "rounding": "bytes",
    "c": 0.4,
    "fast_convergence": True,
    "fast_convergence_point": "beta",
    "reno_friendly": True,
    "reno_catches_up": True,
    "alpha_ecn": None,
    "ecn_new_stage": True,
    "growth": "fluid",
    "abc_limit": 2,
    "abc_limit_after_timeout": 1,
    "slow_start": "standard",
    "grow_in_cwr": True,
}
#: Parameters that the controllers of Linux and ns-3 share.
KERNEL = {
    "base": "cwnd",
    "rounding": "segments",
    "reno_catches_up": False,
    "abc_limit": None,
    "grow_in_cwr": False,
}
LINUX = {**KERNEL, "growth": "linux", "beta": 717 / 1024, "abc_limit_after_timeout": None}
LINUX317 = {**LINUX, "growth": "linux-3.17"}
LINUX2622 = {**KERNEL, "growth": "linux-2.6.22", "beta": 819 / 1024}
EVERY_PHASE = {"base": "cwnd", "ecn_in_slow_start": "beta-ecn"}

#: Readings of ABE: the changes of each, with their source.
NEWRENO_PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "rfc": (RFC5681, {}),
    "abe": ("RFC 8511 § 3: β_ecn 0.8 in congestion avoidance", {"beta_ecn": 0.8}),
    "paper": ("Khademi et al. 2017 (ABE) § III: β_ecn 0.8", {"beta_ecn": 0.8, **EVERY_PHASE}),
    "freebsd": (
        "FreeBSD cc_newreno.c with ABE: 80 % of the window in whole segments",
        {"beta_ecn": 0.8, **EVERY_PHASE, "rounding": "segments", "grow_in_cwr": False},
    ),
    "ns-3": (
        "ns-3 TcpNewReno with UseAbe: 0.7 of what is in flight",
        {"beta_ecn": 0.7, "ecn_in_slow_start": "beta-ecn"},
    ),
    "ns-3-linux-reno": (
        "ns-3 TcpLinuxReno with UseAbe: 0.7 of the window",
        {"beta_ecn": 0.7, **EVERY_PHASE},
    ),
    "neqo": ("neqo new_reno.rs: half of the window", {"base": "cwnd"}),
    "quicly": ("quicly cc-pico.c, Reno: half of the window", {"base": "cwnd"}),
    "pytcp": (
        "PyTCP tcp__cwnd.py: 17/20 of what is in flight",
        {"beta_ecn": 0.85, "ecn_in_slow_start": "beta-ecn"},
    ),
}
CUBIC_PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "rfc": (RFC9438, {}),
    "abe": ("RFC 8511 § 3: β_ecn 0.85 in congestion avoidance", {"beta_ecn": 0.85}),
    "paper": (
        "Khademi et al. 2017 (ABE) § III: β_ecn 0.85; no fast convergence",
        {"beta_ecn": 0.85, **EVERY_PHASE, "fast_convergence": False},
    ),
    "freebsd": (
        "FreeBSD cc_cubic.c: 0.7 of the window, half at the end of the first slow start",
        {"base": "cwnd", "beta_initial": 0.5},
    ),
    "ns-3": (
        "ns-3 TcpCubic with UseAbe: 0.85 of the window in whole segments; growth as it counts",
        {**KERNEL, "beta_ecn": 0.85, **EVERY_PHASE, "growth": "ns-3"},
    ),
    "linux-2.6.22": ("Linux 2.6.22 tcp_cubic.c, as in ns-2.35", LINUX2622),
    "neqo": ("neqo cubic.rs: 0.85 of the window", {"beta_ecn": 0.85, **EVERY_PHASE}),
    "quicly": (
        "quicly cc-pico.c, CUBIC: 0.85 of the window; α and W_max follow the factor used",
        {
            "beta_ecn": 0.85,
            "beta_initial": 0.5,
            **EVERY_PHASE,
            "fast_convergence_point": "midpoint",
            # Equals a Reno that keeps 0.8 on ECN: (1 + 0.8) (1 − 0.85) / ((1 − 0.8) (1 + 0.85)).
            "alpha_ecn": 0.27 / 0.37,
        },
    ),
    "pytcp": (
        "PyTCP tcp__session.py: 17/20 of what is in flight; the curve goes on",
        {"beta_ecn": 0.85, "ecn_in_slow_start": "beta-ecn", "ecn_new_stage": False},
    ),
}


class Journey:
    """Events of a connection as its controller sees them.

    Each event is recorded with the window after it.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.now = 0
        self.round_number = 0
        self.rows: list[dict[str, Any]] = []

    def cwnd(self) -> int:
        """Returns the window in whole bytes."""
        return self.controller.window()[0]

    def flight(self) -> int:
        """Returns the whole segments that the window permits, in bytes."""
        return self.cwnd() // MSS * MSS

    def put(self, event: str, **facts: Any) -> None:
        """Applies an event at the present time to the controller, and records it."""
        e = Event(
            event, self.now, facts.pop("flight", self.flight()), round=self.round_number, **facts
        )
        self.controller.on(e)
        cwnd, ssthresh = self.controller.window()
        # With a window below one segment, one segment may still be sent.
        real = max(self.controller.cwnd, Decimal(MSS))
        exact = float(round(real, 7)) if self.controller.REAL else cwnd
        default = asdict(Event("", 0, 0))
        row = {
            k: v
            for k, v in asdict(e).items()
            if k in {"event", "now_ns", "flight"} or v != default[k]
        }
        if self.controller.asks:
            row["asks"] = self.controller.asks
        if isinstance(self.controller, DelayAimd) and self.controller.spacing_ns():
            row["spacing_ns"] = self.controller.spacing_ns()
        if isinstance(self.controller, Bbr | Rcp):
            row["pace_bit_per_s"] = self.controller.pace()
        self.rows.append({**row, "cwnd": exact, "ssthresh": ssthresh})

    def rounds(self, count: int, *, acks: int = 3, rtt_ms: float = 100, **facts: Any) -> None:
        """Runs round trips with evenly spaced ACKs of all data in flight."""
        rtt = round(rtt_ms * MS)
        for _ in range(count):
            segments = self.flight() // MSS
            sizes = [(i + 1) * segments // acks - i * segments // acks for i in range(acks)]
            for size in sizes:
                self.now += rtt // acks
                if size > 0:
                    self.put("ack", acked=size * MSS, srtt_ns=rtt, **facts)
            self.round_number += 1

    def signal(self, event: str, **facts: Any) -> None:
        """Records a signal a little after the last ACK."""
        self.now += 250_000
        self.put(event, **facts)


def script(controller: Controller, rtt_ms: float = 100) -> list[dict[str, Any]]:
    """Runs losses, ECN echoes, timeouts and an idle period, with rounds of growth between."""
    j = Journey(controller)
    j.rounds(2, rtt_ms=rtt_ms)
    j.signal("ecn")
    j.rounds(1, rtt_ms=rtt_ms, phase="cwr")
    j.rounds(3, rtt_ms=rtt_ms)
    # Less data in flight than the window, so the two bases differ.
    j.signal("ecn", flight=j.flight() - 3 * MSS)
    j.rounds(1, rtt_ms=rtt_ms, phase="cwr", ece=True)
    j.rounds(4, rtt_ms=rtt_ms)
    j.signal("loss", flight=j.flight() - MSS)
    j.rounds(1, rtt_ms=rtt_ms, phase="recovery")
    j.rounds(3, rtt_ms=rtt_ms)
    j.signal("timeout")
    j.signal("timeout", nth=2, flight=MSS)
    j.rounds(4, rtt_ms=rtt_ms, phase="loss")
    # A later slow start, ended by an ECN echo.
    j.signal("timeout")
    j.rounds(3, rtt_ms=rtt_ms, phase="loss")
    j.signal("ecn", flight=j.flight() + 2 * MSS)
    j.rounds(3, rtt_ms=rtt_ms)
    j.rounds(2, rtt_ms=rtt_ms, limited=False)
    j.rounds(2, rtt_ms=rtt_ms)
    j.now += 3_000 * MS
    j.signal("idle", flight=0)
    j.rounds(2, rtt_ms=rtt_ms)
    return j.rows


def steady(controller: Controller, signal: str, rtt_ms: float, rounds: int) -> list[dict[str, Any]]:
    """Runs growth from one signal to the next, twice long (concave, plateau, convex), then less."""
    j = Journey(controller)
    for _ in range(2):
        j.signal(signal)
        j.rounds(rounds, acks=3, rtt_ms=rtt_ms)
    j.signal(signal)
    j.rounds(rounds // 4, acks=3, rtt_ms=rtt_ms)
    j.signal(signal)
    j.rounds(rounds // 2, acks=3, rtt_ms=rtt_ms)
    return j.rows


def wild(controller: Controller, seed: int, steps: int = 90) -> list[dict[str, Any]]:
    """Runs random events with odd sizes and times, a loss or mark in up to every thirtieth.

    Timeouts and idle periods are less frequent.
    """
    draw = Random(seed)
    j = Journey(controller)
    phase, left, nth = "open", 0, 0
    for _ in range(steps):
        j.now += int(draw.expovariate(1) * 30 * MS)
        left -= 1
        if left <= 0:
            phase = "open"
        cwnd = j.cwnd()
        flight = draw.randint(cwnd // 2, cwnd)
        chance = draw.random()
        if chance < 0.03 and flight >= 4 * MSS:
            phase, signal = ("recovery", "loss") if draw.random() < 0.5 else ("cwr", "ecn")
            j.put(signal, flight=flight)
            left = draw.randint(1, 12)
        elif chance < 0.04:
            nth = nth + 1 if phase == "loss" else 1
            j.put("timeout", flight=flight, nth=nth)
            phase, left = "loss", draw.randint(1, 12)
        elif chance < 0.045:
            j.put("idle", flight=0)
        else:
            if draw.random() < 0.1:
                j.round_number += 1
            acked = draw.choice([MSS, 2 * MSS, draw.randint(1, 4 * MSS), draw.randint(1, cwnd)])
            facts: dict[str, Any] = {"acked": acked, "flight": flight, "phase": phase}
            # After a timeout an echo may be old, and senders differ in their response.
            facts["ece"] = draw.random() < 0.05 and phase != "loss"
            facts["limited"] = draw.random() > 0.08
            facts["srtt_ns"] = draw.randint(1 * MS, 300 * MS)
            j.put("ack", **facts)
    return j.rows


def case(
    name: str,
    source: str,
    parameters: dict[str, Any],
    rows: Any,
    *,
    kind: type[Controller] | None = None,
    segments: int,
    ssthresh: int | None,
    **more: Any,
) -> dict[str, Any]:
    """Returns one case; `rows` drives a controller, by default NewReno or, with a C, CUBIC."""
    if kind is None and "c" in parameters:
        kind = Cubic if parameters["growth"] == "fluid" else CountedCubic
    controller = (kind or NewReno)(parameters, MSS, segments * MSS, ssthresh)
    start = {"mss": MSS, "initial_window": segments * MSS, "initial_ssthresh": ssthresh}
    return {
        "name": name,
        "source": source,
        **more,
        "parameters": parameters,
        "start": start,
        "events": rows(controller),
    }


def presets(
    base: dict[str, Any], table: dict[str, tuple[str, dict[str, Any]]], rtt_ms: float
) -> list[dict[str, Any]]:
    """Returns two cases for each preset: a script and a random walk."""
    cases = []
    for number, (name, (source, changes)) in enumerate(table.items()):
        p = {**base, **changes}
        cases.append(
            case(
                f"{name}: each signal in each stage",
                source,
                p,
                lambda c: script(c, rtt_ms),
                segments=10,
                ssthresh=None,
                preset=name,
            )
        )
        cases.append(
            case(
                f"{name}: at random",
                source,
                p,
                lambda c, seed=100 + number: wild(c, seed),
                segments=30,
                ssthresh=45 * MSS,
                preset=name,
            )
        )
    return cases


def newreno() -> list[dict[str, Any]]:
    """Returns all cases of NewReno."""
    per_ack = {**NEWRENO, "increase": "per-ack"}
    frozen = {**NEWRENO, "beta_ecn": 0.8, "grow_in_cwr": False, "abc_limit": None}
    bsd = "RFC 5681 § 3.1 eq. 2 and 3, per ACK"
    return [
        *presets(NEWRENO, NEWRENO_PRESETS, 100),
        case(
            "per ACK: each signal in each stage", bsd, per_ack, script, segments=10, ssthresh=None
        ),
        case(
            "per ACK: at random",
            bsd,
            per_ack,
            lambda c: wild(c, 21),
            segments=20,
            ssthresh=30 * MSS,
        ),
        case(
            "no limit to an ACK, no growth in CWR",
            RFC5681,
            frozen,
            lambda c: wild(c, 22),
            segments=20,
            ssthresh=30 * MSS,
        ),
    ]


def on(switch: bool) -> str:
    """Returns a switch in words."""
    return "on" if switch else "off"


def cubic() -> list[dict[str, Any]]:
    """Returns all cases of CUBIC."""
    cases = presets(CUBIC, CUBIC_PRESETS, 400)
    for fast in (True, False):
        for friendly in (True, False):
            p = {**CUBIC, "fast_convergence": fast, "reno_friendly": friendly}
            name = f"fast convergence {on(fast)}, Reno's window {on(friendly)}"
            for rtt_ms, rounds in ((400, 14), (20, 24)):
                cases.append(
                    case(
                        f"{name}: cycles of loss at {rtt_ms} ms",
                        "RFC 9438 § 4.2 to 4.7",
                        p,
                        lambda c, r=rtt_ms, n=rounds: steady(c, "loss", r, n),
                        segments=60,
                        ssthresh=10 * MSS,
                    )
                )

    def small(c: Controller) -> list[dict[str, Any]]:
        j = Journey(c)
        for _ in range(6):
            j.signal("ecn")
            j.rounds(2, acks=2)
        return j.rows

    def threshold_first(c: Controller) -> list[dict[str, Any]]:
        j = Journey(c)
        j.rounds(3)
        j.signal("idle", flight=0)
        j.rounds(1, acks=2)
        j.signal("ecn")
        j.rounds(3)
        return j.rows

    far = "an RTT of 4 s: the target is at most 1.5 windows"
    few = "ECN at two or three segments: one is the least"
    ended = "freebsd: a slow start that the threshold ended is not the first again"
    freebsd = {**CUBIC, **CUBIC_PRESETS["freebsd"][1]}
    section = "RFC 9438 § 4.2"
    old = "Reno's window keeps its gain, 20 ms"
    kept = {**CUBIC, "reno_catches_up": False}
    return [
        *cases,
        case(
            far, section, CUBIC, lambda c: steady(c, "loss", 4000, 8), segments=30, ssthresh=2 * MSS
        ),
        case(
            old,
            "RFC 8312 § 4.2, else RFC 9438",
            kept,
            lambda c: steady(c, "loss", 20, 24),
            segments=20,
            ssthresh=2 * MSS,
        ),
        case(few, "RFC 9438 § 4.6", CUBIC, small, segments=3, ssthresh=2 * MSS),
        case(
            ended,
            CUBIC_PRESETS["freebsd"][0],
            freebsd,
            threshold_first,
            segments=10,
            ssthresh=20 * MSS,
            preset="freebsd",
        ),
    ]


def hystart() -> list[dict[str, Any]]:
    """Returns the cases of HyStart++ before NewReno and CUBIC."""

    def rises(c: Controller) -> list[dict[str, Any]]:
        j = Journey(c)
        for rtt in (80, 80, 95, 95, 96, 97, 98, 99, 100, 100):
            j.rounds(1, acks=10, rtt_ms=rtt, rtt_ns=rtt * MS)
        return j.rows

    def spurious(c: Controller) -> list[dict[str, Any]]:
        j = Journey(c)
        for rtt in (40, 46, 41, 47, 54, 54):
            j.rounds(1, acks=10, rtt_ms=rtt, rtt_ns=rtt * MS)
        j.signal("ecn")
        j.rounds(2, acks=10, rtt_ms=60, rtt_ns=60 * MS)
        return j.rows

    def thresholds(last: int, below: int, at: int) -> Any:
        def rows(c: Controller) -> list[dict[str, Any]]:
            j = Journey(c)
            for rtt in (last, below, below, at, at):
                j.rounds(1, acks=8, rtt_ms=rtt / MS, rtt_ns=rtt)
            return j.rows

        return rows

    def few(c: Controller) -> list[dict[str, Any]]:
        j = Journey(c)
        j.rounds(1, acks=10, rtt_ms=80, rtt_ns=80 * MS)
        j.rounds(2, acks=7, rtt_ms=120, rtt_ns=120 * MS)
        j.rounds(1, acks=10, rtt_ms=120)
        j.rounds(1, acks=8, rtt_ms=120, rtt_ns=120 * MS)
        j.rounds(1, acks=10, rtt_ms=150, rtt_ns=150 * MS)
        j.signal("loss")
        j.rounds(2, acks=10, rtt_ms=120, rtt_ns=120 * MS)
        j.signal("timeout")
        # This is not the first slow start: no CSS phase follows, however the RTT rises.
        for rtt in (40, 60, 90):
            j.rounds(1, acks=10, rtt_ms=rtt, rtt_ns=rtt * MS, phase="loss")
        return j.rows

    def noise(seed: int) -> Any:
        def rows(c: Controller) -> list[dict[str, Any]]:
            draw = Random(seed)
            j = Journey(c)
            level = 50 * MS
            for number in range(8):
                level += draw.randint(-2 * MS, 5 * MS)
                j.round_number = number
                for _ in range(draw.randint(6, 14)):
                    j.now += level // 12
                    rtt = None if draw.random() < 0.1 else level + draw.randint(0, 6 * MS)
                    j.put("ack", acked=draw.randint(1, 12 * MSS), rtt_ns=rtt, srtt_ns=level)
            return j.rows

        return rows

    ms = MS
    table: list[tuple[str, Any]] = [
        ("the RTT rises and stays: five rounds of CSS", rises),
        ("the RTT rises and falls: slow start resumes", spurious),
        ("the least threshold, 4 ms", thresholds(16 * ms, 20 * ms - 1, 24 * ms - 1)),
        ("an eighth of the last RTT", thresholds(80 * ms, 90 * ms - 1, 101_249_999)),
        ("the largest threshold, 16 ms", thresholds(200 * ms, 216 * ms - 1, 232 * ms - 1)),
        ("seven samples judge nothing; signals end HyStart++", few),
        ("random RTTs, seed 1", noise(1)),
        ("random RTTs, seed 2", noise(2)),
    ]
    cases = []
    # CUBIC shares the code of slow start in most stacks: some of the cases show that it has it.
    for kind, base, some in (("newreno", NEWRENO, table), ("cubic", CUBIC, table[1::2])):
        p = {**base, "slow_start": "hystart++"}
        for name, rows in some:
            full = f"{kind}: {name}"
            cases.append(
                case(
                    full,
                    "RFC 9406 § 4.2 and 4.3",
                    p,
                    rows,
                    segments=10,
                    ssthresh=None,
                    controller=kind,
                )
            )
    return cases
