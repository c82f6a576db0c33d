"""Cases of the retransmission timer, of PRR and of F-RTO."""

from __future__ import annotations

from random import Random
from typing import Any

from timers import (
    FREEBSD_BACKOFF,
    FREEBSD_SYN_BACKOFF,
    Frto,
    Prr,
    PrrLinux,
    Rto,
    RtoByTable,
    RtoLinux,
)

MS = 1_000_000
S = 1_000 * MS
MSS = 1448

STANDARD: dict[str, Any] = {
    "min_ns": S,
    "initial_ns": S,
    "max_ns": 60 * S,
    "granularity_ns": 1,
    "backoff": "exponential",
    "backoff_after": 0,
}


LINUX: dict[str, Any] = {
    **STANDARD,
    "arithmetic": "linux",
    "variation_min_ns": 200 * MS,
    "min_ns": 200 * MS,
    "max_ns": 120 * S,
}
FLOOR = {"variation_min_ns": 5 * MS, "min_ns": 5 * MS}


def rto_case(
    name: str,
    source: str,
    changes: dict[str, Any],
    seed: int,
    samples: list[int | None],
    *,
    table: tuple[int, ...] = (),
) -> dict[str, Any]:
    """Runs `samples`, RTTs in ns or None for an expiry; with a seed, random ones follow.

    With a table, the backoff is the table's, and the parameters describe the same backoff.
    """
    parameters = {**STANDARD, **changes}
    draw = Random(seed)
    for _ in range(25 if seed else 0):
        if draw.random() < 0.2:
            samples.extend([None] * draw.randint(1, 9))
        samples.extend(draw.randint(1 * MS, 400 * MS) for _ in range(draw.randint(1, 3)))
    rto = RtoByTable(**parameters, table=table) if table else Rto(**parameters)
    rows: list[dict[str, Any]] = [{"event": "start", **shown(rto)}]
    for sample in samples:
        if sample is None:
            rto.expired += 1
            rows.append({"event": "expiry", **shown(rto)})
        else:
            rto.sample(sample)
            rows.append({"event": "sample", "rtt_ns": sample, **shown(rto)})
    return {"name": name, "source": source, "parameters": parameters, "events": rows}


def shown(rto: Rto) -> dict[str, Any]:
    """Returns the timer's values, rounded to nanoseconds."""
    srtt = None if rto.srtt is None else round(rto.srtt)
    return {"srtt_ns": srtt, "rttvar_ns": round(rto.rttvar), "rto_ns": round(rto.timeout())}


def rto() -> list[dict[str, Any]]:
    """Returns all cases of the timer."""
    ms = [100, 180, 120, 80, 300, 300, 300, 300, 40, 40, 40]
    walk: list[int | None] = [n * MS for n in ms]
    expiries: list[int | None] = [100 * MS, *[None] * 9, 100 * MS, None, None, 90 * MS]
    star = "Mondal & Kuzmanovic 2008 (TCP*) § 2, Fig. 1"
    rfc = "RFC 6298 § 2 and § 5"
    linux = {"min_ns": 200 * MS, "max_ns": 120 * S, "initial_ns": S}
    cases = [
        rto_case("the RFC's bounds", rfc, {}, 0, list(walk)),
        rto_case("no lower bound: the estimator itself", rfc, {"min_ns": 1}, 0, list(walk)),
        rto_case("no lower bound, at random", rfc, {"min_ns": 1}, 31, []),
        rto_case("200 ms at least, at random", rfc, linux, 32, []),
        rto_case(
            "a clock of 10 ms, 3 s at first",
            rfc,
            {"granularity_ns": 10 * MS, "min_ns": 1, "initial_ns": 3 * S},
            0,
            list(walk),
        ),
        rto_case(
            "a clock of 500 ms: G outweighs 4 RTTVAR",
            rfc,
            {"granularity_ns": 500 * MS, "min_ns": 1, "max_ns": 64 * S},
            33,
            [],
        ),
        rto_case("backoff: 1, 2, 4, …", rfc, {}, 0, list(expiries)),
    ]
    for n in (0, 1, 2, 3, 6):
        p = {"backoff": "after", "backoff_after": n, "max_ns": 64 * S}
        cases.append(rto_case(f"TCP*({n})", star, p, 0, list(expiries)))
    cases.append(
        rto_case(
            "TCP*(3), at random", star, {"backoff": "after", "backoff_after": 3, **linux}, 34, []
        )
    )
    cases.append(rto_case("TCP*(∞)", star, {"backoff": "off"}, 0, list(expiries)))
    bound = "Linux 6.18, tcp_timer.c, tcp_retransmit_timer with TCP_RTO_MAX_MS set at each expiry"
    for n, least in ((1, 200), (3, 200), (6, 200), (6, 900), (3, 1300)):
        p = {**linux, "min_ns": least * MS, "backoff": "bounded", "backoff_after": n}
        cases.append(rto_case(f"bounded for {n}, {least} ms at least", bound, p, 0, list(expiries)))
    return [*cases, *bounded_backoff(), *slop(), *linux_rto()]


