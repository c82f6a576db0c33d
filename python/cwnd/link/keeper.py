"""Starts the privileged processes of a link; `cwnd link` executes this file as a script.

It is run as `python -I -S keeper.py ROLE`: the environment, the working directory and the site
packages are not searched for modules. The processes themselves are Rust code in the package's
extension.
"""

from __future__ import annotations

import signal
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from pathlib import Path
from typing import Any

_SCRIPT = str(Path(__file__).resolve())


def _core() -> Any:
    """Loads the extension without the package around it."""
    package = Path(_SCRIPT).parents[1]
    found = (package / f"_core{suffix}" for suffix in EXTENSION_SUFFIXES)
    path = str(next(file for file in found if file.exists()))
    loader = ExtensionFileLoader("cwnd._core", path)
    module = loader.create_module(ModuleSpec("cwnd._core", loader, origin=path))
    loader.exec_module(module)
    return module


def _main(role: str) -> int:
    # Restores default signal handlers, which Python changes: COMMAND would inherit the changed
    # ones.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        code: int = _core().play_role(sys.executable, _SCRIPT, role)
    except (OSError, ValueError) as error:
        # These processes have no other channel for errors than standard error.
        sys.stderr.write(f"cwnd link: {error}\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
