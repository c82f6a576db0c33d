"""Result directories: layout, journal, writing, reading, integrity, SQL.

Samples are put in the order of the plan while they are written, which takes the memory of a part
(`assembly`); tables with a row for each run, flow or link are in memory. A new result replaces the
old one and its journal in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.store.activity import Session, session, sessions
    from cwnd.store.assembly import PART_ROWS, FoundCells, assemble, journalled
    from cwnd.store.cell import cell_id, content, heading, named
    from cwnd.store.dataset import CELL, CELL_SHA, Dataset, Info, Planned, is_packed
    from cwnd.store.frames import KEYS, axes_of
    from cwnd.store.integrity import Journalled, Packed, Problem, Verified, listed
    from cwnd.store.layout import (
        ACTIVITY,
        AGREEMENT,
        CELL_ID,
        ERRORS,
        INFERRED,
        JOURNAL,
        LINKED,
        LINUX,
        MANIFEST,
        MARK,
        PCAP,
        PLOTS,
        RESOLVED,
        SCENARIO,
    )
    from cwnd.store.old_reading import CellFiles
    from cwnd.store.reading import load
    from cwnd.store.records import Records, compare_records, numbers, open_records, pack
    from cwnd.store.shard import Shard
    from cwnd.store.sql import query
    from cwnd.store.status import read_status
    from cwnd.store.tables import RUN, Batch, Finished, Held
    from cwnd.store.target import Policy, Target
    from cwnd.store.write import save
    from cwnd.store.writer import Writer

__all__ = [
    "ACTIVITY",
    "AGREEMENT",
    "CELL",
    "CELL_ID",
    "CELL_SHA",
    "ERRORS",
    "INFERRED",
    "JOURNAL",
    "KEYS",
    "LINKED",
    "LINUX",
    "MANIFEST",
    "MARK",
    "PART_ROWS",
    "PCAP",
    "PLOTS",
    "RESOLVED",
    "RUN",
    "SCENARIO",
    "Batch",
    "CellFiles",
    "Dataset",
    "Finished",
    "FoundCells",
    "Held",
    "Info",
    "Journalled",
    "Packed",
    "Planned",
    "Policy",
    "Problem",
    "Records",
    "Session",
    "Shard",
    "Target",
    "Verified",
    "Writer",
    "assemble",
    "axes_of",
    "cell_id",
    "compare_records",
    "content",
    "heading",
    "is_packed",
    "journalled",
    "listed",
    "load",
    "named",
    "numbers",
    "open_records",
    "pack",
    "query",
    "read_status",
    "save",
    "session",
    "sessions",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "activity": "Session session sessions",
        "assembly": "FoundCells PART_ROWS assemble journalled",
        "cell": "cell_id content heading named",
        "dataset": "CELL CELL_SHA Dataset Info Planned is_packed",
        "frames": "KEYS axes_of",
        "integrity": "Journalled Packed Problem Verified listed",
        "layout": (
            "ACTIVITY AGREEMENT CELL_ID ERRORS INFERRED JOURNAL LINKED LINUX MANIFEST MARK "
            "PCAP PLOTS RESOLVED SCENARIO"
        ),
        "old_reading": "CellFiles",
        "reading": "load",
        "records": "Records compare_records numbers open_records pack",
        "shard": "Shard",
        "sql": "query",
        "status": "read_status",
        "tables": "Batch Finished Held RUN",
        "target": "Policy Target",
        "write": "save",
        "writer": "Writer",
    },
)
