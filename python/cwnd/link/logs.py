"""qlog files and captures of a program or its peer, on the time axis of a link."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl

from cwnd import _core
from cwnd.errors import InputError, explain
from cwnd.figures import Line, Panel, line_style
from cwnd.infer import in_background

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

#: First byte of a record of a JSON text sequence (RFC 7464 § 2.2), and bytes that are read at once.
_RECORD, _CHUNK = b"\x1e", 1 << 20
#: First bytes of captures: of pcap in both byte orders and resolutions, pcapng, gzip, zstd.
_CAPTURES = tuple(
    bytes.fromhex(magic)
    for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a", "1f8b", "28b52ffd")
)
#: Columns of the metrics of a connection, and the names that qlog gives them, sizes in bytes and
#: times in ms (draft-ietf-quic-qlog-quic-events, `recovery_metrics_updated`; `cwnd` is aioquic's).
_METRICS = {
    "cwnd_bytes": ("congestion_window", "cwnd"),
    "bytes_in_flight": ("bytes_in_flight",),
    "rtt_ms": ("latest_rtt",),
    "srtt_ms": ("smoothed_rtt",),
}
#: Times of `time_format` that are since the event before, and since `reference_time`.
_DELTA = ("delta", "relative_to_previous_event")
_RELATIVE = ("relative", "relative_to_epoch")
#: Earliest time that is one of day rather than since the start of a connection: 1 January 2000.
_OF_DAY_MS = 946_684_800_000.0
#: Least interval of which the figure shows the throughput, in seconds, and largest number of them.
_INTERVAL_S, _INTERVALS = 0.5, 400
#: Largest number of connections that the figure shows, and of digits of an identifier.
_MOST, _DIGITS = 5, 12
#: Errors of code that reads a document with other types than it should have.
_UNEXPECTED = (AttributeError, OverflowError, RecursionError, TypeError, ValueError)


def interval_s(elapsed_s: float) -> float:
    """Returns the interval of which the figure of a link shows the throughput."""
    return max(_INTERVAL_S, elapsed_s / _INTERVALS)


@dataclass(frozen=True)
class Connection:
    """Metrics and losses that one end of a connection logged."""

    #: Type of the end, and the connection's identifier or the file's name.
    name: str
    #: Columns `time_s` since the start of the link and those of the metrics; a row for each change.
    metrics: pl.DataFrame
    #: Times at which packets were declared lost, in seconds since the start of the link.
    lost_s: list[float]

    def within(self, elapsed_s: float) -> Connection:
        """Leaves out what happened before the link began or after it ended."""
        return Connection(
            self.name,
            self.metrics.filter(pl.col("time_s").is_between(0, elapsed_s)),
            [time for time in self.lost_s if 0 <= time <= elapsed_s],
        )


@dataclass(frozen=True)
class Logs:
    """Logs beside the record of a link."""

    #: Duration of the link, in seconds.
    elapsed_s: float
    connections: list[Connection]
    #: Captures: name; columns `link`, `time_s`, `packets`, `bytes` of intervals; time of the last
    #: packet of a file that ends within the next one.
    captured: list[tuple[str, pl.DataFrame, float | None]]
    notes: list[str]


def read_logs(files: Sequence[Path], link: dict[str, Any]) -> Logs:
    """Reads logs, and keeps what happened while the link ran.

    Args:
        files: qlog files (JSON of version 0.3, JSON text sequences from 0.3 on), captures, and
            directories, of whose files those of other links and other kinds are left out.
        link: The content of `link.json`.

    Raises:
        InputError: A file is neither, is damaged, or has nothing from the time of the link; or the
            link was recorded by a version without its time of day.
    """
    if "began_s" not in link:
        raise InputError("--log: this link was recorded without its time of day; record it again")
    logs = Logs(link["elapsed_s"], [], [], [])
    for given in files:
        if not given.is_dir():
            _add(given, link, logs)
            continue
        inside = sorted(file for file in given.iterdir() if file.is_file())
        others = []
        for file in inside:
            try:
                _add(file, link, logs)
            except InputError as error:
                others.append(str(error))
        if len(others) == len(inside):
            raise InputError(others[0] if others else f"{given}: there is no file in it")
        if others:
            logs.notes.append(f"left out, {len(others)} of {len(inside)} files: {others[0]}")
    return logs


def _add(file: Path, link: dict[str, Any], logs: Logs) -> None:
    try:
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: neither a file nor a directory")
        with file.open("rb") as opened:
            begin = opened.read(4)
            if not begin:
                raise InputError(f"{file} is empty: neither qlog nor a capture")
            if begin.startswith(_CAPTURES):
                names = {name for name, *_ in logs.captured}
                name = file.name if file.name not in names else str(file)
                captured, last_s = _captured(file, link)
                logs.captured.append((name, captured, last_s))
                if last_s is not None:
                    logs.notes.append(
                        f"{name} ends within a packet, after {last_s:.3g} s: its line ends with the"
                        " last whole interval"
                    )
                return
            opened.seek(0)
            found = [
                _connection(about, events, file, link["began_s"], logs.notes)
                for about, events in _traces(file, opened)
            ]
    except OSError as error:
        raise InputError(explain(error)) from error
    except _UNEXPECTED as error:
        raise InputError(f"{file}: not as qlog has it: {error}") from error
    inside = [each.within(logs.elapsed_s) for each in found]
    inside = [each for each in inside if each.metrics.height]
    if not inside:
        times = [time for each in found for time in each.metrics["time_s"]]
        start, end = min(times, default=0.0), max(times, default=0.0)
        raise InputError(
            f"{file}: no metrics in it are from the time of the link, which took"
            f" {logs.elapsed_s:.3g} s; it has {len(times)}, from {start:.3g} to {end:.3g} s after"
            " the link began"
        )
    logs.connections.extend(inside)


def _captured(file: Path, link: dict[str, Any]) -> tuple[pl.DataFrame, float | None]:
    """Reads the throughput in a capture, and the last time of a file that ends within a packet."""
    addresses, elapsed = link["addresses"], link["elapsed_s"]
    table, last_s = in_background(
        lambda control: _core.captured_throughput(
            file, control, addresses, link["began_s"], elapsed, interval_s(elapsed)
        ),
        None,
    )
    found = pl.DataFrame(table)
    if found.is_empty():
        raise InputError(
            f"{file}: no packet from or to the command ({', '.join(addresses)}) in the time of the"
            " link; beyond this machine its packets have another address"
        )
    return found.with_columns(pl.col("link").cast(pl.String)), last_s


def _traces(file: Path, opened: BinaryIO) -> Iterator[tuple[dict[str, Any], Iterable[Any]]]:
    """Reads a file of one of the two serialisations: each trace, and its events."""
    if opened.read(1) == _RECORD:
        records = _sequence(file, opened)
        first = next(records, None)
        if not isinstance(first, dict) or "trace" not in first:
            raise InputError(f"{file}: its first record has no `trace`, which qlog has")
        yield first["trace"], records
        return
    opened.seek(0)
    try:
        whole = json.load(opened)
    except ValueError as error:
        raise InputError(
            f"{file}: neither qlog nor a capture: {error}; qlog is JSON, or a JSON text sequence"
        ) from error
    traces = whole.get("traces") if isinstance(whole, dict) else None
    if not isinstance(traces, list):
        raise InputError(f"{file}: JSON without `traces`, which qlog has")
    for trace in traces:
        if "event_fields" in trace:
            raise InputError(f"{file}: qlog of draft 01; versions 0.3 and later are read")
        # A trace that could not be recorded has an error in place of events.
        yield trace, trace.get("events", [])


def _sequence(file: Path, opened: BinaryIO) -> Iterator[Any]:
    """Reads a JSON text sequence, whose last record may be cut off (RFC 7464 § 2.3)."""
    rest, number = b"", 0
    while True:
        chunk = opened.read(_CHUNK)
        *records, rest = (rest + chunk).split(_RECORD)
        if not chunk and rest:
            records.append(rest)
        for record in records:
            number += bool(record.strip())
            try:
                if record.strip():
                    yield json.loads(record)
            except ValueError as error:
                if chunk or record is not records[-1]:
                    raise InputError(f"{file}: record {number} is damaged: {error}") from error
        if not chunk:
            return


@dataclass
class _Clock:
    """Clock of the events of a trace."""

    #: A value of `time_format`.
    form: str
    reference_ms: float
    before_ms: float

    @classmethod
    def of(cls, common: dict[str, Any]) -> _Clock:
        """Reads the clock from the fields that all events have in common."""
        reference = common.get("reference_time") or 0.0
        if isinstance(reference, dict):
            # From version 0.4 on it is a clock; a monotonic one has its time of day beside it.
            reference = _of_day_ms(reference.get("wall_clock_time") or reference.get("epoch"))
            form = "relative_to_epoch"
        else:
            form = "absolute"
        return cls(common.get("time_format", form), float(reference), float(reference))

    def time_ms(self, time: float) -> float:
        """Time of the next event, since 1970, or since an unknown time if nothing says more."""
        if self.form in _DELTA:
            time += self.before_ms
        elif self.form in _RELATIVE or time < _OF_DAY_MS:
            time += self.reference_ms
        self.before_ms = time
        return time


def _of_day_ms(stated: object) -> float:
    try:
        return datetime.fromisoformat(str(stated)).timestamp() * 1e3
    except ValueError:
        return 0.0


def _connection(
    about: dict[str, Any], events: Iterable[Any], file: Path, began_s: float, notes: list[str]
) -> Connection:
    """Places the events of a trace on the link's time axis; events without a time are left out."""
    common = about.get("common_fields") or {}
    clock, latest_ms = _Clock.of(common), 0.0
    state: dict[str, float | None] = dict.fromkeys(_METRICS)
    rows: list[tuple[float | None, ...]] = []
    lost_ms = []
    for event in events:
        stated = event.get("time", event.get("relative_time")) if isinstance(event, dict) else None
        time = _number(stated)
        if time is None:
            continue
        at_ms = clock.time_ms(time)
        latest_ms = max(latest_ms, at_ms)
        name = str(event.get("name", "")).rpartition(":")[2].removeprefix("recovery_")
        if name == "packet_lost":
            lost_ms.append(at_ms)
        elif name == "metrics_updated":
            data = event.get("data") or {}
            for column, names in _METRICS.items():
                found = (_number(data.get(key)) for key in names)
                state[column] = next((each for each in found if each is not None), state[column])
            rows.append((at_ms, *state.values()))
    shift_ms = -began_s * 1e3
    if rows and latest_ms < _OF_DAY_MS:
        # Only the file says when it was written: after the last event.
        shift_ms += file.stat().st_mtime * 1e3 - latest_ms
        notes.append(
            f"{file.name} has no time of day: its last event is placed at the time at which the"
            " file was last written"
        )
    schema = dict.fromkeys(("time_s", *_METRICS), pl.Float64)
    table = pl.DataFrame(rows, schema=schema, orient="row")
    table = table.with_columns((pl.col("time_s") + shift_ms) / 1e3).sort("time_s")
    vantage = (about.get("vantage_point") or {}).get("type", "")
    identifier = str(common.get("group_id") or common.get("ODCID") or "")[:_DIGITS]
    name = f"{vantage} {identifier or file.stem}".strip().encode(errors="replace").decode()
    return Connection(name, table, [(time + shift_ms) / 1e3 for time in lost_ms])


