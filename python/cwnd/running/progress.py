"""How far runs are: who is told, and a bar on stderr."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class OnProgress(Protocol):
    """Told now and then how far the runs are."""

    def __call__(self, fraction: float, finished: int, total: int) -> None:
        """`fraction` of the simulated time is done, `finished` of `total` runs are complete."""


@contextlib.contextmanager
def bar(name: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows on a terminal how far the runs are and when they will be done; it leaves nothing."""
    with shown(name, console) as show:

        def on_progress(fraction: float, finished: int, total: int) -> None:
            show(fraction, f"{finished}/{total} runs")

        yield on_progress


@contextlib.contextmanager
def shown(name: str, console: Console | None) -> Iterator[Callable[[float, str], None]]:
    """A bar that is told a fraction, and what to say of it; on a terminal only."""
    console = console or Console(stderr=True)
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
