"""Comparisons: Delay-based AIMD and adaptive backoff."""

from cwnd.study.agreement import products

TABLES, FIGURES = products(
    {
        "delay-aimd": "Delay-based AIMD",
        "adaptive": "Adaptive backoff",
    }
)
#: Part of the points whose goodput or completion time must be within its tolerance.
GOAL = 0.9
#: Position in the overview.
ORDER = 2
