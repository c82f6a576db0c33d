"""Privileges of `cwnd link`: the calling user, dropping root's rights, and asking for them."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from cwnd import _core
from cwnd.errors import InputError, MachineError
from cwnd.machine import calling_user, is_root, user_named

if TYPE_CHECKING:
    import pwd
    from collections.abc import Sequence

#: Commands that always use Linux's TCP; others do with `--on linux`.
_RUN_ON_LINUX = ("agree", "testbed")
#: Commands that make a link.
_LINKS = ("link", "rrul")
#: Option of `cwnd rrul` that makes none.
_WITHOUT_LINK = "--simulated"
#: Commands that inspect or change the machine as root, and open no file that their caller names.
_ROOT_COMMANDS = ("doctor", "kernel")
#: Exit code for a missing requirement of the machine (`cwnd --help`).
_MISSING_CODE = 3
#: Prefix that runs cwnd as root on a fresh machine: sudo searches only its own secure path.
WITH_SUDO = 'sudo "$(command -v cwnd)"'


class _ProcessState:
    """Identity and privileges that this process had at its start."""

    #: User on whose behalf the process was root.
    caller: pwd.struct_passwd | None = None
    #: Process that holds the privileges given up here.
    privileged_process: _core.Keeper | None = None


def drop_privileges(arguments: Sequence[str]) -> None:
    """Drops the privileges that a command does not need, before any file of its caller is opened.

    Only root has some to drop, on behalf of the user who called sudo, pkexec or doas; `doctor` and
    `kernel` keep them. The process exits if that user may not read cwnd's own files.

    Raises:
        InputError: if the calling user is unknown to this system.
    """
    if not hasattr(_core, "Keeper") or not is_root() or not arguments:
        return
    command = arguments[0]
    caller = calling_user()
    if command in _LINKS and _WITHOUT_LINK not in arguments:
        _ProcessState.privileged_process = _start()
        if caller is not None:
            _ProcessState.caller = caller
            switch_user(caller)
    elif caller is None or command in _ROOT_COMMANDS:
        return
    elif command in _RUN_ON_LINUX or _asks_for_linux(arguments):
        _core.keep_network_rights(caller.pw_uid)
        _use_identity(caller)
    else:
        switch_user(caller)


def _asks_for_linux(arguments: Sequence[str]) -> bool:
    return "--on=linux" in arguments or ("--on" in arguments and "linux" in arguments)


def switch_user(caller: pwd.struct_passwd) -> None:
    """Changes this process to another user permanently; nothing happens if that is root.

    The process exits if the user may not read cwnd's own files.
    """
    if caller.pw_uid != 0:
        _core.give_up_rights(caller.pw_uid)
        _use_identity(caller)


def _use_identity(caller: pwd.struct_passwd) -> None:
    os.environ |= {"HOME": caller.pw_dir, "USER": caller.pw_name, "LOGNAME": caller.pw_name}
    for file in (__file__, os.__file__, sys.executable):
        if not os.access(file, os.R_OK):
            _fail_unreadable(file, caller.pw_name)


def _fail_unreadable(file: str, user: str) -> NoReturn:
    # The modules that print errors may be unreadable, too.
    sys.stderr.write(
        f"error: {user} may not read {file}, which is part of cwnd, and cwnd runs as {user} here\n"
        "  help: install it for everybody, with a Python that everybody may read: in a clone,"
        " `/usr/bin/python3 -m venv /opt/cwnd`, then `/opt/cwnd/bin/pip install .`\n"
    )
    sys.exit(_MISSING_CODE)


def user(name: str | None) -> pwd.struct_passwd:
    """Returns the user that runs the command behind a link.

    Raises:
        InputError: if there is no such user, only root may choose this one, or this process has a
            user id without an entry in /etc/passwd.
    """
    try:
        own = _ProcessState.caller or user_named(str(os.geteuid()))
    except KeyError:
        raise InputError(
            f"user id {os.geteuid()} is not in /etc/passwd, which has the groups and the home of"
            " COMMAND; add it, as by `useradd`"
        ) from None
    if name is None:
        return own
    try:
        wanted = user_named(name)
    except KeyError:
        raise InputError(f"there is no user {name}") from None
    if own.pw_uid not in {wanted.pw_uid, 0}:
        raise InputError(
            f"--user {name}: {own.pw_name} may run COMMAND as {own.pw_name} only, even by sudo;"
            " become root first, as by `sudo -i`, and call cwnd link from there"
        )
    return wanted


def privileged_process(command: str) -> _core.Keeper:
    """Returns a process with the privileges that a link needs, started by sudo if necessary.

    `command` is the one of cwnd that makes the link, for messages.

    Raises:
        MachineError: if sudo is missing or refuses, or programs here may not gain privileges.
    """
    found, _ProcessState.privileged_process = _ProcessState.privileged_process, None
    if found is not None:
        return found
    return _start() if is_root() else _start_by_sudo(command)


def _program() -> tuple[str, Path]:
    return sys.executable, Path(__file__).resolve().with_name("keeper.py")


def _start() -> _core.Keeper:
    return _core.Keeper(*_program())


def _start_by_sudo(command: str) -> _core.Keeper:
    if has_no_new_privs():
        raise MachineError(
            f"cwnd {command} needs root, and programs here may not become root: behind a link they"
            " may if the link around them was started with --allow-sudo"
        )
    sudo = shutil.which("sudo")
    if sudo is None:
        raise MachineError(
            f"cwnd {command} needs root, and there is no sudo here to ask for it; become root"
            f" (`su -`) and call {Path(sys.argv[0]).resolve()} {command}"
        )

    def announce(words: list[str]) -> None:
        """Prints the command that is about to run as root."""
        sys.stderr.write(f"cwnd {command} asks for the rights it needs: {shlex.join(words)}\n")
        sys.stderr.flush()

    try:
        return _core.Keeper(*_program(), [sudo], secrets.token_hex(8), announce)
    except PermissionError as error:
        raise MachineError(
            f"cwnd {command} needs root, and it was not granted (sudo says why); who may call"
            f" cwnd {command} but not this can write `{WITH_SUDO} {command} …`"
        ) from error


def has_no_new_privs() -> bool:
    """Returns `True` if programs that this process starts may not gain rights."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "NoNewPrivs:\t1" in status
