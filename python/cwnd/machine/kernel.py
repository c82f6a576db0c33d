"""The program that loads controllers into the kernel, `cwnd-kernel`."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path

#: What it is called.
KERNEL_HELPER = "cwnd-kernel"


@cache
def kernel_helper() -> str | None:
    """Where it is: where CWND_KERNEL says, beside the interpreter, in the package, on the path."""
    given = os.environ.get("CWND_KERNEL")
    if given:
        return given
    for folder in (Path(sys.executable).parent, Path(__file__).resolve().parents[1]):
        path = folder / KERNEL_HELPER
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which(KERNEL_HELPER)
