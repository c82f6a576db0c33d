"""Drawing of a stored result's figures; a figure that fails causes a warning only."""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from typing import TYPE_CHECKING

from cwnd.errors import REPORT, CwndError, FigureWarning, explain
from cwnd.store import PLOTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cwnd.results import Run


@contextlib.contextmanager
def attempt(
    figure: str, then: str, *, passing: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Turns an exception in its block into one `FigureWarning`.

    Args:
        figure: Name of the figure, with which the message starts.
        then: Text about the state of the result without it, and how to draw it again.
        passing: Types of exceptions that are raised all the same. Ctrl-C, `SystemExit` and the end
            of a generator always are.
    """
    try:
        yield
    except BaseException as error:  # a panic of the extension is a BaseException
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, *passing)):
            raise
        if os.environ.get("CWND_DEBUG"):
            traceback.print_exception(error)
        text = f"{figure} could not be drawn ({_reason(error)}); {then}"
        if not isinstance(error, (CwndError, OSError, MemoryError)):
            text += f"; {REPORT}"
        warnings.warn(text, FigureWarning, stacklevel=3)


def draw_result(run: Run, result: Path, *, quick: bool) -> None:
    """Draws the default figures of a result into its folder `plots`; `quick` ones are SVG only.

    Each file appears complete or not at all. A failure is a `FigureWarning`.
    """
    then = f"the result is complete in {result}, and `cwnd plot {result}` tries again"
    with attempt("the figures", then):
        from cwnd.plots import kinds

        for kind in kinds.default_kinds(run):
            with attempt(f"figure `{kind}`", then):
                kinds.write_kind(run, kind, result / PLOTS, quick=quick)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return explain(error)
    first = (str(error).splitlines() or [""])[0]
    if isinstance(error, CwndError):
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
