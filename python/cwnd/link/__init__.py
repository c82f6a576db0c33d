"""A program behind an emulated link: real packets through the simulator's queues (`cwnd link`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.link.command import run
    from cwnd.link.logs import read_logs
    from cwnd.link.measuring import measure
    from cwnd.link.presentation import Meter, facts, rrul_picture, rrul_tables
    from cwnd.link.responsiveness import Rrul, simulate
    from cwnd.link.rrul import link_s
    from cwnd.link.settings import Direction, LinkOutcome, Settings

__all__ = [
    "Direction",
    "LinkOutcome",
    "Meter",
    "Rrul",
    "Settings",
    "facts",
    "link_s",
    "measure",
    "read_logs",
    "rrul_picture",
    "rrul_tables",
    "run",
    "simulate",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "command": "run",
        "logs": "read_logs",
        "measuring": "measure",
        "presentation": "Meter facts rrul_picture rrul_tables",
        "responsiveness": "Rrul simulate",
        "rrul": "link_s",
        "settings": "Direction Settings LinkOutcome",
    },
)