def slop() -> list[dict[str, Any]]:
    """Returns the cases of the time that FreeBSD adds after the backoff."""
    source = "FreeBSD 14, sys/netinet/tcp_timer.h, TCPT_RANGESET; tcp_timer.c, tcp_backoff"
    bsd = {
        "min_ns": 30 * MS,
        "max_ns": 64 * S,
        "granularity_ns": MS,
        "backoff_rounds": 9,
        "slop_ns": 200 * MS,
    }
    even: list[int | None] = [*[20 * MS] * 12, *[None] * 12, 20 * MS, None]
    lost: list[int | None] = [None, None, 100 * MS, None]
    return [
        rto_case("FreeBSD: 200 ms are not doubled", source, bsd, 0, even),
        rto_case("FreeBSD: a first timeout has none of them", source, bsd, 0, lost),
        rto_case("FreeBSD: 200 ms more, at random", source, bsd, 38, []),
    ]


def estimated(
    name: str, rounds: list[list[int]], changes: dict[str, int] | None = None
) -> dict[str, Any]:
    """Runs samples in µs, by round trip, one ACK of a segment each; then three expiries."""
    parameters = {**LINUX, **(changes or {})}
    rto = RtoLinux(**parameters)
    rows: list[dict[str, Any]] = [{"event": "start", **shown(rto)}]
    una, sent = 0, 0
    for samples in rounds:
        sent = max(sent, una + len(samples) * MSS)
        for number, sample in enumerate(samples):
            # The first sample is that of the handshake.
            una += MSS if rto.eighths else 0
            rto.measured(sample * 1000, una, sent if number else una)
            row = {"event": "sample", "rtt_ns": sample * 1000, "una": una}
            rows.append({**row, "sent": sent if number else una, **shown(rto)})
    for _ in range(3):
        rto.expired += 1
        rows.append({"event": "expiry", **shown(rto)})
    source = "Linux 6.18, net/ipv4/tcp_input.c, tcp_rtt_estimator"
    return {"name": name, "source": source, "parameters": parameters, "events": rows}


def linux_rto() -> list[dict[str, Any]]:
    """Returns the cases of Linux's estimator: ramps, steps and random samples."""

    def drawn(seed: int, most: int) -> list[list[int]]:
        draw = Random(seed)
        return [[draw.randint(1, most) for _ in range(draw.randint(1, 12))] for _ in range(10)]

    ramp = [[40_000]]
    ramp += [[40_000 + 500 * (10 * turn + k) for k in range(10)] for turn in range(10)]
    even = [[90_000] * 10] * 5
    step = [[20_000]] + [[20_000] * 8] * 3 + [[900_000] * 8] * 2 + [[20_000] * 8] * 12
    return [
        estimated("Linux: a round trip that grows, and stays", [*ramp, *even]),
        estimated("Linux: a step up and down", step),
        estimated("Linux: at random, long", drawn(35, 900_000)),
        estimated("Linux: at random, shorter than its floor", drawn(36, 30_000)),
        estimated("Linux: at random, with another floor", drawn(37, 90_000), FLOOR),
    ]


def bounded_backoff() -> list[dict[str, Any]]:
    """Returns the cases of a backoff limited to seven timeouts, and of FreeBSD's tables."""
    # The base is 300 ms, without an upper bound that would hide the end of the doubling.
    expiries: list[int | None] = [100 * MS, *[None] * 14, 100 * MS, None, None, 90 * MS]
    wide = {"min_ns": 200 * MS, "initial_ns": 3 * S, "max_ns": 100_000 * S, "backoff_rounds": 6}
    note = "Mondal & Kuzmanovic 2008 (TCP*) § 3.1, Fig. 1 and footnote 5"
    cases = [
        rto_case(
            f"TCP*({n}), seven in a row at most",
            note,
            {**wide, "backoff": "after", "backoff_after": n},
            0,
            list(expiries),
        )
        for n in range(7)
    ]
    off = {**wide, "backoff": "off"}
    cases.append(rto_case("TCP*(∞), seven in a row at most", note, off, 0, list(expiries)))
    source = "FreeBSD 6, sys/netinet/tcp_timer.c"
    bsd = {**wide, "max_ns": 10_000 * S}
    lost: list[int | None] = [None] * 14
    return [
        *cases,
        rto_case("FreeBSD: tcp_backoff", source, bsd, 0, list(expiries), table=FREEBSD_BACKOFF),
        rto_case(
            "FreeBSD: tcp_syn_backoff",
            source,
            {**bsd, "backoff": "after", "backoff_after": 4, "backoff_rounds": 10},
            0,
            lost,
            table=FREEBSD_SYN_BACKOFF,
        ),
    ]


