"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.link.command import run
    from cwnd.link.logs import read_logs
    from cwnd.link.presentation import Meter
    from cwnd.link.settings import Direction, LinkOutcome, Settings

__all__ = [
    "Direction",
    "LinkOutcome",
    "Meter",
    "Settings",
    "read_logs",
    "run",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "command": "run",
        "logs": "read_logs",
        "presentation": "Meter",
        "settings": "Direction Settings LinkOutcome",
    },
)
