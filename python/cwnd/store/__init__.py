"""Result directories: layout, journal, writing, reading, integrity, SQL.

Samples are put in the order of the plan while they are written, which takes the memory of a part
(`assembly`); tables with a row for each run, flow or link are in memory. A new result replaces the
old one and its journal in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.store.activity import Session, Shard, session, sessions
    from cwnd.store.assembly import PART_ROWS, CellIndex, assemble, journal_frames
    from cwnd.store.dataset import CELL, CELL_SHA, KEYS, Dataset, Info, Planned, axes_of, is_packed
    from cwnd.store.integrity import JournalCells, Problem, ResultCells, Verified, damaged_files
    from cwnd.store.journal import Writer
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
        PCAP,
        PLOTS,
        QLOG,
        RESOLVED,
        RRUL,
        RRUL_FIGURE,
        RRUL_FLENT,
        RUNS,
        SCENARIO,
        cell_id,
        content,
        heading,
        named,
    )
    from cwnd.store.old_reading import CellFiles
    from cwnd.store.reading import load
    from cwnd.store.records import (
        Pair,
        Records,
        compare_records,
        judge_records,
        numbers,
        open_records,
        open_rrul,
        pack,
    )
    from cwnd.store.sql import query
    from cwnd.store.status import read_status
    from cwnd.store.tables import RUN, Batch, BatchBuilder, MemoryBatch
    from cwnd.store.target import Policy, Target
    from cwnd.store.write import save

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
    "PART_ROWS",
    "PCAP",
    "PLOTS",
    "QLOG",
    "RESOLVED",
    "RRUL",
    "RRUL_FIGURE",
    "RRUL_FLENT",
    "RUN",
    "RUNS",
    "SCENARIO",
    "Batch",
    "BatchBuilder",
    "CellFiles",
    "CellIndex",
    "Dataset",
    "Info",
    "JournalCells",
    "MemoryBatch",
    "Pair",
    "Planned",
    "Policy",
    "Problem",
    "Records",
    "ResultCells",
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
    "damaged_files",
    "heading",
    "is_packed",
    "journal_frames",
    "judge_records",
    "load",
    "named",
    "numbers",
    "open_records",
    "open_rrul",
    "pack",
    "query",
    "read_status",
    "save",
    "session",
    "sessions",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "activity": "Session session sessions Shard",
        "assembly": "CellIndex PART_ROWS assemble journal_frames",
        "dataset": "CELL CELL_SHA Dataset Info Planned is_packed KEYS axes_of",
        "integrity": "JournalCells ResultCells Problem Verified damaged_files",
        "journal": "Writer",
        "layout": (
            "ACTIVITY AGREEMENT CELL_ID ERRORS INFERRED JOURNAL LINKED LINUX MANIFEST RUNS "
            "PCAP PLOTS QLOG RESOLVED RRUL RRUL_FIGURE RRUL_FLENT SCENARIO cell_id content "
            "heading named"
        ),
        "old_reading": "CellFiles",
        "reading": "load",
        "records": "Pair Records compare_records judge_records numbers open_records open_rrul pack",
        "sql": "query",
        "status": "read_status",
        "tables": "Batch BatchBuilder MemoryBatch RUN",
        "target": "Policy Target",
        "write": "save",
    },
)
