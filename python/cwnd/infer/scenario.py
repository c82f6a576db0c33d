"""Scenario of the traffic in a capture: one bottleneck, and the connections as they arrived."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.files import write_atomically

if TYPE_CHECKING:
    from cwnd.infer.inferred import Inferred

#: Quantile of delivery rates, by bytes, that is taken for the bottleneck's rate.
_RATE_QUANTILE = 0.95
#: Relative distance within which rates are the same, and share of the bytes with the bottleneck's
#: rate from which it was surely reached.
_SAME_RATE, _REACHED = 0.05, 0.2
#: Quantile of queueing delays taken for the longest; a few samples have other reasons.
_LONGEST = 0.99
#: Losses below which there is no evidence, and standard deviations above random losses from which
#: losses of a full queue are sure.
_FEW, _SURE = 3, 3.0
#: Queues of fewer packets are bursts.
_SHORT_QUEUE = 5
#: Largest ratio of the round-trip times in a group.
_SPREAD = 1.2
#: Share of the capture for which a connection that still sends at its end has to have sent to be a
#: bulk flow, and time before the end that still counts as the end, in round trips and in seconds.
_BULK, _AT_END = 0.5, (4, 0.5)
#: Time since 1970 from which a clock is set, in seconds; those of runs begin at zero.
_CLOCK_SET_S = 10 * 365 * 86_400.0
#: Bits of a full packet of Ethernet.
_PACKET_BITS = 12_000
#: Characters that TOML does not allow in comments; the last stand for bytes that are not UTF-8.
_NOT_IN_TOML = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
#: Shortest round-trip time that is written, in ms.
_MIN_RTT_MS = 0.01


#: Filter: connections whose far end sent most of the data.
_BY_SERVER = pl.col("server_stream_bytes") >= pl.col("client_stream_bytes")
#: Filter: connections whose ECE is an echo (RFC 3168). In others it may be part of a counter of
#: accurate ECN, whose SYN-ACK does not look like one of RFC 3168.
_ECHOES = (pl.col("ecn") == 1) | (pl.col("opened_by").cast(pl.String) == "unknown")


@dataclass(frozen=True)
class PathEstimate:
    """Estimates of the path of the data that one end of each connection sent."""

    #: Rate of the bottleneck, in bit/s, and share of the bytes that arrived at about this rate.
    rate_bit_s: float
    reached: float
    #: Share of segments lost while the queue was short: random losses.
    loss: float
    #: Lost segments, all segments.
    lost: int
    segments: int
    #: Longest queueing delay, in ms.
    longest_ms: float
    #: Queueing delay at which a full queue dropped, in ms; `None` if there is no evidence of that.
    buffer_ms: float | None

    @classmethod
    def of(cls, found: Inferred, end: str) -> PathEstimate:
        """Estimates the path of the data of `client` or `server`.

        Raises:
            InputError: There is too little data.
        """
        rates = found.rates.filter(pl.col("end").cast(pl.String) == end).sort("rate_bit_s")
        seen = rates.partition_by("seen")
        if not seen:
            raise InputError(
                "no rate can be estimated: that needs 17 segments of data, and 2 ms, in the"
                " direction with most of the data"
            )
        # Bursts of senders, and ACKs of different round-trip times, are faster than the bottleneck.
        rate, rates = min(
            ((_quantile(one, "rate_bit_s", "bytes", _RATE_QUANTILE), one) for one in seen),
            key=lambda pair: pair[0],
        )
        near = rates.filter((pl.col("rate_bit_s") / rate - 1).abs() <= _SAME_RATE)
        queues = found.queues.filter(pl.col("end").cast(pl.String) == end).sort("delay_ms")
        if queues.is_empty():
            raise InputError(
                "no round-trip time is known: that needs a handshake or timestamps, in both"
                " directions"
            )
        # Lost segments of the far end are not among those that arrived.
        sent = pl.col("segments") + (pl.col("lost") if end == "server" else 0)
        queues = queues.with_columns(sent.alias("sent"))
        longest = _quantile(queues, "delay_ms", "sent", _LONGEST)
        short, long = (
            queues.filter(side)
            for side in (pl.col("delay_ms") < longest / 2, pl.col("delay_ms") >= longest / 2)
        )
        few = _total(short, "lost") < _FEW
        loss = 0.0 if few else _total(short, "lost") / _total(short, "sent")
        lost = _total(queues, "lost")
        if end == "server" and lost:
            # Holes that nobody filled are packets that the capture missed.
            filled = found.connections.filter(_BY_SERVER).select("filled", "repeated")
            loss *= min(1.0, int(filled.sum_horizontal().sum()) / lost)
        expected = loss * _total(long, "sent")
        overflow = _total(long, "lost") - expected
        full = (
            overflow >= max(_FEW, _SURE * math.sqrt(expected), expected)
            and longest > _SHORT_QUEUE * _PACKET_BITS / rate * 1e3
        )
        return cls(
            rate_bit_s=rate,
            reached=_total(near, "bytes") / _total(rates, "bytes"),
            loss=loss,
            lost=lost,
            segments=_total(queues, "sent"),
            longest_ms=longest,
            buffer_ms=_quantile(long, "delay_ms", "lost", 0.5) if full else None,
        )


def _total(rows: pl.DataFrame, column: str) -> int:
    return int(rows[column].sum())


def _quantile(rows: pl.DataFrame, value: str, weight: str, q: float) -> float:
    """Weighted quantile of sorted rows."""
    reached = pl.col(weight).cum_sum() >= q * pl.col(weight).sum()
    return float(rows.filter(reached)[value][0])


@dataclass(frozen=True)
class Flows:
    """Connections as transfers, in a table, and the times of the scenario."""

    #: Columns `connection`, `sender`, `rtt_ms`, `at_s`, `bytes`, `bulk`.
    table: pl.DataFrame
    duration_s: float
    #: Number of connections without data, and of those whose round-trip time is a guess.
    empty: int
    guessed: int

    @classmethod
    def of(cls, found: Inferred, rate_bit_s: float) -> Flows:
        """Turns each connection with data into one transfer, in the direction with more of it.

        Args:
            found: What `infer` found.
            rate_bit_s: Rate of the bottleneck.

        Raises:
            InputError: No connection has data, or none has a round-trip time.
        """
        server = _BY_SERVER
        sender = pl.when(server).then(pl.lit("server")).otherwise(pl.lit("client"))

        def of_sender(column: str) -> pl.Expr:
            both = (pl.col(f"{end}_{column}") for end in ("server", "client"))
            return pl.when(server).then(next(both)).otherwise(next(both))

        far, near = pl.col("server_path_ms"), pl.col("client_path_ms").fill_null(0.0)
        opener = pl.col("opened_by").cast(pl.String)
        # Without a SYN of the other end, or a SYN-ACK, the least sample is one of full packets.
        small = (opener == "client") | ((opener == "server") & ~server)
        late = pl.when(small).then(0.0).otherwise(_PACKET_BITS / rate_bit_s * 1e3)
        hosts = ["client", "server"]
        rows = found.connections.select(
            "connection",
            *hosts,
            sender.alias("sender"),
            (far + near - late).clip(lower_bound=_MIN_RTT_MS).alias("own_ms"),
            (pl.when(server).then(far).otherwise(near) / 2)
            .min()
            .over(hosts)
            .alias("to_capture_ms"),
            of_sender("stream_bytes").alias("bytes"),
            of_sender("first_s").alias("first_s"),
            "began_s",
            (opener == sender).alias("opened"),
            of_sender("last_s").alias("last_s"),
            pl.col("end").cast(pl.String) == "open",
            (pl.col("began_s") + pl.col("duration_s")).max().alias("over_s"),
        ).filter(pl.col("bytes") > 0, pl.col("first_s") > 0)
        # Connections between the same hosts have one path: short ones may have met only a queue.
        rows = rows.with_columns(pl.col("own_ms").min().over(hosts).alias("rtt_ms"))
        known = rows["rtt_ms"].drop_nulls()
        if known.is_empty():
            raise InputError("no connection has data and a round-trip time: nothing to simulate")
        rtt = pl.col("rtt_ms").fill_null(known.median())
        rows = rows.with_columns(rtt, pl.col("to_capture_ms").fill_null(0.0))
        # A simulated sender opens the connection: its SYN comes here, and a round trip later its
        # data. Either waits in the queue, if this connection met one.
        wait_s = (pl.col("own_ms").fill_null(rtt) - pl.col("rtt_ms")) / 1e3
        data_s = pl.col("first_s") - pl.col("rtt_ms") / 1e3 - wait_s
        syn_s = pl.when("opened").then("began_s").otherwise(data_s)
        arrival = syn_s - wait_s - pl.col("to_capture_ms") / 1e3
        origin = rows.select(arrival.min()).item()
        over = rows["over_s"][0]
        trips, least = _AT_END
        still = over - pl.col("last_s") <= pl.max_horizontal(trips * pl.col("rtt_ms") / 1e3, least)
        long = pl.col("last_s") - pl.col("first_s") >= _BULK * (over - origin)
        return cls(
            rows.with_columns(
                (arrival - origin).alias("at_s"), (pl.col("end") & still & long).alias("bulk")
            ).sort("at_s"),
            duration_s=over - origin,
            empty=found.connections.height - rows.height,
            guessed=rows.height - known.len(),
        )

    def groups(self) -> list[pl.DataFrame]:
        """Transfers of one direction with similar round-trip times; each bulk flow for itself."""
        groups = [
            self.table.filter(pl.col("connection") == number)
            for number in self.table.filter("bulk")["connection"]
        ]
        for sender in ("server", "client"):
            rest = self.table.filter(~pl.col("bulk"), pl.col("sender") == sender)
            while not rest.is_empty():
                alike = rest["rtt_ms"] <= _SPREAD * min(rest["rtt_ms"])
                groups.append(rest.filter(alike))
                rest = rest.filter(~alike)
        return groups


def scenario(found: Inferred, stem: str, source: str) -> dict[str, str]:
    """Writes the traffic of a capture as a scenario: its texts by file name.

    Args:
        found: What `infer` found, with `path=True`.
        stem: Name of the scenario, with which the names of its files begin.
        source: Name of the capture.

    Raises:
        InputError: The capture has too little data to estimate rate and round-trip time.
    """
    by_server = found.connections.filter(_BY_SERVER)["server_stream_bytes"].sum()
    by_client = found.connections.filter(~_BY_SERVER)["client_stream_bytes"].sum()
    forward = "server" if by_server >= by_client else "client"
    path = PathEstimate.of(found, forward)
    flows = Flows.of(found, path.rate_bit_s)
    marks = found.capture.ce_packets
    echoes = _total(found.connections.filter(_ECHOES), "ece")
    ecn = bool(marks or echoes)
    files = {}
    sections = []
    for number, group in enumerate(flows.groups()):
        bulk = bool(group["bulk"][0])
        name = f"bulk-{group['connection'][0]}" if bulk else f"transfers-{number}"
        rtt_ms = fmean(group["rtt_ms"].to_list())
        keys = [f'rtt = "{_number(rtt_ms)} ms"', _CONTROLLER]
        if ecn:
            keys.append("endpoint = { ecn = true }")
        if group["sender"][0] != forward:
            keys.append('direction = "reverse"')
        if bulk:
            size = group["bytes"][0] / 1e3
            about = f"# One connection, {_number(size)} kB, still sending at the end."
            keys.append(f'start = "{group["at_s"][0]:.6f} s"')
        else:
            low, high = (_number(float(group["rtt_ms"].quantile(q) or 0)) for q in (0.0, 1.0))
            total = _number(_total(group, "bytes") / 1e3)
            about = f"# {group.height} connections, {total} kB, RTT {low} to {high} ms."
            listed = f"{stem}.{name}.csv"
            quoted = json.dumps(listed, ensure_ascii=False)
            rows = (f"{at:.6f},{size}\n" for at, size in group.select("at_s", "bytes").iter_rows())
            files[listed] = "".join(["time_s,size_bytes\n", *rows])
            keys += [
                'workload = { kind = "bytes", size = "1 kB" }  # the list has the sizes',
                f'arrivals = {{ kind = "list", rows = {quoted} }}',
            ]
        sections.append("\n".join([about, f"[flow.{name}]", *keys]))
    head = _HEAD.format(
        source=_NOT_IN_TOML.sub(" ", source),
        stem=stem,
        connections=flows.table.height,
        empty=f"; {flows.empty} without data are left out" if flows.empty else "",
        guessed=f" Of {flows.guessed} it is the median." if flows.guessed else "",
        duration=f"{math.ceil(flows.duration_s * 1e3) / 1e3:.3f}",
        path="\n".join(_path(path, flows, marks, echoes)),
    )
    return {**files, f"{stem}.toml": "\n\n".join([head, *sections]) + "\n"}


_CONTROLLER = 'controller = "cubic"  # the candidate'

_HEAD = """\
# The traffic of {source}, as `cwnd infer --scenario` saw it.
# Run a candidate against it:
#     cwnd run {stem}.toml --set 'flow.*.controller="bbr"'
#
# Not known from a capture at one point, and therefore assumed:
# - All connections share one bottleneck, with a constant rate. Other traffic is not simulated: the
#   rate is what it left to these connections.
# - The senders' controllers are not known, so `controller` is only a start.
# - A connection is one transfer without pauses of the application, {connections} in all{empty}.
# - ACKs are not lost. The way back has the rate of the way there.
schema = 2
description = "Traffic of a capture"

