"""A progress bar on stderr."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.runner import OnProgress


@contextlib.contextmanager
def bar(name: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows on a terminal how far the runs are and when they will be done; it leaves nothing."""
    console = console or Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    silent = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=silent) as progress:
        task = progress.add_task(name, total=1, runs="")

        def on_progress(fraction: float, finished: int, total: int) -> None:
            progress.update(task, completed=fraction, runs=f"{finished}/{total} runs")

        yield on_progress
