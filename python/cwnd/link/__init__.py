"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.link.command import run
    from cwnd.link.outcome import Finished
    from cwnd.link.settings import Direction, Settings

__all__ = [
    "Direction",
    "Finished",
    "Settings",
    "run",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "command": "run",
        "outcome": "Finished",
        "settings": "Direction Settings",
    },
)
