"""Command `cwnd infer`: timeouts of servers in captures."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from cwnd.figures import Picture
    from cwnd.infer import Inferred


def infer(
    files: Annotated[
        list[str], Parameter(negative=(), consume_multiple=True, allow_leading_hyphen=True)
    ],
    /,
    *,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"], negative=())] = None,
    connections: int | None = None,
    idle: float | None = None,
    connection: str | None = None,
    between: Annotated[tuple[float, float] | None, Parameter(negative=())] = None,
    scenario: Annotated[Path | None, Parameter(negative=())] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
    json: output.Json = False,
) -> int:
    """Find timeouts of servers, and whether they back off, in captures made at their clients.

    A server that is silent for more than 200 ms and 1.2 round-trip times may have had a timeout, or
    nothing to send. Its next packets decide: data that fill a hole or came before, window,
    round-trip times, timestamps, IP identifications. Undecided silences are counted as ambiguous.

    Files are merged by time, copies of packets are removed, and packets out of order are sorted.
    Each kind of repair is reported with its count.

    Args:
        files: pcap or pcapng, plain or compressed by gzip or zstd; patterns as in "*.pcap"; "-" is
            standard input.
        output_dir: Directory for tables (Parquet), a summary (JSON) and a figure (SVG).
        connections: Connections that are followed at once, 200000 if not given; of more, those that
            were quiet longest are given up, and counted.
        idle: A connection is over after so many seconds without a packet, 600 if not given.
        connection: Also draw the time-sequence graph of this connection into the directory; its
            number, as in "-o found --connection 3", or its ends: "10.0.0.1:443-10.0.0.2:51000".
        between: Draw this part of the connection, in seconds since its first packet: "10 12".
        scenario: Also write rate, round-trip times, loss and arrivals as a scenario, as in
            "--scenario my.toml", for `cwnd run my.toml`.
        quiet: Print no progress.
        json: Machine-readable output.
    """
    from cwnd.figures import Figure, warm_up
    from cwnd.infer import check_files, check_name, write, write_scenario
    from cwnd.infer import infer as read
    from cwnd.plots import save

    found_files = _expanded(files)
    if connection is not None and output_dir is None:
        raise InputError("--connection draws a figure: say where it goes, with -o DIR")
    if between is not None and (connection is None or not between[0] < between[1]):
        raise InputError("--between takes two times, the earlier first, beside --connection")
    if connection is not None:
        check_files(found_files)
    if scenario is not None:
        check_name(scenario)
    if output_dir is not None:
        warm_up()
    with _progress(quiet or json) as on_progress:
        found = read(
            found_files,
            connections=connections,
            idle_s=idle,
            path=scenario is not None,
            on_progress=on_progress,
        )
    if output_dir is not None:
        write(found, output_dir)
    written = {}
    if scenario is not None:
        source = ", ".join(Path(name).name for name in found_files)
        written["scenario"] = write_scenario(found, scenario, source)
    if connection is not None and output_dir is not None:
        with _progress(quiet or json) as on_progress:
            described, number = _graph(found_files, found, connection, between, on_progress)
        written["figures"] = save(Figure(described), output_dir, f"connection-{number}")
    if json:
        names = {kind: [str(file) for file in files] for kind, files in written.items()}
        output.document(found.to_json() | names)
    else:
        _show(found)
        for file in chain.from_iterable(written.values()):
            output.line(str(file))
    return 0


def _graph(
    files: list[str],
    found: Inferred,
    connection: str,
    between: tuple[float, float] | None,
    on_progress: Callable[[float], object],
) -> tuple[Picture, int]:
    """Describes the time–sequence graph of a connection, and returns its number, too."""
    from cwnd.infer import connection_number, packets, time_sequence

    number = connection_number(found, connection)
    rows, omitted = packets(files, found, number, on_progress=on_progress)
    return time_sequence(found, number, rows, omitted=omitted, between=between), number


@contextmanager
def _progress(silent: bool) -> Iterator[Callable[[float], object]]:
    """Shows the fraction of the files that was read, unless it is to be silent."""
    from cwnd.running import progress

    with nullcontext(_silent) if silent else progress.shown("reading", None) as show:
        yield lambda fraction: show(fraction, "")


def _silent(_fraction: float, _text: str) -> None:
    """Discards a progress report."""


def _expanded(files: list[str]) -> list[str]:
    """Expands file patterns, each to the matching names in order; "-" and names of files stay.

    Raises:
        InputError: No file matches a pattern, or a file is missing.
    """
    from glob import glob, has_magic

    expanded: list[str] = []
    for name in files:
        if name == "-" or Path(name).exists():
            expanded.append(name)
        elif has_magic(name):
            matching = sorted(glob(name))  # noqa: PTH207 - a pattern may begin anywhere
            if not matching:
                raise InputError(f"no file matches {name}")
            expanded += matching
        else:
            # A leading hyphen is allowed for the sake of standard input.
            unknown = "unknown option; see `cwnd infer --help`"
            raise InputError(f"{name}: {unknown if name.startswith('-') else 'no such file'}")
    return expanded


def _show(found: Inferred) -> None:
    output.show(_capture(found))
    output.show(_shares(found))
    if found.connections.height > 1:
        output.show(_largest(found))
    kinds = found.kinds()
    if kinds:
        words = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        output.line(f"silences of servers: {words}")
    backoff = found.backoff()
    if backoff:
        words = ", ".join(f"{n} {kind}" for kind, n in backoff.items())
        output.line(f"connections with timeouts in a row: {words}")
    again = found.handshakes()
    if any(again.values()):
        output.line(f"sent again: {again['syn_timeouts']} SYN, {again['syn_ack_timeouts']} SYN-ACK")
    for note in found.notes():
        output.note(note)


def _capture(found: Inferred) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("capture", "", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in found.capture.rows().items():
        table.add_row(*row)
    return table


#: Number of connections that are listed.
_LISTED = 5


def _largest(found: Inferred) -> Table:
    import polars as pl
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("largest connections", "client", "server"):
        table.add_column(heading)
    for heading in ("data", "duration", "sent again", "timeouts"):
        table.add_column(heading, justify="right", no_wrap=True)
    size = pl.col("server_bytes") + pl.col("client_bytes")
    for row in found.connections.top_k(_LISTED, by=size).iter_rows(named=True):
        table.add_row(
            f"{row['connection']}",
            f"{row['client']}:{row['client_port']}",
            f"{row['server']}:{row['server_port']}",
            f"{(row['server_bytes'] + row['client_bytes']) / 1e3:,.0f} kB",
            f"{row['duration_s']:.2f} s",
            f"{row['filled'] + row['repeated']}",
            f"{row['timeouts']}",
        )
    return table


def _shares(found: Inferred) -> Table:
    from rich import box
    from rich.table import Table

    from cwnd.infer import percent

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for heading in ("connections", "with a timeout", "", "of these, with another in a row", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    for share in found.shares:
        table.add_row(
            share.name,
            f"{share.connections}",
            f"{share.with_timeout}",
            percent(share.timeout_share),
            f"{share.with_consecutive}",
            percent(share.consecutive_share),
        )
    return table
