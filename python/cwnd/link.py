"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _core, drawing, rights
from cwnd.errors import InputError, MachineError, explain
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    #: Whether it had a `/proc` of its own.
    own_proc: bool = True

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
    records: Path | None = None,
    dns: str | None = None,
    allow_sudo: bool = False,
    output_to_errors: bool = False,
    on_start: Callable[[_core.Link], object] | None = None,
) -> Finished:
    """Runs a command behind a link and waits for its end; call it from the main thread.

    As root with another `user` this process becomes that user, for good.

    Args:
        command: The program and its arguments.
        settings: What lies between it and the rest of the world.
        user: Who it runs as; only root may choose.
        pcap: File for all packets.
        records: Directory for what happened.
        dns: The server that it asks for names in place of the system's.
        allow_sudo: Whether it may gain rights by set-user-ID programs, such as sudo.
        output_to_errors: Whether what it writes to standard output goes to standard error.
        on_start: Called with the link before the command starts.

    Raises:
        InputError: if a setting, a file or the user is not as it must be.
        MachineError: if this machine or user can't make links.
    """
    if not hasattr(_core, "Link"):
        raise MachineError("cwnd link needs Linux: it works with its network namespaces")
    who = rights.user(user)
    if who.pw_uid != os.geteuid():
        # Nothing of this user is looked at with the rights of root.
        keeper = rights.keeper()
        rights.become(who)
    else:
        keeper = None
    place = Records(records) if records is not None else None
    scenario = settings.scenario()
    cell = _core.parse(scenario.to_toml(), name="the link", base_dir=str(Path.cwd())).cell(0)
    with _machine():
        keeper = keeper or rights.keeper()
        link = _core.Link(cell, keeper, who.pw_uid, settings.ecn, pcap, dns)
    try:
        if on_start is not None:
            on_start(link)
        environment = list(_environment(link).items())
        with _machine():
            code, own_proc = link.run(list(command), environment, allow_sudo, output_to_errors)
    except BaseException:
        link.finish()
        raise
    finished = Finished(code, link.finish(), scenario, list(command), own_proc)
    if place is not None:
        place.save(finished)
    return finished


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
            "cwnd link needs root: it makes namespaces and two TUN devices, and this root may not;"
            " a container needs the capabilities SYS_ADMIN and NET_ADMIN for it"
        ) from error


def _reason(error: OSError) -> str:
    if Path("/dev/net/tun").exists():
        return explain(error)
    return "/dev/net/tun is not there: the kernel has no TUN devices, or this container none"


def _environment(link: _core.Link) -> dict[str, str]:
    """What the command is told of its link, besides what it would be told anyway."""
    # Of a link around this one it would be wrong.
    ends = {name: value for name, value in os.environ.items() if name.rstrip("6") not in _ENDS}
    ends |= zip(_ENDS, link.addresses, strict=True)
    if link.addresses6 is not None:
        ends |= {f"{name}6": end for name, end in zip(_ENDS, link.addresses6, strict=True)}
    return ends


class Records:
    """A directory for what happened: opened before the command starts, whatever it does to it.

    Raises:
        InputError: if it holds something else.
    """

    def __init__(self, directory: Path) -> None:
        if directory.exists() and (
            not directory.is_dir()
            or (any(directory.iterdir()) and not (directory / "link.json").exists())
        ):
            raise InputError(f"{directory} is there and holds something else than a link's records")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def save(self, finished: Finished) -> None:
        """Writes `link.json`, the link as a scenario, tables and a picture."""
        import polars as pl

        report = finished.report
        self._write("scenario.toml", finished.scenario.to_toml().encode())
        self._write("link.json", (json.dumps(finished.to_json(), indent=2) + "\n").encode())
        for name, table in (
            ("links", report.links),
            ("link_series", report.link_series),
            ("qdelay", report.qdelay),
        ):
            columns = io.BytesIO()
            pl.DataFrame(table).write_parquet(columns)
            self._write(f"{name}.parquet", columns.getvalue())
        then = f"the records are complete in {self._directory}"
        with drawing.attempt("figure `link.svg`", then):
            from cwnd.link_picture import picture

            described = picture(finished)
            if described is not None:
                self._write("link.svg", _core.draw_svg(described).encode())

    def _write(self, name: str, content: bytes) -> None:
        """A new file takes the place of what is there, be it a link to anywhere."""
        partial, place = f".{name}.{secrets.token_hex(4)}", self._descriptor
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(partial, flags, 0o666, dir_fd=place), "wb") as file:
                file.write(content)
            os.rename(partial, name, src_dir_fd=place, dst_dir_fd=place)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(partial, dir_fd=place)
            error.filename = str(self._directory / name)
            raise
