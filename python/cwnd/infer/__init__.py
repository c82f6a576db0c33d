"""Inference from captures: timeouts of servers, figures of connections, scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.infer.connection import check_files, connection_number, packets, time_sequence
    from cwnd.infer.figure import picture
    from cwnd.infer.files import FIGURE, SUMMARY, write
    from cwnd.infer.inferred import Capture, Inferred, Share, infer, percent
    from cwnd.infer.reading import in_background
    from cwnd.infer.scenario import check_name, write_scenario

__all__ = [
    "FIGURE",
    "SUMMARY",
    "Capture",
    "Inferred",
    "Share",
    "check_files",
    "check_name",
    "connection_number",
    "in_background",
    "infer",
    "packets",
    "percent",
    "picture",
    "time_sequence",
    "write",
    "write_scenario",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "connection": "check_files connection_number packets time_sequence",
        "figure": "picture",
        "files": "FIGURE SUMMARY write",
        "inferred": "Capture Inferred Share infer percent",
        "reading": "in_background",
        "scenario": "check_name write_scenario",
    },
)
