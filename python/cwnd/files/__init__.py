"""Atomic writes of files and directories, and checksums that detect later changes.

Files in a result's directory that cwnd did not write stay there (`store.write`). SHA-256 is
compared before a file is parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.files.atomic import (
        PARTIAL,
        atomic_directory,
        sync_all,
        write_atomically,
    )
    from cwnd.files.checksums import SUMS, Sums, read_object

__all__ = [
    "PARTIAL",
    "SUMS",
    "Sums",
    "atomic_directory",
    "read_object",
    "sync_all",
    "write_atomically",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "atomic": "PARTIAL atomic_directory sync_all write_atomically",
        "checksums": "SUMS Sums read_object",
    },
)
