"""A connection of the kernel whose peer says what a probe asks for, and all that happens on it."""

from __future__ import annotations

import errno
import os
import random
import socket
import time
from dataclasses import dataclass, field

from probes import kernel, wire

MSS = 1000
#: The handshake takes so long, ms. A quarter of it, RACK's window, is no sum of what comes later,
#: so that no two times are the same.
OPENING = 43
#: The peer's window in bytes, unless a probe sets another; no probe reaches it.
WINDOW = 500_000
#: The first sequence number of the peer.
THEIRS = 1_000_000
PORT = 4000
#: Tick of the kernel's clock, s.
TICK = 0.004
CONTROLLERS = {"reno": b"reno", "cubic": b"cubic"}


@dataclass(frozen=True)
class Options:
    """Options that the ends negotiate, and the kernel's controller."""

    cc: str = "reno"
    sack: bool = True
    stamps: bool = True
    ecn: bool = False
    opening: int = OPENING

    def __str__(self) -> str:
        on = {"sack": self.sack, "ts": self.stamps, "ecn": self.ecn}
        agreed = "".join(f" {name}" for name, is_on in on.items() if is_on)
        return f"{self.cc}{agreed}"


@dataclass(frozen=True)
class Left:
    """A segment that left: its bytes, how often they went, and its flags."""

    start: int
    end: int
    nth: int
    cwr: bool
    capable: bool


@dataclass
class Event:
    """A stimulus `after` ms behind the last event, the segments sent then, and the state."""

    after: float
    what: str
    left: list[Left] = field(default_factory=list)
    state: kernel.State | None = None


def in_segments(count: int) -> str:
    """Formats bytes as segments."""
    return f"{count / MSS:g}"


class ProbeError(Exception):
    """The kernel and the probe are at odds."""


