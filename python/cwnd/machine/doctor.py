"""Requirements of cwnd on this machine (`cwnd doctor`), and how to install missing ones."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cwnd.machine.facts import KERNEL_HELPER, cpu_model, kernel_helper, memory_bytes, usable_cores
from cwnd.machine.users import is_root

if TYPE_CHECKING:
    from collections.abc import Callable

Status = Literal["ok", "missing"]

#: Parts of cwnd that need a check to pass; a simulation needs the first only.
PURPOSES = ("simulator", "testbed", "kernel", "capture", "rrul")

#: Time in seconds after which a tool that has not answered counts as broken.
_TOOL_TIMEOUT_S = 10
_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21
_CAP_BPF = 39
_MIN_PYTHON = (3, 11)
_MODULES = Path("/lib/modules")
#: Modules `tcp_NAME` of the kernel that are no congestion controllers.
_NO_CONTROLLERS = {"diag"}
#: Memory in bytes below which a run with many flows may not fit.
_MIN_MEMORY = 1 << 30


@dataclass(frozen=True)
class Check:
    """Result of one check of this machine."""

    name: str
    status: Status
    #: Description of the finding.
    found: str
    #: Part of cwnd that needs it; one of `PURPOSES`.
    needed_for: str
    #: Instruction to install it; empty if the check passed.
    fix: str = ""


def examine() -> list[Check]:
    """Runs all checks. It changes nothing and needs no privileges."""
    return [check() for check in _CHECKS]


def missing(checks: list[Check], purpose: str) -> list[Check]:
    """Returns the failed checks of one purpose."""
    return [check for check in checks if check.needed_for == purpose and check.status != "ok"]


def _check(name: str, needed_for: str, found: str | None, absent: str, fix: str) -> Check:
    if found is not None:
        return Check(name, "ok", found, needed_for)
    return Check(name, "missing", absent, needed_for, fix)


def _python() -> Check:
    found = f"{platform.python_implementation()} {platform.python_version()}"
    enough = sys.version_info >= _MIN_PYTHON
    fix = "install Python 3.11 or newer, for example with `uv python install 3.13`"
    return _check("Python", "simulator", found if enough else None, found, fix)


def _extension() -> Check:
    found, reason = None, ""
    try:
        found = f"cwnd {import_module('cwnd._core').__version__}"
    except ImportError as error:
        reason = str(error)
    fix = "build it with `make build`, or install cwnd again with `pip install .`"
    return _check("Rust extension", "simulator", found, reason, fix)


def _libraries() -> Check:
    versions, missing_libraries = [], []
    for name in ("polars", "vl-convert-python", "rich"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing_libraries.append(name)
    fix = f"pip install {' '.join(missing_libraries)}"
    found = None if missing_libraries else ", ".join(versions)
    return _check("Python libraries", "simulator", found, f"no {', '.join(missing_libraries)}", fix)


def _processor() -> Check:
    cores = usable_cores()
    return Check("Processor", "ok", f"{cores} × {cpu_model()}", "simulator")


def _memory() -> Check:
    total = memory_bytes()
    if total is None:
        return Check("Memory", "ok", "unknown", "simulator")
    found = f"{total / (1 << 30):.1f} GiB"
    fix = "scenarios with many flows need more; run fewer at a time with --threads"
    return _check("Memory", "simulator", found if total >= _MIN_MEMORY else None, found, fix)


def _linux() -> Check:
    found = f"Linux {platform.release()}" if sys.platform == "linux" else None
    fix = "run the testbed on Linux, in a virtual machine if need be; the simulator runs here"
    return _check("Linux", "testbed", found, platform.system(), fix)


def _root() -> Check:
    rights = _capabilities()
    enough = {_CAP_NET_ADMIN, _CAP_SYS_ADMIN} <= rights
    user = f"user id {os.geteuid()}" if hasattr(os, "geteuid") else "user"
    fix = 'run as root, as in `sudo "$(command -v cwnd)" …`; namespaces and TUN devices need it'
    return _check(
        "Rights",
        "testbed",
        ("root" if is_root() else "capabilities") if enough else None,
        f"{user} without rights",
        fix,
    )


def _tun() -> Check:
    device = Path("/dev/net/tun")
    fix = "load it with `modprobe tun`; in a container pass `--device /dev/net/tun`"
    if not device.exists():
        return _check("TUN", "testbed", None, f"no {device}", fix)
    usable = os.access(device, os.R_OK | os.W_OK)
    return _check("TUN", "testbed", str(device) if usable else None, f"{device} not writable", fix)


def _network_namespaces() -> Check:
    exists = Path("/proc/self/ns/net").exists()
    fix = "use a kernel with CONFIG_NET_NS"
    return _check(
        "Network namespaces", "testbed", "yes" if exists else None, "not in this kernel", fix
    )


def _ip() -> Check:
    return _tool("ip", "testbed", "-V", "apt install iproute2")


def _congestion_controls() -> Check:
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    with contextlib.suppress(OSError):
        names = file.read_text(encoding="ascii").split()
        have = {"reno", "cubic"} <= set(names)
        fix = "load the others with `modprobe tcp_cubic`"
        found = ", ".join(names)
        if modules := _controller_modules() - set(names):
            found += f"; as modules: {', '.join(sorted(modules))}"
        return _check("Kernel controllers", "testbed", found if have else None, found, fix)
    return _check("Kernel controllers", "testbed", None, f"no {file}", "use Linux")


def _controller_modules() -> set[str]:
    """Controllers that this kernel has as modules, loaded or not."""
    folder = _MODULES / platform.release() / "kernel/net/ipv4"
    files = folder.glob("tcp_*.ko*")
    return {file.name.split(".")[0].removeprefix("tcp_") for file in files} - _NO_CONTROLLERS


def _bpf() -> Check:
    rights = _capabilities()
    enough = _CAP_BPF in rights or _CAP_SYS_ADMIN in rights
    fix = 'run as root, as in `sudo "$(command -v cwnd)" …`'
    return _check("eBPF rights", "kernel", "yes" if enough else None, "no CAP_BPF", fix)


def _btf() -> Check:
    file = Path("/sys/kernel/btf/vmlinux")
    fix = "use a kernel with CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu and Fedora have it)"
    return _check("BTF", "kernel", str(file) if file.exists() else None, f"no {file}", fix)


def _kernel_program() -> Check:
    path = kernel_helper()
    fix = (
        "build it with `make kernel`,"
        " after `apt install clang llvm libbpf-dev libelf-dev zlib1g-dev`"
    )
    return _check(KERNEL_HELPER, "kernel", path, "not found", fix)


def _tshark() -> Check:
    # Only reading and comparing captures needs tshark; `cwnd run --pcap` writes them without it.
    return _tool("tshark", "capture", "--version", "apt install tshark")


def _iperf3() -> Check:
    return _tool("iperf3", "rrul", "--version", "apt install iperf3")


def _irtt() -> Check:
    return _tool("irtt", "rrul", "version", "apt install irtt")


def _ping() -> Check:
    return _tool("ping", "rrul", "-V", "apt install iputils-ping")


_CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _extension,
    _libraries,
    _processor,
    _memory,
    _linux,
    _root,
    _tun,
    _network_namespaces,
    _ip,
    _congestion_controls,
    _bpf,
    _btf,
    _kernel_program,
    _tshark,
    _iperf3,
    _irtt,
    _ping,
)


def _tool(name: str, needed_for: str, version_option: str, fix: str) -> Check:
    path = shutil.which(name)
    if path is None:
        return _check(name, needed_for, None, "not on the path", fix)
    try:
        answer = subprocess.run(  # noqa: S603 - a path that `which` found, a constant option
            [path, version_option],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TOOL_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return _check(name, needed_for, None, f"{path} does not work: {error}", fix)
    lines = (answer.stdout or answer.stderr).strip().splitlines()
    return _check(name, needed_for, lines[0].strip() if lines else path, "", fix)


def _capabilities() -> set[int]:
    """The effective capabilities of this process (capabilities(7))."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("CapEff:"):
                mask = int(line.split()[1], 16)
                return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}
    return set()
