"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import CwndError, InputError, MachineError, explain
from cwnd.files import SUMS
from cwnd.link import rights
from cwnd.link.settings import LinkOutcome
from cwnd.machine import require_linux
from cwnd.plots import attempt
from cwnd.results import LINK
from cwnd.store import LINKED, PLOTS, RRUL_FIGURE, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cwnd.figures import Picture
    from cwnd.link.settings import Settings

#: Environment variables with the addresses of the link's two ends; a suffix 6 marks IPv6.
_ENDS = ("CWND_LINK_CALLER", "CWND_LINK_ADDRESS")
#: Exit code of shells for a command that does not exist.
_NOT_FOUND = 127
#: Maximum length of a command in an error, in characters.
_MOST = 60


def run(
    command: Sequence[str],
    settings: Settings,
    *,
    user: str | None = None,
    pcap: Path | None = None,
    pcap_at: str | None = None,
    records: Path | None = None,
    force: bool = False,
    dns: str | None = None,
    allow_sudo: bool = False,
    output_to_errors: bool = False,
    by: str = "link",
    on_start: Callable[[_core.Link], object] | None = None,
    on_end: Callable[[], object] | None = None,
    on_outcome: Callable[[LinkOutcome], object] | None = None,
) -> LinkOutcome:
    """Runs a command behind a link and waits for its end; call it from the main thread.

    As root with another `user` this process becomes that user permanently.

    Args:
        command: The program and its arguments.
        settings: The two directions of the link.
        user: User that runs the command; only root may choose.
        pcap: File for all packets.
        pcap_at: Point of the capture: "link" (default) as packets leave the links, "command" or
            "caller" as that end sends and receives them.
        records: Directory for the records of the link.
        force: `True` if they may replace those of an earlier link.
        dns: Name server that the command uses in place of the system's.
        allow_sudo: `True` if the command may gain rights by set-user-ID programs, such as sudo.
        output_to_errors: `True` if the command's standard output goes to standard error.
        by: Command of cwnd that makes the link, for messages.
        on_start: Called with the link before the command starts.
        on_end: Called when the command has ended.
        on_outcome: Called with the outcome before the records are written, which may fail.

    Raises:
        InputError: if a setting, a file or the user is wrong.
        MachineError: if this machine or user can't make links.
        CwndError: if there is no such command.
    """
    require_linux(f"cwnd {by}")
    command_user = rights.user(user)
    if command_user.pw_uid != os.geteuid():
        # Files of this user are opened only after root's privileges are gone.
        privileged = rights.privileged_process(by)
        rights.switch_user(command_user)
    else:
        privileged = None
    if shutil.which(command[0], os.F_OK) is None and not Path(command[0]).is_dir():
        missing = CwndError(f"{command[0]}: command not found")
        missing.exit_code = _NOT_FOUND
        raise missing
    directory = Records(records, force=force) if records is not None else None
    try:
        text = settings.scenario().to_toml()
        cell = _core.parse(text, name="the link", base_dir=str(Path.cwd())).cell(0)
    except _core.ScenarioError as error:
        raise InputError(settings.explain(error)) from error
    with _translate_errors(by):
        privileged = privileged or rights.privileged_process(by)
        link = _core.Link(cell, privileged, command_user.pw_uid, settings.ecn, pcap, pcap_at, dns)
    try:
        if on_start is not None:
            on_start(link)
        environment = list(_environment(link).items())
        with _translate_errors(by):
            code, own_proc = link.run(list(command), environment, allow_sudo, output_to_errors)
    except BaseException:
        link.finish()
        raise
    finally:
        if on_end is not None:
            on_end()
    addresses = [ends[1] for ends in (link.addresses, link.addresses6) if ends is not None]
    report = link.finish()
    scenario = settings.scenario_of(report.summary())
    outcome = LinkOutcome(code, report, scenario, list(command), own_proc, addresses)
    if on_outcome is not None:
        on_outcome(outcome)
    if directory is not None:
        directory.save(outcome)
    return outcome


@contextlib.contextmanager
def _translate_errors(by: str) -> Iterator[None]:
    """Translates errors of the extension into `InputError` or `MachineError`."""
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
            f"cwnd {by} needs root: it makes namespaces and two TUN devices, and this root may not;"
            " a container needs the capabilities SYS_ADMIN and NET_ADMIN for it"
        ) from error


