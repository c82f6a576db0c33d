"""Adversarial files for readers: a token of the reader's grammar, repeated many times."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class AdversarialFile(Protocol):
    """Generator of a file of about a given size."""

    @property
    def repeats(self) -> str:
        """Description of the token or the records that the file repeats."""

    def file(self, size: int, /) -> bytes:
        """Returns the file."""


@dataclass(frozen=True)
class Repeated:
    """A repeated token with a prefix and a suffix; `%d` in a token is replaced by its number."""

    token: bytes
    before: bytes = b""
    after: bytes = b""

    def file(self, size: int) -> bytes:
        """Returns the file."""
        if b"%d" not in self.token:
            return self.before + self.token * (size // len(self.token)) + self.after
        tokens: list[bytes] = []
        length = 0
        while length < size:
            tokens.append(self.token.replace(b"%d", str(len(tokens)).encode()))
            length += len(tokens[-1])
        return self.before + b"".join(tokens) + self.after

    @property
    def repeats(self) -> str:
        """Description of the token."""
        return repr(self.token[:40])[1:]

    def __str__(self) -> str:
        return f"{self.repeats} behind {repr(self.before[-24:])[1:]}"


@dataclass(frozen=True)
class Numbered:
    """Records that differ by their number, after a header."""

    name: str
    head: bytes
    record: Callable[[int], bytes]

    def file(self, size: int) -> bytes:
        """Returns the file."""
        count = size // len(self.record(0))
        return self.head + b"".join(map(self.record, range(count)))

    @property
    def repeats(self) -> str:
        """Description of the records."""
        return self.name

    def __str__(self) -> str:
        return self.name


def repeated(
    tokens: Iterable[bytes], before: bytes = b"", after: bytes = b""
) -> Iterator[Repeated]:
    """Yields a file for each token."""
    for token in tokens:
        yield Repeated(token, before, after)


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


def scenarios() -> Iterator[Repeated]:
    """Yields TOML texts, valid scenarios and others."""
    marks = [bytes([byte]) for byte in b"[]{}()\"'=,.#\\\n\t -+_0a:;|<>`~!@$%^&*?/"]
    pairs = [b"\r\n", b'"" ', b"''", b'"""', b"'''", b"[]", b"{}", b"[[", b"a.", b"a=", b"1,"]
    lines = [
        b"a=1\n",
        b"a%d=1\n",
        b"a%d = [1]\n",
        b"[a]\n",
        b"[a%d]\n",
        b"[[a]]\n",
        b"[a.b%d]\n",
        b"# x\n",
        b'"a%d" = 2\n',
        b"a.b%d = 1\n",
    ]
    texts = ["ä".encode(), "\u200d".encode(), b"\x00", b"\xff"]
    for before in (b"", SCENARIO, SCENARIO + FLOW):
        yield from repeated([*marks, *pairs, *lines, *texts], before)
    for before, after in (
        (b"x = [", b"]"),
        (b"x = {", b"}"),
        (b'x = "', b'"'),
        (b"x = ", b""),
        (b"x = '''", b"'''"),
        (b"[", b"]"),
        (b"[flow.", b"]\n"),
        (b"[[", b"]]"),
        (b'x = """', b'"""'),
        (b"# ", b"\n"),
        (SCENARIO + FLOW + b'rtt = "', b'"\n'),
        (SCENARIO + FLOW + b"count = ", b"\n"),
        (SCENARIO + FLOW + b"endpoint = {", b"}\n"),
        (SCENARIO + FLOW + b'controller = "', b'"\n'),
        (SCENARIO + AXIS + b'path = "', b'"\nvalues = [1]\n'),
        (SCENARIO + AXIS + b"values = [", b']\npath = "flow.main.count"\n'),
    ):
        yield from repeated(
            [
                b"a",
                b"1",
                b"0",
                b".",
                b",",
                b" ",
                b"\n",
                b"[",
                b"{",
                b"\\",
                b'\\"',
                b'"',
                b"'",
                b"1,",
                b"1.",
                b"a,",
                b"a.",
                b"a=1,",
                b"a%d=1,",
                b'"a",',
                b'"a%d",',
                b"[1],",
                b"{a=1},",
                b"1 s,",
                b"1 s: 0.1, ",
                b"uniform(",
                b"(",
                b")",
                b"1e",
                b"-",
                b"_",
                b":",
                b"\\u0041",
                "é".encode(),
            ],
            before,
            after,
        )
    for section in (
        b"[flow.g%d]\n",
        b"[link.l%d]\n",
        b"[sweep.axis.a%d]\n",
        b"[flow.g%d]\nrt = 1\n",
    ):
        yield Repeated(section, SCENARIO)
        yield Repeated(section, LINKS)
    yield Repeated(b'[flow.g%d]\nrtt = "20 ms"\n', SCENARIO)
    yield Repeated(b'[link.l%d]\nfrom = "a"\nto = "b"\nrate = "1 Mbit/s"\ndelay = "1 ms"\n', LINKS)
    yield Repeated(
        b'[link.l%d]\nfrom = "n%d"\nto = "b"\nrate = "1 Mbit/s"\ndelay = "1 ms"\n', LINKS
    )
    values = FLOW + b'[sweep.axis.a]\npath = "flow.main.rtt"\nvalues = ['
    yield Repeated(b'"%d ms", ', SCENARIO + values, b"]\n")
    yield Repeated(b'"1 ms", ', SCENARIO + values, b"]\n")
    yield Repeated(b'"l%d", ', SCENARIO + values + b'"1 ms"]\nlabels = [', b"]\n")
    yield Repeated(b'"flow.main.rtt", ', SCENARIO + AXIS + b'values = ["1 ms"]\npath = [', b"]\n")
    steps = b'[dumbbell]\nrate = { initial = "1 Mbit/s", steps = ['
    yield Repeated(
        b'{ at = "%d ms", rate = "1 Mbit/s" }, ',
        b'[run]\nduration = "1 s"\n' + steps,
        b"] }\n" + FLOW,
    )
    pairs_of = LINKS + FLOW + b"pairs = ["
    yield Repeated(b'{ from = "a", to = "b" }, ', pairs_of, b"]\n")
    yield Repeated(b'{ from = "a", to = "n%d" }, ', pairs_of, b"]\n")
    yield Repeated(b'"a", ', LINKS + FLOW + b'from = "a"\nto = "b"\nroute = [', b"]\n")
    yield Repeated(b'"one", ', LINKS + FLOW + b'from = "a"\nto = "b"\nroute = [', b"]\n")
    rows = (
        SCENARIO
        + FLOW
        + b'workload = { kind = "bytes", size = "1 kB" }\narrivals = { kind = "list", rows = "'
    )
    yield Repeated(b"0.5 s, ; ", rows, b'" }\n')
    yield Repeated(b"0.5 s, a, b, 30 kB; ", rows, b'" }\n')
    sizes = SCENARIO + FLOW + b'workload = { kind = "bytes", size = "'
    for kind in (b"cdf(", b"choice(", b"uniform(", b""):
        yield from repeated(
            [b"1 kB: 0.5, ", b"1 kB, ", b"%d B: 1, ", b"1", b","], sizes + kind, b')" }\n'
        )


def tables(header: bytes, row: bytes) -> Iterator[Repeated]:
    """Yields tables of numbers."""
    tokens = [
        b"\n",
        b" ",
        b"\t",
        b",",
        b"#",
        b"#\n",
        b"1",
        b"0",
        b".",
        b"-",
        b"e",
        b"a",
        b'"',
        b"1,",
        b"1\n",
        b"1 1\n",
        b"1,1\n",
        b"%d,1\n",
        b"1,%d\n",
        b"%d 1\n",
        b"0,0,0\n",
        b"\r\n",
        b"\r",
        b"nan\n",
        b"1e9\n",
        b"\x00",
        b";",
        "é".encode(),
        row,
    ]
    for before in (b"", header, header + row.replace(b"%d", b"0")):
        yield from repeated(tokens, before)


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
INTERFACE = struct.pack("<IIHHII", 1, 20, 1, 0, 65535, 20)


def frame(
    source: int,
    to: int,
    *,
    flags: int = 0x10,
    sequence: int = 0,
    data: int = 100,
    options: bytes = b"",
) -> bytes:
    """Returns an Ethernet frame with a TCP segment."""
    head = struct.pack(
        ">HHIIBBHHH", source, to, sequence, 1, (20 + len(options)) << 2, flags, 65535, 0, 0
    )
    length = 20 + len(head) + len(options) + data
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 6, 0, b"\n\0\0\1", b"\n\0\0\2")
    return b"\0" * 12 + b"\x08\0" + ip + head + options + b"\0" * data


def block(content: bytes, at_us: int = 0) -> bytes:
    """Returns a packet block of pcapng."""
    padded = content + b"\0" * (-len(content) % 4)
    length = 32 + len(padded)
    head = struct.pack("<IIIIIII", 6, length, 0, 0, at_us, len(content), len(content))
    return head + padded + struct.pack("<I", length)


def record(content: bytes, at_us: int = 0) -> bytes:
    """Returns a packet record of pcap."""
    at = divmod(at_us, 1_000_000)
    return struct.pack("<IIII", *at, len(content), len(content)) + content


def captures() -> Iterator[AdversarialFile]:
    """Yields packet captures in pcap and pcapng, of arbitrary bytes and of connections."""
    rest = [b"\0", b"\1", b"\xff", b"\n", b"a", b"\x0a\x0d\x0d\x0a", b"\x06\0\0\0"]
    for before in (b"", PCAP, SECTION, SECTION + INTERFACE, b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd"):
        yield from repeated(rest, before)
    yield from repeated([record(b""), record(b"\0" * 60), record(frame(1, 2)[:40])], PCAP)
    empty = struct.pack("<III", 0xBAD, 12, 12)
    yield from repeated(
        [SECTION, INTERFACE, empty, block(b""), SECTION + INTERFACE], SECTION + INTERFACE
    )
    yield from (Numbered(name, PCAP, one) for name, one in _packets().items())


def _packets() -> dict[str, Callable[[int], bytes]]:
    """Returns generators of packets that depend on their number."""
    return {
        "one connection": lambda i: record(frame(80, 9, sequence=100 * i), i),
        "the same segment": lambda i: record(frame(80, 9), i),
        "the same time": lambda i: record(frame(80, 9, sequence=100 * i)),
        "backwards in time": lambda i: record(frame(80, 9, sequence=100 * i), 4_000_000_000 - i),
        "backwards in sequence": lambda i: record(frame(80, 9, sequence=2**32 - 1 - 200 * i), i),
        "holes": lambda i: record(frame(80, 9, sequence=200 * i), i),
        "holes from above": lambda i: record(frame(80, 9, sequence=2**31 - 200 * i), i),
        "opened": lambda i: record(frame(1024 + i % 60_000, 80, flags=2, data=0), i),
        "opened again": lambda i: record(frame(9, 80, flags=2, data=0, sequence=i), i),
        "closed": lambda i: record(frame(80, 9, flags=1, data=0, sequence=i), i),
        "reset": lambda i: record(frame(80, 9, flags=4, data=0, sequence=i), i),
        "new connections": lambda i: record(frame(80, 1024 + i % 60_000, sequence=i), i),
        "options": lambda i: record(frame(80, 9, options=b"\1" * 40, sequence=i), i),
        "zigzag": lambda i: record(frame(80, 9, sequence=100 * i), 1_000_000 * (i % 2) + i),
        "silences": lambda i: record(frame(80, 9, sequence=100 * (i // 2)), 300_000 * i),
        "acks": lambda i: record(
            frame(80, 9, sequence=100 * i) if i % 2 else frame(9, 80, data=0), i
        ),
    }


GRAPH = b'graph [\n node [ id 0 label "a" ]\n node [ id 1 label "b" ]\n'
EDGE = b" edge [ source 0 target 1 ]\n]\n"


def gml() -> Iterator[Repeated]:
    """Yields graphs in GML."""
    marks = [bytes([byte]) for byte in b'[]{}"#\n\t -+a0.,&\\\r']
    words = [
        *(b"graph [ ", b"graph ", b"multigraph\n", b"multigraph 1 ", b"node [ ", b"] [", b"a [ "),
        *(b"node [ id 1 ] ", b"node [ id %d ]\n", b"edge [ source 0 target %d ]\n", b"id 1 "),
        *(b"edge [ source 0 target 1 ]\n", b"a%d 1\n", b'a "b"\n', b'"x\n', b"&#1;", b"&amp;"),
        *(b"1e9 ", b"_networkx_list_start ", b"# x\n", "é".encode(), b"\x00"),
    ]
    for before, after in (
        (b"", b""),
        (GRAPH, EDGE),
        (GRAPH + b' node [ id 2 label "', b'" ]\n' + EDGE),
        (b"graph [\n directed 1\n", EDGE),
    ):
        yield from repeated([*marks, *words], before, after)
    node = b" node [ id 1%d ]\n edge [ source 0 target 1%d ]\n"
    yield Repeated(node, b"graph [\n node [ id 0 ]\n", b"]\n")
    yield Repeated(node.replace(b"]", b'label "s" ]', 1), b"graph [\n node [ id 0 ]\n", b"]\n")
    for word in (b"LinkSpeedRaw 10", b'LinkLabel "10 Gbps"'):
        yield Repeated(b" edge [ source 0 target 1 " + word + b" ]\n", GRAPH, b"]\n")
    for key in (b"LinkLabel", b"LinkSpeed", b"LinkSpeedRaw"):
        label = GRAPH + b" edge [ source 0 target 1 " + key + b' "'
        yield from repeated([b" ", b"1", b"G", b"1 ", b"."], label, b'" ]\n]\n')


GRAPHML = (
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    b'<key attr.name="label" attr.type="string" for="node" id="d0"/>'
    b'<graph edgedefault="undirected">'
)


def graphml() -> Iterator[Repeated]:
    """Yields graphs in GraphML."""
    marks = [bytes([byte]) for byte in b"<>&;\"'=/ \na0!-[]?"]
    words = [
        *(b"<a>", b"<a/>", b"<node/>", b'<node id="n%d"/>', b'<node id="n"/>', b"<!-- x -->"),
        *(b"<!--", b"<![CDATA[", b"<?a?>", b"&amp;", b"&#65;", b"<graph>", b' a%d="1"'),
        *(b'<edge source="n%d" target="n1%d"/>', b'<data key="d0">x</data>', "é".encode()),
        b'<key id="k%d" for="node" attr.name="a%d" attr.type="int"/>',
    ]
    end = b"</graph></graphml>"
    for before, after in (
        (b"", b""),
        (GRAPHML, end),
        (GRAPHML + b'<node id="', b'"/>' + end),
        (GRAPHML + b'<node id="a"><data key="d0">', b"</data></node>" + end),
    ):
        yield from repeated([*marks, *words], before, after)


def matrices() -> Iterator[Repeated]:
    """Yields traffic matrices for a graph with the nodes a and b."""
    marks = [bytes([byte]) for byte in b",\"'\n\r\t ;a0.-"]
    words = [
        *(b"a,b\n", b"a,b,1\n", b"a,a,1\n", b"n%d,b,1\n", b"a,b,0\n", b"a,b,%d\n", b'"a","b",1\n'),
        *(b'""', b'"\n', b"#\n", b",,\n", "é".encode()),
    ]
    for before, after in (
        (b"", b""),
        (b"from,to,share\n", b""),
        (b'from,to,rate\n"', b'"'),
        (b"from,to,rate\na,b,", b""),
        (b"from,to,share\na,", b",1\n"),
    ):
        yield from repeated([*marks, *words], before, after)


def objects() -> Iterator[Repeated]:
    """Yields JSON objects, as in the descriptions of results and the activity of sweeps."""
    marks = [bytes([byte]) for byte in b'[]{}",:\\\n 0a-.']
    words = [
        *(b'{"a":', b"[1,", b'"a%d":1,', b"\\u0041", b"1e9", b"null,", "é".encode(), b"\xff"),
        *(b"{}\n", b'{"event": "start"}\n', b'{"event": "progress", "unix_s": %d}\n', b"[a]\n"),
        *(b'"file_sha256": "', b'"sha256": {', b"0" * 64),
    ]
    for before, after in ((b"", b""), (b'{"a": [', b"]}"), (b'{"name": "', b'"}'), (b"{", b"}")):
        yield from repeated([*marks, *words], before, after)


#: Readers of files, with the generator of files for each.
READERS: dict[str, Callable[[], Iterator[AdversarialFile]]] = {
    "scenario": scenarios,
    "sizes": partial(tables, b"bytes,probability\n", b"%d,0.5\n"),
    "arrivals": partial(tables, b"time_s,size_bytes\n", b"0.%d,100\n"),
    "delays": partial(tables, b"time_s,added_ms\n", b"%d,1\n"),
    "rates": partial(tables, b"time_s,rate_bit_s\n", b"%d,1000\n"),
    "capture": captures,
    "gml": gml,
    "graphml": graphml,
    "matrix": matrices,
    "manifest": objects,
    "activity": objects,
}
