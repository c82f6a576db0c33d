"""Round-trip samples of senders, by several methods, from a capture of both dumbbell links.

Times are those at which segments leave the bottleneck, so that its queue is behind them: what an
ACK shows beyond the shortest way back is how long the receiver held it. The send times of segments
are their timestamps, in ticks of the sender's clock.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from math import log10
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PACKET, _COMMENT = 6, 1
#: The number of TCP in an IPv4 header.
_TCP = 6
_TIMESTAMPS, _NOTHING = 8, 1
_LEAST_HEADER = 20
_WRAP = 1 << 32
#: Round trips are compared within so long, s: a few chunks (Fig. 5.5).
WINDOW_S = 0.2


class Segment(NamedTuple):
    """A TCP segment as it was captured."""

    link: int
    time_s: float
    source: tuple[bytes, int]
    destination: tuple[bytes, int]
    sequence: int
    acknowledged: int
    payload: int
    stamp: int
    echo: int


class Sample(NamedTuple):
    """A round-trip sample: an ACK of new data."""

    time_s: float
    #: Segments that it acknowledges.
    segments: int
    #: Time since the departure of the newest of them at the bottleneck, s.
    back_s: float
    #: Ages of the oldest and of the echoed timestamp against the newest segment, ticks.
    oldest: int
    echoed: int
    #: Send time of the newest, ticks.
    sent: int


@dataclass
class Flow:
    """Data of one sender, and what came back."""

    #: Ticks of its clock in a second.
    hz: int = 0
    samples: list[Sample] = field(default_factory=list)
    #: Send times of new segments, in their order, ticks.
    sent: list[int] = field(default_factory=list)

    def noise_ms(self, way: str) -> list[float]:
        """Excess of each sample over the least round trip of the newest segment, by `way`, ms."""
        least = min(sample.back_s for sample in self.samples)
        found = []
        for sample in self.samples:
            if way == "newest, no lone ACKs" and sample.segments == 1:
                continue
            earlier = {"timestamps": sample.echoed, "oldest segment": sample.oldest}.get(way, 0)
            found.append(1e3 * (sample.back_s - least + earlier / self.hz))
        return found

    def swings_ms(self, from_s: float) -> list[float]:
        """Range of the newest segment's round trip in each whole `WINDOW_S`, ms."""
        rows = [
            (int(one.time_s / WINDOW_S), one.time_s - one.sent / self.hz)
            for one in self.samples
            if one.time_s >= from_s
        ]
        windows = [[rtt for _, rtt in part] for _, part in groupby(rows, lambda row: row[0])]
        return [1e3 * (max(part) - min(part)) for part in windows[1:-1]]

    def chunks(self) -> list[int]:
        """Numbers of segments in a row that were sent in one tick."""
        return [len(list(same)) for _, same in groupby(self.sent)]


def flows(file: Path) -> dict[tuple[bytes, int], Flow]:
    """The flows of a capture with the links `bottleneck+reverse`, by their senders."""
    found: dict[tuple[bytes, int], Flow] = {}
    waiting: dict[tuple[bytes, int], deque[tuple[int, float, int, bool]]] = {}
    highest: dict[tuple[bytes, int], int] = {}
    first: dict[tuple[bytes, int], tuple[float, int]] = {}
    for one in _segments(file.read_bytes()):
        if one.link == 0 and one.payload:
            flow = found.setdefault(one.source, Flow())
            at = waiting.setdefault(one.source, deque())
            end = (one.sequence + one.payload) % _WRAP
            # A retransmission gives no sample (Karn & Partridge 1987).
            again = one.source in highest and _ahead(end, highest[one.source]) <= 0
            if not again:
                highest[one.source] = end
                begin = first.setdefault(one.source, (one.time_s, one.stamp))
                if one.time_s > begin[0] + 1:
                    # Clocks are decimal; what waits in the queue makes them look a little slow.
                    hz = _ahead(one.stamp, begin[1]) / (one.time_s - begin[0])
                    flow.hz = 10 ** round(log10(hz))
                flow.sent.append(one.stamp)
            at.append((end, one.time_s, one.stamp, again))
        elif one.link == 1 and one.destination in found:
            at = waiting[one.destination]
            covered = []
            while at and _ahead(at[0][0], one.acknowledged) <= 0:
                covered.append(at.popleft())
            if not covered or any(again for *_, again in covered):
                continue
            (_, _, oldest, _), (_, left_s, newest, _) = covered[0], covered[-1]
            found[one.destination].samples.append(
                Sample(
                    one.time_s,
                    len(covered),
                    one.time_s - left_s,
                    _ahead(newest, oldest),
                    _ahead(newest, one.echo),
                    newest,
                )
            )
    return found


def mean_and_95(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the 95th percentile."""
    return fmean(values), sorted(values)[int(0.95 * (len(values) - 1))]


def _ahead(one: int, other: int) -> int:
    """Returns `one - other` for 32-bit numbers that wrap, negative if `one` is behind."""
    return (one - other + _WRAP // 2) % _WRAP - _WRAP // 2


def _segments(content: bytes) -> Iterator[Segment]:
    at = 0
    while at + 12 <= len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == _PACKET:
            link, high, low, kept, whole = struct.unpack_from("<5I", content, at + 8)
            packet = content[at + 28 : at + 28 + kept]
            behind = at + 28 + (kept + 3) // 4 * 4
            # A comment names a drop or a mark.
            comment = b""
            if behind + 4 <= at + length - 4:
                code, size = struct.unpack_from("<HH", content, behind)
                comment = content[behind + 4 : behind + 4 + size] if code == _COMMENT else b""
            if not comment.startswith(b"dropped"):
                one = _segment(link, ((high << 32) + low) / 1e9, packet, whole)
                if one:
                    yield one
        at += length


def _segment(link: int, time_s: float, packet: bytes, whole: int) -> Segment | None:
    ip = (packet[0] & 15) * 4
    if packet[9] != _TCP or len(packet) < ip + _LEAST_HEADER:
        return None
    ports = struct.unpack_from(">HH", packet, ip)
    sequence, acknowledged = struct.unpack_from(">II", packet, ip + 4)
    header = (packet[ip + 12] >> 4) * 4
    stamps = _stamps(packet[ip + _LEAST_HEADER : ip + header])
    if stamps is None:
        return None
    ends = ((packet[12:16], ports[0]), (packet[16:20], ports[1]))
    return Segment(link, time_s, *ends, sequence, acknowledged, whole - ip - header, *stamps)


def _stamps(options: bytes) -> tuple[int, int] | None:
    at = 0
    while at < len(options) and options[at]:
        if options[at] == _NOTHING:
            at += 1
        elif options[at] == _TIMESTAMPS:
            stamp, echo = struct.unpack_from(">II", options, at + 2)
            return stamp, echo
        else:
            at += max(2, options[at + 1])
    return None
