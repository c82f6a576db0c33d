"""Figures: a description of panels and marks, drawn by Vega-Lite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.figures.description import (
        Bars,
        Boxes,
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
    from cwnd.figures.look import Look
    from cwnd.figures.render import warm_up

__all__ = [
    "Bars",
    "Boxes",
    "Figure",
    "Image",
    "Line",
    "Look",
    "Mark",
    "Note",
    "Panel",
    "Picture",
    "Rule",
    "Span",
    "warm_up",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "description": "Bars Boxes Image Line Mark Note Panel Picture Rule Span",
        "figure": "Figure",
        "look": "Look",
        "render": "warm_up",
    },
)
