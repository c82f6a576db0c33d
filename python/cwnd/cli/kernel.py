"""`cwnd kernel`: hands over to `cwnd-kernel`, which needs no Python."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal, NoReturn

from cyclopts import App, Parameter

from cwnd.cli import output

kernel = App(
    name="kernel",
    help="Put Reno or CUBIC with ABE into this machine's Linux kernel. docs/kernel.md has more.",
)


@kernel.command
def load(
    controller: Literal["abe_reno", "abe_cubic"],
    /,
    *,
    name: str | None = None,
    beta_ecn: float | None = None,
    mode: Literal["avoidance", "always"] = "avoidance",
    loss_after_ecn: Literal["once", "deepen"] = "once",
    request_ecn: Annotated[bool, Parameter(negative=())] = False,
    any_user: Annotated[bool, Parameter(negative=())] = False,
    pin: Annotated[bool, Parameter(negative=())] = False,
) -> NoReturn:
    """Load a controller for as long as this command runs, or with --pin until it is unloaded.

    It is used by nothing until a socket, a route or a sysctl names it. It needs root.

    Args:
        controller: Which one.
        name: What sockets ask for, at most 15 bytes; the controller's name if none is given.
        beta_ecn: Part of the window that stays after an ECN-echo; 0.8 for Reno, 0.85 for CUBIC.
        mode: Whether it answers an ECN-echo in congestion avoidance only (RFC 8511), or also where
            one ends slow start (its paper).
        loss_after_ecn: What a loss does in a window that an ECN-echo has reduced: nothing more, as
            in Linux, or what it does alone.
        request_ecn: Let its sockets negotiate ECN whatever net.ipv4.tcp_ecn says.
        any_user: Let any user's sockets choose it.
        pin: Leave it in the kernel.
    """
    arguments = ["load", controller, "--mode", mode, "--loss-after-ecn", loss_after_ecn]
    if name is not None:
        arguments += ["--name", name]
    if beta_ecn is not None:
        arguments += ["--beta-ecn", repr(beta_ecn)]
    flags = {"--request-ecn": request_ecn, "--any-user": any_user, "--pin": pin}
    _hand_over(arguments + [flag for flag, given in flags.items() if given])


@kernel.command
def status(name: str | None = None, /, *, json: output.Json = False) -> NoReturn:
    """Show what is loaded, how many sockets use it, and what it counted.

    Args:
        name: Only this one.
        json: Machine-readable output.
    """
    _hand_over(["status", *([name] if name else []), *(["--json"] if json else [])])


@kernel.command
def unload(name: str, /) -> NoReturn:
    """Take a pinned controller out of the kernel; its sockets keep it until they close.

    Args:
        name: What it was loaded as.
    """
    _hand_over(["unload", name])


def _hand_over(arguments: list[str]) -> NoReturn:
    from cwnd.errors import MachineError
    from cwnd.machine import KERNEL_HELPER, kernel_helper

    path = kernel_helper()
    if path is None:
        raise MachineError(
            f"{KERNEL_HELPER} is not installed; in the repository `make kernel` builds it,"
            " which needs Rust, libelf-dev and zlib1g-dev"
        )
    sys.stdout.flush()
    # Signals and the exit code are the program's own from here on.
    os.execv(path, [path, *arguments])  # noqa: S606 - a path that was found, no shell
