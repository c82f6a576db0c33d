"""`cwnd`, and `python -m cwnd`."""

from __future__ import annotations

import gc
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
        from cwnd.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    command_line()


if __name__ == "__main__":
    main()
