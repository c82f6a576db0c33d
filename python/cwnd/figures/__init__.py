"""Figures: a description of panels and marks, drawn by Vega-Lite.

A `Picture` is described once. `layout` places panels and texts, `vega` writes Vega-Lite, which
vl-convert renders; `screen` writes the same marks for the page of `cwnd report`, where Vega zooms
and hides lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.figures.description import (
        Bars,
        Image,
        Line,
        Mark,
        Note,
        Panel,
        Picture,
        Rule,
        Span,
    )
    from cwnd.figures.figure import Figure
    from cwnd.figures.line_style import LineStyle
    from cwnd.figures.render import library, warm_up
    from cwnd.figures.screen import ScreenPanel, screen_panels

__all__ = [
    "Bars",
    "Figure",
    "Image",
    "Line",
    "LineStyle",
    "Mark",
    "Note",
    "Panel",
    "Picture",
    "Rule",
    "ScreenPanel",
    "Span",
    "library",
    "screen_panels",
    "warm_up",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "description": "Bars Image Line Mark Note Panel Picture Rule Span",
        "figure": "Figure",
        "line_style": "LineStyle",
        "render": "library warm_up",
        "screen": "ScreenPanel screen_panels",
    },
)
