"""Facts about this machine that affect its speed, and the path of `cwnd-kernel`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from cwnd.errors import MachineError


def machine() -> dict[str, Any]:
    """Describes system, processor, memory and versions; no host name, no addresses."""
    import polars as pl

    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        "python": platform.python_version(),
        "polars": pl.__version__,
    }


def require_linux(what: str) -> None:
    """Refuses what needs Linux's kernel on another system.

    Raises:
        MachineError: This is another system; the message names both.
    """
    if platform.system() != "Linux":
        raise MachineError(f"{what} needs Linux, and this is {platform.system()}")


def usable_cores() -> int:
    """Number of processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # Linux only
        return os.cpu_count() or 1


def cpu_time_s() -> float:
    """CPU time of this process and of its processes that have ended, in seconds."""
    ended = os.times()  # in steps of 10 ms, which are too coarse for this process
    return time.process_time() + ended.children_user + ended.children_system


def memory_bytes() -> int | None:
    """Physical memory in bytes; `None` if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def cpu_model() -> str:
    """Model name of the processor, as `/proc/cpuinfo` or the platform reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


#: File name of the program.
KERNEL_HELPER = "cwnd-kernel"


@cache
def kernel_helper() -> str | None:
    """Finds the program; `None` if it is not installed.

    The order is: the variable `CWND_KERNEL`, whose path is not checked, the interpreter's folder,
    the package, the search path.
    """
    given = os.environ.get("CWND_KERNEL")
    if given:
        return given
    for folder in (Path(sys.executable).parent, Path(__file__).resolve().parents[1]):
        path = folder / KERNEL_HELPER
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which(KERNEL_HELPER)