class Connection:
    """Opens at once; `write`, `ack` and `pause` are events, `after` ms behind the one before."""

    def __init__(self, tun: int, number: int, options: Options) -> None:
        self.tun = tun
        self.options = options
        self.events: list[Event] = []
        #: Times each byte range went, by its first byte: (time, stamp).
        self.copies: dict[int, list[tuple[float, int]]] = {}
        self.highest = 0
        self.acked = 0
        self.echoed = "syn"
        self.peer = (bytes([10, 1, number >> 8, number & 255]), PORT)
        self.kernel: tuple[bytes, int] = (b"", 0)
        self.first = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONTROLLERS[options.cc])
        self.socket.setblocking(False)
        self._open()

    def close(self) -> None:
        """Closes the socket with RST, so that no state is left behind."""
        linger = b"\1\0\0\0\0\0\0\0"
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.close()
        kernel.packets(self.tun)

    def _open(self) -> None:
        # The kernel's ticks are at another place in each take: what hangs on them is not alike.
        time.sleep(random.random() * TICK)
        kernel.packets(self.tun)
        address = (socket.inet_ntoa(self.peer[0]), PORT)
        if self.socket.connect_ex(address) != errno.EINPROGRESS:
            raise ProbeError("connect did not begin")
        self.now = time.monotonic()
        self.began = self.now
        syn = self._take()
        if len(syn) != 1 or syn[0].flags & wire.SYN == 0:
            raise ProbeError(f"no SYN: {syn}")
        self.kernel = syn[0].source
        self.first = syn[0].seq + 1
        self.syn_stamp = syn[0].stamp
        self._sleep(self.options.opening)
        flags = wire.SYN | wire.ACK | (wire.ECE if self.options.ecn else 0)
        extra = wire.STAMPS if self.options.stamps else 0
        stamps = (self._clock(), self.syn_stamp) if self.options.stamps else None
        self._send(
            wire.Answer(
                THEIRS - 1,
                self.first,
                flags,
                65_535,
                stamps,
                mss=MSS + extra,
                offers_sack=self.options.sack,
            )
        )
        self._take()
        # The peer's window is not that of the SYN-ACK, which has no scale.
        self.last_window = 65_535
        self._note(self.options.opening, "synack")

    # Events.

    def write(self, segments: float, after: float = 0) -> None:
        """The application writes so many segments."""
        after = self._sleep(after)
        count = int(segments * MSS)
        if self.socket.send(bytes(count)) != count:
            raise ProbeError("the socket's buffer is full")
        self._note(after, f"write {in_segments(count)}")

    def ack(
        self,
        after: float,
        upto: float,
        sack: list[tuple[float, float]] | None = None,
        *,
        echo: str | None = None,
        ece: bool = False,
        window: int = WINDOW,
    ) -> None:
        """An ACK of all below segment `upto`, with SACK blocks in segments.

        `echo` is the timestamp of a copy: `3#1` of segment 3 as it went first. The default is the
        last copy of the segment that let the window advance, else the echo of the ACK before.
        """
        after = self._sleep(after)
        number = int(upto * MSS)
        blocks = [(int(start * MSS), int(end * MSS)) for start, end in sack or []]
        if echo is None and number > self.acked:
            # RFC 7323 § 4.3: the segment that let the window advance.
            echo = f"{self.acked}#{len(self._copies_of(self.acked)[1])}"
        elif echo is not None and echo != "syn":
            segment, nth = echo.split("#")
            echo = f"{int(float(segment) * MSS)}#{nth}"
        self.echoed = echo or self.echoed
        what = f"ack {in_segments(number)}"
        if blocks:
            what += f" sack {' '.join(f'{in_segments(a)}:{in_segments(b)}' for a, b in blocks)}"
        what += self._shown_echo(number) if self.options.stamps else ""
        what += " ece" if ece else ""
        what += f" win {window}" if window != WINDOW else ""
        self._send(
            wire.Answer(
                THEIRS,
                self.first + number,
                wire.ACK | (wire.ECE if ece else 0),
                window,
                (self._clock(), self._stamp(self.echoed)) if self.options.stamps else None,
                tuple((self.first + a, self.first + b) for a, b in blocks),
            )
        )
        self.acked = max(self.acked, number)
        self._note(after, what)

    def pause(self, after: float) -> None:
        """Waits `after` ms; only timers may act."""
        after = self._sleep(after)
        self._note(after, "pause")

    def wait(self, limit: float = 5000) -> bool:
        """Waits at most `limit` ms until a timer sends something; `True` if one did."""
        if self.sees(limit):
            return True
        self.now += limit / 1000
        return False

    def sees(self, within: float) -> bool:
        """`True` if a timer sends something within so many ms, which becomes an event."""
        until = self.now + within / 1000
        while kernel.wait(self.tun, until):
            if self._timer():
                return True
        return False

    # What they are made of.

    def _sleep(self, after: float) -> float:
        """Waits, noting what timers send as events; returns the time since the last event, ms."""
        until = self.now + after / 1000
        while kernel.wait(self.tun, until):
            self._timer()
        after = round((until - self.now) * 1000, 1)
        self.now = until
        return after

    def _timer(self) -> bool:
        """Notes packets at the device as sent by a timer; `True` if this connection has some."""
        at, found = time.monotonic(), self._take()
        if found:
            began, self.now = self.now, at
            self._note(round((at - began) * 1000, 1), "timer", found)
        return bool(found)

    def _clock(self) -> int:
        return int((self.now - self.began) * 1000) + 1

    def _send(self, answer: wire.Answer) -> None:
        os.write(self.tun, wire.write(answer, self.peer, self.kernel))

    def _take(self) -> list[wire.Sent]:
        found = [wire.read(packet) for packet in kernel.packets(self.tun)]
        return [
            sent for sent in found if sent is not None and self.kernel[1] in (0, sent.source[1])
        ]

    def _note(self, after: float, what: str, found: list[wire.Sent] | None = None) -> None:
        event = Event(after, what, state=kernel.State.of(self.socket))
        for sent in self._take() if found is None else found:
            if sent.flags & wire.RST:
                raise ProbeError("the kernel gave the connection up")
            start = (sent.seq - self.first) % 2**32
            if sent.length == 0:
                # A closed window is probed by a segment without data (`tcp_xmit_probe_skb`);
                # others acknowledge the peer's SYN.
                if what == "timer":
                    event.left.append(
                        Left(start, start, 0, cwr=False, capable=sent.ecn == wire.ECT0)
                    )
                continue
            copies = self.copies.setdefault(start, [])
            copies.append((self.now, sent.stamp))
            self.highest = max(self.highest, start + sent.length)
            cwr, capable = bool(sent.flags & wire.CWR), sent.ecn == wire.ECT0
            event.left.append(Left(start, start + sent.length, len(copies), cwr, capable))
        self.events.append(event)

    def _copies_of(self, byte: int) -> tuple[int, list[tuple[float, int]]]:
        starts = [start for start in self.copies if start <= byte]
        if not starts:
            raise ProbeError(f"byte {byte} was never sent")
        start = max(starts)
        return start, self.copies[start]

    def _shown_echo(self, number: int) -> str:
        """The echo of an ACK, unless it is that of the segment below `number` as it went first."""
        if self.echoed == "syn":
            return " echo syn"
        byte, nth = self.echoed.split("#")
        if int(byte) == number - MSS and nth == "1":
            return ""
        return f" echo {in_segments(int(byte))}#{nth}"

    def _stamp(self, echo: str) -> int:
        if echo == "syn":
            return self.syn_stamp
        byte, nth = echo.split("#")
        copies = self._copies_of(int(byte))[1]
        if int(nth) > len(copies):
            raise ProbeError(f"there is no copy {echo}")
        return copies[int(nth) - 1][1]
