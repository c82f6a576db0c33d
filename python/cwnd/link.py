"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _core, drawing
from cwnd.errors import CwndError, InputError, MachineError, explain
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What shells return for a command that is not there, or cannot be executed.
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
#: Shells report a process that a signal ended as 128 + its number.
_SIGNALLED = 128
#: Signals that go on to the command.
_FORWARDED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
#: Those of them that a terminal sends to all in the foreground, the command included.
_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
#: Who called a program that changed to root: sudo, pkexec, doas.
_CALLERS = ("SUDO_UID", "PKEXEC_UID", "DOAS_USER")
#: How often the router is looked after, ms.
_LOOK_MS = 1000
#: What sizes in BDP refer to where no round-trip time was given.
_BDP_RTT = "100 ms"
#: Where no round-trip time was given: a scenario wants some time between cause and effect, and this
#: is less than the router itself takes.
_LEAST_RTT = "1 us"
#: Where the command finds the two ends of its link; with a 6 at their end those of IPv6.
_ENDS = ("CWND_LINK_CALLER", "CWND_LINK_ADDRESS")


@dataclass(frozen=True)
class Direction:
    """One direction of a link, in the words of a scenario."""

    rate: str | None = None
    trace: Path | None = None
    queue: str = "fifo"
    buffer: str | None = None
    loss: float = 0.0
    jitter: str = "0 ms"

    def to_section(self, bdp_rtt: str, ecn: bool | None) -> dict[str, object]:
        """The link as a scenario has it, but for its propagation."""
        section: dict[str, object] = {
            "queue": self._queue(ecn),
            "bdp_rtt": bdp_rtt,
            "loss": self.loss,
            "jitter": self.jitter,
        }
        if self.trace is not None:
            section["trace"] = str(self.trace)
        if self.rate is not None or self.trace is None:
            section["rate"] = self.rate
        return section

    def _queue(self, ecn: bool | None) -> dict[str, object]:
        queue: dict[str, object] = {"kind": self.queue}
        if self.queue.lstrip().startswith("{"):
            queue = _core.read_toml(f"queue = {self.queue}", name="--queue")["queue"]
        if self.buffer is not None:
            queue["limit"] = self.buffer
        if ecn is not None and queue.get("kind") != "fifo":
            queue["ecn"] = ecn
        return queue


@dataclass(frozen=True)
class Settings:
    """What lies between a command and the rest of the world."""

    downlink: Direction = field(default_factory=Direction)
    uplink: Direction = field(default_factory=Direction)
    #: Round-trip time without queues; `None` adds none.
    rtt: str | None = None
    #: Whether connections of the command ask for ECN and queues mark; `None` leaves both as they
    #: are by default.
    ecn: bool | None = None
    seed: int = 1
    #: Interval of the time series; `None` records none.
    sample: str | None = None

    def scenario(self) -> Scenario:
        """The link as a scenario: what reads scenarios reads it, and says what is wrong."""
        bdp_rtt = _BDP_RTT if self.rtt is None else self.rtt
        ends = {"uplink": ("command", "caller"), "downlink": ("caller", "command")}
        links = {
            name: {"from": ends[name][0], "to": ends[name][1], **way.to_section(bdp_rtt, self.ecn)}
            for name, way in (("uplink", self.uplink), ("downlink", self.downlink))
        }
        return Scenario(
            name="link",
            run={"duration": "1 s", "seed": self.seed, "sample": self.sample},
            link=links,
            flow={
                "command": {"from": "command", "to": "caller", "edge_rtt": self.rtt or _LEAST_RTT}
            },
        )


@dataclass(frozen=True)
class Finished:
    """What is known when the command has ended."""

    #: The command's exit code, as a shell gives it.
    code: int
    report: _core.LinkReport
    scenario: Scenario
    command: list[str]

    @property
    def summary(self) -> dict[str, Any]:
        """How the router did, and what each direction's packets met."""
        return self.report.summary()

    def links(self) -> list[dict[str, Any]]:
        """A row for each direction, with the columns of the simulator's links."""
        import polars as pl

        return pl.DataFrame(self.report.links).to_dicts()

    def to_json(self) -> dict[str, Any]:
        """All of it but the samples."""
        return {
            "command": self.command,
            "exit_code": self.code,
            **self.summary,
            "links": self.links(),
        }


def run(
    command: Sequence[str],
    settings: Settings,
    *,
    user: str | None = None,
    pcap: Path | None = None,
    dns: str | None = None,
    stdout: int | None = None,
    on_start: Any = None,
) -> Finished:
    """Runs a command behind a link and waits for its end; call it from the main thread.

    `dns` is the server that it asks for names in place of the system's. `on_start` is called with
    the link before the command starts.
    """
    if not hasattr(_core, "Link"):
        raise MachineError("cwnd link needs Linux: it works with its network namespaces")
    who = _user(user)
    scenario = settings.scenario()
    text = scenario.to_toml()
    cell = _core.parse(text, name="the link", base_dir=str(Path.cwd())).cell(0)
    with _machine():
        link = _core.Link(cell, pcap, dns)
    try:
        if on_start is not None:
            on_start(link)
        code = _run_behind(link, list(command), who, settings.ecn, stdout)
    except BaseException:
        link.finish()
        raise
    return Finished(code, link.finish(), scenario, list(command))


