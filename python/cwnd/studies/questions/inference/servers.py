"""Servers on real Linux that know their timeouts: their kernel counts, a capture at them shows."""

from __future__ import annotations

import contextlib
import ctypes
import json
import random
import selectors
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: linux/tcp.h: a socket option, a state of TCP, and where `struct tcp_info` has what.
TCP_INFO, TCP_CLOSE = 11, 7
INFO_BYTES = 248
BYTES_ACKED, TOTAL_RTO = 120, 240
#: Constants for captures, from linux/if_ether.h and asm-generic/socket.h.
ETH_P_ALL = 3
SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 26, 33, 35
TIMESTAMP_SPACE = socket.CMSG_SPACE(16)
#: Bytes of a packet that are looked at, of them its IPv4 header, and what may wait to be looked at.
HEADERS, IP_HEADER, TAP_BUFFER = 64, 20, 1 << 24
SYN = 0x02
#: Interval of `tcp_info` readings, s: well below a round trip.
LOOK_S = 0.003


@dataclass(frozen=True)
class Case:
    """A path, and what its servers do."""

    name: str
    #: Options of `cwnd link`.
    path: str
    #: Sizes of the answers to one request after the other, least and most bytes.
    answers: tuple[tuple[int, int], ...] = ((30_000, 60_000),)
    connections: int = 120
    at_once: int = 20
    #: An answer comes in parts of so many bytes, after pauses of so many seconds, least and most.
    part: int | None = None
    pause_s: tuple[float, float] = (0.0, 0.0)
    #: The client reads slowly, through a small buffer: so many bytes, then so many seconds of rest.
    reads: tuple[int, float] | None = None


@dataclass(frozen=True)
class Told:
    """`tcp_info` of a socket, read first, or when the kernel had counted another timeout."""

    #: Times of this reading and of the one before.
    at: float
    before: float
    acked: int
    timeouts: int


@dataclass(frozen=True)
class Sent:
    """A segment of data that the server's host sent."""

    at: float
    #: Stream offsets of its first byte, and of the first unacknowledged byte by then.
    offset: int
    acked: int
    #: `True` for a retransmission; and the time since the last arrival, s.
    again: bool
    idle: float


@dataclass
class Truth:
    """Ground truth of a connection: its segments and timeouts."""

    told: list[Told] = field(default_factory=list)
    #: Bytes that the server wrote.
    written: int = 0
    sent: list[Sent] = field(default_factory=list)
    #: Sequence number of its first byte.
    first: int = 0
    #: Bytes that it has sent and that were acknowledged, and when something was heard last.
    high: int = 0
    acked: int = 0
    heard: float = 0.0

    def places(self) -> Iterator[tuple[float, int, int]]:
        """Yields each timeout: its time, the offset of the retransmission, and a count.

        The segment that a timeout sends again is the first that was not acknowledged (RFC 6298
        § 5.4). A later reading of `tcp_info` includes later ACKs, so the segment itself is searched
        for, among those sent between two readings.
        """
        for before, after in pairwise(self.told):
            again = [
                sent
                for sent in self.sent
                if after.before <= sent.at <= after.at and sent.again and sent.offset == sent.acked
            ]
            count = after.timeouts - before.timeouts
            # One that answers an arrival is not by timeout: those after the longest silences are.
            again = sorted(again, key=lambda sent: sent.idle)[-count:]
            for sent in again:
                yield sent.at, sent.offset, 1
            if len(again) < count:
                yield after.at, after.acked, count - len(again)


def tap(port: int) -> socket.socket:
    """Opens a packet socket for TCP packets of this host to and from a port."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    # Offsets are from the IPv4 header, which has no options on Linux.
    program = (
        (0x30, 0, 0, 0),  # its first byte
        (0x15, 0, 7, 0x45),
        (0x30, 0, 0, 9),  # its protocol
        (0x15, 0, 5, socket.IPPROTO_TCP),
        (0x28, 0, 0, IP_HEADER),  # the port that it is from
        (0x15, 2, 0, port),
        (0x28, 0, 0, IP_HEADER + 2),
        (0x15, 0, 1, port),
        (0x06, 0, 0, HEADERS),
        (0x06, 0, 0, 0),
    )
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    told = struct.pack("HL", len(program), ctypes.addressof(buffer))
    packets.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, told)
    packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, TAP_BUFFER)
    packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    packets.settimeout(0.1)
    return packets


@dataclass
class Connection:
    """A server's end."""

    socket: socket.socket
    asked: bytes = b""
    #: Writes that are due: the earliest time, and the bytes.
    parts: list[tuple[float, int]] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)
    looked: float = field(default_factory=time.time)
    closing: bool = False


