"""Studies: experiments, tables, figures, records and claims of a folder, and their runner.

>>> from cwnd import study
>>> study.paper("abe").claims[0].id
'A1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.study.checking import check, faults
    from cwnd.study.claims import Check, Claim, Counts, Outcome, Reading, Verdict
    from cwnd.study.drawing import (
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
    from cwnd.study.format import Experiment, Product, Study
    from cwnd.study.inputs import Bars
    from cwnd.study.linux import Figure, OnLinux, reproduce_on_linux
    from cwnd.study.measures import (
        Measure,
        Point,
        Results,
        at,
        column,
        differences,
        group_ratio,
        share_faster,
        time_ratios,
    )
    from cwnd.study.page import write
    from cwnd.study.registry import function, functions, module, paper, papers, studies, study
    from cwnd.study.runner import Result, record, run
    from cwnd.study.tables import blocks, head, interval, line, table

__all__ = [
    "ONE_PANEL",
    "Bars",
    "Check",
    "Claim",
    "Counts",
    "Experiment",
    "Figure",
    "Measure",
    "OnLinux",
    "Outcome",
    "Point",
    "Product",
    "Reading",
    "Result",
    "Results",
    "Study",
    "Verdict",
    "across",
    "at",
    "blocks",
    "check",
    "column",
    "curve",
    "differences",
    "faults",
    "first_seed",
    "function",
    "functions",
    "group_ratio",
    "head",
    "interval",
    "labels",
    "line",
    "marks",
    "means",
    "module",
    "paper",
    "papers",
    "record",
    "reproduce_on_linux",
    "row_ticks",
    "run",
    "seeds_along",
    "share_faster",
    "studies",
    "study",
    "table",
    "time_ratios",
    "write",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "checking": "check faults",
        "drawing": "ONE_PANEL across curve first_seed labels marks means row_ticks seeds_along",
        "claims": "Check Claim Counts Outcome Reading Verdict",
        "format": "Experiment Product Study",
        "inputs": "Bars",
        "linux": "Figure OnLinux reproduce_on_linux",
        "measures": (
            "Measure Point Results at column differences group_ratio share_faster time_ratios"
        ),
        "page": "write",
        "registry": "function functions module paper papers studies study",
        "runner": "Result record run",
        "tables": "blocks head interval line table",
    },
)
