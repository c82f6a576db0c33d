"""`cwnd`, and `python -m cwnd`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn

#: Objects that are made between two searches for cycles. Imports make many that stay: searching
#: them again and again would be a tenth of the time of all imports.
_OBJECTS = 100_000


def main() -> NoReturn:
    """Starts the command line; a Ctrl-C while it is still being imported shows no traceback."""
    gc.set_threshold(_OBJECTS)
    try:
        if sys.platform == "linux":
            _settle()
        from cwnd.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    command_line()


def _settle() -> None:
    """What runs as root on behalf of somebody gives up what it can before it does anything else."""
    if os.geteuid() != 0:
        return
    from cwnd.errors import CwndError, MachineError, explain
    from cwnd.link import rights

    try:
        rights.settle(sys.argv[1:])
    except (CwndError, OSError) as error:
        from cwnd.cli import output

        if isinstance(error, OSError):
            error = MachineError(f"root's rights can't be given up here: {explain(error)}")
        output.fail(str(error))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
