"""Our figures of the recorded settings: jobs that give them, and the files that keep them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl
from polars import selectors

from cwnd import _core
from cwnd.machine import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

F = TypeVar("F")
#: Significant digits of recorded figures, far beyond all bounds.
DIGITS = 8
#: Figures of each run, by the key of a setting and what an experiment changes in it.
Ours: TypeAlias = "Mapping[tuple[str, str], list[F]]"


#: Experiments change keys of the scenario: path and value.
Overrides: TypeAlias = "tuple[tuple[str, Any], ...]"


def described(overrides: Overrides) -> str:
    """Describes the changes of an experiment; flows that change alike are named once."""
    return ", ".join(dict.fromkeys(_change(path, value) for path, value in overrides))


def _change(path: str, value: object) -> str:
    if isinstance(value, list):
        return "the parts " + ", ".join(f"`{part}`" for part in value)
    return f"`{path.rsplit('.', maxsplit=1)[-1]} = {value}`"


@dataclass(frozen=True)
class Job:
    """A scenario to run for a setting."""

    key: str
    text: str
    measure: Callable[[_core.Cell], Any]
    #: Change by an experiment, as the page names it; empty for the setting itself.
    changed: str = ""
    overrides: tuple[str, ...] = ()


def run(jobs: Iterable[Job]) -> dict[tuple[str, str], list[Any]]:
    """Runs every seed of every job; a setting may have several jobs."""
    cells = [
        (job, cell)
        for job in jobs
        for cell in _core.parse(job.text, name="peer", overrides=job.overrides).cells
    ]
    with ThreadPoolExecutor(usable_cores()) as pool:
        measured = list(pool.map(lambda entry: entry[0].measure(entry[1]), cells))
    found: dict[tuple[str, str], list[Any]] = {}
    for (job, _), figures in zip(cells, measured, strict=True):
        found.setdefault((job.key, job.changed), []).append(figures)
    return found


def table(found: Ours[Any]) -> pl.DataFrame:
    """A row for each of the figures, of `DIGITS` digits."""
    rows = [
        {"setting": key, "with": changed, **asdict(figures)}
        for (key, changed), each in found.items()
        for figures in each
    ]
    every = pl.DataFrame(rows, infer_schema_length=None)
    return every.with_columns(selectors.float().round_sig_figs(DIGITS))


def read(recorded: pl.DataFrame, kind: type[F]) -> dict[tuple[str, str], list[F]]:
    """Reads the figures of a table."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    found: dict[tuple[str, str], list[F]] = {}
    for row in recorded.iter_rows(named=True):
        key = (row["setting"], row["with"] or "")
        found.setdefault(key, []).append(kind(*(float(row[name]) for name in names)))
    return found
