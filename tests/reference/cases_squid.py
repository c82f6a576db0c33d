"""Cases of RFC 1016's pause."""

from __future__ import annotations

from random import Random
from typing import Any

from squid import Squid

MS = 1_000_000
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


def wild(seed: int, mean_ms: int, quenches: float, steps: int = 100) -> list[tuple[str, int]]:
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
        squid_case("at random, mostly packets", {}, wild(401, 100, 0.05)),
        squid_case("at random, mostly quenches", {}, wild(402, 300, 0.8)),
        squid_case("at random, seldom", {}, wild(403, 3000, 0.3)),
        squid_case(
            "other numbers, at random",
            {"k_ns": 3 * MS, "i_ns": MS, "j_ns": 2 * MS, "e_ns": 50 * MS, "s_ns": 20 * MS},
            wild(404, 30, 0.2),
        ),
        squid_case(
            "no periods: each quench is an event, and each packet one",
            {"e_ns": 0, "s_ns": 0},
            wild(405, 30, 0.1),
        ),
    ]
