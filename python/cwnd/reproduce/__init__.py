"""Reproduction of papers: experiments, claims and figures.

>>> from cwnd import reproduce >>> reproduce.paper("abe").claims[0].id 'A1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.reproduce.claims import Check, Claim, Outcome, Paper, Sides
    from cwnd.reproduce.drawing import (
        ONE_PANEL,
        across,
        curve,
        first_seed,
        labels,
        marks,
        means,
        row_ticks,
        seeds_along,
    )
    from cwnd.reproduce.linux import Figure, OnLinux, reproduce_on_linux
    from cwnd.reproduce.measures import Measure, Point, Results, at, time_ratios
    from cwnd.reproduce.registry import paper, papers
    from cwnd.reproduce.run import Reproduction, reproduce

__all__ = [
    "ONE_PANEL",
    "Check",
    "Claim",
    "Figure",
    "Measure",
    "OnLinux",
    "Outcome",
    "Paper",
    "Point",
    "Reproduction",
    "Results",
    "Sides",
    "across",
    "at",
    "curve",
    "first_seed",
    "labels",
    "marks",
    "means",
    "paper",
    "papers",
    "reproduce",
    "reproduce_on_linux",
    "row_ticks",
    "seeds_along",
    "time_ratios",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "claims": "Check Claim Outcome Paper Sides",
        "drawing": "ONE_PANEL across curve first_seed labels marks means row_ticks seeds_along",
        "linux": "Figure OnLinux reproduce_on_linux",
        "measures": "Measure Point Results at time_ratios",
        "run": "Reproduction reproduce",
        "registry": "paper papers",
    },
)
