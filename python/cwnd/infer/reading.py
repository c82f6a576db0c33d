"""Reading of captures by the extension, in a thread that Ctrl-C cancels."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cwnd import _core
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

#: Interval between progress reports, in seconds.
_TICK_S = 0.1


def several(files: Sequence[str | Path] | str | Path) -> list[str | Path]:
    """Returns files as a list.

    Raises:
        InputError: There are none.
    """
    found = [files] if isinstance(files, (str, Path)) else [*files]
    if not found:
        raise InputError("which capture? give a file, as in `cwnd infer client.pcapng`")
    return found


def in_background(
    read: Callable[[_core.Control], T], on_progress: Callable[[float], object] | None
) -> T:
    """Calls `read` in a thread, and reports the fraction of the files read, 0 to 1.

    Raises:
        InputError: `read` raised a `ValueError`, whose text it has.
    """
    control = _core.Control()
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(read(control))
        except BaseException as error:
            failed.append(error)

    # A daemon thread does not keep the process alive while standard input never ends.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_TICK_S)
            if on_progress is not None:
                on_progress(control.fraction)
    except BaseException:
        control.cancel()
        raise
    if failed:
        if isinstance(failed[0], ValueError):
            raise InputError(str(failed[0])) from failed[0]
        raise failed[0]
    return done[0]
