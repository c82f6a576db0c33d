"""Counts the instructions that readers of files take for hostile ones, as these get longer.

Each token of a reader's grammar is repeated until the file has 10⁴, 10⁵ and 10⁶ bytes. What a step
to ten times the bytes costs may be fifteen times as much: more is no longer n log n.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "examples" / "readers"
SIZES = (10_000, 100_000, 1_000_000)
#: Bar: what ten times the bytes may cost.
MOST = 15.0
#: Instructions for a byte that are few: less is not compared.
FEW = 20


@dataclass(frozen=True)
class Case:
    """A token, and what comes before and after all of them."""

    token: bytes
    before: bytes = b""
    after: bytes = b""

    def file(self, size: int) -> bytes:
        """So many bytes; `%d` in a token is its number."""
        if b"%d" in self.token:
            tokens, length = [], 0
            while length < size:
                tokens.append(self.token.replace(b"%d", str(len(tokens)).encode()))
                length += len(tokens[-1])
            repeated = b"".join(tokens)
        else:
            repeated = self.token * (size // len(self.token))
        return self.before + repeated + self.after

    def __str__(self) -> str:
        token = repr(self.token)[1:]
        return f"{repr(self.before[-20:])[1:]} + {token if len(token) < 40 else token[:37] + '…'}"


SCENARIO = b"""schema = 2
[run]
duration = "1 s"
[dumbbell]
rate = "10 Mbit/s"
"""
FLOW = b"[flow.main]\n"
LINKS = b"""schema = 2
[run]
duration = "1 s"
[link.one]
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
duplex = true
"""
AXIS = FLOW + b"[sweep.axis.a]\n"


def repeated(tokens: list[bytes], before: bytes = b"", after: bytes = b"") -> Iterator[Case]:
    for token in tokens:
        yield Case(token, before, after)


def scenarios() -> Iterator[Case]:
    """Texts in TOML, with and without a meaning."""
    marks = [bytes([byte]) for byte in b"[]{}()\"'=,.#\\\n\t -+_0a:;|<>`~!@$%^&*?/"]
    pairs = [b"\r\n", b'"" ', b"''", b'"""', b"'''", b"[]", b"{}", b"[[", b"a.", b"a=", b"1,"]
    lines = [
        b"a=1\n", b"a%d=1\n", b"a%d = [1]\n", b"[a]\n", b"[a%d]\n", b"[[a]]\n", b"[a.b%d]\n",
        b"# x\n", b'"a%d" = 2\n', b"a.b%d = 1\n",
    ]
    texts = ["ä".encode(), "\u200d".encode(), b"\x00", b"\xff"]
    for before in (b"", SCENARIO, SCENARIO + FLOW):
        yield from repeated([*marks, *pairs, *lines, *texts], before)
    for before, after in (
        (b"x = [", b"]"), (b"x = {", b"}"), (b'x = "', b'"'), (b"x = ", b""), (b"x = '''", b"'''"),
        (b"[", b"]"), (b"[flow.", b"]\n"), (b"[[", b"]]"), (b'x = """', b'"""'), (b"# ", b"\n"),
        (SCENARIO + FLOW + b'rtt = "', b'"\n'), (SCENARIO + FLOW + b"count = ", b"\n"),
        (SCENARIO + FLOW + b"endpoint = {", b"}\n"), (SCENARIO + FLOW + b'controller = "', b'"\n'),
        (SCENARIO + AXIS + b'path = "', b'"\nvalues = [1]\n'),
        (SCENARIO + AXIS + b"values = [", b']\npath = "flow.main.count"\n'),
    ):
        yield from repeated(
            [
                b"a", b"1", b"0", b".", b",", b" ", b"\n", b"[", b"{", b"\\", b'\\"', b'"', b"'",
                b"1,", b"1.", b"a,", b"a.", b"a=1,", b"a%d=1,", b'"a",', b'"a%d",', b"[1],",
                b"{a=1},", b"1 s,", b"1 s: 0.1, ", b"uniform(", b"(", b")", b"1e", b"-", b"_", b":",
                b"\\u0041", "é".encode(),
            ],
            before, after,
        )
    for section in (b"[flow.g%d]\n", b"[link.l%d]\n", b"[sweep.axis.a%d]\n", b"[flow.g%d]\nrt = 1\n"):
        yield Case(section, SCENARIO)
        yield Case(section, LINKS)
    yield Case(b'[flow.g%d]\nrtt = "20 ms"\n', SCENARIO)
    yield Case(b'[link.l%d]\nfrom = "a"\nto = "b"\nrate = "1 Mbit/s"\ndelay = "1 ms"\n', LINKS)
    yield Case(b'[link.l%d]\nfrom = "n%d"\nto = "b"\nrate = "1 Mbit/s"\ndelay = "1 ms"\n', LINKS)
    values = FLOW + b'[sweep.axis.a]\npath = "flow.main.rtt"\nvalues = ['
    yield Case(b'"%d ms", ', SCENARIO + values, b"]\n")
    yield Case(b'"1 ms", ', SCENARIO + values, b"]\n")
    yield Case(b'"l%d", ', SCENARIO + values + b'"1 ms"]\nlabels = [', b"]\n")
    yield Case(b'"flow.main.rtt", ', SCENARIO + AXIS + b'values = ["1 ms"]\npath = [', b"]\n")
    steps = b'[dumbbell]\nrate = { initial = "1 Mbit/s", steps = ['
    yield Case(b'{ at = "%d ms", rate = "1 Mbit/s" }, ', b'[run]\nduration = "1 s"\n' + steps,
               b"] }\n" + FLOW)
    pairs_of = LINKS + FLOW + b"pairs = ["
    yield Case(b'{ from = "a", to = "b" }, ', pairs_of, b"]\n")
    yield Case(b'{ from = "a", to = "n%d" }, ', pairs_of, b"]\n")
    yield Case(b'"a", ', LINKS + FLOW + b'from = "a"\nto = "b"\nroute = [', b"]\n")
    yield Case(b'"one", ', LINKS + FLOW + b'from = "a"\nto = "b"\nroute = [', b"]\n")
    rows = SCENARIO + FLOW + b'workload = { kind = "bytes", size = "1 kB" }\narrivals = { kind = "list", rows = "'
    yield Case(b"0.5 s, ; ", rows, b'" }\n')
    yield Case(b"0.5 s, a, b, 30 kB; ", rows, b'" }\n')
    sizes = SCENARIO + FLOW + b'workload = { kind = "bytes", size = "'
    for kind in (b"cdf(", b"choice(", b"uniform(", b""):
        yield from repeated([b"1 kB: 0.5, ", b"1 kB, ", b"%d B: 1, ", b"1", b","], sizes + kind, b')" }\n')


def tables(header: bytes, row: bytes) -> Iterator[Case]:
    """Tables of numbers."""
    tokens = [
        b"\n", b" ", b"\t", b",", b"#", b"#\n", b"1", b"0", b".", b"-", b"e", b"a", b'"', b"1,", b"1\n",
        b"1 1\n", b"1,1\n", b"%d,1\n", b"1,%d\n", b"%d 1\n", b"0,0,0\n", b"\r\n", b"\r", b"nan\n", b"1e9\n",
        b"\x00", b";", "é".encode(), row,
    ]
    for before in (b"", header, header + row.replace(b"%d", b"0")):
        yield from repeated(tokens, before)


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
INTERFACE = struct.pack("<IIHHII", 1, 20, 1, 0, 65535, 20)


def frame(source: int, to: int, *, flags: int = 0x10, sequence: int = 0, data: int = 100,
          options: bytes = b"") -> bytes:
    """An Ethernet frame with a segment."""
    head = struct.pack(
        ">HHIIBBHHH", source, to, sequence, 1, (20 + len(options)) << 2, flags, 65535, 0, 0
    )
    length = 20 + len(head) + len(options) + data
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 6, 0, b"\n\0\0\1", b"\n\0\0\2")
    return b"\0" * 12 + b"\x08\0" + ip + head + options + b"\0" * data


def block(content: bytes, at_us: int = 0) -> bytes:
    """A packet in pcapng."""
    padded = content + b"\0" * (-len(content) % 4)
    length = 32 + len(padded)
    head = struct.pack("<IIIIIII", 6, length, 0, 0, at_us, len(content), len(content))
    return head + padded + struct.pack("<I", length)


def record(content: bytes, at_us: int = 0) -> bytes:
    """A packet in pcap."""
    at = divmod(at_us, 1_000_000)
    return struct.pack("<IIII", *at, len(content), len(content)) + content


def captures() -> Iterator[Case]:
    """Packet captures, classic and new, of nonsense and of connections."""
    rest = [b"\0", b"\1", b"\xff", b"\n", b"a", b"\x0a\x0d\x0d\x0a", b"\x06\0\0\0"]
    for before in (b"", PCAP, SECTION, SECTION + INTERFACE, b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd"):
        yield from repeated(rest, before)
    yield from repeated([record(b""), record(b"\0" * 60), record(frame(1, 2)[:40])], PCAP)
    empty = struct.pack("<III", 0xBAD, 12, 12)
    yield from repeated([SECTION, INTERFACE, empty, block(b""), SECTION + INTERFACE], SECTION + INTERFACE)


class Numbered(Case):
    """Packets that differ."""


def packets() -> Iterator[tuple[str, Callable[[int], bytes]]]:
    """Captures whose packets differ by their number."""

    def made(one: Callable[[int], bytes], size: int) -> bytes:
        length = len(one(0))
        return PCAP + b"".join(one(i) for i in range(size // length))

    def port(i: int) -> int:
        return 1024 + i % 60_000

    kinds: dict[str, Callable[[int], bytes]] = {
        "one connection": lambda i: record(frame(80, 9, sequence=100 * i), i),
        "the same segment": lambda i: record(frame(80, 9), i),
        "the same time": lambda i: record(frame(80, 9, sequence=100 * i)),
        "backwards in time": lambda i: record(frame(80, 9, sequence=100 * i), 4_000_000_000 - i),
        "backwards in sequence": lambda i: record(frame(80, 9, sequence=2**32 - 1 - 200 * i), i),
        "holes": lambda i: record(frame(80, 9, sequence=200 * i), i),
        "holes from above": lambda i: record(frame(80, 9, sequence=2**31 - 200 * i), i),
        "opened": lambda i: record(frame(port(i), 80, flags=2, data=0), i),
        "opened again": lambda i: record(frame(9, 80, flags=2, data=0, sequence=i), i),
        "closed": lambda i: record(frame(80, 9, flags=1, data=0, sequence=i), i),
        "reset": lambda i: record(frame(80, 9, flags=4, data=0, sequence=i), i),
        "new connections": lambda i: record(frame(80, port(i), sequence=i), i),
        "options": lambda i: record(frame(80, 9, options=b"\1" * 40, sequence=i), i),
        "zigzag": lambda i: record(frame(80, 9, sequence=100 * i), 1_000_000 * (i % 2) + i),
        "silences": lambda i: record(frame(80, 9, sequence=100 * (i // 2)), 300_000 * i),
        "acks": lambda i: record(frame(80, 9, sequence=100 * i) if i % 2 else frame(9, 80, data=0), i),
    }
    for name, one in kinds.items():
        yield name, partial(made, one)


def rust() -> Iterator[tuple[str, str, Callable[[int], bytes]]]:
    """Reader, name, and what makes a file of so many bytes."""
    readers = {
        "scenario": scenarios(),
        "sizes": tables(b"bytes,probability\n", b"%d,0.5\n"),
        "arrivals": tables(b"time_s,size_bytes\n", b"0.%d,100\n"),
        "delays": tables(b"time_s,added_ms\n", b"%d,1\n"),
        "rates": tables(b"time_s,rate_bit_s\n", b"%d,1000\n"),
        "capture": captures(),
    }
    for reader, cases in readers.items():
        for case in cases:
            yield reader, str(case), case.file
    for name, make in packets():
        yield "capture", name, make


def seconds(reader: str, file: Path) -> float:
    before = os.times()
    subprocess.run([PROGRAM, reader, file], stdout=subprocess.DEVNULL, check=False)
    after = os.times()
    return after.children_user - before.children_user
