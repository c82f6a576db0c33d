"""Time–sequence graph of one connection: segments, acknowledgements, SACK blocks, ECN, timeouts."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.infer.reading import in_background, several

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from cwnd.infer.inferred import Inferred

#: Distance beyond the times of a connection within which its packets are looked for, in seconds:
#: times since 1970 have a resolution of 0.24 µs.
_ROUNDING_S = 1e-6
#: Number of parts of each axis within which strokes are joined: fewer than a pixel of a PNG.
_RESOLUTION = 1500
#: Part of the range of positions that stays free above it, and below unless it begins at zero.
_MARGIN = 0.03
#: Number of connections that an error names.
_NEAREST = 3
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def connection_number(found: Inferred, wanted: str) -> int:
    """Returns the number of a connection given by its number, or as `ADDRESS:PORT-ADDRESS:PORT`.

    Raises:
        InputError: There is none, or there are several between the same addresses and ports.
    """
    table = found.connections
    listed = "`cwnd infer` lists the largest, and connections.parquet (-o DIR) lists all"
    if wanted.isdecimal():
        if int(wanted) < table.height:
            return int(wanted)
        last = f"numbered 0 to {table.height - 1}" if table.height else "none"
        raise InputError(
            f"--connection {wanted}: this capture has {table.height} connections, {last}; {listed}"
        )
    names: dict[str, list[int]] = {}
    for number, client, server in table.select("connection", _CLIENT, _SERVER).iter_rows():
        names.setdefault(f"{client}-{server}", []).append(number)
    one, dash, other = wanted.partition("-")
    numbers = names.get(wanted, []) + names.get(f"{other}-{one}", [])
    if len(numbers) > 1:
        told = ", ".join(map(str, numbers))
        raise InputError(f"--connection {wanted}: connections {told} are between these; give one")
    if not numbers:
        near = difflib.get_close_matches(wanted, names, _NEAREST, cutoff=0.0)
        said = f"the nearest are {', '.join(near)}; " if dash and near else ""
        raise InputError(
            f"--connection {wanted}: no connection has this number or these addresses and ports,"
            f" which are written as ADDRESS:PORT-ADDRESS:PORT; {said}{listed}"
        )
    return numbers[0]


_CLIENT, _SERVER = (
    pl.format("{}:{}", pl.col(end).cast(pl.String), f"{end}_port").alias(f"{end}_name")
    for end in ("client", "server")
)


def check_files(files: Sequence[str | Path]) -> None:
    """Checks that captures can be read a second time, for the packets of a connection.

    Raises:
        InputError: One of them is standard input, or the table of connections confuses two names.
    """
    if "-" in map(str, files):
        raise InputError(
            "the packets of a connection are read after all connections are known, and standard"
            " input cannot be read again: save it to a file"
        )
    if len({*map(_stored, files)}) < len({*map(os.fsencode, files)}):
        raise InputError(
            "names of the captures differ only in bytes that are not UTF-8: rename one"
        )


def _stored(name: str | Path) -> str:
    # The table has names as UTF-8.
    return os.fsencode(name).decode(errors="replace")


def packets(
    files: Sequence[str | Path] | str | Path,
    found: Inferred,
    connection: int,
    *,
    on_progress: Callable[[float], object] | None = None,
) -> tuple[pl.DataFrame, int]:
    """Reads the packets of a connection from the captures in which it was found.

    Positions are in bytes from the first one of their stream. Returns the table, with a row for
    each packet, and the number of packets behind its last one, which it has no room for.

    Args:
        files: The captures, as they were given to `infer`.
        found: What `infer` found in them.
        connection: Number of the connection.
        on_progress: Called regularly with the fraction of the files read, 0 to 1.

    Raises:
        InputError: `check_files` refuses them.
    """
    names = several(files)
    check_files(names)
    row = found.connections.row(connection, named=True)
    began = row["began_s"]
    times = began - _ROUNDING_S, began + row["duration_s"] + _ROUNDING_S
    client, server = ((row[end], row[f"{end}_port"]) for end in ("client", "server"))
    file = [_stored(name) for name in names].index(row["file"])
    table, omitted = in_background(
        lambda control: _core.captured_packets(names, control, client, server, times, file),
        on_progress,
    )
    return pl.DataFrame(table), omitted


def time_sequence(
    found: Inferred,
    connection: int,
    rows: pl.DataFrame,
    *,
    omitted: int = 0,
    between: tuple[float, float] | None = None,
) -> Picture:
    """Describes the time–sequence graph of a connection, in the direction with more data.

    Segments closer than a pixel are one stroke. Each retransmission has a marker.

    Args:
        found: What `infer` found.
        connection: Number of the connection.
        rows: Its `packets`.
        omitted: Number of packets behind the last one in `rows`.
        between: First and last time to draw, in seconds since the connection's first packet.

    Raises:
        InputError: The connection has no data, or none in that time.
    """
    about = found.connections.row(connection, named=True)
    size = (pl.col("past") - pl.col("start")).sum()
    sizes = rows.group_by(pl.col("end").cast(pl.String)).agg(size.alias("bytes")).sort("end")
    sender = sizes.sort("bytes", descending=True)["end"].first()
    last = about["duration_s"]
    begin, end = between or (0.0, last)
    times = max(float(begin), 0.0), min(float(end), last)
    heard = rows.filter((pl.col("end") != sender) & pl.col("acked").is_not_null())
    rows = rows.filter(pl.col("time_s").is_between(*times))
    data = rows.filter((pl.col("end") == sender) & pl.col("start").is_not_null())
    if data.is_empty():
        part = f" between {begin:g} and {end:g} s; it lasts {last:.6g} s" if between else ""
        raise InputError(f"--connection {connection}: there is no data to draw{part}")
    acks = heard.filter(pl.col("time_s").is_between(*times))
    # What was acknowledged last holds from the left edge on.
    earlier = heard.filter(pl.col("time_s") < times[0]).tail(1)
    held = pl.concat([earlier.with_columns(time_s=pl.lit(times[0])), acks])
    view = _View.of(times, data, held)
    retransmitted = pl.col("novelty").cast(pl.String).is_in(["fills_hole", "duplicate"])
    again = data.filter(retransmitted)
    blue, orange, green, red, light, purple, black = line_style.COLOURS
    blocks = [
        acks.filter(pl.col(f"{block}_start").is_not_null()).select(
            "time_s", start=f"{block}_start", past=f"{block}_past"
        )
        for block in ("sack", "second_sack")
    ]
    lines = [
        view.steps(held, "window", light, "advertised window", line_style.DASHES[1]),
        view.strokes(data.filter(~retransmitted), blue, "data"),
        view.strokes(pl.concat(blocks), green, "SACK blocks"),
        view.steps(held, "acked", black, "acknowledged"),
        view.strokes(again, red, None),
        view.points(again, "start", red, "D", "retransmissions"),
        view.points(data.filter(pl.col("ce") == 1), "past", purple, "o", "CE"),
        view.points(acks.filter(pl.col("ece") == 1), "acked", purple, "^", "ECE"),
        view.points(data.filter(pl.col("cwr") == 1), "start", orange, "v", "CWR"),
    ]
    if sender == "server":
        lines.insert(4, view.timeouts(found.silences, about, orange))
    ends = [f"{about[end]}:{about[f'{end}_port']}" for end in ("client", "server")]
    ends = ends if sender == "client" else ends[::-1]
    panel = Panel(
        [line for line in lines if len(line.x)],
        title=f"connection {connection}: data of {ends[0]} to {ends[1]}",
        x_label="Time since the connection's first packet (s)",
        y_label=f"Relative sequence number ({view.unit})",
        x_limits=times,
        y_limits=(view.low / view.scale, view.high / view.scale),
    )
    note = f"the last {omitted} packets are left out" if omitted else ""
    return Picture([panel], height=4.6, note=note)


@dataclass(frozen=True)
class _View:
    """Drawn times and positions, in seconds and bytes, and the unit of positions."""

    times: tuple[float, float]
    low: float
    high: float
    scale: float
    unit: str

    @classmethod
    def of(cls, times: tuple[float, float], data: pl.DataFrame, acks: pl.DataFrame) -> _View:
        """Fits positions to data and acknowledgements; a window far above is cut off."""
        places = pl.concat([data["start"], data["past"], acks["acked"]]).cast(pl.Float64)
        low, high = min(places), max(places)
        margin = _MARGIN * max(high - low, 1.0)
        scale, unit = next((scale, unit) for scale, unit in _UNITS if high >= scale or scale == 1)
        return cls(times, low - margin if low else 0.0, high + margin, scale, unit)

    def strokes(self, ranges: pl.DataFrame, colour: str, label: str | None) -> Line:
        """Draws ranges as upright strokes, and joins those that have a pixel in common."""
        begin, end = self.times
        pixel = (self.high - self.low) / _RESOLUTION
        span = max(end - begin, 1e-9)
        start, past = (pl.col(edge).cast(pl.Float64) for edge in ("start", "past"))
        column = ((pl.col("time_s") - begin) / span * _RESOLUTION).floor().alias("column")
        reach = pl.col("past").cum_max().shift(1).over("column")
        apart = (pl.col("start") > reach + pixel).fill_null(value=True)
        joined = (
            ranges.select("time_s", column, start, past)
            .sort("column", "start", maintain_order=True)
            .with_columns(apart.cum_sum().alias("stroke"))
            .group_by("stroke", maintain_order=True)
            .agg(pl.col("time_s").min(), pl.col("start").min(), pl.col("past").max())
        )
        upright = (
            ((time, time), (low, max(high, low + pixel)))
            for _, time, low, high in joined.iter_rows()
        )
        return self._gapped(upright, colour, label)

    def timeouts(self, silences: pl.DataFrame, about: dict[str, Any], colour: str) -> Line:
        """Draws the time that each timer took, at the position where it expired."""
        rows = silences.filter(
            (pl.col("connection") == about["connection"])
            & (pl.col("kind").cast(pl.String) == "timeout")
            & (pl.col("what").cast(pl.String) == "data")
        ).with_columns(pl.col("ended_s") - about["began_s"])
        begin, end = self.times
        armed = (pl.col("ended_s") - pl.col("waited_ms") / 1e3).alias("armed_s")
        rows = rows.with_columns(armed).filter(pl.col("ended_s") >= begin, pl.col("armed_s") <= end)
        level = (
            ((max(start, begin), min(ended, end)), (offset, offset))
            for start, ended, offset in rows.select("armed_s", "ended_s", "offset").iter_rows()
        )
        label = f"timeouts ({rows['timeouts'].sum()})"
        return replace(self._gapped(level, colour, label), width=2.4)

    def points(self, rows: pl.DataFrame, at: str, colour: str, marker: str, label: str) -> Line:
        """Draws a marker for each row, and counts them in the legend."""
        size, hollow = (5.0, True) if marker == "o" else (3.5, False)
        line = self._line(rows, at, colour, f"{label} ({rows.height})")
        return replace(line, joined=False, marker=marker, size=size, hollow=hollow)

    def steps(
        self,
        rows: pl.DataFrame,
        at: str,
        colour: str,
        label: str,
        dashes: tuple[float, ...] = (),
    ) -> Line:
        """Draws a position that holds until the next row."""
        return replace(self._line(rows, at, colour, label), steps=True, width=0.8, dashes=dashes)

    def _line(self, rows: pl.DataFrame, at: str, colour: str, label: str) -> Line:
        return Line(
            rows["time_s"].to_list(), (rows[at] / self.scale).to_list(), colour, label=label
        )

    def _gapped(
        self,
        strokes: Iterable[tuple[tuple[float, float], tuple[float, float]]],
        colour: str,
        label: str | None,
    ) -> Line:
        """Draws strokes, from both ends along x and along y, as one line with gaps."""
        x: list[float] = []
        y: list[float | None] = []
        for (left, right), (low, high) in strokes:
            x += (left, right, right)
            y += (low / self.scale, high / self.scale, None)
        return Line(x, y, colour, label=label)
