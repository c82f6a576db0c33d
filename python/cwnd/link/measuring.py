"""RRUL on real programs: clients of iperf3 and irtt behind a link, their servers at the caller.

Nothing here imports Polars before the programs have ended: its threads would take the signals that
are for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import CwndError, MachineError
from cwnd.link import rights
from cwnd.link.command import Records, run
from cwnd.link.rrul import (
    CONTROLLER,
    DIRECTIONS,
    DSCPS,
    LEAD_S,
    PINGS,
    START_S,
    STEP_S,
    scenario,
    total_s,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.link.responsiveness import Rrul
    from cwnd.link.settings import LinkOutcome, Settings

#: Programs that a test needs, which are also the names of their packages.
REQUIRED = ("iperf3", "irtt")
#: Time after which a program that has not ended counts as failed, in seconds after its end.
_GRACE_S = 30.0
#: A line of iperf3 about an interval: its length in s and the rate; the last line is a summary.
_INTERVAL = re.compile(r"([\d.]+)-([\d.]+) +sec .* ([\d.]+) [Kk]?bits/sec(?!.*(?:sender|receiver))")
#: A line of `ping -D`: time of the answer, number of the request, round-trip time in ms.
_ANSWER = re.compile(r"\[([\d.]+)\] .*icmp_seq=(\d+) .*time=([\d.]+) ms")
_SENT = re.compile(r"(\d+) packets transmitted")
#: The two sides of the link, as names of files.
_INSIDE, _OUTSIDE = "inside", "outside"
#: Begin of the commands of iperf3, and name of the ping.
_IPERF3 = ("iperf3", "--interval", STEP_S, "--format", "k", "--forceflush")
_PING = "ping"
#: Ends of iperf3 that receive the data.
_RECEIVERS = {"download": "client", "upload": "server"}
#: Default of the system for new connections; as BBR paces, so do connections that leave it later.
_DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
#: Exit codes above it are numbers of signals.
_SIGNALLED = 128
#: Controllers that users other than root may choose.
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
#: Command that makes the test's controller the default, which also permits it to all users.
_SYSCTL = f"`sysctl -w net.ipv4.tcp_congestion_control={CONTROLLER}`"
#: Columns of `Rrul.pings` after the name.
_TIMES = ("sent_s", "rtt_ms", "up_ms", "down_ms")


def _require_programs() -> None:
    """Checks that the programs are installed, and that they may use the test's controller.

    Raises:
        MachineError: One is missing, or may not.
    """
    missing = [name for name in REQUIRED if shutil.which(name) is None]
    if missing:
        raise MachineError(
            f"cwnd rrul needs {' and '.join(missing)}, which is not on the path: "
            f"`apt install {' '.join(missing)}`, or simulate the test with --simulated"
        )
    user = rights.user(None)
    if user.pw_uid != 0 and CONTROLLER not in _ALLOWED.read_text(encoding="ascii").split():
        raise MachineError(
            f"TCP of the test is {CONTROLLER}, which {user.pw_name} may not use on this system: as"
            f" root, {_SYSCTL} makes it everybody's"
        )


def measure(
    settings: Settings,
    length_s: int,
    *,
    records: Path | None = None,
    force: bool = False,
    pcap: Path | None = None,
    on_start: Callable[[_core.Link], object] | None = None,
    on_end: Callable[[], object] | None = None,
    on_outcome: Callable[[LinkOutcome, Rrul], object] | None = None,
) -> tuple[LinkOutcome, Rrul]:
    """Runs the test behind a link; call it from the main thread.

    Args:
        settings: The two directions of the link.
        length_s: Time under load.
        records: Directory for the records of the link and of the test.
        force: `True` if they may replace those of an earlier link.
        pcap: File for all packets, as they leave the links.
        on_start: Called with the link before the programs start.
        on_end: Called when they have ended.
        on_outcome: Called with the outcome before the records are written, which may fail.

    Raises:
        InputError: A setting or the directory is wrong.
        MachineError: This machine or user can't make links, or lacks a program.
        CwndError: A program failed.
    """
    _require_programs()
    directory = Records(records, force=force) if records is not None else None
    with tempfile.TemporaryDirectory(prefix="cwnd-rrul-") as scratch:
        test = _Test(Path(scratch), length_s, settings.queues)

        def start(link: _core.Link) -> None:
            test.start(*link.addresses)
            if on_start is not None:
                on_start(link)

        def end() -> None:
            test.stop()
            if on_end is not None:
                on_end()

        outcome = run(test.inside, settings, pcap=pcap, by="rrul", on_start=start, on_end=end)
        number = outcome.code - _SIGNALLED
        if number in (signal.SIGINT, signal.SIGTERM):
            # The link has passed the signal on to the programs instead.
            signal.raise_signal(number)
        if number > 0:
            name = signal.strsignal(number) or "unknown"
            error = CwndError(f"interrupted by signal {number} ({name}); nothing was written")
            error.exit_code = outcome.code
            raise error
        if outcome.code != 0:
            raise CwndError(test.failure(outcome.code))
        found = test.read()
    outcome = replace(outcome, command=["cwnd", "rrul"], scenario=scenario(settings, length_s))
    if on_outcome is not None:
        on_outcome(outcome, found)
    if directory is not None:
        from cwnd.link.presentation import rrul_picture
        from cwnd.store import RRUL_FIGURE

        directory.save(outcome, found.files())
        directory.draw(RRUL_FIGURE, lambda: rrul_picture(found.flent.document()))
    return outcome, found


@dataclass
class _Test:
    """The programs of a test, and their output in a directory for scratch files."""

    place: Path
    length_s: int
    queues: str
    #: Unix time of the first ping.
    began: float = 0.0
    _outside: subprocess.Popen[bytes] | None = None

    @property
    def inside(self) -> list[str]:
        """Command behind the link."""
        return self._command(_INSIDE)

    def _command(self, plan: str) -> list[str]:
        script = Path(__file__).with_name("programs.py")
        return [sys.executable, "-I", "-S", str(script), str(self.place / f"{plan}.json")]

    def start(self, caller: str, behind: str) -> None:
        """Starts the programs at the caller, and plans those behind the link."""
        self.began = time.time() + START_S
        programs: dict[str, list[dict[str, Any]]] = {_INSIDE: [], _OUTSIDE: []}
        *ports, udp_port = _free_ports(caller, 2 * len(DSCPS) + 1)
        flows = [(direction, dscp) for direction in DIRECTIONS for dscp in DSCPS]
        for (direction, dscp), port in zip(flows, ports, strict=True):
            serve: tuple[object, ...] = ("--server", "--one-off", "--bind", caller, "--port", port)
            ask: tuple[object, ...] = (
                *("--client", caller, "--port", port, "--time", self.length_s),
                *("--congestion", CONTROLLER, "--dscp", DSCPS[dscp]),
                *(("--reverse",) if direction == "download" else ()),
            )
            end_s = LEAD_S + self.length_s
            flow = f"{direction} {dscp}"
            server = self._program(f"server of {flow}", (*_IPERF3, *serve), -START_S, end_s)
            client = self._program(f"client of {flow}", (*_IPERF3, *ask), LEAD_S, end_s)
            programs[_OUTSIDE].append(server)
            programs[_INSIDE].append(client)
        address, end_s = f"{caller}:{udp_port}", total_s(self.length_s)
        serve = ("irtt", "server", "-b", address)
        programs[_OUTSIDE].append(self._program("server of UDP", serve, -START_S, end_s))
        for ping in PINGS[1:]:
            ask = (
                *("irtt", "client", "-Q", "-d", f"{end_s}s", "-i", f"{STEP_S}s"),
                # Its value is the whole byte (TOS, RFC 1349), with the bits of ECN.
                *(f"--dscp={DSCPS[ping.split()[1]] << 2}", "-o", self._answers(ping), address),
            )
            programs[_INSIDE].append(self._program(f"client of {ping}", ask, 0, end_s))
        # Programs behind the link have no rights for ICMP; from here it takes the same queues.
        ask = ("ping", "-D", "-n", "-i", STEP_S, "-w", end_s, behind)
        programs[_OUTSIDE].append(self._program(_PING, ask, 0, end_s, optional=True))
        for side, of_side in programs.items():
            plan = {
                "log": str(self._log(side)),
                "stop": str(self.place / "stop"),
                "until_closed": side == _OUTSIDE,
                "programs": of_side,
            }
            (self.place / f"{side}.json").write_text(json.dumps(plan), encoding="utf-8")
        self._outside = subprocess.Popen(  # noqa: S603 - a file of this package
            self._command(_OUTSIDE), stdin=subprocess.PIPE, start_new_session=True
        )

    def _program(
        self,
        name: str,
        command: tuple[object, ...],
        start_s: float,
        end_s: float,
        *,
        optional: bool = False,
    ) -> dict[str, Any]:
        return {
            "name": name,
            "command": [str(word) for word in command],
            "start": self.began + start_s,
            "deadline": self.began + end_s + _GRACE_S,
            "optional": optional,
        }

    def _log(self, side: str) -> Path:
        return self.place / f"{side}.log"

    def _answers(self, ping: str) -> Path:
        return self.place / f"{ping}.json"

    def stop(self) -> None:
        """Ends the programs at the caller."""
        if self._outside is None:
            return
        # They are the process group of their script, which would end them if this process died.
        os.killpg(self._outside.pid, signal.SIGKILL)
        self._outside.communicate()

    def _lines(self) -> list[tuple[float, str, str | int]]:
        """Output and exit codes of all programs, as far as they have started."""
        found = []
        for side in (_INSIDE, _OUTSIDE):
            with contextlib.suppress(OSError):
                text = self._log(side).read_text(encoding="utf-8")
                found += [(at, name, what) for at, name, what in map(json.loads, text.splitlines())]
        return found

    def failure(self, code: int) -> str:
        """Describes the first program that failed by its first line of an error, or its last."""
        said: dict[str, list[str]] = {}
        for _, name, what in sorted(self._lines(), key=lambda line: line[0]):
            if isinstance(what, str):
                said.setdefault(name, []).append(what)
            elif what != 0 and name != _PING:
                found = said.get(name, [f"exit code {what}"])
                reason = next((line for line in found if "error" in line), found[-1])
                return f"the {name} failed: {reason}"
        return f"the programs behind the link ended with exit code {code}"

    def read(self) -> Rrul:
        """Reads what the programs measured."""
        import polars as pl

        from cwnd.link.responsiveness import Rrul

        lines = self._lines()
        flows = [
            (direction, dscp, at - self.began, bits)
            for direction in DIRECTIONS
            for dscp in DSCPS
            for at, bits in _arrivals(lines, f"{_RECEIVERS[direction]} of {direction} {dscp}")
        ]
        said = [what for _, name, what in lines if name == _PING and isinstance(what, str)]
        icmp = self._icmp(said)
        pings = [row for ping in PINGS[1:] for row in self._udp(ping)]
        note = f"cwnd {_core.__version__}: iperf3, irtt and ping behind cwnd link"
        if _DEFAULT.read_text(encoding="ascii").strip() == "bbr":
            # bbr_init sets sk_pacing_status, and no other controller resets it.
            note += (
                f"; {CONTROLLER} is paced, as iperf3 sets it on connections that start with this"
                f" system's bbr: {_SYSCTL}"
            )
        if not icmp:
            missing = shutil.which("ping") is None
            reason = "`apt install iputils-ping`" if missing else [*said, "no output"][-1]
            note += f"; no ICMP ping: {reason}"
            if os.geteuid() != 0 and rights.has_no_new_privs():
                note += "; it may not gain its rights by sudo: call cwnd rrul as the user"
        return Rrul(
            pl.DataFrame(
                flows,
                schema={
                    **dict.fromkeys(("direction", "dscp"), pl.String),
                    **dict.fromkeys(("time_s", "bits"), pl.Float64),
                },
                orient="row",
            ),
            pl.DataFrame(
                [*icmp, *pings],
                schema={"ping": pl.String, **dict.fromkeys(_TIMES, pl.Float64)},
                orient="row",
            ),
            self.length_s,
            f"RRUL, real programs, {self.queues}",
            note,
        )

    def _udp(self, ping: str) -> list[tuple[object, ...]]:
        """Pings of irtt, in the columns of `Rrul.pings`."""
        document = json.loads(self._answers(ping).read_text(encoding="utf-8"))
        found: list[tuple[object, ...]] = []
        for trip in document["round_trips"]:
            sent_s = trip["timestamps"]["client"]["send"]["wall"] / 1e9 - self.began
            ms = {name: ns / 1e6 for name, ns in trip["delay"].items()}
            found.append((ping, sent_s, ms.get("rtt"), ms.get("send"), ms.get("receive")))
        return found

    def _icmp(self, lines: list[str]) -> list[tuple[object, ...]]:
        """Pings of ping(8), in the columns of `Rrul.pings`; empty if it did not work."""
        matches = [match for line in lines if (match := _ANSWER.match(line))]
        answers = {
            int(number): (float(at) - float(ms) / 1e3 - self.began, float(ms))
            for at, number, ms in (match.groups() for match in matches)
        }
        first, last = min(answers, default=1), max(answers, default=1)
        (first_s, _), (last_s, _) = (answers.get(n, (0.0, None)) for n in (first, last))
        counts = [int(match[1]) for line in lines if (match := _SENT.match(line))]
        sent = range(1, max([0, *answers, *counts]) + 1)
        # Requests leave at equal distances, which are longer than asked for, those without an
        # answer, too.
        step_s = (last_s - first_s) / (last - first) if last > first else STEP_S
        rows = [answers.get(n, (first_s + (n - first) * step_s, None)) for n in sent]
        return [(PINGS[0], sent_s, ms, None, None) for sent_s, ms in rows]


def _arrivals(
    lines: list[tuple[float, str, str | int]], receiver: str
) -> list[tuple[float, float]]:
    """Unix times of the ends of a receiver's intervals, and the bits in each."""
    rows = [
        (at, *map(float, match.groups()))
        for at, name, what in lines
        if name == receiver and (match := _INTERVAL.search(str(what)))
    ]
    if not rows:
        return []
    # Lines may be late: the last one waits for the exchange of results.
    zero = min(at - end for at, _, end, _ in rows)
    first = (zero + rows[0][1], 0.0)
    return [first, *((zero + end, kbit_s * 1e3 * (end - begin)) for _, begin, end, kbit_s in rows)]


def _free_ports(address: str, count: int) -> list[int]:
    """Ports of an address that neither TCP nor UDP uses at the moment."""
    with contextlib.ExitStack() as open_sockets:
        ports: list[int] = []
        while len(ports) < count:
            tcp = open_sockets.enter_context(socket.create_server((address, 0)))
            udp = open_sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            with contextlib.suppress(OSError):
                udp.bind(tcp.getsockname())
                ports.append(tcp.getsockname()[1])
        return ports
