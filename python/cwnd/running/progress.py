"""Progress of runs, and a progress bar on stderr."""

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

    #: Fraction of this call's simulated time that is done, 0 to 1.
    fraction: float
    #: Number of complete runs, those of an earlier call included.
    done: int
    failed: int
    #: Number of runs that the call asks for, those of an earlier call included.
    total: int


class OnProgress(Protocol):
    """A function that is called with the progress, about ten times a second."""

    def __call__(self, progress: Progress, /) -> None:
        """Receives the progress."""


@contextlib.contextmanager
def bar(name: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows progress and remaining time on a terminal, and erases both at the end."""
    with shown(name, console) as show:

        def on_progress(now: Progress) -> None:
            failed = f", {now.failed} failed" if now.failed else ""
            show(now.fraction, f"{now.done}/{now.total} runs{failed}")

        yield on_progress


@contextlib.contextmanager
def shown(name: str, console: Console | None) -> Iterator[Callable[[float, str], None]]:
    """Shows a bar, on a terminal only; yields a function of the fraction done and a text."""
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
    # After Ctrl-C stderr is another file: rich would put back the one that it redirected.
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        task = progress.add_task(name, total=1, runs="")

        def show(fraction: float, runs: str) -> None:
            progress.update(task, completed=fraction, runs=runs)

        yield show
