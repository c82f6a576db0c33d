"""Command `cwnd link`: a program behind an emulated link."""

from __future__ import annotations

import shutil
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd._core import Link
    from cwnd.link import LinkOutcome, Settings

#: Interval of the time series in the directory of `--output`.
SAMPLE = "20 ms"
#: Exit code of an invalid run whose command succeeded, with `--strict`.
INVALID = 1
#: Groups of options in the help.
_LINK, _QUEUE, _IMPAIRMENTS, _COMMAND, RECORDS = (
    Parameter(group=Group(name, sort_key=number))
    for number, name in enumerate(("Link", "Queue", "Impairments", "Command", "Records"))
)
#: IPv6 address that only a default route reaches (documentation prefix, RFC 3849).
_ANYWHERE6 = "2001:db8::1"


@Parameter(name="*")
@dataclass(frozen=True)
class LinkOptions:
    """Options of an emulated link.

    Attributes:
        rate: Rate of both directions, as in "10Mbit/s"; without one there is no queue, only delay.
        uplink_rate: Rate of the uplink (from behind the link); as --rate if this and --uplink-trace
            are not given.
        trace: File in place of --rate: a mahimahi trace, a line for each millisecond in which 1500
            bytes pass, or seconds and Mbit/s on each line.
        uplink_trace: Trace of the uplink; as --trace if this and --uplink-rate are not given.
        rtt: Round-trip time without queues, as in "100ms"; half of it in each direction.
        queue: Queue before each direction: a kind as in a scenario, such as codel, or its table: '{
            kind = "pie", target = "10 ms" }'.
        uplink_queue: Queue of the uplink; as --queue if not given.
        buffer: Limit of the queue: "100 packets", "64 kB", "50 ms", "1 BDP" (without --rtt that
            means 100 ms); the queue's default if not given: a fifo 1 BDP.
        uplink_buffer: Limit of the uplink's queue; as --buffer if not given.
        ecn: Connections from behind the link ask for ECN, and queues mark; --no-ecn: neither. By
            default queues mark ECN-capable packets, and connections use this system's setting.
        loss: Probability that a packet is lost on the line, in each direction.
        uplink_loss: Probability of loss on the uplink; as --loss if not given.
        jitter: Extra delay, uniform between zero and this or of a distribution, as in "lognormal(5
            ms, 0.8)"; order is kept.
        reorder: Probability that a packet is held back, so that later ones pass it.
        reorder_delay: Time for which it is held back, as in "20ms"; --reorder needs it.
        meter: Load meter that writes into IP headers beside the queue: step, vcp or adpm, or a
            table as in a scenario.
        uplink_meter: Load meter of the uplink; as --meter if not given.
        messenger: Feedback from the router to the sources of packets: quench, or a table as in a
            scenario. Hosts ignore source quenches (RFC 6633), unless a program of yours reads them.
        uplink_messenger: Feedback about packets of the uplink; as --messenger if not given.
        seed: Seed of the random numbers of queues and losses.
    """

    rate: Annotated[str | None, _LINK] = None
    uplink_rate: Annotated[str | None, _LINK] = None
    trace: Annotated[Path | None, _LINK] = None
    uplink_trace: Annotated[Path | None, _LINK] = None
    rtt: Annotated[str | None, _LINK] = None
    queue: Annotated[str, _QUEUE] = "fifo"
    uplink_queue: Annotated[str | None, _QUEUE] = None
    buffer: Annotated[str | None, _QUEUE] = None
    uplink_buffer: Annotated[str | None, _QUEUE] = None
    ecn: Annotated[bool | None, _QUEUE] = None
    loss: Annotated[float, _IMPAIRMENTS] = 0.0
    uplink_loss: Annotated[float | None, _IMPAIRMENTS] = None
    jitter: Annotated[str, _IMPAIRMENTS] = "0 ms"
    reorder: Annotated[float, _IMPAIRMENTS] = 0.0
    reorder_delay: Annotated[str | None, _IMPAIRMENTS] = None
    meter: Annotated[str, _QUEUE] = "none"
    uplink_meter: Annotated[str | None, _QUEUE] = None
    messenger: Annotated[str, _QUEUE] = "none"
    uplink_messenger: Annotated[str | None, _QUEUE] = None
    seed: Annotated[int, _IMPAIRMENTS] = 1

    def settings(self, sample: str | None) -> Settings:
        """Returns the settings of both directions, with the interval of time series."""
        from cwnd.link import Direction, Settings

        impairments = (self.jitter, self.reorder, self.reorder_delay)
        return Settings(
            downlink=Direction(
                *(self.rate, self.trace, self.queue, self.buffer, self.loss),
                *(*impairments, self.meter, self.messenger),
            ),
            uplink=Direction(
                self.uplink_rate or (None if self.uplink_trace else self.rate),
                self.uplink_trace or (None if self.uplink_rate else self.trace),
                self.uplink_queue or self.queue,
                self.uplink_buffer or self.buffer,
                self.loss if self.uplink_loss is None else self.uplink_loss,
                *impairments,
                self.uplink_meter or self.meter,
                self.uplink_messenger or self.messenger,
            ),
            rtt=self.rtt,
            ecn=self.ecn,
            seed=self.seed,
            sample=sample,
        )


