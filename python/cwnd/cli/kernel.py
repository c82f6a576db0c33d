"""Command `cwnd kernel`: runs the program `cwnd-kernel` in place of this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn, get_args

from cyclopts import App, Parameter

from cwnd.cli import output

kernel = App(
    name="kernel",
    help="Put congestion controllers into this machine's Linux kernel: ABE, BECN, adaptive backoff,"
    " delay-based AIMD, BMCC, TCP*(n). docs/how-to/kernel.md has more.",
)

Flag = Annotated[bool, Parameter(negative=())]
Controller = Literal[
    "abe_reno",
    "abe_cubic",
    "adaptive_reno",
    "adaptive_cubic",
    "becn_reno",
    "becn_cubic",
    "delay_aimd",
    "bmcc",
    "tcpstar",
]


@kernel.command
def load(
    controller: Controller | Path,
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
    interval: float | None = None,
    mi_step: float | None = None,
    alpha: float | None = None,
    beta_most: float | None = None,
    beta_least: float | None = None,
    least: float | None = None,
    high: float | None = None,
    most: float | None = None,
    mi_rtt_most: float | None = None,
    multiplies_first: Literal["true", "false"] | None = None,
    rests: Literal["both", "longer"] | None = None,
    on_loss: Literal["if-overload", "repair", "decrease"] | None = None,
    paced: Literal["true", "false"] | None = None,
    echo: Literal["load", "load-changed", "load-every"] | None = None,
    address: str | None = None,
    own_namespace: Flag = False,
    backoff_after: int | None = None,
    cgroup: str | None = None,
    table: str | None = None,
    set_: Annotated[
        list[str],
        Parameter(name="--set", negative=(), consume_multiple=False),
    ] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    whole_host: Flag = False,
    request_ecn: Flag = False,
    any_user: Flag = False,
    pin: Flag = False,
) -> NoReturn:
    """Load a controller for as long as this command runs, or with --pin until it is unloaded.

    It has no effect until a socket, a route or a sysctl names it; `tcpstar` is for all connections
    of a control group. It needs root.

    Args:
        controller: Controller to load, or a source file in C with one of your own, such as
            my.bpf.c.
        name: Name under which sockets select it, at most 15 bytes; the controller's name if none is
            given.
        beta_ecn: Of abe_*: part of the window that stays after an ECN-echo; 0.8 for Reno, 0.85 for
            CUBIC.
        mode: Of abe_*: answers an ECN-echo in congestion avoidance only (RFC 8511; the default), or
            also where one ends slow start (its paper).
        loss_after_ecn: Of abe_*: effect of a loss in a window that an ECN-echo has reduced: nothing
            more, as in Linux (the default), or the same as of a loss alone.
        interface: Of becn_*: interface on which source quenches arrive; may be given several times.
        beta_quench: Of becn_*: part of the window that stays after a quench about a marked packet;
            0.5.
        rest: Of becn_*: quenches after which the window rests for a round trip; marked.
        guesses: Of becn_*: wrong guesses in a round trip after which its other quenches are not
            believed; 10, and 0 is no limit.
        delta: Of adaptive_* and delay_aimd: a reduction leaves this times minRTT / RTT of the
            window; 0.8.
        threshold: Of delay_aimd: queueing delay above which it backs off, ms; 50.
        least_window: Of delay_aimd: smallest window after a backoff for delay, segments; 2.
        interval: Of bmcc: t_p, the interval in which routers measure, ms; 200.
        mi_step: Of bmcc: κ₂, the speed at which multiplicative increase approaches a load of 1;
            0.35.
        alpha: Of bmcc: segments by which the window grows in a round trip of t_p; 1.
        beta_most: Of bmcc: part of the window that stays at a load of 1; 0.875.
        beta_least: Of bmcc: part of the window that stays at a load of u; 0.65.
        least: Of bmcc: η₀ of the routers; 0.15.
        high: Of bmcc: η of the routers, below which the window is multiplied; 0.75.
        most: Of bmcc: u of the routers; 1.2.
        mi_rtt_most: Of bmcc: a longer round trip counts as this one where the window is multiplied,
            ms; 500.
        multiplies_first: Of bmcc: true if a new flow multiplies until the estimate first is 1;
            true.
        rests: Of bmcc: period after a decrease without another one: t_p and then a round trip that
            only adds, or the longer of the two; both.
        on_loss: Of bmcc: losses repaired without a timeout that decrease the window; if-overload.
        paced: Of bmcc: true if packets leave at the rate of a window in a round trip; true.
        echo: Of bmcc: ACKs in which receivers return their estimate: spaced, once, in all; load.
        address: Of bmcc: only receivers with this IPv4 address return it; of tcpstar: for
            connections with this address only; any.
        own_namespace: Of bmcc and tcpstar: for connections of this command's network namespace
            only; of bmcc for those of receivers.
        backoff_after: Of tcpstar: expiries in a row after which the timeout doubles; 6, which is
            TCP*(inf).
        cgroup: Of bmcc and tcpstar: the control group (version 2) whose connections it is for; all,
            where a namespace or an address is given.
        table: Of a file in C: the controller among several, by the name in its table.
        set_: Of a file in C: NAME=NUMBER, the value of a `const volatile` variable; may be given
            again.
        whole_host: Of bmcc and tcpstar: for every connection of the host; without this, one of
            cgroup, own_namespace and address must be given.
        request_ecn: Of all but tcpstar and cheat_stamps: let sockets that choose it before their
            handshake negotiate ECN whatever net.ipv4.tcp_ecn says.
        any_user: Of all but tcpstar and cheat_stamps: let any user's sockets choose it.
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
        "--interval": interval,
        "--mi-step": mi_step,
        "--alpha": alpha,
        "--beta-most": beta_most,
        "--beta-least": beta_least,
        "--least": least,
        "--high": high,
        "--most": most,
        "--mi-rtt-most": mi_rtt_most,
        "--multiplies-first": multiplies_first,
        "--rests": rests,
        "--on-loss": on_loss,
        "--paced": paced,
        "--echo": echo,
        "--address": address,
        "--backoff-after": backoff_after,
        "--cgroup": cgroup,
        "--table": table,
    }
    flags = {
        "--own-namespace": own_namespace,
        "--whole-host": whole_host,
        "--request-ecn": request_ecn,
        "--any-user": any_user,
        "--pin": pin,
    }
    given = [
        word for key, value in settings.items() if value is not None for word in (key, str(value))
    ]
    given += [word for one in interface for word in ("--interface", one)]
    given += [word for one in set_ for word in ("--set", one)]
    given += [flag for flag, on in flags.items() if on]
    if isinstance(controller, Path):
        _load_file(controller, given)
    _hand_over(["load", controller, *given])


