"""Cases of source quenches: BECN § IV-B, with one level or several, and the pause of RFC 1016."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import CUBIC, MS, MSS, NEWRENO, Journey, case
from timers import Squid

if TYPE_CHECKING:
    from windows import Controller


BECN = "BECN § IV-B"
DRAFT = "BECN § III on draft-salim-jhsbnns-ecn-00: it grows with the next ACK"
MECN = "BECN § II-B (iv) and § VII: multi-level feedback"

RENO = {**NEWRENO, "beta_quench": None, "rest_after_quench": "marked", "least_window": 2}
NS2 = {**RENO, "base": "cwnd", "increase": "per-ack", "least_window": 1}
RFC_CUBIC = {**CUBIC, "beta_quench": None, "rest_after_quench": "marked"}
HALVING = {**RFC_CUBIC, "beta_quench": 0.5, "base": "cwnd", "ecn_in_slow_start": "beta-ecn"}
EVERY = {"base": "cwnd", "ecn_in_slow_start": "beta-ecn"}


def script(controller: Controller) -> list[dict[str, Any]]:
    """Runs both kinds of quench and other signals in several stages, with growth between."""
    j = Journey(controller)
    j.rounds(2)
    j.signal("quench")
    j.rounds(1, phase="cwr")
    j.rounds(4)
    j.signal("quench", marked=False)
    j.rounds(1, phase="cwr")
    j.rounds(4)
    j.signal("ecn")
    j.rounds(1, phase="cwr")
    j.rounds(4)
    j.signal("quench", level=1, flight=j.flight() - 2 * MSS)
    j.rounds(1, phase="cwr")
    j.rounds(5)
    j.signal("loss")
    j.rounds(1, phase="recovery")
    j.rounds(2)
    j.signal("quench", level=7)
    j.rounds(1, phase="cwr")
    j.signal("timeout")
    j.rounds(2, phase="loss")
    j.signal("quench", level=2)
    j.rounds(1, phase="cwr")
    j.rounds(3)
    return j.rows


def wild(controller: Controller, seed: int, steps: int = 80) -> list[dict[str, Any]]:
    """Runs random events with odd sizes and times, a signal in up to every twenty-fifth."""
    draw = Random(seed)
    j = Journey(controller)
    phase, left = "open", 0
    for _ in range(steps):
        j.now += int(draw.expovariate(1) * 30 * MS)
        left -= 1
        if left <= 0:
            phase = "open"
        cwnd = j.cwnd()
        flight = draw.randint(cwnd // 2, cwnd)
        if draw.random() < 0.04 and cwnd >= 8 * MSS:
            signal = draw.choice(["quench", "quench", "quench", "loss", "ecn"])
            facts: dict[str, Any] = {}
            if signal == "quench":
                facts = {"marked": draw.random() < 0.7, "level": draw.randint(0, 7)}
            j.put(signal, flight=flight, **facts)
            phase, left = "recovery" if signal == "loss" else "cwr", draw.randint(1, 12)
        else:
            j.put(
                "ack",
                acked=draw.choice([MSS, 2 * MSS, draw.randint(1, cwnd)]),
                flight=flight,
                phase=phase,
                limited=draw.random() > 0.08,
                srtt_ns=draw.randint(1 * MS, 300 * MS),
            )
    return j.rows


def small(controller: Controller) -> list[dict[str, Any]]:
    """Runs consecutive quenches, down to the minimum window, and ACKs after them."""
    j = Journey(controller)
    for n in range(8):
        j.signal("quench", marked=n % 2 == 0)
    j.rounds(3, acks=2)
    return j.rows


def becn() -> list[dict[str, Any]]:
    """Returns all cases of source quenches."""
    made: list[dict[str, Any]] = []
    walks = (
        ("newreno", "BECN", "becn", BECN, NS2),
        ("newreno", "1998", "becn-1998", DRAFT, {**NS2, "rest_after_quench": "never"}),
        ("newreno", "RFC 5681", "rfc", BECN, RENO),
        ("cubic", "BECN", "becn", BECN, HALVING),
        ("cubic", "1998", "becn-1998", DRAFT, {**HALVING, "rest_after_quench": "never"}),
        ("cubic", "RFC 9438", "rfc", BECN, RFC_CUBIC),
    )
    for number, (controller, name, preset, source, p) in enumerate(walks):
        named = {"controller": controller, "preset": preset}
        made += [
            case(
                f"{controller}, {name}: each quench in each stage",
                source,
                p,
                script,
                segments=10,
                ssthresh=None,
                **named,
            ),
            case(
                f"{controller}, {name}: at random",
                source,
                p,
                lambda c, seed=300 + 2 * number: wild(c, seed),
                segments=30,
                ssthresh=45 * MSS,
                **named,
            ),
        ]
    levels = {"beta_quench": "0.8, 0.6, 0.5", **EVERY}
    always = {"rest_after_quench": "always", **EVERY}
    for controller, base in (("newreno", RENO), ("cubic", RFC_CUBIC)):
        for name, source, changes, seed in (
            ("three levels", MECN, levels, 21),
            ("a rest after drops, too", BECN, always, 22),
            ("a factor of its own", "RFC 8511 § 3, for quenches", {"beta_quench": 0.8}, 23),
            ("a rest by a timer", BECN, {"quench_rest": "srtt", **EVERY}, 24),
        ):
            made.append(
                case(
                    f"{controller}, {name}: at random",
                    source,
                    {**base, **changes},
                    lambda c, seed=seed: wild(c, seed),
                    segments=30,
                    ssthresh=45 * MSS,
                    controller=controller,
                )
            )
        made.append(
            case(
                f"{controller}, three levels: each quench in each stage",
                MECN,
                {**base, **levels},
                script,
                segments=10,
                ssthresh=None,
                controller=controller,
            )
        )
    made.append(
        case(
            "newreno, BECN: one segment is the least",
            BECN,
            NS2,
            small,
            segments=10,
            ssthresh=2 * MSS,
            controller="newreno",
            preset="becn",
        )
    )
    return made


S = 1_000 * MS
RFC = 'RFC 1016, "The SQuID Algorithm"'
#: Values of K, I, J, E and S.
STANDARD = {"k_ns": 20 * MS, "i_ns": 75 * MS, "j_ns": MS, "e_ns": 2 * S, "s_ns": S}


def squid_case(
    name: str, changes: dict[str, int], walk: list[tuple[str, int]], source: str = RFC
) -> dict[str, Any]:
    """Runs a case; `walk` has the times of quenches and packets, ns."""
    parameters = {**STANDARD, **changes}
    squid = Squid(*parameters.values())
    rows: list[dict[str, Any]] = []
    for event, now in walk:
        row: dict[str, Any] = {"event": event, "now_ns": now}
        if event == "quench":
            rows.append({**row, "begins": squid.quench(now), "pause_ns": squid.d})
        else:
            rows.append({**row, "pause_ns": squid.send(now)})
    return {"name": name, "source": source, "parameters": parameters, "events": rows}


def drawn(seed: int, mean_ms: int, quenches: float, steps: int = 100) -> list[tuple[str, int]]:
    """Draws quenches and packets at random times, some simultaneous or at an edge of a period."""
    draw = Random(seed)
    now, walk = 5 * S, [("quench", 5 * S)]
    for _ in range(steps):
        edges = (0, S - 1, S, 2 * S - 1, 2 * S)
        ragged = int(draw.expovariate(1) * mean_ms * MS)
        now += draw.choice(edges) if draw.random() < 0.1 else ragged
        walk.append(("quench" if draw.random() < quenches else "send", now))
    return walk


def squid() -> list[dict[str, Any]]:
    """Returns all cases of RFC 1016's pause."""
    sends = [("send", S * n // 4) for n in range(1, 60)]
    storm = [("quench", 100 * MS * n) for n in range(1, 50)]
    return [
        squid_case("no quench, no pause", {}, [("send", n * S) for n in range(1, 5)]),
        squid_case("one quench, and what is left of it", {}, [("quench", 0), *sends]),
        squid_case("a storm is an event each period", {}, storm),
        squid_case(
            "the edges of both periods",
            {},
            [
                ("quench", 0),
                ("send", S - 1),
                ("send", S),
                ("send", 2 * S - 1),
                ("quench", 2 * S - 1),
                ("quench", 2 * S),
                ("send", 2 * S),
                ("send", 3 * S - 1),
                ("send", 3 * S),
            ],
        ),
        squid_case("a long silence is one decrease", {}, [("quench", 0), ("send", 3600 * S)]),
        squid_case("at random, mostly packets", {}, drawn(401, 100, 0.05)),
        squid_case("at random, mostly quenches", {}, drawn(402, 300, 0.8)),
        squid_case("at random, seldom", {}, drawn(403, 3000, 0.3)),
        squid_case(
            "other numbers, at random",
            {"k_ns": 3 * MS, "i_ns": MS, "j_ns": 2 * MS, "e_ns": 50 * MS, "s_ns": 20 * MS},
            drawn(404, 30, 0.2),
        ),
        squid_case(
            "no periods: each quench is an event, and each packet one",
            {"e_ns": 0, "s_ns": 0},
            drawn(405, 30, 0.1),
        ),
    ]
