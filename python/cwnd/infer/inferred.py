"""Inference from captures: reading in a background thread, results, and statistics over them."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.infer.reading import in_background, several

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Share:
    """Counts of connections with server data, with a timeout, and with consecutive timeouts."""

    name: str
    connections: int
    with_timeout: int
    with_consecutive: int

    @property
    def timeout_share(self) -> float | None:
        """Share of the connections that had a timeout; `None` without connections."""
        return self.with_timeout / self.connections if self.connections else None

    @property
    def consecutive_share(self) -> float | None:
        """Share of connections with a timeout that had consecutive ones; `None` if no timeouts."""
        return self.with_consecutive / self.with_timeout if self.with_timeout else None

    def to_json(self) -> dict[str, Any]:
        """Returns counts and shares as a JSON object."""
        return {
            "name": self.name,
            "connections": self.connections,
            "with_timeout": self.with_timeout,
            "timeout_share": self.timeout_share,
            "with_consecutive": self.with_consecutive,
            "consecutive_share": self.consecutive_share,
        }


def counted(number: int, text: str) -> str:
    """Writes a number and its text, whose `[s]` stays for a plural only."""
    return f"{number} {text.replace('[s]', '' if number == 1 else 's')}"


def percent(share: float | None) -> str:
    """Writes a share in percent."""
    return "–" if share is None else f"{100 * share:.1f} %"


#: Relative position from which a capture is nearer to the client than to the server.
_HALF_WAY = 0.5
#: Quantiles of connections' round-trip times, beside the median.
_LOW, _HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Capture:
    """Summary of a capture: traffic, round-trip times, retransmissions, ECN."""

    #: Number of TCP segments, without duplicates in the capture.
    packets: int
    connections: int
    #: Connections with data of which the capture holds only one direction.
    one_direction: int
    #: Time from the first packet to the last.
    span_s: float
    #: Data of both directions over that time, in bit/s; `None` if the time is zero.
    throughput_bit_s: float | None
    #: Smoothed round-trip time to the servers at the end of connections: median, 10 and 90 %;
    #: `None` if no connection has one.
    rtt_ms: tuple[float, float, float] | None
    #: Segments of servers with data, SYN or FIN, and those that filled a hole or repeated data.
    segments: int
    retransmissions: int
    #: Connections whose SYN-ACK in the capture accepts ECN.
    ecn_connections: int
    #: Packets with ECT or CE, those with CE, and packets with ECE and with CWR, without SYNs.
    ect_packets: int
    ce_packets: int
    ece_packets: int
    #: `None` in a stored result that does not count them.
    cwr_packets: int | None

    @classmethod
    def of(cls, connections: pl.DataFrame, packets: int) -> Capture:
        """Computes the summary from the table of connections."""

        def total(column: str) -> int:
            return int(connections[column].sum())

        begins, ends = pl.col("began_s").min(), (pl.col("began_s") + pl.col("duration_s")).max()
        span = connections.select(ends - begins).item() or 0.0
        rtts = connections["rtt_ms"].drop_nulls()
        size = total("server_bytes") + total("client_bytes")
        quantiles = [rtts.quantile(q, "linear") for q in (0.5, _LOW, _HIGH)]
        known = [q for q in quantiles if q is not None]
        return cls(
            packets=packets,
            connections=connections.height,
            one_direction=connections.filter(ONE_DIRECTION).height,
            span_s=span,
            throughput_bit_s=8 * size / span if span else None,
            rtt_ms=(known[0], known[1], known[2]) if known else None,
            segments=total("server_segments"),
            retransmissions=total("filled") + total("repeated"),
            ecn_connections=total("ecn"),
            ect_packets=total("ect"),
            ce_packets=total("ce"),
            ece_packets=total("ece"),
            cwr_packets=total("cwr"),
        )

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Capture:
        """Reads what `to_json` wrote."""
        stored = {field.name: document.get(field.name) for field in fields(cls)}
        rtts = stored["rtt_ms"]
        return cls(**stored | {"rtt_ms": rtts and (rtts["median"], rtts["p10"], rtts["p90"])})

    def rows(self) -> dict[str, str]:
        """Returns the summary as names and texts, in the order of a table."""
        rate, share = self.throughput_bit_s, self.retransmission_share
        rtts = "–"
        if self.rtt_ms is not None:
            median, low, high = self.rtt_ms
            rtts = f"{median:.1f} ms (10 to 90 %: {low:.1f} to {high:.1f} ms)"
        cwr = "" if self.cwr_packets is None else f", {self.cwr_packets} CWR"
        return {
            "TCP packets": f"{self.packets}",
            "connections": f"{self.connections}",
            "time span": f"{self.span_s:.1f} s",
            "throughput": "–" if rate is None else f"{rate / 1e6:,.3g} Mbit/s",
            "RTT to servers": rtts,
            "retransmissions": f"{self.retransmissions} of {self.segments} segments of servers"
            f" ({percent(share)})",
            "ECN": counted(self.ecn_connections, "connection[s]")
            + f", {self.ce_packets} of {self.ect_packets} packets marked, {self.ece_packets}"
            f" echoes{cwr}",
        }

    @property
    def retransmission_share(self) -> float | None:
        """Share of the servers' segments that were retransmissions; `None` if there are none."""
        return self.retransmissions / self.segments if self.segments else None

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as a JSON object."""
        rtts = (
            dict(zip(("median", "p10", "p90"), self.rtt_ms, strict=True)) if self.rtt_ms else None
        )
        return asdict(self) | {"rtt_ms": rtts, "retransmission_share": self.retransmission_share}


_ENDS = ("client", "server")
#: Filter: connections with data of at least one end.
HAS_DATA = pl.col("server_bytes") + pl.col("client_bytes") > 0
#: Filter: connections with data, and packets of only one end.
ONE_DIRECTION = HAS_DATA & (
    (pl.col("server_packets") == 0) | (pl.col("server_packets") == pl.col("packets"))
)


@dataclass(frozen=True)
class Inferred:
    """Tables of connections and of servers' silences; columns: `docs/how-to/infer.md`."""

    #: A row for each connection.
    connections: pl.DataFrame
    #: A row for each long silence of a server, and for each repeated SYN or SYN-ACK.
    silences: pl.DataFrame
    #: Numbers of packets and connections read, skipped and given up.
    counts: dict[str, int]
    #: Bytes of each end by delivery rate, and segments and losses by queueing delay; empty unless
    #: they were asked for.
    rates: pl.DataFrame
    queues: pl.DataFrame

    @cached_property
    def capture(self) -> Capture:
        """Summary of the capture."""
        return Capture.of(self.connections, self.counts["tcp_segments"])

    @cached_property
    def with_server_data(self) -> pl.DataFrame:
        """Connections whose server sent data."""
        return self.connections.filter(pl.col("server_bytes") > 0)

    @cached_property
    def shares(self) -> tuple[Share, Share]:
        """Shares of timeouts by the length of gaps alone (the paper's rule), and with evidence."""

        def share(name: str, timeouts: str, row: str) -> Share:
            return Share(
                name,
                self.with_server_data.height,
                self.with_server_data.filter(pl.col(timeouts) > 0).height,
                self.with_server_data.filter(pl.col(row) > 1).height,
            )

        return (
            share("by gaps alone", "rule_timeouts", "rule_consecutive"),
            share("with evidence", "timeouts", "consecutive"),
        )

    def kinds(self) -> dict[str, int]:
        """Number of silences during data transfer, by kind."""
        counted = self.silences.filter(pl.col("what") == "data").group_by("kind").len()
        return dict(sorted(counted.with_columns(pl.col("kind").cast(pl.String)).iter_rows()))

    def backoff(self) -> dict[str, int]:
        """Number of connections with consecutive timeouts, by kind of backoff."""
        counted = self.with_server_data.filter(pl.col("consecutive") > 1).group_by("backoff").len()
        return dict(sorted(counted.with_columns(pl.col("backoff").cast(pl.String)).iter_rows()))

    def handshakes(self) -> dict[str, int]:
        """Numbers of retransmitted SYNs and SYN-ACKs."""
        return {
            name: int(self.connections[name].sum()) for name in ("syn_timeouts", "syn_ack_timeouts")
        }

    def notes(self) -> list[str]:
        """Caveats about the capture that affect the numbers, as sentences."""
        counts = self.counts
        notes = []
        if counts["files"] > 1:
            notes.append(f"{counts['files']} files were merged by time")
        repairs = {
            "duplicates": "packet[s] captured more than once: only the first copy counts",
            "reordered": "packet[s] captured behind later ones: sorted by time",
            "steps_back": "time[s] a file goes back in time: its parts were merged by time",
        }
        notes += [counted(counts[name], done) for name, done in repairs.items() if counts[name]]
        if self.capture.one_direction:
            notes.append(
                counted(self.capture.one_direction, "connection[s] with packets of one direction")
                + " only: timeouts cannot be found there"
            )
        without = self.connections.height - self.with_server_data.height
        if without and self.with_server_data.height:
            notes.append(
                f"{without} of {self.connections.height} connections without data of their server:"
                " no timeouts are looked for there"
            )
        sent, answered = (int(self.connections[f"{end}_bytes"].sum()) for end in _ENDS)
        if sent > answered:
            notes.append(
                f"{sent / (sent + answered):.0%} of the data go from clients to servers, which are"
                " the ends farther away: timeouts of clients are not looked for"
            )
        placed = self.with_server_data["position"].drop_nulls()
        near = int((placed < _HALF_WAY).sum())
        if near:
            notes.append(
                f"{near} of {placed.len()} connections captured nearer to their server than to the"
                " client: what a client sees cannot be told there"
            )
        unknown = self.with_server_data.filter(pl.col("rtt_ms").is_null()).height
        if unknown:
            notes.append(
                counted(unknown, "connection[s] whose round-trip time is unknown:")
                + " no gap is too long for it"
            )
        words = {
            "unknown_link_type": "frame[s] of a link type that is not read",
            "ip_fragments": "fragment[s] of IP packets",
            "headers_cut_off": "frame[s] whose headers were not captured whole",
            "dropped_on_link": "packet[s] dropped by the link, according to comments",
            "malformed": "frame[s] with headers that contradict themselves",
            "without_time": "packet[s] without a time",
            "files_cut_off": "file[s] cut off within a packet",
            "connections_given_up": "connection[s] given up before the end: there were too many",
            "silences_given_up": "silence[s] given up: connections had too many",
        }
        notes += [counted(counts[name], what) for name, what in words.items() if counts[name]]
        return notes

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the tables as a JSON object."""
        return {
            "capture": self.capture.to_json(),
            "shares": [share.to_json() for share in self.shares],
            "timeouts": int(self.with_server_data["timeouts"].sum()),
            "silences": self.kinds(),
            "backoff": self.backoff(),
            **self.handshakes(),
            "counts": self.counts,
            "notes": self.notes(),
        }


def infer(
    files: Sequence[str | Path] | str | Path,
    *,
    connections: int | None = None,
    idle_s: float | None = None,
    path: bool = False,
    on_progress: Callable[[float], object] | None = None,
) -> Inferred:
    """Finds the timeouts of servers in captures made at their clients (TCP*(n), § 2.4).

    Files are merged by time. Captures of runs whose clocks begin at zero are merged only if they
    are in the same directory.

    Args:
        files: pcap or pcapng, plain or compressed by gzip or zstd; "-" is standard input.
        connections: Maximum number of connections that are followed at once, 200,000 by default.
            Beyond it, those that were quiet longest are given up, and counted.
        idle_s: Seconds without a packet after which a connection is over, 600 by default.
        path: Measure delivery rates and losses, too, as `write_scenario` needs them.
        on_progress: Called regularly with the fraction of the files read, 0 to 1.

    Raises:
        InputError: if a file is no capture, is damaged or cannot be sorted, if a limit is invalid,
            or if all connections have packets of one direction only.
        OSError: if a file cannot be read.
    """
    names = several(files)
    if connections is not None and connections < 1:
        raise InputError(f"--connections {connections}: at least one must be followed")
    most = None if connections is None else min(connections, sys.maxsize)
    if idle_s is not None and not 0 < idle_s < float("inf"):
        raise InputError(f"--idle {idle_s:g}: a connection needs some time without a packet")

    def read(control: _core.Control) -> _core.Inferred:
        return _core.infer_timeouts(names, control, connections=most, idle_s=idle_s, path=path)

    read_tables = in_background(read, on_progress)
    found = Inferred(
        pl.DataFrame(read_tables.connections),
        pl.DataFrame(read_tables.silences),
        read_tables.counts,
        pl.DataFrame(read_tables.rates),
        pl.DataFrame(read_tables.queues),
    )
    if (
        found.capture.one_direction
        and found.connections.filter(HAS_DATA & ~ONE_DIRECTION).is_empty()
    ):
        raise InputError(
            f"{', '.join(map(str, names))}: packets of one direction only, and timeouts are told"
            " by data and acknowledgements: capture both directions, or give the file of the other"
            " direction as well"
        )
    return found
