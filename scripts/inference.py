"""Timeouts of real servers as `cwnd infer` finds them, beside what the servers' kernel counted.

Servers of this machine answer requests of clients behind `cwnd link`, whose packets are captured at
the clients. What is true the servers' kernel says: of each socket TCP_INFO is asked every few
milliseconds how many timeouts there were, and a capture at the servers tells what was sent again
then. The table is in docs/infer.md; `scripts/inference.py --page` writes it again, a test runs a
part of it. Needs root, as `cwnd link` does, and Linux 6.7, which counts timeouts.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd.infer import infer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from cwnd.infer import Inferred

CWND = Path(sys.executable).with_name("cwnd")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "infer.md"
BEGIN, END = "<!-- scripts/inference.py -->\n", "<!-- end -->\n"

#: linux/tcp.h: a socket option, a state of TCP, and where `struct tcp_info` has what.
TCP_INFO, TCP_CLOSE = 11, 7
INFO_BYTES = 248
BYTES_ACKED, TOTAL_RTO = 120, 240
#: Of captures: linux/if_ether.h, asm-generic/socket.h.
ETH_P_ALL = 3
SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 26, 33, 35
TIMESTAMP_SPACE = socket.CMSG_SPACE(16)
#: Bytes of a packet that are looked at, of them its IPv4 header, and what may wait to be looked at.
HEADERS, IP_HEADER, TAP_BUFFER = 64, 20, 1 << 24
SYN = 0x02
#: How often the kernel is asked: well below a round trip.
LOOK_S = 0.003
#: Who waits longer gives up.
MOST_S = 15.0


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


CASES = (
    Case("2 % loss", "--rate 20Mbit/s --rtt 50ms --loss 0.02", ((100_000, 200_000),)),
    Case("10 % loss", "--rate 20Mbit/s --rtt 50ms --loss 0.1"),
    Case("20 % loss", "--rate 20Mbit/s --rtt 50ms --loss 0.2"),
    Case(
        "30 % loss",
        "--rate 20Mbit/s --rtt 50ms --loss 0.3 --uplink-loss 0.05",
        ((15_000, 30_000),),
        at_once=40,
    ),
    Case(
        "20 % loss, 10 % of ACKs, 100 ms",
        "--rate 20Mbit/s --rtt 100ms --loss 0.2 --uplink-loss 0.1",
        at_once=40,
    ),
    Case("small answers, 20 % loss", "--rate 20Mbit/s --rtt 80ms --loss 0.2", ((500, 4000),) * 6),
    Case("FIFO of 20 packets, overrun", "--rate 4Mbit/s --rtt 80ms --buffer 20packets"),
    Case("CoDel, ECN, 5 % loss", "--rate 4Mbit/s --rtt 60ms --queue codel --ecn --loss 0.05"),
    Case(
        "pauses of the server, 10 % loss",
        "--rate 20Mbit/s --rtt 50ms --loss 0.1",
        part=6000,
        pause_s=(0.1, 0.9),
    ),
    Case(
        "pauses of the server, no loss", "--rate 20Mbit/s --rtt 50ms", part=6000, pause_s=(0.1, 0.9)
    ),
    Case(
        "slow readers, 5 % loss",
        "--rate 20Mbit/s --rtt 50ms --loss 0.05",
        ((60_000, 90_000),),
        reads=(6000, 0.12),
    ),
    Case(
        "reordering, 5 % loss",
        "--rate 20Mbit/s --rtt 60ms --loss 0.05 --reorder 0.05 --reorder-delay 30ms",
    ),
    Case("many requests, 25 % loss", "--rate 20Mbit/s --rtt 60ms --loss 0.25", ((1000, 4000),) * 4),
)


# --- the clients, behind the link --------------------------------------------------------------


def be_clients(case: Case, port: int, seed: int) -> None:
    """Asks the server for answers, over many connections."""
    where = (os.environ["CWND_LINK_CALLER"], port)

    def ask(number: int) -> None:
        draw = random.Random(f"{seed} {number}")
        # Not all at the same time.
        time.sleep(draw.random())
        with contextlib.suppress(OSError), socket.socket() as server:
            if case.reads is not None:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            server.settimeout(MOST_S)
            server.connect(where)
            for least, most in case.answers:
                size = draw.randint(least, most)
                server.sendall(json.dumps({"size": size, "seed": draw.random()}).encode() + b"\n")
                while size > 0:
                    most_bytes, rest_s = case.reads or (1 << 16, 0.0)
                    data = server.recv(min(size, most_bytes))
                    if not data:
                        return
                    size -= len(data)
                    if rest_s:
                        time.sleep(rest_s)

    with ThreadPoolExecutor(case.at_once) as threads:
        list(threads.map(ask, range(case.connections)))


# --- the servers, and what their kernel says ---------------------------------------------------


@dataclass(frozen=True)
class Told:
    """What the kernel said of a socket when it had counted another timeout."""

    #: When it was asked, and when it had been asked before.
    at: float
    before: float
    acked: int
    timeouts: int


@dataclass(frozen=True)
class Sent:
    """A segment of data that the server's host sent."""

    at: float
    #: Its first byte in the stream, and the first that was not acknowledged by then.
    offset: int
    acked: int
    #: Whether it had been sent before, and for how long nothing had been heard.
    again: bool
    idle: float


