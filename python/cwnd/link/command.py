"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import InputError, MachineError, explain
from cwnd.files import SUMS
from cwnd.link import rights
from cwnd.link.finished import Finished
from cwnd.plots import attempt
from cwnd.results import LINK
from cwnd.store import LINKED, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cwnd.link.settings import Settings

#: Where the command finds the two ends of its link; with a 6 at their end those of IPv6.
_ENDS = ("CWND_LINK_CALLER", "CWND_LINK_ADDRESS")


def run(
    command: Sequence[str],
    settings: Settings,
    *,
    user: str | None = None,
    pcap: Path | None = None,
    pcap_at: str | None = None,
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
        pcap_at: Whose packets: "link" as they leave the lines (if not given), "command" or "caller"
            as that end sends and receives them.
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
    try:
        text = settings.scenario().to_toml()
        cell = _core.parse(text, name="the link", base_dir=str(Path.cwd())).cell(0)
    except _core.ScenarioError as error:
        raise InputError(settings.explain(error)) from error
    with _machine():
        keeper = keeper or rights.keeper()
        link = _core.Link(cell, keeper, who.pw_uid, settings.ecn, pcap, pcap_at, dns)
    try:
        if on_start is not None:
            on_start(link)
        environment = list(_environment(link).items())
        with _machine():
            code, own_proc = link.run(list(command), environment, allow_sudo, output_to_errors)
    except BaseException:
        link.finish()
        raise
    report = link.finish()
    scenario = settings.scenario_of(report.summary())
    finished = Finished(code, report, scenario, list(command), own_proc)
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
            or (any(directory.iterdir()) and not (directory / LINKED).exists())
        ):
            raise InputError(f"{directory} is there and holds something else than a link's records")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def save(self, finished: Finished) -> None:
        """Writes `link.json`, the link as a scenario, tables, their hashes and a picture."""
        import polars as pl

        report = finished.report
        tables = {
            name: pl.DataFrame(getattr(report, name))
            for name in ("links", "reasons", "link_series", "qdelay")
        }
        documents = {
            "scenario.toml": finished.scenario.to_toml().encode(),
            LINKED: (json.dumps(finished.to_json(), indent=2) + "\n").encode(),
        }
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SUMS, dir_fd=self._descriptor)
        for name, content in pack(LINK, "link", tables, documents).items():
            self._write(name, content)
        then = f"the records are complete in {self._directory}"
        with attempt("figure `link.svg`", then):
            from cwnd.figures import Figure
            from cwnd.link.picture import picture

            described = picture(tables["link_series"])
            if described is not None:
                self._write("link.svg", Figure(described).svg().encode())

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
