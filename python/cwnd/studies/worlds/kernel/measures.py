"""Comparisons: Reno, CUBIC, and ABE of each."""

from cwnd.study.agreement import products

TABLES, FIGURES = products(
    {
        "10mbit": "10 Mbit/s",
        "25mbit": "25 Mbit/s",
        "50mbit": "50 Mbit/s",
        "reordering": "Reordering",
        "on-off": "Pauses",
        "transfers": "Short transfers",
        "flows": "Two and ten flows",
        "shares": "Reno against CUBIC",
        "mixtures": "Round-trip times that differ",
        "both-ways": "Data both ways",
    }
)
#: Part of the points whose goodput or completion time must be within its tolerance.
GOAL = 0.95
#: Position in the overview.
ORDER = 1