def _reason(error: OSError) -> str:
    if Path("/dev/net/tun").exists():
        return explain(error)
    return "/dev/net/tun is not there: the kernel has no TUN devices, or this container none"


def _environment(link: _core.Link) -> dict[str, str]:
    """Environment of the command: that of this process and the addresses of the link's ends."""
    # Addresses of an enclosing link would be wrong here.
    ends = {name: value for name, value in os.environ.items() if name.rstrip("6") not in _ENDS}
    ends |= zip(_ENDS, link.addresses, strict=True)
    if link.addresses6 is not None:
        ends |= {f"{name}6": end for name, end in zip(_ENDS, link.addresses6, strict=True)}
    return ends


def _check_replaceable(directory: Path) -> None:
    """Refuses to replace the measurement of an earlier link, which cannot be repeated.

    Raises:
        InputError: The directory holds one.
    """
    file = directory / LINKED
    if not file.is_file():
        return
    what = "a link"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        command = shlex.join(json.loads(file.read_bytes())["command"])
        what = f"`{textwrap.shorten(command, _MOST, placeholder=' …')}`"
    raise InputError(
        f"{directory}: holds the measurement of {what}, which cannot be repeated; --force replaces"
        " it, -o puts this one elsewhere"
    )


class Records:
    """A directory for the records of a link, opened before the command starts.

    The open descriptor still refers to it if the command renames or replaces the path.

    Raises:
        InputError: if the directory holds something else, or records that must stay.
    """

    def __init__(self, directory: Path, *, force: bool) -> None:
        if not force:
            _check_replaceable(directory)
        if directory.exists() and (
            not directory.is_dir()
            or (any(directory.iterdir()) and not (directory / LINKED).exists())
        ):
            raise InputError(f"{directory} is there and holds something else than a link's records")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def save(self, outcome: LinkOutcome, more: Mapping[str, bytes] | None = None) -> None:
        """Writes `link.json`, the link as a scenario, the tables, their hashes and a figure.

        `more` are further files, by name.
        """
        import polars as pl

        from cwnd.link.presentation import picture

        report = outcome.report
        tables = {
            name: pl.DataFrame(getattr(report, name))
            for name in ("links", "reasons", "link_series", "qdelay")
        }
        documents = {
            **(more or {}),
            "scenario.toml": outcome.scenario.to_toml().encode(),
            LINKED: (json.dumps(outcome.to_json(), indent=2) + "\n").encode(),
        }
        self._remove_older()
        for name, content in pack(LINK, "link", tables, documents).items():
            self._write(name, content)
        self.draw("link.svg", lambda: picture(tables["link_series"]))

    def draw(self, name: str, describe: Callable[[], Picture | None]) -> None:
        """Draws a figure, if there is one; a failure is a `FigureWarning`."""
        with attempt(f"figure `{name}`", f"the records are complete in {self._directory}"):
            from cwnd.figures import Figure

            described = describe()
            if described is not None:
                self._write(name, Figure(described).svg().encode())

    def _remove_older(self) -> None:
        """Removes the files of an older result, also figures of its packets."""
        at, listed = self._descriptor, []
        # The command may have put anything in their places.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with (
            contextlib.suppress(OSError, ValueError),
            os.fdopen(os.open(SUMS, flags, dir_fd=at)) as sums,
        ):
            listed = [line.partition("  ")[2].rstrip("\n") for line in sums]
        for name in [*listed, "link.svg", RRUL_FIGURE, SUMS]:
            if Path(name).name == name:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=at)
        shutil.rmtree(PLOTS, ignore_errors=True, dir_fd=at)

    def _write(self, name: str, content: bytes) -> None:
        """Writes a file and renames it over an existing one; symbolic links are not followed."""
        partial, directory_fd = f".{name}.{secrets.token_hex(4)}", self._descriptor
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(partial, flags, 0o666, dir_fd=directory_fd), "wb") as file:
                file.write(content)
            os.rename(partial, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(partial, dir_fd=directory_fd)
            error.filename = str(self._directory / name)
            raise