[run]
duration = "{duration} s"

[dumbbell]
{path}

# Round-trip times are the least between two hosts, both sides of the capture together.{guessed}"""


def _path(path: PathEstimate, flows: Flows, marks: int, echoes: int) -> list[str]:
    """Writes the keys of the bottleneck, each after its evidence."""
    rate = _rate(path.rate_bit_s)
    q = f"{_RATE_QUANTILE:.0%}"
    lines = [
        f"# {q} quantile (by bytes) of the delivery rate over 16 segments or ACKs and 2 ms;",
        f"# {path.reached:.0%} of the data came within {_SAME_RATE:.0%} of it.",
    ]
    if path.reached < _REACHED:
        lines.append("# So few that the bottleneck may never have been busy: a lower bound.")
    lines.append(f'rate = "{rate}"')
    rtt_ms = float(flows.table["rtt_ms"].max())  # type: ignore[arg-type]
    longest = _number(path.longest_ms)
    if marks:
        lines += [
            f"# {marks} packets were marked. Which queue did that is unknown: CoDel is a guess.",
            'queue = "codel"',
        ]
    elif echoes:
        lines += [
            f"# No packet was marked here, but {echoes} have an ECN-echo: a queue beyond the",
            "# capture marks. Which queue does that is unknown: CoDel is a guess.",
            'queue = "codel"',
        ]
    elif path.buffer_ms is not None:
        lines += [
            "# Median queueing delay (RTT above the least) of the losses in a long queue.",
            f"# For {_LONGEST:.0%} of the data it was below {longest} ms.",
            f'queue = {{ kind = "fifo", limit = "{_number(path.buffer_ms)} ms" }}',
        ]
    else:
        limit = _number(max(rtt_ms, path.longest_ms))
        lines += [
            "# Unknown, since no loss shows a full queue. This is the default, a round trip,",
            f"# or the queueing delay that was seen ({_LONGEST:.0%}: {longest} ms).",
            f'queue = {{ kind = "fifo", limit = "{limit} ms" }}',
        ]
    lines += [
        f"# Of {path.segments} segments {path.lost} were lost, or reordered.",
        "# This is the share of those lost while the queue was short.",
        f"loss = {path.loss:.3g}" if path.loss else "loss = 0.0",
    ]
    return lines


