"""Report: results as one HTML page that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.report.figures import Recorded
    from cwnd.report.page import html, write

__all__ = [
    "Recorded",
    "html",
    "write",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "figures": "Recorded",
        "page": "html write",
    },
)
