"""Cases of F-RTO: timeouts, some of them spurious, and the ACKs that follow them."""

from __future__ import annotations

from random import Random
from typing import Any

from frto import Frto

MSS = 1000
SOURCE = {
    True: "RFC 5682 § 3.1; Linux 6.18, tcp_process_loss",
    False: "RFC 5682 § 2.1; Linux 6.18, tcp_process_loss",
}


def ranges(flags: list[bool]) -> list[list[int]]:
    """Returns the byte ranges whose flag is set."""
    runs: list[list[int]] = []
    for n, flag in enumerate(flags):
        if not flag:
            continue
        if runs and runs[-1][1] == n * MSS:
            runs[-1][1] += MSS
        else:
            runs.append([n * MSS, (n + 1) * MSS])
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
            "high": count * MSS,
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
            # The first hole is filled, and the cumulative ACK reaches the SACKed data after it.
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
        told = [[start * MSS, end * MSS] for start, end in blocks]
        rows.append(
            {
                "event": "ack",
                "ack": una * MSS,
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
            rows.append({"event": "sent", "high": len(frto.sent) * MSS})
    return rows, verdict


def cases() -> list[dict[str, Any]]:
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
                parameters = {"mss": MSS, "sack": sack}
                made.append(
                    {
                        "name": name,
                        "source": SOURCE[sack],
                        "parameters": parameters,
                        "events": rows,
                    }
                )
            seed += 1
    return made