def _number(value: object) -> float | None:
    """A number that a time or a metric may have; `None` for anything else."""
    known = isinstance(value, (int, float)) and math.isfinite(value) and value >= 0
    return float(value) if known else None  # type: ignore[arg-type]


def add_to(panels: list[Panel], logs: Logs, directions: Sequence[str]) -> None:
    """Adds logs to the figure of a link, whose first panels show the throughput of `directions`.

    A capture adds its throughput to these. Connections add panels of their windows and RTTs below;
    of many, those with the most metrics are shown, and `logs` gets a note.
    """
    shown = sorted(logs.connections, key=lambda each: -each.metrics.height)[:_MOST]
    if len(shown) < len(logs.connections):
        logs.notes.append(
            f"{len(shown)} of {len(logs.connections)} connections are drawn, those with the most"
            " metrics"
        )
    styles = list(enumerate(shown, len(directions)))
    captures = list(enumerate(logs.captured, len(directions) + len(styles)))
    for name, panel in zip(directions, panels, strict=False):
        lines = [
            _throughput(rows, (logs.elapsed_s, last_s), name, of, n)
            for n, (of, rows, last_s) in captures
        ]
        panel.marks = [*panel.marks, *lines]
    if styles:
        windows = [mark for number, each in styles for mark in _windows(each, number)]
        panels[len(directions) : len(directions)] = [
            Panel(marks, y_label=label, x_tight=True, y_limits=(0, None))
            for marks, label in (
                (windows, "Window, thin:\nin flight (kB)"),
                ([_rtts(each, number) for number, each in styles], "RTT of the\nprogram (ms)"),
            )
        ]


