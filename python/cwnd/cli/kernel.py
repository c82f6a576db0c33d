"""`cwnd kernel`: hands over to `cwnd-kernel`, which needs no Python."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal, NoReturn

from cyclopts import App, Parameter

from cwnd.cli import output

kernel = App(
    name="kernel",
    help="Put congestion controllers into this machine's Linux kernel: ABE, BECN, adaptive backoff,"
    " delay-based AIMD, TCP*(n). docs/kernel.md has more.",
)

Flag = Annotated[bool, Parameter(negative=())]


@kernel.command
def load(
    controller: Literal[
        "abe_reno",
        "abe_cubic",
        "adaptive_reno",
        "adaptive_cubic",
        "becn_reno",
        "becn_cubic",
        "delay_aimd",
        "tcpstar",
    ],
    /,
    *,
    name: str | None = None,
    beta_ecn: float | None = None,
    mode: Literal["avoidance", "always"] | None = None,
    loss_after_ecn: Literal["once", "deepen"] | None = None,
    interface: tuple[str, ...] = (),
    beta_quench: float | None = None,
    rest: Literal["marked", "never", "always"] | None = None,
    guesses: int | None = None,
    delta: float | None = None,
    threshold: float | None = None,
    least_window: int | None = None,
    backoff_after: int | None = None,
    cgroup: str | None = None,
    request_ecn: Flag = False,
    any_user: Flag = False,
    pin: Flag = False,
) -> NoReturn:
    """Load a controller for as long as this command runs, or with --pin until it is unloaded.

    It is used by nothing until a socket, a route or a sysctl names it; `tcpstar` is for all
    connections of a control group. It needs root.

    Args:
        controller: Which one.
        name: What sockets ask for, at most 15 bytes; the controller's name if none is given.
        beta_ecn: Of abe_*: part of the window that stays after an ECN-echo; 0.8 for Reno, 0.85 for
            CUBIC.
        mode: Of abe_*: whether it answers an ECN-echo in congestion avoidance only (RFC 8511; the
            default), or also where one ends slow start (its paper).
        loss_after_ecn: Of abe_*: what a loss does in a window that an ECN-echo has reduced: nothing
            more, as in Linux (the default), or what it does alone.
        interface: Of becn_*: where source quenches arrive; may be given several times.
        beta_quench: Of becn_*: part of the window that stays after a quench about a marked packet;
            0.5.
        rest: Of becn_*: after which quenches the window rests for a round trip; marked.
        guesses: Of becn_*: wrong guesses in a round trip after which its other quenches are not
            believed; 10, and 0 is no limit.
        delta: Of adaptive_* and delay_aimd: a reduction leaves this times minRTT / RTT of the
            window; 0.8.
        threshold: Of delay_aimd: it backs off once packets wait for so many ms; 50.
        least_window: Of delay_aimd: what a backoff for delay leaves at the least, segments; 2.
        backoff_after: Of tcpstar: expiries in a row after which the timeout doubles; 6.
        cgroup: Of tcpstar: the control group (version 2) whose connections it is for; all.
        request_ecn: Let its sockets negotiate ECN whatever net.ipv4.tcp_ecn says.
        any_user: Let any user's sockets choose it.
        pin: Leave it in the kernel.
    """
    settings = {
        "--name": name,
        "--beta-ecn": beta_ecn,
        "--mode": mode,
        "--loss-after-ecn": loss_after_ecn,
        "--beta-quench": beta_quench,
        "--rest": rest,
        "--guesses": guesses,
        "--delta": delta,
        "--threshold": threshold,
        "--least-window": least_window,
        "--backoff-after": backoff_after,
        "--cgroup": cgroup,
    }
    flags = {"--request-ecn": request_ecn, "--any-user": any_user, "--pin": pin}
    given = [
        word for key, value in settings.items() if value is not None for word in (key, str(value))
    ]
    given += [word for one in interface for word in ("--interface", one)]
    _hand_over(["load", controller, *given, *(flag for flag, on in flags.items() if on)])


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