@dataclass
class Truth:
    """What is true of a connection."""

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
        """When it timed out, what it sent then, and how often it did since it was asked before.

        The segment that a timeout sends again is the first that was not acknowledged (RFC 6298
        § 5.4). Who is asked later says what was acknowledged later, too: the segment itself is
        looked for, between both times of asking.
        """
        for before, after in pairwise(self.told):
            again = [
                sent
                for sent in self.sent
                if after.before <= sent.at <= after.at and sent.again and sent.offset == sent.acked
            ]
            count = after.timeouts - before.timeouts
            # What answers something heard is no timeout.
            again = sorted(again, key=lambda sent: sent.idle)[-count:]
            for sent in again:
                yield sent.at, sent.offset, 1
            if len(again) < count:
                yield after.at, after.acked, count - len(again)


def tap(port: int) -> socket.socket:
    """Packets of this host to and from a port of its own."""
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
    #: What is to be written, and not before when.
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
        #: By the client's port.
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
        """Asks the kernel; whether the connection is over."""
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


# --- both, and what `cwnd infer` finds ---------------------------------------------------------


def measure(case: Case, seed: int, capture: Path) -> dict[int, Truth]:
    """Runs clients and servers; what is true of each client's port."""
    with Server(case) as server:
        told = json.dumps(asdict(case))
        clients = [str(Path(__file__)), "--be-clients", told, str(server.port), str(seed)]
        subprocess.run(
            [
                *(CWND, "link", "--quiet", *case.path.split(), "--seed", str(seed)),
                *("--pcap", capture, "--pcap-at", "command"),
                *("--", sys.executable, *clients),
            ],
            check=True,
        )
    return server.truths


#: A connection and the first byte of it that was not acknowledged, and how often it timed out.
Places: TypeAlias = "dict[tuple[int, int], int]"


def there(truths: dict[int, Truth], last: dict[int, float]) -> Places:
    """Timeouts by place, of data; those after which something arrived."""
    places: Places = defaultdict(int)
    for port, truth in truths.items():
        for at, offset, count in truth.places():
            if at < last.get(port, 0.0) and offset < truth.written:
                places[port, offset] += count
    return dict(places)


def said(found: Inferred, kind: str = "timeout") -> Places:
    """The same as it was found in the capture."""
    of_data = found.silences.filter((pl.col("kind") == kind) & (pl.col("what") == "data"))
    rows = of_data.join(found.connections.select("connection", "client_port"), on="connection")
    places: Places = defaultdict(int)
    for port, offset, count in rows.select("client_port", "offset", "timeouts").iter_rows():
        places[port, offset] += count
    return dict(places)


