"""Lessons: six notebooks for a class, and a module for each with its scenario and checks.

`cwnd new lessons FOLDER` writes the notebooks. A check takes the answer of a task, tries it in
simulations and prints what they measured; it raises `NotYet` if the answer is not right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.lessons.tasks import NAMES, NotYet

__all__ = ["NAMES", "NotYet"]

__getattr__, __dir__ = lazy_exports(__name__, {"tasks": "NAMES NotYet"})
