"""`cwnd`, and `python -m cwnd`."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Starts the command line; a Ctrl-C while it is still being imported shows no traceback."""
    try:
        from cwnd.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    command_line()


if __name__ == "__main__":
    main()
