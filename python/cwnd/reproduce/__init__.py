"""Papers reproduced: their experiments run, their claims checked, their figures drawn.

>>> from cwnd import reproduce
>>> reproduce.paper("abe").claims[0].id
'A1'
"""

from __future__ import annotations

from cwnd.reproduce.claims import Check, Claim, Outcome, Paper
from cwnd.reproduce.linux import reproduce_on_linux
from cwnd.reproduce.run import Reproduction, paper, papers, reproduce

__all__ = [
    "Check",
    "Claim",
    "Outcome",
    "Paper",
    "Reproduction",
    "paper",
    "papers",
    "reproduce",
    "reproduce_on_linux",
]
