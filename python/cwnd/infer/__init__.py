"""Inference from captures: timeouts of servers, graphs of connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.infer.connection import connection_number, packets, time_sequence
    from cwnd.infer.figure import picture
    from cwnd.infer.files import FIGURE, SUMMARY, write
    from cwnd.infer.inferred import Capture, Inferred, Share, infer

__all__ = [
    "FIGURE",
    "SUMMARY",
    "Capture",
    "Inferred",
    "Share",
    "connection_number",
    "infer",
    "packets",
    "picture",
    "time_sequence",
    "write",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "connection": "connection_number packets time_sequence",
        "figure": "picture",
        "files": "FIGURE SUMMARY write",
        "inferred": "Capture Inferred Share infer",
    },
)