def prr_case(name: str, start: dict[str, int], acks: Any) -> dict[str, Any]:
    """Runs `acks`, which gives the delivered and the newly lost bytes for each ACK.

    The bytes that `sndcnt` permits are sent in whole segments.
    """
    prr = Prr(**start)
    rows: list[dict[str, Any]] = [{"event": "sent", "bytes": MSS}]
    prr.sent(MSS)
    pipe = start["recover_fs"]
    for delivered, lost in acks:
        pipe = max(0, pipe - delivered - lost)
        sndcnt = prr.ack(delivered, pipe)
        rows.append({"event": "ack", "delivered": delivered, "pipe": pipe, "sndcnt": sndcnt})
        size = sndcnt // MSS * MSS
        if size:
            prr.sent(size)
            pipe += size
            rows.append({"event": "sent", "bytes": size})
    source = "RFC 6937 § 3, PRR-SSRB"
    return {"name": name, "source": source, "parameters": start, "events": rows}


def prr() -> list[dict[str, Any]]:
    """Returns all cases of proportional rate reduction."""

    def start(flight: int, beta: float) -> dict[str, int]:
        return {"recover_fs": flight * MSS, "ssthresh": int(flight * MSS * beta), "mss": MSS}

    def random(seed: int) -> list[tuple[int, int]]:
        draw = Random(seed)
        rows = []
        for _ in range(50):
            delivered = draw.choice([MSS, MSS, 2 * MSS, draw.randint(0, 5 * MSS), 0])
            rows.append((delivered, draw.choice([0, 0, 0, MSS, 4 * MSS])))
        return rows

    one = [(MSS, 0)] * 3
    return [
        prr_case("one loss of twenty, β 0.5", start(20, 0.5), [(MSS, MSS), *[(MSS, 0)] * 30]),
        prr_case("one loss of twenty, β 0.7", start(20, 0.7), [(MSS, MSS), *[(MSS, 0)] * 30]),
        prr_case(
            "fifteen losses of twenty: the bound works",
            start(20, 0.5),
            [*one, (MSS, 15 * MSS), *[(MSS, 0)] * 20],
        ),
        prr_case("stretch ACKs", start(40, 0.7), [(5 * MSS, MSS), *[(5 * MSS, 0), (0, 0)] * 8]),
        prr_case(
            "an odd RecoverFS",
            {"recover_fs": 33_333, "ssthresh": 16_667, "mss": MSS},
            [(1000, 0), (777, 3)] * 25,
        ),
        prr_case("at random, β 0.5", start(60, 0.5), random(41)),
        prr_case("at random, β 0.7", start(60, 0.7), random(42)),
        *linux_prr(),
    ]


def linux_case(name: str, window: int, threshold: int, acks: Any) -> dict[str, Any]:
    """Runs `acks`, which gives (delivered, lost, safe) for each ACK, in segments."""
    start = {"recover_fs": window * MSS, "ssthresh": threshold * MSS, "mss": MSS}
    prr = PrrLinux(**start)
    rows: list[dict[str, Any]] = []
    pipe = window
    for delivered, lost, safe in acks:
        pipe = max(0, pipe - delivered - lost)
        sndcnt = prr.answer(delivered * MSS, pipe * MSS, safe=safe)
        row = {"delivered": delivered * MSS, "pipe": pipe * MSS, "safe": safe, "sndcnt": sndcnt}
        rows.append({"event": "ack", **row})
        if sndcnt:
            prr.sent(sndcnt)
            pipe += sndcnt // MSS
            rows.append({"event": "sent", "bytes": sndcnt})
    source = "RFC 9937 § 6; Linux 6.18, tcp_cwnd_reduction"
    parameters = {**start, "prr_rule": "linux"}
    return {"name": name, "source": source, "parameters": parameters, "events": rows}


