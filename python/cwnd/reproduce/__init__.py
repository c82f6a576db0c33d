"""Papers reproduced: their experiments run, their claims checked, their figures drawn.

>>> from cwnd import reproduce
>>> reproduce.paper("abe").claims[0].id
'A1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.reproduce.claims import Check, Claim, Outcome, Paper
    from cwnd.reproduce.linux import Figure, reproduce_on_linux
    from cwnd.reproduce.measures import time_ratios
    from cwnd.reproduce.run import Reproduction, reproduce
    from cwnd.reproduce.shelf import paper, papers

__all__ = [
    "Check",
    "Claim",
    "Figure",
    "Outcome",
    "Paper",
    "Reproduction",
    "paper",
    "papers",
    "reproduce",
    "reproduce_on_linux",
    "time_ratios",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "claims": "Check Claim Outcome Paper",
        "linux": "Figure reproduce_on_linux",
        "measures": "time_ratios",
        "run": "Reproduction reproduce",
        "shelf": "paper papers",
    },
)
