"""qlog files and captures of a program or its peer, on the time axis of a link."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError, explain
from cwnd.figures import Line, Panel, line_style
from cwnd.infer import in_background

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: First byte of a record of a JSON text sequence (RFC 7464 § 2.2).
_RECORD = b"\x1e"
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
    "ssthresh_bytes": ("ssthresh",),
    "rtt_ms": ("latest_rtt",),
    "srtt_ms": ("smoothed_rtt",),
    "min_rtt_ms": ("min_rtt",),
}
#: Times of `time_format` that are since the event before, and since `reference_time`.
_DELTA = ("delta", "relative_to_previous_event")
_RELATIVE = ("relative", "relative_to_epoch")
#: Earliest time that is one of day rather than since the start of a connection: 1 January 2000.
_OF_DAY_MS = 946_684_800_000.0
#: Largest number of intervals of which a capture's throughput is counted, and their least width.
_INTERVALS, _WIDTH_S = 400, 0.5


@dataclass(frozen=True)
class Connection:
    """What one end of a connection logged."""

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

    connections: list[Connection]
    #: Throughput by file name: columns `link`, `time_s`, `packets`, `bytes` of intervals.
    captured: dict[str, pl.DataFrame]
    #: Width of these intervals in seconds.
    width_s: float
    notes: list[str]


def read_logs(files: Sequence[Path], link: dict[str, Any]) -> Logs:
    """Reads logs, and keeps what happened while the link ran.

    Args:
        files: qlog files (JSON of version 0.3, JSON text sequences from 0.3 on), captures, and
            directories with such files.
        link: The content of `link.json`.

    Raises:
        InputError: A file is neither, is damaged, or has nothing from the time of the link; or the
            link was recorded by a version without its time of day.
    """
    if "began_s" not in link:
        raise InputError("--log: this link was recorded without its time of day; record it again")
    began, elapsed = link["began_s"], link["elapsed_s"]
    width = max(_WIDTH_S, elapsed / _INTERVALS)
    logs = Logs([], {}, width, [])
    for file in _each(files):
        try:
            with file.open("rb") as opened:
                first = opened.read(4)
        except OSError as error:
            raise InputError(explain(error)) from error
        if first.startswith(_CAPTURES):
            logs.captured[file.name] = _captured(file, link, width)
            continue
        found = [_connection(trace, file, began, logs.notes) for trace in _traces(file)]
        inside = [each.within(elapsed) for each in found]
        inside = [each for each in inside if each.metrics.height]
        if not inside:
            times = [time for each in found for time in each.metrics["time_s"]]
            start, end = min(times, default=0.0), max(times, default=0.0)
            raise InputError(
                f"{file}: no metrics in it are from the time of the link, which took {elapsed:.3g}"
                f" s; it has {len(times)}, from {start:.3g} to {end:.3g} s after the link began"
            )
        logs.connections.extend(inside)
    return logs


def _each(files: Sequence[Path]) -> Iterator[Path]:
    for file in files:
        if not file.is_dir():
            yield file
            continue
        inside = sorted(each for each in file.iterdir() if each.is_file())
        if not inside:
            raise InputError(f"{file}: there is no file in it")
        yield from inside


def _captured(file: Path, link: dict[str, Any], width_s: float) -> pl.DataFrame:
    addresses, count = link["addresses"], int(link["elapsed_s"] / width_s) + 1
    found = pl.DataFrame(
        in_background(
            lambda control: _core.captured_throughput(
                file, control, addresses, link["began_s"], width_s, count
            ),
            None,
        )
    )
    if found.is_empty():
        raise InputError(
            f"{file}: no packet from or to the command ({', '.join(addresses)}) in the time of the"
            " link"
        )
    return found.with_columns(pl.col("link").cast(pl.String))


@dataclass(frozen=True)
class _Trace:
    """A trace of a qlog file, not yet placed in time."""

    about: dict[str, Any]
    events: list[dict[str, Any]]


def _traces(file: Path) -> Iterator[_Trace]:
    """Reads a file of one of the two serialisations."""
    data = file.read_bytes()
    if data.startswith(_RECORD):
        yield _sequence(file, data)
        return
    try:
        whole = json.loads(data)
    except ValueError as error:
        raise InputError(
            f"{file}: neither qlog nor a capture: {error}; qlog is JSON, or a JSON text sequence"
        ) from error
    traces = whole.get("traces") if isinstance(whole, dict) else None
    if not isinstance(traces, list):
        raise InputError(f"{file}: JSON without `traces`, which qlog has")
    for trace in traces:
        # A trace that could not be recorded has an error in place of events.
        if isinstance(trace, dict) and "error_description" not in trace:
            if "event_fields" in trace:
                raise InputError(f"{file}: qlog of draft 01; versions 0.3 and later are read")
            yield _Trace(trace, trace.get("events", []))


def _sequence(file: Path, data: bytes) -> _Trace:
    """Reads a JSON text sequence, whose last record may be cut off (RFC 7464 § 2.3)."""
    records = [record for record in data.split(_RECORD) if record.strip()]
    parsed = []
    for number, record in enumerate(records, 1):
        try:
            parsed.append(json.loads(record))
        except ValueError as error:
            if number < len(records):
                raise InputError(f"{file}: record {number} is damaged: {error}") from error
    if not parsed or not isinstance(parsed[0], dict) or "trace" not in parsed[0]:
        raise InputError(f"{file}: its first record has no `trace`, which qlog has")
    return _Trace(parsed[0]["trace"], parsed[1:])


def _connection(trace: _Trace, file: Path, began_s: float, notes: list[str]) -> Connection:
    """Places the events of a trace on the link's time axis."""
    common = trace.about.get("common_fields") or {}
    times = _times_ms(trace, common)
    if times and times[-1] < _OF_DAY_MS:
        # Only the file says when it was written: after the last event.
        shift = file.stat().st_mtime * 1e3 - times[-1]
        times = [time + shift for time in times]
        notes.append(
            f"{file.name} has no time of day: its last event is placed at the time at which the"
            " file was last written"
        )
    state: dict[str, float | None] = dict.fromkeys(_METRICS)
    rows: list[dict[str, float | None]] = []
    lost = []
    for time, event in zip(times, trace.events, strict=True):
        at = time / 1e3 - began_s
        data = event.get("data") or {}
        name = str(event.get("name", "")).rpartition(":")[2].removeprefix("recovery_")
        if name == "packet_lost":
            lost.append(at)
        elif name == "metrics_updated":
            for column, names in _METRICS.items():
                state[column] = next((data[key] for key in names if key in data), state[column])
            rows.append({"time_s": at, **state})
    schema = dict.fromkeys(("time_s", *_METRICS), pl.Float64)
    vantage = (trace.about.get("vantage_point") or {}).get("type", "")
    named = common.get("group_id") or common.get("ODCID") or file.stem
    table = pl.DataFrame(rows, schema=schema).sort("time_s", maintain_order=True)
    return Connection(f"{vantage} {str(named)[:_SHOWN]}".strip(), table, lost)


