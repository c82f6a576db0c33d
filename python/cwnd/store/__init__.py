"""Result directories: layout, journal, writing, reading, integrity, SQL.

Samples are put in the order of the plan while they are written, which takes the memory of a part
(`assembly`); tables with a row for each run, flow or link are in memory. A new result replaces the
old one and its journal in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.store.activity import Session, session, sessions
    from cwnd.store.assembly import PART_ROWS, CellIndex, assemble, journal_frames
    from cwnd.store.cell import cell_id, content, heading, named
    from cwnd.store.dataset import CELL, CELL_SHA, Dataset, Info, Planned, is_packed
    from cwnd.store.frames import KEYS, axes_of
    from cwnd.store.integrity import JournalCells, Problem, ResultCells, Verified, damaged_files
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
        RESOLVED,
        RUNS,
        SCENARIO,
    )
    from cwnd.store.old_reading import CellFiles
    from cwnd.store.reading import load
    from cwnd.store.records import Records, compare_records, numbers, open_records, pack
    from cwnd.store.shard import Shard
    from cwnd.store.sql import query
    from cwnd.store.status import read_status
    from cwnd.store.tables import RUN, Batch, BatchBuilder, MemoryBatch
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
    "PART_ROWS",
    "PCAP",
    "PLOTS",
    "RESOLVED",
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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "activity": "Session session sessions",
        "assembly": "CellIndex PART_ROWS assemble journal_frames",
        "cell": "cell_id content heading named",
        "dataset": "CELL CELL_SHA Dataset Info Planned is_packed",
        "frames": "KEYS axes_of",
        "integrity": "JournalCells ResultCells Problem Verified damaged_files",
        "layout": (
            "ACTIVITY AGREEMENT CELL_ID ERRORS INFERRED JOURNAL LINKED LINUX MANIFEST RUNS "
            "PCAP PLOTS RESOLVED SCENARIO"
        ),
        "old_reading": "CellFiles",
        "reading": "load",
        "records": "Records compare_records numbers open_records pack",
        "shard": "Shard",
        "sql": "query",
        "status": "read_status",
        "tables": "Batch BatchBuilder MemoryBatch RUN",
        "target": "Policy Target",
        "write": "save",
        "writer": "Writer",
    },
)
