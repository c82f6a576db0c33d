"""How far a sweep is: who is told, and a bar on stderr."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cwnd.running import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


@dataclass(frozen=True)
class Progress:
    """How far a writer is with the cells that are its own."""

    #: Part of the simulated time that this writer has to do.
    fraction: float
    #: Cells that are complete, those from before included.
    done: int
    failed: int
    #: Cells that are to be.
    total: int


class OnCells(Protocol):
    """Told now and then how far a sweep is."""

    def __call__(self, progress: Progress, /) -> None:
        """So far."""


@contextlib.contextmanager
def cells_bar(name: str, console: Console | None = None) -> Iterator[OnCells]:
    """Shows on a terminal how far the cells are, which may fail one by one; it leaves nothing."""
    with shown(name, console) as show:

        def on_cells(now: Progress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            show(now.fraction, f"{now.done}/{now.total} cells{failed}")

        yield on_cells