#: Units of rates; the largest that is at most the rate is used.
_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))


def _number(value: float) -> str:
    """Writes a number with four digits, without an exponent."""
    digits = max(0, 3 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{digits}f}"


def _rate(bit_s: float) -> str:
    unit, name = next((found for found in _RATES if bit_s >= found[0]), _RATES[-1])
    return f"{_number(bit_s / unit)} {name}"


def check_name(file: Path) -> None:
    """Checks the name of a new scenario, before captures are read.

    Raises:
        InputError: The name is not one of a scenario, or the file is there.
    """
    if file.suffix != ".toml":
        raise InputError(f"--scenario {file}: the name of a scenario ends with .toml")
    if _NOT_IN_TOML.search(file.stem):
        raise InputError(
            f"--scenario {file}: the name has control characters or bytes that are not UTF-8, which"
            " the scenario cannot repeat: take another"
        )
    if file.exists():
        raise InputError(f"{file} is there already: remove it, or give another name")


def write_scenario(found: Inferred, file: Path, source: str) -> list[Path]:
    """Writes the traffic of a capture as a scenario, and returns its files.

    Raises:
        InputError: The name is not one of a scenario, a file is there, or there is too little data.
    """
    check_name(file)
    names = found.connections["file"].unique().cast(pl.String)
    runs = {Path(name).parent.resolve() for name in names}
    if len(runs) > 1 and min(found.connections["began_s"]) < _CLOCK_SET_S:
        raise InputError(
            "these are captures of several runs, whose clocks all begin at zero: a scenario is"
            " that of one, so give only its files"
        )
    texts = scenario(found, file.stem, source)
    files = {file.with_name(name): text for name, text in texts.items()}
    there = next((path for path in files if path.exists()), None)
    if there is not None:
        raise InputError(f"{there} is there already: remove it, or give another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        write_atomically(path, text.encode())
    return [*files]
