"""Source quenches and marks of routers, and forged packets of off-path attackers: for path.py.

An attacker knows addresses and ports, but sees no packets: no segment has both numbers right.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Local port of the first flow; the others have the next ones.
PORT = 40000
ROUTER = bytes([10, 77, 0, 9])


def source_quench(
    packet: bytes,
    *,
    marked: bool = True,
    quoted: int = 28,
    code: int = 0,
    router: bytes = ROUTER,
    to: bytes | None = None,
    options: bytes = b"",
    fragment: int = 0,
) -> bytes:
    """Builds a source quench: RFC 792, with BECN's bit in the fifth octet (crates/packet)."""
    body = bytes([4, code, 0, 0, 0x80 * marked, 0, 0, 0]) + packet[:quoted]
    body = body[:2] + checksum(body) + body[4:]
    first = 0x45 + len(options) // 4
    size = 20 + len(options) + len(body)
    header = struct.pack("!BBHHHBBH", first, 0, size, 0, fragment, 64, 1, 0)
    header += router + (to or packet[12:16]) + options
    return header[:10] + checksum(header) + header[12:] + body


def with_port(packet: bytes, add: int) -> bytes:
    port = int.from_bytes(packet[20:22]) + add
    return packet[:20] + port.to_bytes(2) + packet[22:]


def with_sequence(packet: bytes, add: int) -> bytes:
    sequence = int.from_bytes(packet[24:28]) + add & 0xFFFFFFFF
    return packet[:24] + sequence.to_bytes(4) + packet[28:]


def of_port(packet: bytes, port: int, *messages: bytes) -> Sequence[bytes]:
    return messages if int.from_bytes(packet[20:22]) == port else ()


def wrong_bit(message: bytes, at: int = -1) -> bytes:
    message = bytearray(message)
    message[at] ^= 1
    return bytes(message)


def with_size(message: bytes, size: int) -> bytes:
    """Sets the total length in an IP header, with the right checksum."""
    header = message[:2] + size.to_bytes(2) + message[4:10] + b"\0\0" + message[12:20]
    return header[:10] + checksum(header) + header[12:] + message[20:]


#: Values of the IP header's fragment field: more fragments follow; a later fragment.
MORE, LATER = 0x2000, 4
#: Router Alert (RFC 2113), as an example of an IP option.
ALERT = bytes([148, 4, 0, 0])

#: Answers to a data packet, by name: quenches of a router, and forged ones.
QUENCHES = {
    "marked": lambda p: of_port(p, PORT, *[source_quench(p)] * 3),
    "dropped": lambda p: of_port(p, PORT, *[source_quench(p, marked=False)] * 3),
    # Routers may write options; they must be skipped.
    "options": lambda p: of_port(p, PORT, *[source_quench(p, options=ALERT)] * 3),
    "other connection": lambda p: of_port(p, PORT + 1, source_quench(p)),
    "port": lambda p: [source_quench(with_port(p, 1000))],
    "sequence": lambda p: [source_quench(with_sequence(p, 1 << 31))],
    "acknowledged": lambda p: [source_quench(with_sequence(p, -(1 << 24)))],
    "not sent": lambda p: [source_quench(with_sequence(p, 1 << 24))],
    "truncated": lambda p: [source_quench(p, quoted=27)],
    "checksum": lambda p: [wrong_bit(source_quench(p))],
    "guesses": lambda p: [*[source_quench(with_sequence(p, 1 << 24))] * 12, source_quench(p)],
    # Each of these would be believed but for a single defect.
    "malformed": lambda p: [
        wrong_bit(source_quench(p), 10),
        source_quench(p, code=1),
        source_quench(p, code=255),
        source_quench(p, fragment=MORE),
        source_quench(p, fragment=LATER),
        source_quench(p[:6] + LATER.to_bytes(2) + p[8:]),
        source_quench(p[:9] + b"\x11" + p[10:]),
        source_quench(b"\x46" + p[1:]),
        source_quench(b"\x65" + p[1:]),
        source_quench(p[:12] + ROUTER + p[16:], to=p[12:16]),
        with_size(source_quench(p), 60),
        with_size(source_quench(p), 55),
        with_size(source_quench(p), 27),
        with_size(source_quench(p, quoted=600), 577),
        with_size(source_quench(p, quoted=600), 0xFFFF),
    ],
    "nobody": lambda p: [
        source_quench(p, router=bytes(router))
        for router in (
            (0, 0, 0, 0),
            (127, 0, 0, 1),
            (224, 0, 0, 1),
            (239, 255, 255, 255),
            (240, 0, 0, 1),
            (255, 255, 255, 255),
        )
    ],
}


