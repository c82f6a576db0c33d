"""Path of `cwnd-kernel`, the program that loads controllers into the kernel."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path

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
