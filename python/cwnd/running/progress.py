"""Progress of runs, and a bar on stderr that shows it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console


@dataclass(frozen=True)
class Progress:
    """Progress of a call that makes runs."""

    #: Part of the simulated time of this call that is done, 0 to 1.
    fraction: float
    #: Runs that are complete, those of an earlier call included.
    done: int
    failed: int
    #: Runs that there will be.
    total: int


class OnProgress(Protocol):
    """A function that is called with the progress, some ten times a second."""

    def __call__(self, progress: Progress, /) -> None:
        """Takes the progress."""


@contextlib.contextmanager
def bar(name: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows progress and remaining time on a terminal; it leaves nothing."""
    with shown(name, console) as show:

        def on_progress(now: Progress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            show(now.fraction, f"{now.done}/{now.total} runs{failed}")

        yield on_progress


@contextlib.contextmanager
def shown(name: str, console: Console | None) -> Iterator[Callable[[float, str], None]]:
    """Shows a bar that takes a fraction and a text; on a terminal only."""
    if console is None:
        from rich.console import Console

        console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _fraction, _runs: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=1, runs="")

        def show(fraction: float, runs: str) -> None:
            progress.update(task, completed=fraction, runs=runs)

        yield show