def frame(packet: bytes, to: bytes, vlan: bytes = b"") -> bytes:
    return to + bytes.fromhex("020000000002") + vlan + b"\x08\x00" + packet


#: An 802.1Q header of VLAN 5, and one with a priority only.
VLAN, PRIORITY_ONLY = bytes.fromhex("81000005"), bytes.fromhex("81002000")

#: Quenches in Ethernet frames: to this host, to others and to groups, and in another VLAN.
FRAMES = {
    "marked": lambda p, mac: [frame(source_quench(p), mac)] * 3,
    "priority": lambda p, mac: [frame(source_quench(p), mac, PRIORITY_ONLY)] * 3,
    "vlan": lambda p, mac: [frame(source_quench(p), mac, VLAN)] * 3,
    "not to us": lambda p, _: [
        frame(source_quench(p), to)
        for to in (
            bytes.fromhex("020000000003"),
            bytes.fromhex("ffffffffffff"),
            bytes.fromhex("01005e000001"),
        )
    ],
}


def segment(
    source: bytes,
    destination: bytes,
    ports: bytes,
    sequence: int,
    acknowledges: int,
    *,
    flags: int = 0x10,
    options: bytes = b"",
    offset: int | None = None,
    ecn: int = 0,
    data: bytes = b"",
) -> bytes:
    """Builds a TCP segment; `offset` overrides the data offset, in words, and may be wrong."""
    options += bytes(-len(options) % 4)
    words = 5 + len(options) // 4 if offset is None else offset
    numbers = [sequence & 0xFFFFFFFF, acknowledges & 0xFFFFFFFF]
    body = ports + struct.pack("!IIBBHHH", *numbers, words << 4, flags, 0xFFFF, 0, 0)
    body += options + data
    pseudo = source + destination + struct.pack("!BBH", 0, 6, len(body))
    body = body[:16] + checksum(pseudo + body) + body[18:]
    header = struct.pack("!BBHHHBBH", 0x45, ecn, 20 + len(body), 0, 0, 64, 6, 0)
    header += source + destination
    return header[:10] + checksum(header) + header[12:] + body


def timestamps(packet: bytes) -> tuple[int, int] | None:
    """Returns TSval and TSecr of a segment (RFC 7323); `None` without the option."""
    at, end = 40, 20 + (packet[32] >> 4) * 4
    while at + 1 < end and packet[at] != 0:
        if packet[at] == 1:
            at += 1
        elif packet[at] == 8 and at + 10 <= end:
            return struct.unpack_from("!II", packet, at + 2)
        else:
            at += max(2, packet[at + 1])
    return None


def stamped(own: int, echo: int) -> bytes:
    return b"\x01\x01\x08\x0a" + struct.pack("!II", own & 0xFFFFFFFF, echo & 0xFFFFFFFF)


def sack(*edges: int) -> bytes:
    numbers = [edge & 0xFFFFFFFF for edge in edges]
    return b"\x01\x01\x05" + bytes([2 + 4 * len(edges)]) + struct.pack(f"!{len(edges)}I", *numbers)


