"""Entry point of the command `cwnd` and of `python -m cwnd`."""

from __future__ import annotations

import gc
import signal
import sys
from typing import NoReturn

#: Allocation threshold of the cyclic garbage collector (generation 0), in objects. Imports allocate
#: many lasting objects: repeated collections would take a tenth of all import time.
_OBJECTS = 100_000


def main() -> NoReturn:
    """Starts the command line. A Ctrl-C during its import exits without a traceback."""
    gc.set_threshold(_OBJECTS)
    if sys.platform == "win32":
        # Its code pages lack characters of the tables.
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8")
    try:
        if sys.platform == "linux":
            _drop_privileges()
        from cwnd.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    command_line()


def _drop_privileges() -> None:
    """Drops root privileges that the command does not need, before anything else runs.

    Exits with a message if the privileges cannot be dropped.
    """
    from cwnd.machine import is_root

    if not is_root():
        return
    from cwnd.errors import CwndError, MachineError, explain
    from cwnd.link import rights

    try:
        rights.drop_privileges(sys.argv[1:])
    except (CwndError, OSError) as error:
        from cwnd.cli import output

        if isinstance(error, OSError):
            error = MachineError(f"root's rights can't be given up here: {explain(error)}")
        output.fail(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
