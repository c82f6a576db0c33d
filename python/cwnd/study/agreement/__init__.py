"""Agreement of simulator and Linux: one scenario in both, compared metric by metric."""

from __future__ import annotations

from cwnd.study.agreement.files import DOCUMENT, FIGURE, GAIN_OVER, REPEATED, TABLE, table, write
from cwnd.study.agreement.run import SIMULATOR, agree, renew, rerun_simulator
from cwnd.study.agreement.tables import products
from cwnd.study.agreement.verdict import (
    ARM_SEPARATOR,
    COMPARED,
    COMPLETION,
    GAIN_TOLERANCE,
    GOODPUT,
    SHARE,
    TIMEOUTS,
    TIMEOUTS_LEAST,
    TIMEOUTS_TOLERANCE,
    TOLERANCE,
    Agreement,
    Gain,
    Row,
    compare,
    undecided,
)

__all__ = [
    "ARM_SEPARATOR",
    "COMPARED",
    "COMPLETION",
    "DOCUMENT",
    "FIGURE",
    "GAIN_OVER",
    "GAIN_TOLERANCE",
    "GOODPUT",
    "REPEATED",
    "SHARE",
    "SIMULATOR",
    "TABLE",
    "TIMEOUTS",
    "TIMEOUTS_LEAST",
    "TIMEOUTS_TOLERANCE",
    "TOLERANCE",
    "Agreement",
    "Gain",
    "Row",
    "agree",
    "compare",
    "products",
    "renew",
    "rerun_simulator",
    "table",
    "undecided",
    "write",
]