def _load_file(file: Path, given: list[str]) -> NoReturn:
    """Compiles a controller without root's rights, and loads the object."""
    from cwnd.errors import InputError

    if file.suffix != ".c":
        raise InputError(
            f"there is no controller {file}, but {', '.join(get_args(Controller))};"
            " the name of a source file in C ends in .c"
        )
    path = _helper()
    from cwnd.running import kernel_object_of

    _become(path, ["load", "--object", kernel_object_of(file), *given])


@kernel.command
def status(name: str | None = None, /, *, json: output.Json = False) -> NoReturn:
    """Show which controllers are loaded, how many sockets use each, and its counters.

    Args:
        name: Only this controller.
        json: Machine-readable output.
    """
    _hand_over(["status", *([name] if name else []), *(["--json"] if json else [])])


@kernel.command
def unload(name: str, /) -> NoReturn:
    """Take a pinned controller out of the kernel; its sockets keep it until they close.

    Args:
        name: Name under which it was loaded.
    """
    _hand_over(["unload", name])


def _hand_over(arguments: list[str]) -> NoReturn:
    _become(_helper(), arguments)


def _helper() -> str:
    """Path of the program."""
    from cwnd.errors import MachineError
    from cwnd.machine import KERNEL_HELPER, kernel_helper, require_linux

    require_linux("cwnd kernel")
    path = kernel_helper()
    if path is None:
        raise MachineError(
            f"{KERNEL_HELPER} is not installed; in the repository `make kernel` builds it,"
            " which needs Rust, clang, llvm, libbpf-dev, libelf-dev and zlib1g-dev"
        )
    return path


def _become(path: str, arguments: list[str]) -> NoReturn:
    sys.stdout.flush()
    # The program receives signals and sets the exit code from here on.
    os.execv(path, [path, *arguments])  # noqa: S606 - a path that was found, no shell