@contextlib.contextmanager
def _machine() -> Iterator[None]:
    """Says what this machine or user lacks."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        if error.filename is not None:
            raise InputError(explain(error)) from error
        if not isinstance(error, PermissionError):
            raise MachineError(f"no link on this machine: {_reason(error)}") from error
        raise MachineError(
            "cwnd link needs root: it makes a network namespace and two TUN devices; "
            "put `sudo` before it, COMMAND runs as you all the same"
        ) from error


def _reason(error: OSError) -> str:
    if Path("/dev/net/tun").exists():
        return explain(error)
    return "/dev/net/tun is not there: the kernel has no TUN devices, or this container none"


def _user(name: str | None) -> pwd.struct_passwd | None:
    """Who the command runs as; `None` stays who we are."""
    try:
        if name is not None:
            return pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
        for variable in _CALLERS:
            caller = os.environ.get(variable)
            if caller and os.geteuid() == 0:
                return pwd.getpwuid(int(caller)) if caller.isdecimal() else pwd.getpwnam(caller)
    except KeyError:
        raise InputError(f"there is no user {name if name is not None else caller}") from None
    return None


def _environment(link: _core.Link) -> dict[str, str]:
    """What the command is told of its link, besides what it would be told anyway."""
    # Of a link around this one it would be wrong.
    ends = {name: value for name, value in os.environ.items() if name.rstrip("6") not in _ENDS}
    ends |= zip(_ENDS, link.addresses, strict=True)
    if link.addresses6 is not None:
        ends |= {f"{name}6": end for name, end in zip(_ENDS, link.addresses6, strict=True)}
    return ends


def _run_behind(
    link: _core.Link,
    command: list[str],
    who: pwd.struct_passwd | None,
    ecn: bool | None,
    stdout: int | None,
) -> int:
    environment = _environment(link)
    options: dict[str, Any] = {}
    if who is not None and (who.pw_uid != os.geteuid()):
        groups = os.getgrouplist(who.pw_name, who.pw_gid)
        options = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": groups}
        environment |= {"HOME": who.pw_dir, "USER": who.pw_name, "LOGNAME": who.pw_name}
    with _forwarding() as deliver_to:
        link.enter()
        try:
            if ecn is not None:
                # ip-sysctl: 1 asks for ECN and accepts it, 0 does neither.
                Path("/proc/sys/net/ipv4/tcp_ecn").write_text(str(int(ecn)))
            process = subprocess.Popen(  # noqa: S603 - to run what it is given is what it is for
                command,
                env=environment,
                stdout=stdout,
                # Nothing of the command stays behind when this process is killed. It is one call of
                # the system, and no other thread here runs Python.
                preexec_fn=_core.die_with_parent,  # noqa: PLW1509
                **options,
            )
        except FileNotFoundError:
            sys.stderr.write(f"cwnd link: {command[0]}: command not found\n")
            return _NOT_FOUND
        except PermissionError as error:
            sys.stderr.write(f"cwnd link: {command[0]}: {explain(error)}\n")
            return _NOT_EXECUTABLE
        finally:
            link.leave()
        deliver_to(process)
        _wait(process, link)
    code = process.returncode
    return _SIGNALLED - code if code < 0 else code


def _wait(process: subprocess.Popen[bytes], link: _core.Link) -> None:
    """Waits for the command; one whose link has broken is ended."""
    ended = os.pidfd_open(process.pid)
    try:
        watched = select.poll()
        watched.register(ended, select.POLLIN)
        while not watched.poll(_LOOK_MS):
            if link.has_ended:
                process.kill()
                process.wait()
                raise CwndError("the router has ended; COMMAND was killed")
    finally:
        os.close(ended)
    process.wait()


@contextlib.contextmanager
def _forwarding() -> Iterator[Any]:
    """Signals go on to the command; those that come before it runs wait for it."""
    waiting: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: object) -> None:
        if process is None:
            waiting.append(number)
        elif number not in _OF_THE_TERMINAL or not _is_foreground():
            process.send_signal(number)

    def deliver_to(started: subprocess.Popen[bytes]) -> None:
        nonlocal process
        process = started
        for number in waiting:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield deliver_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_foreground() -> bool:
    """Whether a terminal's signals reach the command anyway."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def give_to_caller(path: Path, user: str | None) -> None:
    """Files that root wrote for somebody else are theirs."""
    who = _user(user)
    if who is not None:
        for each in (path, *path.glob("*")):
            os.chown(each, who.pw_uid, who.pw_gid)


def save(finished: Finished, directory: Path) -> None:
    """Writes what happened: `link.json`, the link as a scenario, tables and a picture."""
    import polars as pl

    report = finished.report
    (directory / "scenario.toml").write_text(finished.scenario.to_toml(), encoding="utf-8")
    document = json.dumps(finished.to_json(), indent=2) + "\n"
    (directory / "link.json").write_text(document, encoding="utf-8")
    for name, table in (
        ("links", report.links),
        ("link_series", report.link_series),
        ("qdelay", report.qdelay),
    ):
        pl.DataFrame(table).write_parquet(directory / f"{name}.parquet")
    with drawing.attempt("figure `link.svg`", f"the records are complete in {directory}"):
        from cwnd.link_picture import picture

        described = picture(finished)
        if described is not None:
            (directory / "link.svg").write_text(_core.draw_svg(described), encoding="utf-8")
