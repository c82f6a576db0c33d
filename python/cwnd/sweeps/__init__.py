"""Sweeps on disk: finished cells in a journal; a complete sweep has the layout of a run.

`docs/sweeps.md` describes the directory. `sweep` fills it, `status` watches, `verify` checks,
`query` asks, `load` reads it as a result, as it reads what `cwnd run` wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.sweeps.asking import query
    from cwnd.sweeps.filler import Filled
    from cwnd.sweeps.filling import failures, fill, sweep, world_of
    from cwnd.sweeps.kept import Verified
    from cwnd.sweeps.layout import Dataset
    from cwnd.sweeps.reading import load
    from cwnd.sweeps.shard import Shard
    from cwnd.sweeps.simulating import run
    from cwnd.sweeps.verifying import verify
    from cwnd.sweeps.watching import status

__all__ = [
    "Dataset",
    "Filled",
    "Shard",
    "Verified",
    "failures",
    "fill",
    "load",
    "query",
    "run",
    "status",
    "sweep",
    "verify",
    "world_of",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "asking": "query",
        "filler": "Filled",
        "filling": "failures fill sweep world_of",
        "kept": "Verified",
        "layout": "Dataset",
        "reading": "load",
        "shard": "Shard",
        "simulating": "run",
        "verifying": "verify",
        "watching": "status",
    },
)