@dataclass
class Score:
    """Right ones, of those that were there and of those that were said."""

    right: int = 0
    there: int = 0
    said: int = 0

    @property
    def recall(self) -> float | None:
        """Of those that were there; `None` if there were none."""
        return self.right / self.there if self.there else None

    @property
    def precision(self) -> float | None:
        """Of those that were said; `None` if there were none."""
        return self.right / self.said if self.said else None

    def add(self, right: int, there: int, said: int) -> None:
        """Counts some more."""
        self.right, self.there, self.said = self.right + right, self.there + there, self.said + said


@dataclass
class Outcome:
    """What a case came to."""

    silences: Score = field(default_factory=Score)
    timeouts: Score = field(default_factory=Score)
    rows: Score = field(default_factory=Score)
    growth: Score = field(default_factory=Score)
    #: Silences with a timeout of which it is said that it cannot be told.
    untold: int = 0

    def add(self, other: Outcome) -> None:
        """Counts what another came to as well."""
        for name in ("silences", "timeouts", "rows", "growth"):
            score: Score = getattr(other, name)
            getattr(self, name).add(score.right, score.there, score.said)
        self.untold += other.untold


def compare(truths: dict[int, Truth], found: Inferred) -> Outcome:
    """Counts what is right."""
    last = dict(found.connections.select("client_port", "server_last_s").iter_rows())
    true, inferred, ambiguous = there(truths, last), said(found), said(found, "ambiguous")
    outcome = Outcome()
    both = true.keys() & inferred.keys()
    outcome.untold = len((true.keys() & ambiguous.keys()) - both)
    outcome.silences.add(len(both), len(true), len(inferred))
    right = sum(min(true[place], inferred[place]) for place in both)
    outcome.timeouts.add(right, sum(true.values()), sum(inferred.values()))
    rows = [{port for (port, _), n in places.items() if n > 1} for places in (true, inferred)]
    outcome.rows.add(len(rows[0] & rows[1]), len(rows[0]), len(rows[1]))
    backoff = pl.col("backoff").cast(pl.String)
    grew = dict(found.connections.select("client_port", backoff).iter_rows())
    told = [grew[port] for port in rows[1] if grew[port] not in ("none", "unclear")]
    # Linux doubles.
    outcome.growth.add(told.count("doubled"), len(rows[0]), len(told))
    return outcome


def run(case: Case, seed: int) -> Outcome:
    """Measures, infers, compares."""
    with tempfile.TemporaryDirectory() as scratch:
        capture = Path(scratch) / "clients.pcapng"
        truths = measure(case, seed, capture)
        return compare(truths, infer(capture))


def run_all(cases: Sequence[Case], seeds: Sequence[int], at_once: int = 3) -> list[Outcome]:
    """Several cases, some at a time; of each the sum over its seeds."""

    def total(case: Case) -> Outcome:
        outcome = Outcome()
        for seed in seeds:
            outcome.add(run(case, seed))
        return outcome

    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(total, cases))


def table(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
    """The table of the page."""
    every = Outcome()
    for outcome in outcomes:
        every.add(outcome)
    head = (
        "| path, servers and clients | silences | recall | precision | timeouts | recall"
        " | precision | two in a row | recall | precision | doubled | ambiguous |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    named = [(case.name, outcome) for case, outcome in zip(cases, outcomes, strict=True)]
    return head + "".join(_line(*each) for each in [*named, ("all", every)])


def _line(name: str, outcome: Outcome) -> str:
    def share(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    cells = [name]
    for score in (outcome.silences, outcome.timeouts, outcome.rows):
        cells += [str(score.there), share(score.recall), share(score.precision)]
    cells += [f"{outcome.growth.right}/{outcome.growth.said}", str(outcome.untold)]
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Measures the cases that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--be-clients", nargs=3, metavar=("CASE", "PORT", "SEED"))
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="write the table into docs/infer.md")
    given = parser.parse_args()
    if given.be_clients:
        told, port, seed = given.be_clients
        be_clients(Case(**json.loads(told)), int(port), int(seed))
        return
    cases = [case for case in CASES if given.only in case.name]
    text = table(cases, run_all(cases, range(1, given.seeds + 1)))
    print(text)
    if given.page:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        _, after = rest.split(END)
        PAGE.write_text(f"{before}{BEGIN}{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
