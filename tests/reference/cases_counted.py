"""Cases of CUBIC as kernels count it, beyond those of every preset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cases_windows import (
    CUBIC,
    CUBIC_PRESETS,
    LINUX,
    LINUX317,
    MS,
    MSS,
    Journey,
    case,
    script,
    wild,
)

if TYPE_CHECKING:
    from windows import Controller


def cycles(c: Controller, rtt_ms: int, rounds: int, acks: int) -> list[dict[str, Any]]:
    """Runs growth to two losses, an ECN echo between them, and a timeout; ACKs have RTT samples."""
    j = Journey(c)
    facts: dict[str, Any] = {"rtt_ms": rtt_ms, "rtt_ns": rtt_ms * MS}
    for signal, phase in (("loss", "recovery"), ("ecn", "cwr"), ("loss", "recovery")):
        j.rounds(rounds, acks=acks, **facts)
        j.signal(signal)
        j.rounds(1, acks=2, phase=phase, **facts)
    j.rounds(rounds, acks=acks, **facts)
    j.signal("timeout")
    j.rounds(1, acks=1, phase="loss", **facts)
    j.rounds(rounds, acks=acks, **facts)
    return j.rows


def cubic() -> list[dict[str, Any]]:
    """Returns cases with a short, a middling and a long path for each way of counting.

    Linux's has a script of all signals and a random walk as well.

    The presets of Linux and Linux 3.17 have HyStart, which is off here.
    """
    source = "Linux 6.18 tcp_cubic.c"
    linux: dict[str, Any] = {**CUBIC, **LINUX}
    ways: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("linux without HyStart", source, linux, {}),
        ("linux-3.17 without HyStart", "Linux 3.17 tcp_cubic.c", {**CUBIC, **LINUX317}, {}),
        *(
            (name, CUBIC_PRESETS[name][0], {**CUBIC, **CUBIC_PRESETS[name][1]}, {"preset": name})
            for name in ("linux-2.6.22", "ns-3")
        ),
    ]
    name = ways[0][0]
    return [
        case(
            f"{name}: each signal in each stage",
            source,
            linux,
            lambda c: script(c, 400),
            segments=10,
            ssthresh=None,
        ),
        case(
            f"{name}: at random",
            source,
            linux,
            lambda c: wild(c, 120),
            segments=30,
            ssthresh=45 * MSS,
        ),
    ] + [
        case(
            f"{name}: {rtt_ms} ms, {acks} ACKs a round trip",
            source,
            p,
            lambda c, r=rtt_ms, n=rounds, a=acks: cycles(c, r, n, a),
            segments=segments,
            ssthresh=2 * MSS,
            **more,
        )
        for name, source, p, more in ways
        for rtt_ms, rounds, acks, segments in ((7, 8, 2, 4), (20, 6, 6, 24), (400, 7, 3, 60))
    ]