class Server:
    """Answers requests of any size, and looks at its sockets."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.listener = socket.create_server(("0.0.0.0", 0), backlog=1000)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        #: Ground truth by the client's port.
        self.truths: dict[int, Truth] = {}
        self.taken: dict[int, Truth] = {}
        self._open: dict[int, Connection] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve),
            threading.Thread(target=self._listen, args=(tap(self.port),)),
        ]

    def __enter__(self) -> Server:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.listener.close()

    def _listen(self, packets: socket.socket) -> None:
        """Takes down what the server's host sends and hears."""
        with packets:
            while not self._stop.is_set():
                with contextlib.suppress(TimeoutError):
                    self._heard(*packets.recvmsg(HEADERS, TIMESTAMP_SPACE)[:2])

    def _heard(self, packet: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        ports, seq, ack, offset, flags = struct.unpack_from("!IIIBB", packet, IP_HEADER)
        ours, theirs = ports >> 16, ports & 0xFFFF
        outgoing = ours == self.port
        truth = self.taken.setdefault(theirs if outgoing else ours, Truth())
        if flags & SYN:
            truth.first = seq + 1 if outgoing else truth.first
            return
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        at = seconds + nanoseconds / 1e9
        if not outgoing:
            behind = (ack - truth.first) & 0xFFFFFFFF
            truth.acked = behind if truth.acked < behind < 1 << 31 else truth.acked
            truth.heard = at
            return
        length = struct.unpack_from("!H", packet, 2)[0] - IP_HEADER - (offset >> 4) * 4
        if length > 0:
            place = (seq - truth.first) & 0xFFFFFFFF
            again = place < truth.high
            truth.sent.append(Sent(at, place, truth.acked, again, at - truth.heard))
            truth.high = max(truth.high, place + length)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.listener, selectors.EVENT_READ)
            next_look = time.monotonic()
            while not self._stop.is_set():
                for key, _ in waiting.select(max(0.0, next_look - time.monotonic())):
                    if key.fileobj is self.listener:
                        self._accept(waiting)
                    else:
                        self._read(waiting, key.data)
                if time.monotonic() < next_look:
                    continue
                next_look = time.monotonic() + LOOK_S
                for port, connection in list(self._open.items()):
                    self._write(connection)
                    if self._look(connection):
                        self._end(waiting, port)
            # The link is gone.
            for connection in self._open.values():
                connection.socket.close()

    def _accept(self, waiting: selectors.BaseSelector) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted, (_, port) = self.listener.accept()
                accepted.setblocking(False)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                # The handshake was heard.
                truth = self.taken.setdefault(port, Truth())
                connection = Connection(accepted, truth=truth)
                self.truths[port] = truth
                self._open[port] = connection
                self._look(connection)
                waiting.register(accepted, selectors.EVENT_READ, port)

    def _read(self, waiting: selectors.BaseSelector, port: int) -> None:
        connection = self._open[port]
        try:
            data = connection.socket.recv(1 << 12)
        except BlockingIOError:
            return
        except OSError:
            self._end(waiting, port)
            return
        if not data:
            waiting.unregister(connection.socket)
            connection.closing = True
            connection.socket.shutdown(socket.SHUT_WR)
            return
        connection.asked += data
        while b"\n" in connection.asked:
            line, connection.asked = connection.asked.split(b"\n", 1)
            connection.parts += self._answer(json.loads(line))
        self._write(connection)

    def _answer(self, request: dict[str, float]) -> Iterator[tuple[float, int]]:
        draw, at, left = random.Random(request["seed"]), time.monotonic(), int(request["size"])
        while left > 0:
            part = min(left, self.case.part or left)
            yield at, part
            left -= part
            at += draw.uniform(*self.case.pause_s)

    def _write(self, connection: Connection) -> None:
        while connection.parts and connection.parts[0][0] <= time.monotonic():
            at, size = connection.parts[0]
            try:
                sent = connection.socket.send(bytes(size))
            except BlockingIOError:
                return
            except OSError:
                connection.parts.clear()
                return
            connection.truth.written += sent
            if sent < size:
                connection.parts[0] = (at, size - sent)
            else:
                connection.parts.pop(0)

    def _look(self, connection: Connection) -> bool:
        """Asks the kernel; `True` if the connection is over."""
        asked = time.time()
        info = connection.socket.getsockopt(socket.IPPROTO_TCP, TCP_INFO, INFO_BYTES)
        (timeouts,) = struct.unpack_from("H", info, TOTAL_RTO)
        told, now = connection.truth.told, time.time()
        if not told or told[-1].timeouts != timeouts:
            (acked,) = struct.unpack_from("Q", info, BYTES_ACKED)
            told.append(Told(now, connection.looked, acked, timeouts))
        connection.looked = asked
        return connection.closing and info[0] == TCP_CLOSE

    def _end(self, waiting: selectors.BaseSelector, port: int) -> None:
        connection = self._open.pop(port)
        with contextlib.suppress(KeyError, ValueError):
            waiting.unregister(connection.socket)
        connection.socket.close()
