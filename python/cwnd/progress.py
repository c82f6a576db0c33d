"""A progress bar on stderr."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cwnd.dataset.fill import OnCells, Progress
    from cwnd.runner import OnProgress


@contextlib.contextmanager
def bar(name: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows on a terminal how far the runs are and when they will be done; it leaves nothing."""
    with _bar(name, console) as show:

        def on_progress(fraction: float, finished: int, total: int) -> None:
            show(fraction, f"{finished}/{total} runs")

        yield on_progress


@contextlib.contextmanager
def cells_bar(name: str, console: Console | None = None) -> Iterator[OnCells]:
    """The same for a sweep, whose cells may fail one by one."""
    with _bar(name, console) as show:

        def on_cells(now: Progress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            show(now.fraction, f"{now.done}/{now.total} cells{failed}")

        yield on_cells


@contextlib.contextmanager
def _bar(name: str, console: Console | None) -> Iterator[Callable[[float, str], None]]:
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
