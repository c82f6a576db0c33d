"""Results as one HTML page that needs no network: tables, figures to zoom and hover, origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.atomic import write_atomically
from cwnd.errors import InputError
from cwnd.report.page import html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cwnd.results import Run

__all__ = ["html", "write"]


def write(runs: Sequence[Run], file: Path) -> Path:
    """Writes the page of these results, whole or not at all."""
    if file.is_dir():
        raise InputError(f"{file}: a directory is in the way; name a file with -o")
    content = html(runs).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
    return file
