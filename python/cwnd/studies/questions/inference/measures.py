"""Timeouts of real servers as `cwnd infer` finds them, beside those that their kernel counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.study import table

if TYPE_CHECKING:
    import polars as pl


def scores(recorded: pl.DataFrame) -> list[str]:
    """Timeouts of each case: their number, recall and precision."""
    head = ["path, servers and clients"]
    for what in ("silences", "timeouts", "two in a row"):
        head += [what, f"{what}: recall", f"{what}: precision"]
    rows = (map(_cell, row) for row in recorded.iter_rows())
    return table([*head, "doubled", "ambiguous"], rows)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


TABLES = {"linux": scores}
