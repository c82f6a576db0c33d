"""Result directories: layout, journal, writing, reading, integrity, SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.store.activity import Session, forget_others, session, sessions
    from cwnd.store.assembly import PART_ROWS, FoundCells, assemble, journalled, sound
    from cwnd.store.cell import cell_id, content, heading, named
    from cwnd.store.dataset import CELL, CELL_SHA, REWRITTEN, Dataset, Info, Planned, is_packed
    from cwnd.store.frames import KEYS, axes_of
    from cwnd.store.integrity import Journalled, Packed, Problem, Verified, listed
    from cwnd.store.journal import Frame, write_journal
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
    from cwnd.store.manifest import with_activity
    from cwnd.store.old_files import FILES, cells_in
    from cwnd.store.old_reading import CellFiles
    from cwnd.store.reading import load
    from cwnd.store.records import Records, compare_records, numbers, open_records, pack
    from cwnd.store.shard import Shard
    from cwnd.store.sql import query
    from cwnd.store.status import read_status
    from cwnd.store.tables import RUN, Batch, Finished, Held
    from cwnd.store.write import save
    from cwnd.store.writer import Writer, put_file

__all__ = [
    "ACTIVITY",
    "AGREEMENT",
    "CELL",
    "CELL_ID",
    "CELL_SHA",
    "ERRORS",
    "FILES",
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
    "REWRITTEN",
    "RUN",
    "SCENARIO",
    "Batch",
    "CellFiles",
    "Dataset",
    "Finished",
    "FoundCells",
    "Frame",
    "Held",
    "Info",
    "Journalled",
    "Packed",
    "Planned",
    "Problem",
    "Records",
    "Session",
    "Shard",
    "Verified",
    "Writer",
    "assemble",
    "axes_of",
    "cell_id",
    "cells_in",
    "compare_records",
    "content",
    "forget_others",
    "heading",
    "is_packed",
    "journalled",
    "listed",
    "load",
    "named",
    "numbers",
    "open_records",
    "pack",
    "put_file",
    "query",
    "read_status",
    "save",
    "session",
    "sessions",
    "sound",
    "with_activity",
    "write_journal",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "activity": "Session forget_others session sessions",
        "assembly": "FoundCells PART_ROWS assemble journalled sound",
        "cell": "cell_id content heading named",
        "dataset": "CELL CELL_SHA Dataset Info Planned REWRITTEN is_packed",
        "frames": "KEYS axes_of",
        "integrity": "Journalled Packed Problem Verified listed",
        "journal": "Frame write_journal",
        "layout": (
            "ACTIVITY AGREEMENT CELL_ID ERRORS INFERRED JOURNAL LINKED LINUX MANIFEST MARK "
            "PCAP PLOTS RESOLVED SCENARIO"
        ),
        "manifest": "with_activity",
        "old_files": "FILES cells_in",
        "old_reading": "CellFiles",
        "reading": "load",
        "records": "Records compare_records numbers open_records pack",
        "shard": "Shard",
        "sql": "query",
        "status": "read_status",
        "tables": "Batch Finished Held RUN",
        "write": "save",
        "writer": "Writer put_file",
    },
)