def _throughput(
    rows: pl.DataFrame, ends: tuple[float, float | None], name: str, label: str, number: int
) -> Line:
    """Throughput of a direction in a capture, in Mbit/s; intervals without packets have no row.

    `ends` are the end of the link, and the last time of a file that is cut off.
    """
    elapsed_s, last_s = ends
    width, mine = interval_s(elapsed_s), rows.filter(pl.col("link") == name)
    sizes = {round(at / width): size for at, size in mine.select("time_s", "bytes").iter_rows()}
    edges = [n * width for n in range(math.ceil(elapsed_s / width))] + [elapsed_s]
    edges = [edge for edge in edges if last_s is None or edge <= last_s]
    rates = [
        sizes.get(n, 0) * 8 / (end - begin) / 1e6 for n, (begin, end) in enumerate(pairwise(edges))
    ]
    # The last value lasts to the end.
    rates += rates[-1:]
    return Line(
        edges[: len(rates)],
        rates,
        colour=line_style.colour(number),
        width=0.7,
        steps=True,
        label=label,
    )


def _line(connection: Connection, column: str, scale: float, number: int) -> Line:
    rows = connection.metrics.select("time_s", column).drop_nulls()
    return Line(
        rows["time_s"].to_list(),
        (rows[column] / scale).to_list(),
        colour=line_style.colour(number),
        dashes=line_style.dashes(number),
        steps=True,
        label=connection.name,
    )


def _rtts(connection: Connection, number: int) -> Line:
    """RTT samples, or smoothed RTTs of programs that log nothing else."""
    samples = connection.metrics["rtt_ms"].count()
    return _line(connection, "rtt_ms" if samples else "srtt_ms", 1.0, number)


def _windows(connection: Connection, number: int) -> list[Line]:
    """Window, bytes in flight, and a marker on the window for each lost packet."""
    window = _line(connection, "cwnd_bytes", 1e3, number)
    flight = replace(
        _line(connection, "bytes_in_flight", 1e3, number), width=0.5, dashes=(), label=None
    )
    places = [bisect_right(window.x, time) for time in connection.lost_s]
    lost = Line(
        connection.lost_s,
        [window.y[max(place - 1, 0)] if window.x else None for place in places],
        colour=line_style.colour(number),
        joined=False,
        marker="D",
        size=3.0,
        label=f"{connection.name}: lost ({len(places)})",
    )
    return [window, flight, *([lost] if places else [])]
