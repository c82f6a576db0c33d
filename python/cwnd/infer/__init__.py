"""Inference of servers' retransmission timeouts and backoff from captures at their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.infer.figure import picture
    from cwnd.infer.files import FIGURE, SUMMARY, write
    from cwnd.infer.inferred import Capture, Inferred, Share, infer

__all__ = [
    "FIGURE",
    "SUMMARY",
    "Capture",
    "Inferred",
    "Share",
    "infer",
    "picture",
    "write",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "figure": "picture",
        "files": "FIGURE SUMMARY write",
        "inferred": "Capture Inferred Share infer",
    },
)
