"""The packets of a probe: what the kernel sends is read, and what its peer answers is written."""

from __future__ import annotations

import struct
from dataclasses import dataclass

SYN, RST, PSH, ACK, ECE, CWR = 0x02, 0x04, 0x08, 0x10, 0x40, 0x80
#: The code point of what is ECN-capable.
ECT0 = 2
#: Bits that the peer's window is shifted by.
SCALE = 3
#: Bytes of the timestamps option, padding included.
STAMPS = 12


@dataclass(frozen=True)
class Sent:
    """A segment that the kernel sent."""

    seq: int
    ack: int
    flags: int
    ecn: int
    length: int
    stamp: int
    source: tuple[bytes, int]


def read(packet: bytes) -> Sent | None:
    """A packet of TCP over IPv4; of others nothing."""
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    start = (packet[0] & 15) * 4
    port, _, seq, ack, offset, flags = struct.unpack_from("!HHIIBB", packet, start)
    header = (offset >> 4) * 4
    stamp = 0
    options = packet[start + 20 : start + header]
    while options and options[0] != 0:
        kind = options[0]
        if kind == 1:
            options = options[1:]
            continue
        if kind == 8:
            stamp = struct.unpack_from("!I", options, 2)[0]
        options = options[options[1] :]
    total = struct.unpack_from("!H", packet, 2)[0]
    payload = total - start - header
    return Sent(seq, ack, flags, packet[1] & 3, payload, stamp, (packet[12:16], port))


@dataclass(frozen=True)
class Answer:
    """A segment of the peer, without data; `window` in bytes."""

    seq: int
    ack: int
    flags: int
    window: int
    stamps: tuple[int, int] | None = None
    sack: tuple[tuple[int, int], ...] = ()
    mss: int | None = None
    offers_sack: bool = False


def write(answer: Answer, peer: tuple[bytes, int], kernel: tuple[bytes, int]) -> bytes:
    """The answer as an IPv4 packet."""
    options = b""
    scale = SCALE
    if answer.mss is not None:
        scale = 0
        options += struct.pack("!BBH", 2, 4, answer.mss) + struct.pack("!BBBB", 1, 3, 3, SCALE)
        if answer.offers_sack:
            options += bytes([1, 1, 4, 2])
    if answer.stamps is not None:
        options += struct.pack("!BBBBII", 1, 1, 8, 10, *answer.stamps)
    if answer.sack:
        options += bytes([1, 1, 5, 2 + 8 * len(answer.sack)])
        for start, end in answer.sack:
            options += struct.pack("!II", start % 2**32, end % 2**32)
    header = struct.pack(
        "!HHIIBBHHH",
        peer[1],
        kernel[1],
        answer.seq % 2**32,
        answer.ack % 2**32,
        (5 + len(options) // 4) << 4,
        answer.flags,
        min(answer.window >> scale, 65_535),
        0,
        0,
    )
    segment = header + options
    pseudo = peer[0] + kernel[0] + struct.pack("!BBH", 0, 6, len(segment))
    check = checksum(pseudo + segment)
    segment = segment[:16] + struct.pack("!H", check) + segment[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0)
    ip += peer[0] + kernel[0]
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + segment


def checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)