#: A link without options.
LINK = LinkOptions()


def link(
    *command: Annotated[str, Parameter(name="COMMAND", allow_leading_hyphen=True)],
    options: LinkOptions = LINK,
    dns: Annotated[str | None, _COMMAND] = None,
    user: Annotated[str | None, _COMMAND] = None,
    allow_sudo: Annotated[bool, Parameter(negative=()), _COMMAND] = False,
    pcap: Annotated[Path | None, RECORDS] = None,
    pcap_at: Annotated[Literal["link", "command", "caller"] | None, RECORDS] = None,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"]), RECORDS] = None,
    force: Annotated[bool, Parameter(negative=()), RECORDS] = False,
    live: Annotated[bool, Parameter(negative=()), RECORDS] = False,
    strict: Annotated[bool, Parameter(negative=()), RECORDS] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=()), RECORDS] = False,
    json: Annotated[output.Json, RECORDS] = False,
) -> int:
    """Run a program behind an emulated link: cwnd link OPTIONS -- COMMAND ARGUMENTS.

    COMMAND gets a network of its own, which reaches the outside only through a router with the
    simulator's queues. It runs as the calling user, without any rights of root; its exit code is
    that of cwnd link. Statistics of the queues are printed to stderr when it ends. Making the
    network needs root: cwnd link asks for it with sudo, in a process of its own. It leaves nothing
    behind.

    A local server is reached at the address in CWND_LINK_CALLER, or CWND_LINK_CALLER6. Other
    machines are reached if this one forwards packets (net.ipv4.ip_forward,
    net.ipv6.conf.all.forwarding) and nf_tables translates addresses.

    For example:
      cwnd link --rate 10Mbit/s --rtt 40ms -- curl -O https://example.org/file
      cwnd link --rate 10Mbit/s --uplink-rate 1Mbit/s --queue codel --ecn --live -- firefox
      cwnd link --trace cell.down --uplink-trace cell.up --rtt 60ms -o out -- ./client

    Args:
        command: The program, after "--", with its arguments.
        options: Options of the link.
        dns: Name server of COMMAND, as in 192.0.2.1 or 127.0.0.1:5353, as this machine reaches it;
            those of /etc/resolv.conf if not given.
        user: User that runs COMMAND, a name or number; the caller if not given. Only root may
            choose.
        allow_sudo: COMMAND may gain rights with sudo and the like, as for a link within a link.
        pcap: File for all packets, pcapng, with marks and drops as comments.
        pcap_at: Point of the capture: where packets leave the link's two lines (the default), or
            where COMMAND or the caller's end sends and receives them; the ends see no marks and
            drops.
        output_dir: Directory for link.json, time series and tables as Parquet, and a figure.
        force: Replace an earlier measurement in this directory.
        live: Print throughput, delay and drops each second, to stderr.
        strict: Exit with 1 where COMMAND succeeded but the run was not valid, as when the machine
            was too busy to forward packets in time.
        quiet: No table.
        json: Machine-readable output; COMMAND's standard output goes to stderr.
    """
    from cwnd.link import run

    if not command:
        raise InputError("which command? give it after --, as in `cwnd link --rtt 50ms -- curl …`")
    if pcap_at is not None and pcap is None:
        raise InputError(f"--pcap-at {pcap_at}: which file? give it with --pcap FILE")
    settings = options.settings(SAMPLE if output_dir is not None or live else None)

    def on_start(started: Link) -> None:
        if not quiet and not json:
            _announce(started)
        if live:
            live_meter.start(started)

    def show(outcome: LinkOutcome) -> None:
        if json:
            output.document(outcome.to_json())
        elif not quiet:
            show_link(outcome)
        elif strict:
            show_flaws(outcome)

    live_meter = LiveMeter()
    outcome = run(
        command,
        settings,
        user=user,
        pcap=pcap,
        pcap_at=pcap_at,
        dns=dns,
        records=output_dir,
        force=force,
        allow_sudo=allow_sudo,
        output_to_errors=json,
        on_start=on_start,
        on_end=live_meter.stop,
        on_outcome=show,
    )
    if output_dir is not None and not quiet and not json:
        output.stderr().print(str(output_dir), highlight=False, soft_wrap=True)
    invalid = strict and not outcome.summary["valid"]
    return outcome.code or (INVALID if invalid else 0)


