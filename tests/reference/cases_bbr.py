"""Cases of BBR over a link whose rate, delay and buffer vary; and rate samples alone."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from bbr import Bbr, Connection
from cases_windows import MS, MSS, Journey, case

if TYPE_CHECKING:
    from windows import Controller

DRAFT: dict[str, Any] = {
    "startup_gain": 2.885390081777927,
    "probe_gain": 1.25,
    "drain_gain": 0.75,
    "cwnd_gain": 2.0,
    "bandwidth_rounds": 10,
    "min_rtt_window": "10 s",
    "equal_refreshes": True,
    "probe_rtt": "200 ms",
    "least_window": 4,
    "pacing_margin": 0.0,
    "surplus_gain": 0.0,
}
LINUX = {**DRAFT, "equal_refreshes": False, "pacing_margin": 0.01, "surplus_gain": 1.0}
SOURCE = "draft-cardwell-iccrg-bbr-congestion-control-00 § 4"
RATES = "draft-cheng-iccrg-delivery-rate-estimation-00 § 3"


class Path(Journey):
    """A sender of whole segments over a link: `each` ns per segment, buffer `room` segments."""

    def __init__(self, controller: Controller, seed: int, *, each: int, room: int) -> None:
        super().__init__(controller)
        self.draw = Random(seed)
        self.each, self.room = each, room
        self.base = self.draw.randint(60 * MS, 120 * MS)
        self.rates = Connection()
        self.now = self.draw.randint(1, 5 * MS)
        self.high = self.free = self.recover = 0
        #: Numbers of the segments in flight, with the times at which their ACKs arrive.
        self.coming: list[tuple[int, int]] = []
        self.lost: list[int] = []
        self.known: set[int] = set()
        self.phase = "open"
        self.next_send = 0

    def pipe(self) -> int:
        """Returns the number of segments in flight or lost without the sender's knowledge."""
        return len(self.coming) + len([n for n in self.lost if n not in self.known])

    def sends(self, number: int) -> None:
        """Sends a segment; a full buffer drops it."""
        first = self.pipe() == 0
        self.rates.send(self.now, number * MSS, (number + 1) * MSS)
        if first:
            self.put("sent", flight=MSS, srtt_ns=self.base, min_rtt_ns=self.base)
        waits = max(self.free - self.now, 0) // self.each
        if waits >= self.room:
            self.lost.append(number)
        else:
            self.free = max(self.free, self.now) + self.each + self.draw.randint(0, self.each // 50)
            self.coming.append((self.free + self.base, number))
        if isinstance(self.controller, Bbr):
            pace = self.controller.pacing_rate or 1
            self.next_send = self.now + int(MSS / pace) + self.draw.randint(0, 9_000)

    def may_send(self) -> bool:
        """Returns True if the window permits another segment."""
        return (self.pipe() + 1) * MSS <= self.cwnd()

    def hears(self) -> None:
        """Handles the next ACK, which reports a segment and all that arrived before it."""
        at, number = self.coming.pop(0)
        self.now = max(self.now, at) + 1
        arrived = {p.seq // MSS for p in self.rates.packets if p.arrived} | {number}
        una = next(n for n in range(self.high + 1) if n not in arrived)
        gaps = [n for n in self.lost if n < number - 3 and n not in self.known]
        self.known.update(gaps)
        blocks = [(number * MSS, (number + 1) * MSS)]
        rate = self.rates.ack(self.now, una * MSS, blocks, self.pipe() * MSS, idle=False)
        if self.phase != "open" and una >= self.recover:
            self.phase = "open"
        if gaps and self.phase == "open":
            self.phase, self.recover = "recovery", self.high
        acked = una * MSS - self.acked
        self.acked = una * MSS
        flight = self.high * MSS - self.acked + acked
        self.put(
            "ack", acked=acked, flight=flight, rate=rate, lost=len(gaps) * MSS, phase=self.phase
        )

    acked = 0

    def step(self) -> None:
        """Runs the next event: a segment to send, or an ACK."""
        ack = self.coming[0][0] if self.coming else None
        if self.may_send() and (ack is None or max(self.next_send, self.now) <= ack):
            self.now = max(self.now, self.next_send)
            again = sorted(self.known)
            if again:
                self.known.remove(again[0])
                self.lost.remove(again[0])
                self.sends(again[0])
            else:
                self.high += 1
                self.sends(self.high - 1)
        elif ack is not None:
            self.hears()
        else:
            # All segments are lost: the timer expires.
            self.now += 900 * MS
            self.known = set(self.lost)
            self.phase, self.recover = "loss", self.high
            self.put("timeout", flight=self.pipe() * MSS)

    def pauses(self) -> None:
        """Stops the application until no ACK is due, and longer."""
        while self.coming:
            self.hears()
        self.now += self.draw.randint(50 * MS, 400 * MS)


def path(
    controller: Controller, seed: int, *, each: int, room: int = 10_000, acks: int = 240
) -> list[dict[str, Any]]:
    """Runs a path whose rate changes twice and whose delay once, with one application pause."""
    j = Path(controller, seed, each=each, room=room)
    while len(j.rows) < acks:
        before = len(j.rows)
        j.step()
        if len(j.rows) == before:
            continue
        if before == acks // 3:
            j.each = j.each * 3 // 5
        if before == acks // 2:
            j.base += 30 * MS
            j.each *= 2
        if before == acks * 4 // 5:
            j.pauses()
    return j.rows


def cases() -> list[dict[str, Any]]:
    """Returns all cases of BBR."""
    made = [
        case(
            f"a link that changes, {seed}",
            SOURCE,
            DRAFT,
            lambda c, seed=seed: path(c, 600 + seed, each=(20 * MS, 2 * MS)[seed], acks=100),
            kind=Bbr,
            segments=(10, 2)[seed],
            ssthresh=None,
            controller="bbr",
            preset="draft",
        )
        for seed in (0, 1)
    ]
    made += [
        case(
            "a short buffer",
            SOURCE,
            LINUX,
            lambda c: path(c, 620, each=9 * MS, room=6, acks=300),
            kind=Bbr,
            segments=10,
            ssthresh=None,
            controller="bbr",
            preset="linux",
        )
    ]
    other = {
        "startup_gain": 2.0,
        "probe_gain": 1.5,
        "drain_gain": 0.5,
        "cwnd_gain": 1.5,
        "bandwidth_rounds": 4,
        "min_rtt_window": "700 ms",
        "probe_rtt": "50 ms",
        "least_window": 3,
        "surplus_gain": 0.5,
    }
    made.append(
        case(
            "other gains and times",
            SOURCE,
            {**DRAFT, **other},
            lambda c: path(c, 650, each=8 * MS, acks=400),
            kind=Bbr,
            segments=4,
            ssthresh=None,
            controller="bbr",
        )
    )
    return made


def rate_samples(seed: int, steps: int = 120) -> list[dict[str, Any]]:
    """Runs first transmissions, retransmissions, ACKs with and without blocks, and idle periods."""
    draw = Random(seed)
    c = Connection()
    rows: list[dict[str, Any]] = []
    now = high = 0
    while len(rows) < steps:
        now += draw.randint(0, 8 * MS)
        outstanding = [p for p in c.packets if not p.arrived]
        if not outstanding or draw.random() < 0.45:
            seq, end = high, high + draw.choice([MSS, MSS, MSS, draw.randint(1, MSS)])
            if outstanding and draw.random() < 0.15:
                again = draw.choice(outstanding)
                seq, end = again.seq, again.end
            first = c.una == high and seq == high
            high = max(high, end)
            rows.append({"event": "sent", "now_ns": now, "seq": seq, "end": end, "first": first})
            c.send(now, seq, end)
            continue
        now += draw.randint(0, 20 * MS)
        blocks = []
        una = c.una
        if draw.random() < 0.3:
            some = draw.choice(outstanding)
            blocks = [(some.seq, some.end)]
            if draw.random() < 0.5:
                above = [p for p in outstanding if p.seq == some.end]
                blocks = [(some.seq, above[0].end if above else some.end)]
        else:
            una = draw.choice(outstanding).end
            if draw.random() < 0.1:
                una = max(c.una, una - draw.randint(0, 300))
        row: dict[str, Any] = {"event": "ack", "now_ns": now, "ack": una}
        if blocks:
            row["sack"] = [list(b) for b in blocks]
        in_flight = draw.randint(0, 20) * MSS
        idle = draw.random() < 0.1
        if idle:
            row["idle"] = True
        rows.append({**row, **c.ack(now, una, blocks, in_flight, idle=idle)})
    return rows


def rates() -> list[dict[str, Any]]:
    """Returns the cases of delivery rates alone."""
    return [
        {
            "name": f"segments and ACKs, {seed}",
            "source": RATES,
            "parameters": {},
            "events": rate_samples(660 + seed),
        }
        for seed in range(4)
    ]