#: Length of the part of an identifier that a legend shows.
_SHOWN = 12


def _times_ms(trace: _Trace, common: dict[str, Any]) -> list[float]:
    """Times of the events in ms since 1970, or since an unknown time if nothing says more."""
    how, reference = common.get("time_format", "absolute"), common.get("reference_time", 0.0)
    if isinstance(reference, dict):
        # From version 0.4 on it is a clock; one that is monotonic has its time of day beside it.
        stated = reference.get("wall_clock_time") or reference.get("epoch")
        how = common.get("time_format", "relative_to_epoch")
        reference = _of_day_ms(stated)
    times: list[float] = []
    for event in trace.events:
        time = float(event.get("time", event.get("relative_time", 0.0)))
        if how in _DELTA:
            time += times[-1] if times else reference
        elif how in _RELATIVE or time < _OF_DAY_MS:
            time += reference
        times.append(time)
    return times


def _of_day_ms(stated: object) -> float:
    try:
        return datetime.fromisoformat(str(stated)).timestamp() * 1e3
    except ValueError:
        return 0.0


def add_to(panels: list[Panel], logs: Logs, directions: Sequence[str]) -> None:
    """Adds logs to the figure of a link, whose first panels show the throughput of `directions`.

    A capture adds its throughput to these. Connections add panels of their windows and RTTs below.
    """
    colours = iter(range(len(directions), len(directions) + len(logs.connections)))
    styles = [(each, next(colours)) for each in logs.connections]
    captures = list(enumerate(logs.captured.items(), len(directions) + len(styles)))
    for name, panel in zip(directions, panels, strict=False):
        lines = (_throughput(rows, logs.width_s, name, file, n) for n, (file, rows) in captures)
        panel.marks = [*panel.marks, *(line for line in lines if line.x)]
    if styles:
        windows = [mark for each, number in styles for mark in _windows(each, number)]
        trips = [_line(each, "rtt_ms", 1.0, number) for each, number in styles]
        panels[len(directions) : len(directions)] = [
            Panel(marks, y_label=label, x_tight=True, y_limits=(0, None))
            for marks, label in (
                (windows, "Window, thin:\nin flight (kB)"),
                (trips, "RTT of the\nprogram (ms)"),
            )
        ]


def _throughput(rows: pl.DataFrame, width_s: float, name: str, file: str, number: int) -> Line:
    """Throughput of a direction in a capture, in Mbit/s; intervals without packets have no row."""
    mine = rows.filter(pl.col("link") == name)
    sizes = {
        round(time / width_s): size for time, size in mine.select("time_s", "bytes").iter_rows()
    }
    rates = [sizes.get(n, 0) * 8 / width_s / 1e6 for n in range(max(sizes, default=-1) + 1)]
    # The last value lasts to the end of its interval.
    return Line(
        [n * width_s for n in range(len(rates) + bool(rates))],
        [*rates, *rates[-1:]],
        colour=line_style.colour(number),
        width=0.7,
        steps=True,
        label=file,
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
        label=f"lost packets ({len(places)})",
    )
    return [window, flight, *([lost] if places else [])]
