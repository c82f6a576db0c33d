"""Figures of a result: time series, distributions, and metrics over a sweep.

A result is saved before it is drawn: `attempt` turns a failure into a `FigureWarning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.plots.drawing import attempt, draw_result
    from cwnd.plots.kinds import (
        compare,
        default_kinds,
        describe,
        draw,
        save,
        swept,
    )

__all__ = [
    "attempt",
    "compare",
    "default_kinds",
    "describe",
    "draw",
    "draw_result",
    "save",
    "swept",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "drawing": "attempt draw_result",
        "kinds": "compare default_kinds describe draw save swept",
    },
)
