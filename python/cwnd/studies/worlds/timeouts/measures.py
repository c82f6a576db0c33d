"""Comparisons: Timeouts that do not back off."""

from cwnd.study.agreement import products

TABLES, FIGURES = products(
    {
        "backoff": "Consecutive timeouts",
    }
)
#: Part of the points whose goodput or completion time must be within its tolerance.
GOAL = 0.9
#: Position in the overview.
ORDER = 3
