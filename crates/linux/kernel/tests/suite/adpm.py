"""Adaptive deterministic packet marking, and the option that echoes its estimate: for path.py."""

from __future__ import annotations

import struct

from forged import checksum

ECT_1, CE = 1, 3
#: Kind and length of the option that carries an estimate (crates/packet).
KIND, LENGTH = 253, 4


def load_at(loads: str, now: float) -> float:
    """Returns the load factor at a time, from `seconds:factor,…`."""
    pairs = (pair.split(":") for pair in loads.split(","))
    return [float(factor) for begin, factor in pairs if float(begin) <= now][-1]


def with_load_mark(packet: bytes, load: float) -> tuple[bytes, int]:
    """Returns a packet marked by a router of that load, and its threshold's place (adpm.rs)."""
    x = int.from_bytes(packet[4:6])
    x ^= x >> 8
    x = x * 0x88B5 & 0xFFFF
    x ^= x >> 7
    x = x * 0xDB2D & 0xFFFF
    place = x ^ x >> 9
    if place < 1 << 14:
        threshold = 0.15 + 0.6 * place / (1 << 14)
    elif place < 1 << 15:
        threshold = 0.75 + 0.25 * (place - (1 << 14)) / (1 << 14)
    else:
        threshold = 1 + 0.2 * (place - (1 << 15)) / (1 << 15)
    if load >= 1.2:
        return with_ecn(packet, CE), place
    return with_ecn(packet, ECT_1) if load > threshold else packet, place


def with_ecn(packet: bytes, ecn: int) -> bytes:
    header = bytearray(packet[:20])
    header[1] = header[1] & 0xFC | ecn
    header[10:12] = b"\0\0"
    header[10:12] = checksum(header)
    return bytes(header) + packet[20:]


def option_at(packet: bytes) -> int | None:
    """Returns the offset of the option with an estimate; `None` without one."""
    tcp = (packet[0] & 15) * 4
    at, end = tcp + 20, tcp + (packet[tcp + 12] >> 4) * 4
    while at + 1 < end and packet[at]:
        if packet[at] == KIND:
            return at
        at += 1 if packet[at] == 1 else packet[at + 1]
    return None


def with_tcp(packet: bytes, at: int, data: bytes) -> bytes:
    """Replaces bytes of the TCP header, and updates its checksum."""
    tcp = (packet[0] & 15) * 4
    changed = bytearray(packet)
    changed[at : at + len(data)] = data
    changed[tcp + 16 : tcp + 18] = b"\0\0"
    pseudo = packet[12:20] + struct.pack("!BBH", 0, 6, len(packet) - tcp)
    changed[tcp + 16 : tcp + 18] = checksum(pseudo + changed[tcp:])
    return bytes(changed)


def with_number(packet: bytes, behind: int, add: int) -> bytes:
    """Adds to the sequence number (4 bytes into the TCP header) or the acknowledgment (8)."""
    at = (packet[0] & 15) * 4 + behind
    number = int.from_bytes(packet[at : at + 4]) + add & 0xFFFFFFFF
    return with_tcp(packet, at, number.to_bytes(4))


def outside(packet: bytes) -> bytes:
    """Forges data with CE, from an attacker who does not see where the window is."""
    return with_number(with_ecn(packet, CE), 4, 1 << 30)


#: Changes to an ACK with an estimate, before it reaches the sender.
OPTIONS = {
    "length": lambda p, at: with_tcp(p, at + 1, bytes([LENGTH - 1])),
    "none": lambda p, at: with_tcp(p, at, bytes([1] * LENGTH)),
    "ahead": lambda p, _: with_number(p, 8, 1 << 28),
}
