"""Cases of RTT samples: segments and ACKs, some late, some lost, and retransmissions."""

from __future__ import annotations

from random import Random
from typing import Any

from round_trips import Ack, Sees

MS = 1_000_000
US = 1_000
MSS = 1000

TIMER = "RFC 7323 § 4.1, 4.3"
OLDEST = "McCullagh 2008 § 5.2: Linux until 2.6.23"
NEWEST = "McCullagh 2008 § 5.2: Linux since 2.6.24"
SACK = "Linux 6.18, tcp_clean_rtx_queue and tcp_sacktag_one"
ONE_WAY = "RFC 6817 § 2.4"
LONE = "McCullagh 2008 § 5.2"
WINDOW = "Jacobson 1988; RFC 6298 § 3"
CLOCK = "McCullagh 2008 § 5.1; RFC 6298 § 2"

BASE: dict[str, Any] = {
    "rtt_from": "timer",
    "rtt_clock_ns": US,
    "rtt_every": "ack",
    "rtt_lone_acks": True,
    "ack_every": 2,
    "clock_ns": 1,
}
#: Lead of the receiver's clock, whose 32 bits wrap within a case.
AHEAD_US = 2**32 - 40_000


class Journey:
    """A path of changing delay, a receiver behind it, and the controller's samples."""

    def __init__(self, p: dict[str, Any], seed: int) -> None:
        self.draw = Random(seed)
        self.sees = Sees(p)
        self.rows: list[dict[str, Any]] = []
        self.now = self.high = self.acked = 0
        #: Ranges received above a hole.
        self.above: list[tuple[int, int]] = []
        self.stamps: dict[int, int] = {}
        self.holes: list[tuple[int, int]] = []

    def passes(self, least: int, most: int) -> None:
        """Lets time pass, in whole nanoseconds."""
        self.now += self.draw.randint(least, most)

    def handshake(self) -> None:
        """Sends a SYN, in some cases twice."""
        once = self.draw.random() < 0.6
        sent = self.now
        if not once:
            self.passes(1000 * MS, 1000 * MS)
        ecr = self.now if self.draw.random() < 0.5 else sent
        last = self.now
        self.passes(20 * MS, 80 * MS)
        seen = self.sees.handshake(self.now, last, ecr, once=once)
        row = {"event": "handshake", "now_ns": self.now, "sent_ns": last, "ecr_ns": ecr}
        self.rows.append({**row, "once": once, "seen_ns": seen})

    def goes(self, seq: int, end: int) -> None:
        """Sends a segment."""
        self.stamps[end] = self.now
        self.sees.goes(seq, end, self.now)
        self.rows.append({"event": "sent", "now_ns": self.now, "seq": seq, "end": end})

    def flight(self) -> None:
        """Sends a few segments, of which some are lost or late."""
        went = []
        for _ in range(self.draw.randint(1, 6)):
            self.passes(0, 9 * MS)
            end = self.high + self.draw.choice([MSS, MSS, self.draw.randint(1, MSS)])
            self.goes(self.high, end)
            went.append((self.high, end))
            self.high = end
        self.passes(15 * MS, 60 * MS)
        if self.draw.random() < 0.5:
            self.draw.shuffle(went)
        waits: list[int] = []
        for seq, end in went:
            if self.draw.random() < 0.15:
                self.holes.append((seq, end))
                continue
            self.arrives(seq, end, waits)
        # The delayed-ACK timer fires.
        if waits:
            self.passes(30 * MS, 60 * MS)
            self.answers(waits)

    def arrives(self, seq: int, end: int, waits: list[int]) -> None:
        """Receives a segment; each second one is acknowledged, out-of-order ones at once."""
        self.above = merged([*self.above, (seq, end)])
        waits.append(end)
        filled = self.above[0][0] <= self.acked
        if len(waits) == 2 or not filled or len(self.above) > 1:
            self.passes(0, 3 * MS)
            self.answers(waits)

    def answers(self, waits: list[int]) -> None:
        """Sends an ACK, which arrives or is lost."""
        if self.above and self.above[0][0] <= self.acked:
            self.acked = max(self.acked, self.above.pop(0)[1])
        ecr = min(self.stamps[end] for end in waits)
        newest = waits[-1]
        waits.clear()
        if self.draw.random() < 0.08:
            return
        blocks = [b for b in self.above if b[0] < newest <= b[1]]
        blocks += [b for b in self.above if b not in blocks]
        took = self.draw.randint(9_000, 60_000)
        told = self.draw.random() < 0.9
        ack = Ack(self.now, self.acked, blocks[:3], ecr, took if told else None)
        seen = self.sees.hears(ack)
        row: dict[str, Any] = {"event": "ack", "now_ns": self.now, "ack": self.acked, "ecr_ns": ecr}
        if blocks:
            row["sack"] = [list(block) for block in blocks[:3]]
        if told:
            row["delay_us"] = (took + AHEAD_US) % 2**32
        self.rows.append({**row, "seen_ns": seen})

    def repairs(self) -> None:
        """Retransmits missing segments, most of which arrive."""
        self.passes(20 * MS, 200 * MS)
        again, self.holes = self.holes, []
        waits: list[int] = []
        for seq, end in again:
            self.goes(seq, end)
        self.passes(15 * MS, 60 * MS)
        for seq, end in again:
            if self.draw.random() < 0.1:
                self.holes.append((seq, end))
            else:
                self.arrives(seq, end, waits)
        if waits:
            self.answers(waits)