def linux_prr() -> list[dict[str, Any]]:
    """Returns the cases of Linux's proportional rate reduction."""

    def random(seed: int) -> list[tuple[int, int, bool]]:
        draw = Random(seed)
        return [
            (draw.choice([1, 1, 1, 2, 5]), draw.choice([0, 0, 0, 1, 6]), draw.random() < 0.5)
            for _ in range(50)
        ]

    one = (1, 0, False)
    return [
        linux_case("Linux: one loss of twenty, to a half", 20, 10, [(1, 1, False), *[one] * 30]),
        linux_case("Linux: a mark, to seven tenths", 20, 14, [(1, 0, True)] * 30),
        linux_case(
            "Linux: fifteen losses of twenty, safe or not",
            20,
            10,
            [one, one, (1, 15, False), *[one] * 5, *[(1, 0, True)] * 10],
        ),
        linux_case("Linux: stretch ACKs", 40, 28, [(5, 1, False), *[(5, 0, True)] * 12]),
        linux_case("Linux: at random, to a half", 60, 30, random(51)),
        linux_case("Linux: at random, to seven tenths", 61, 42, random(52)),
    ]


SEGMENT = 1000
FRTO_SOURCE = {
    True: "RFC 5682 § 3.1; Linux 6.18, tcp_process_loss",
    False: "RFC 5682 § 2.1; Linux 6.18, tcp_process_loss",
}


def ranges(flags: list[bool]) -> list[list[int]]:
    """Returns the byte ranges whose flag is set."""
    runs: list[list[int]] = []
    for n, flag in enumerate(flags):
        if not flag:
            continue
        if runs and runs[-1][1] == n * SEGMENT:
            runs[-1][1] += SEGMENT
        else:
            runs.append([n * SEGMENT, (n + 1) * SEGMENT])
    return runs


def drawn(seed: int, *, sack: bool) -> tuple[list[dict[str, Any]], str]:
    """Runs a timeout and ACKs; returns the events and the last verdict.

    There are at most six ACKs, none after the timeout is classified or all data sent before it is
    acknowledged.
    """
    draw = Random(seed)
    count = draw.randint(1, 12)
    sacked = [sack and n > 0 and draw.random() < 0.15 for n in range(count)]
    probed = count > 1 and draw.random() < 0.3
    again = [n == 0 or (n == count - 1 and probed) for n in range(count)]
    frto = Frto(again, sacked, sack=sack)
    rows: list[dict[str, Any]] = [
        {
            "event": "timeout",
            "high": count * SEGMENT,
            "again": ranges(again),
            "sacked": ranges(sacked),
        }
    ]
    una, verdict = 0, "open"
    lost = draw.random() < 0.5
    for _ in range(6):
        top = len(frto.sent)
        arrived = {n for n, segment in enumerate(frto.sent) if segment.reported}
        step = draw.random()
        if step < 0.6 and una < top:
            # Advance of the cumulative ACK: a segment, or up to two if none is lost; then past
            # SACKed data that follows.
            una += 1 if lost else draw.randint(1, min(2, top - una))
            while una in arrived:
                una += 1
        blocks: list[tuple[int, int]] = []
        if sack and una < top - 1 and (lost or step > 0.5):
            start = draw.randint(max(una + 1, frto.outstanding if lost else 0), top)
            if start < top:
                blocks.append((start, draw.randint(start + 1, top)))
        waits = draw.random() < 0.8
        verdict = frto.ack(una, blocks, waits=waits)
        told = [[start * SEGMENT, end * SEGMENT] for start, end in blocks]
        rows.append(
            {
                "event": "ack",
                "ack": una * SEGMENT,
                "sack": told,
                "waits": waits,
                "verdict": verdict,
            }
        )
        if verdict in {"spurious", "lost"} or una >= frto.outstanding:
            break
        if verdict == "new":
            for _ in range(draw.randint(1, 2)):
                frto.send_new()
            rows.append({"event": "sent", "high": len(frto.sent) * SEGMENT})
    return rows, verdict


def frto() -> list[dict[str, Any]]:
    """Returns some cases of each outcome."""
    made: list[dict[str, Any]] = []
    for sack in (True, False):
        left = {"spurious": 10, "lost": 10, "open": 6}
        seed = 0
        while any(left.values()):
            rows, verdict = drawn(seed, sack=sack)
            if left.get(verdict, 0) > 0:
                left[verdict] -= 1
                name = f"{verdict}, {'' if sack else 'without SACK, '}drawn with {seed}"
                parameters = {"mss": SEGMENT, "sack": sack}
                made.append(
                    {
                        "name": name,
                        "source": FRTO_SOURCE[sack],
                        "parameters": parameters,
                        "events": rows,
                    }
                )
            seed += 1
    return made