class LiveMeter:
    """A thread that prints what a link does, each second.

    The line is replaced in place on a terminal. Elsewhere, `interval_s` is the time between two
    lines. With `total_s` they show how long the link will be there.
    """

    def __init__(self, *, interval_s: float = 1, total_s: float | None = None) -> None:
        self._interval_s, self._total_s = interval_s, total_s
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, link: Link) -> None:
        """Starts to print."""
        self._thread = threading.Thread(target=self._print, args=(link,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if it was started."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _print(self, link: Link) -> None:
        from cwnd.link import Meter

        meter, on_terminal = Meter(self._total_s), sys.stderr.isatty()
        while not self._ended.wait(1 if on_terminal else self._interval_s):
            if line := meter.line(link):
                shown = line[: shutil.get_terminal_size().columns - 1]
                sys.stderr.write(f"\r\x1b[K{shown}" if on_terminal else f"{line}\n")
                sys.stderr.flush()
        if on_terminal:
            sys.stderr.write("\n")


def _announce(link: Link) -> None:
    """Prints limits of the command's network before it starts."""
    if link.confined is not None:
        caller, _ = link.addresses
        output.note(
            f"COMMAND reaches this machine (at {caller}) and nothing beyond it: {link.confined}",
            output.stderr(),
        )
    elif link.confined6 is not None and _has_default_route6():
        output.note(
            f"COMMAND reaches nothing beyond this machine over IPv6: {link.confined6}",
            output.stderr(),
        )


def _has_default_route6() -> bool:
    """`True` if this machine has a default route for IPv6; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as tried:
            tried.connect((_ANYWHERE6, 9))
    except OSError:
        return False
    return True


def show_link(outcome: LinkOutcome) -> None:
    """Prints the statistics of a link to stderr."""
    from cwnd.link import presentation

    console = output.stderr()
    summary = outcome.summary
    console.print(*presentation.table(outcome).fitting(console.width))
    if summary["valid"]:
        console.print(
            f"valid: the router waited {summary['idle']:.0%} of the time", highlight=False
        )
    if not outcome.own_proc:
        output.note("/proc can't be mounted here: COMMAND saw none, or that of others", console)
    show_flaws(outcome)


def show_flaws(outcome: LinkOutcome) -> None:
    """Prints why a run is not valid, to stderr."""
    for flaw in outcome.summary["flaws"]:
        output.labelled("invalid", flaw, "bold red", output.stderr())
