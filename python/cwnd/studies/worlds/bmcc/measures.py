"""Comparisons: BMCC behind routers that signal their load."""

from cwnd.study.agreement import products

TABLES, FIGURES = products(
    {
        "bmcc": "CUBIC and BMCC, 10 Mbit/s",
        "bmcc-50mbit": "CUBIC and BMCC, 50 Mbit/s",
    }
)
#: Part of the points whose goodput or completion time must be within its tolerance.
GOAL = 0.95
#: Position in the overview.
ORDER = 5