#: Distance to a sequence number far from the window, and to one beyond all data sent.
FAR, BEYOND = 1 << 30, 1 << 24
ECE, PUSH, ACK, FIN, RST = 0x40, 0x08, 0x10, 0x01, 0x04


def forged_acks(ack: bytes) -> dict[str, list[bytes]]:
    """Forges segments to the sender in the receiver's name; none has both numbers right."""
    sequence, upto = struct.unpack_from("!II", ack, 24)
    own, echo = timestamps(ack) or (0, 0)

    def forge(add: int, upto: int, options: bytes, flags: int = ACK, **more: int) -> bytes:
        return segment(
            ack[12:16],
            ack[16:20],
            ack[20:24],
            sequence + add,
            upto,
            flags=flags,
            options=options,
            **more,
        )

    # The timestamps echo 1 or 30 ms and a minute ahead of the right one, and a minute behind.
    echoes = [stamped(own + 1, echo + add) for add in (1, 30, -60_000, 60_000)]
    return {
        "near": [
            *[forge(FAR, upto + 1448, option) for option in echoes],
            *[forge(-FAR, upto, option) for option in echoes],
            # In the window, but it acknowledges data that was never sent.
            forge(0, upto + BEYOND, echoes[0]),
            # ECN-echoes, SACK blocks (losses), and the end of the connection.
            *[forge(FAR, upto, echoes[0], ACK | ECE)] * 3,
            *[forge(FAR, upto, echoes[0] + sack(upto + 1448, upto + 2896))] * 4,
            forge(FAR, upto, b"", RST),
            forge(FAR, upto, echoes[0], ACK | FIN),
        ]
    }


def option(kind: int, length: int, content: bytes = b"") -> bytes:
    return bytes([kind, length]) + content


#: Options that are cut short, too long, without length, or of unknown kind, and RFC 4727's
#: experiments. The first carries the highest load, as receivers of BMCC write it.
STRANGE = [
    option(253, 4, b"\xff\xff"),
    option(8, 0),
    option(8, 1),
    option(8, 40, bytes(8)),
    option(8, 9, bytes(7)),
    option(5, 3, bytes(1)),
    option(5, 10, b"\xff" * 8),
    option(253, 0),
    option(253, 3, b"\xff"),
    option(253, 6, b"\xff\xff\xff\xff"),
    option(254, 38, b"\xff" * 36),
    option(253, 60, b"\xff" * 30),
    option(172, 11, b"\xff" * 9),
]


def forged_options(ack: bytes) -> dict[str, list[bytes]]:
    """Forges segments to the sender with strange options, far from the window."""
    sequence, upto = struct.unpack_from("!II", ack, 24)
    places = ack[12:16], ack[16:20], ack[20:24]
    there = [
        segment(*places, sequence + add, upto, options=strange, flags=ACK | ECE)
        for strange in STRANGE
        for add in (FAR, -FAR)
    ]
    # Data offsets below the fixed header, and beyond the segment.
    there += [segment(*places, sequence + FAR, upto, offset=words) for words in (0, 4, 15)]
    return {"near": there}


def forged_marks(ack: bytes) -> dict[str, list[bytes]]:
    """Forges marked data to the receiver in the sender's name, far from the window."""
    sequence, upto = struct.unpack_from("!II", ack, 24)
    ports = ack[22:24] + ack[20:22]
    own, echo = timestamps(ack) or (0, 0)
    return {
        "far": [
            segment(
                ack[16:20], ack[12:16], ports, upto + add, sequence, ecn=3, data=bytes(100),
                flags=ACK | PUSH, options=stamped(echo + 1, own),
            )
            for add in (FAR, -FAR)
        ]
    }  # fmt: skip


SEGMENTS = {"acks": forged_acks, "options": forged_options, "marks": forged_marks}


def checksum(data: bytes) -> bytes:
    """Returns the checksum of RFC 1071 of bytes whose own checksum field is zero."""
    data = bytes(data) + bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


# Adaptive deterministic packet marking, and the option that echoes its estimate.

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
