"""Starts the processes of a link that have its rights; `cwnd link` runs it, nobody imports it.

It is run as `python -I -S keeper.py ROLE`: without the environment, the working directory and
whatever else an installation would import. What they do is Rust, in the extension of the package.
"""

from __future__ import annotations

import signal
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from pathlib import Path
from typing import Any

_SCRIPT = str(Path(__file__).resolve())


def _core() -> Any:
    """The extension, without the package around it."""
    package = Path(_SCRIPT).parents[1]
    found = (package / f"_core{suffix}" for suffix in EXTENSION_SUFFIXES)
    path = str(next(file for file in found if file.exists()))
    loader = ExtensionFileLoader("cwnd._core", path)
    module = loader.create_module(ModuleSpec("cwnd._core", loader, origin=path))
    loader.exec_module(module)
    return module


def _main(role: str) -> int:
    # COMMAND is to have what programs have at their start, not what Python ignores.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        code: int = _core().play_role(sys.executable, _SCRIPT, role)
    except (OSError, ValueError) as error:
        # The keeper and those that it starts have nowhere to say it but their channel.
        sys.stderr.write(f"cwnd link: {error}\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
