"""Cases of CUBIC as kernels count it, beyond those of every preset, and of classic HyStart."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cases_windows import (
    CUBIC,
    CUBIC_PRESETS,
    LINUX,
    LINUX317,
    MS,
    MSS,
    NEWRENO,
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


def stage(c: Controller, rtt_ms: int, before: int, after: int, acks: int) -> list[dict[str, Any]]:
    """Runs growth to one loss and after it, so long that whole ticks and shares are seen."""
    j = Journey(c)
    facts: dict[str, Any] = {"rtt_ms": rtt_ms, "rtt_ns": rtt_ms * MS}
    j.rounds(before, acks=acks, **facts)
    j.signal("loss")
    j.rounds(1, acks=2, phase="recovery", **facts)
    j.rounds(after, acks=acks, **facts)
    return j.rows


def cubic() -> list[dict[str, Any]]:
    """Returns cases with a short, a middling and a long path for each way of counting.

    Linux's has a script of all signals and a random walk as well. Linux's and that of Linux 2.6.22
    have long stages.

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
    #: A way, the RTT in ms, round trips before and after the loss, ACKs of each, and segments.
    stages = ((0, 505, 5, 15, 1, 19), (2, 1031, 4, 4, 2, 24), (2, 425, 6, 4, 2, 4))
    made = [
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
    for way, rtt_ms, before, after, acks, segments in stages:
        name, source, p, more = ways[way]
        made.append(
            case(
                f"{name}: {rtt_ms} ms, a loss",
                source,
                p,
                lambda c, r=rtt_ms, b=before, n=after, a=acks: stage(c, r, b, n, a),
                segments=segments,
                ssthresh=2 * MSS,
                **more,
            )
        )
    return made


Rows = list[dict[str, Any]]


def flow(j: Journey, acks: int, gap_ns: int, rtt_ns: int, **facts: Any) -> None:
    """Runs `acks` ACKs of a segment each, `gap_ns` apart."""
    for _ in range(acks):
        j.now += gap_ns
        j.put("ack", acked=MSS, rtt_ns=rtt_ns, srtt_ns=rtt_ns, **facts)


def train(c: Controller) -> Rows:
    """Runs rounds of 10, 20 and 40 segments, the third with a train over (40 + 1) / 2 ms."""
    j = Journey(c)
    for segments in (10, 20, 40):
        flow(j, segments, MS, 40 * MS)
        j.now += 10 * MS
    flow(j, 20, MS, 41 * MS)
    return j.rows


def torn(c: Controller) -> Rows:
    """Runs a gap of more than 2 ms, which ends a round's train; a gap of 2 ms does not."""
    j = Journey(c)
    flow(j, 10, MS, 40 * MS)
    flow(j, 12, MS, 40 * MS)
    flow(j, 1, 2 * MS + 1, 40 * MS)
    flow(j, 30, 2 * MS + 1, 40 * MS)
    flow(j, 40, 2 * MS, 43 * MS)
    return j.rows


def rises(least: int, below: int, at: int) -> Any:
    """Makes a script: the minimum of nine samples must exceed the overall minimum by the bound."""

    def rows(c: Controller) -> Rows:
        j = Journey(c)
        flow(j, 10, 3 * MS, least)
        flow(j, 20, 3 * MS, below)
        flow(j, 40, 3 * MS, at)
        return j.rows

    return rows


def low(c: Controller) -> Rows:
    """Runs windows below 16 segments, where neither test applies."""
    j = Journey(c)
    flow(j, 5, MS, 2 * MS)
    flow(j, 30, MS, 20 * MS, limited=False)
    # Data in flight may be less than the window, which is the criterion.
    flow(j, 12, MS, 20 * MS, flight=12 * MSS)
    return j.rows


def again(c: Controller) -> Rows:
    """Runs a loss, which ends HyStart, and a timeout, which restarts it with its delays."""
    j = Journey(c)
    flow(j, 10, 3 * MS, 40 * MS)
    j.signal("loss")
    flow(j, 10, MS, 90 * MS)
    j.signal("timeout")
    flow(j, 30, 3 * MS, 90 * MS, phase="loss", flight=20 * MSS)
    flow(j, 60, MS, 90 * MS, phase="loss", flight=20 * MSS)
    return j.rows


def noise(seed: int) -> Any:
    """Makes a script of ACKs of one to four segments at odd times, some without a sample."""

    def rows(c: Controller) -> Rows:
        draw = Random(seed)
        j = Journey(c)
        level = 30 * MS + 7
        for _ in range(120):
            j.now += draw.choice([300_011, 900_017, 1_200_013, 2_100_003])
            level += draw.randint(-40_009, 90_013)
            rtt = None if draw.random() < 0.1 else level + draw.randint(0, 3 * MS)
            j.put("ack", acked=draw.randint(1, 4) * MSS, flight=30 * MSS, rtt_ns=rtt, srtt_ns=level)
        return j.rows

    return rows


def hystart_classic() -> list[dict[str, Any]]:
    """Returns all cases of classic HyStart."""
    table: list[tuple[str, Any]] = [
        ("a train of half a round trip", train),
        ("a train that is torn", torn),
        ("the least rise, 4 ms", rises(16 * MS, 20 * MS, 20 * MS + 2)),
        ("an eighth of the least delay", rises(80 * MS, 90 * MS, 90 * MS + 2)),
        ("the largest rise, 16 ms", rises(200 * MS, 216 * MS, 216 * MS + 2)),
        ("a window below 16 segments", low),
        ("a loss ends it, a timeout begins it anew", again),
        ("at random, seed 1", noise(1)),
        ("at random, seed 2", noise(2)),
    ]
    # CUBIC shares the code of slow start in most stacks: some of the cases show that it has it.
    return [
        case(
            f"{kind}: classic: {name}",
            "Ha & Rhee 2008; Linux 6.18, tcp_cubic.c",
            {**base, "slow_start": "hystart"},
            rows,
            segments=10,
            ssthresh=None,
            controller=kind,
        )
        for kind, base, some in (("newreno", NEWRENO, table), ("cubic", CUBIC, table[0:8:3]))
        for name, rows in some
    ]
