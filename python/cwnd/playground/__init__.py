"""Playground: the simulator as WebAssembly in one page, for a browser or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.playground.page import ASSETS, FILE, html, play, write

__all__ = [
    "ASSETS",
    "FILE",
    "html",
    "play",
    "write",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"page": "ASSETS FILE html play write"},
)