def merged(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges blocks into as few as possible, in order."""
    joined: list[tuple[int, int]] = []
    for seq, end in sorted(blocks):
        if joined and seq <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((seq, end))
    return joined


def rows(p: dict[str, Any], seed: int, flights: int) -> list[dict[str, Any]]:
    """Runs a connection from start to end."""
    j = Journey(p, seed)
    j.handshake()
    for _ in range(flights):
        j.flight()
        if j.holes and j.draw.random() < 0.6:
            j.repairs()
    return j.rows


def cases() -> list[dict[str, Any]]:
    """Returns all cases of RTT samples."""
    kinds: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("echoed timestamps", TIMER, {}),
        ("echoed timestamps in ticks", TIMER, {"clock_ns": 10 * MS}),
        ("the oldest segment", OLDEST, {"rtt_from": "oldest"}),
        ("the newest segment", NEWEST, {"rtt_from": "newest"}),
        ("what SACK reports", SACK, {"rtt_from": "sack"}),
        ("one way", ONE_WAY, {"rtt_from": "one-way"}),
        ("the newest, in ticks", CLOCK, {"rtt_from": "newest", "rtt_clock_ns": 10 * MS}),
        ("the oldest, in long ticks", CLOCK, {"rtt_from": "oldest", "rtt_clock_ns": 100 * MS}),
        ("the newest, not of one alone", LONE, {"rtt_from": "newest", "rtt_lone_acks": False}),
        ("echoes, not of one alone", LONE, {"rtt_lone_acks": False}),
        ("SACK, not of one alone", LONE, {"rtt_from": "sack", "rtt_lone_acks": False}),
        (
            "the newest, each acknowledged",
            LONE,
            {"rtt_from": "newest", "rtt_lone_acks": False, "ack_every": 1},
        ),
        ("the newest, once a window", WINDOW, {"rtt_from": "newest", "rtt_every": "window"}),
        ("echoes, once a window", WINDOW, {"rtt_every": "window"}),
        ("SACK, once a window", WINDOW, {"rtt_from": "sack", "rtt_every": "window"}),
        ("one way, once a window", WINDOW, {"rtt_from": "one-way", "rtt_every": "window"}),
    )
    return [
        {
            "name": name,
            "source": source,
            "parameters": {**BASE, **changes},
            "events": rows({**BASE, **changes}, 900 + number, 13 if number == 10 else 10),
        }
        for number, (name, source, changes) in enumerate(kinds)
    ]
