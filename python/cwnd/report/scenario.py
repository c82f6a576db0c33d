"""Scenario of a result: settings that each axis changes, and the command that repeats the runs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import tomli_w

from cwnd import _core
from cwnd.results import TextTable
from cwnd.store import SCENARIO

if TYPE_CHECKING:
    from cwnd.results import Axis, Run

#: Text for a key that a label lacks.
_ABSENT = "–"
#: Number of labels above which a table has a row for each label instead of a column.
_MAX_COLUMNS = 8
#: Maximum number of labels.
_MAX_LABELS = 100


def axis_tables(run: Run) -> list[TextTable]:
    """Tables of the keys that each axis changes: a column per label, or a row if there are many."""
    base = {axis.column: axis.labels[0] for axis in run.axes}
    at_point: dict[tuple[str, ...], int] = {}
    for index, row in enumerate(run.runs.select(*base).iter_rows() if base else ()):
        at_point.setdefault(row, index)
    return [_axis_table(run, axis, base, at_point) for axis in run.axes]


def _axis_table(
    run: Run, axis: Axis, base: dict[str, str], at_point: dict[tuple[str, ...], int]
) -> TextTable:
    # Compares one run per label, with the other axes at their first label; it has all defaults.
    labels = axis.labels[:_MAX_LABELS]
    columns = []
    for label in labels:
        index = at_point.get(tuple({**base, axis.column: label}.values()))
        resolved = {} if index is None else _core.read_toml(run.resolved[index], name="resolved")
        columns.append(dict(_flat(resolved)))
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows: list[tuple[str, ...]] = [
        (key, *(column.get(key, _ABSENT) for column in columns)) for key in keys
    ]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    others = [a.name for a in run.axes if a is not axis and len(a.labels) > 1]
    about = ["what differs in the resolved scenarios"]
    about += [f"{' and '.join(others)} at the first label"] if others else []
    if len(labels) < len(axis.labels):
        about.append(f"the first {len(labels)} of {len(axis.labels)} labels")
    title, headings = f"Axis {axis.name}", ["key", *labels]
    if len(labels) <= _MAX_COLUMNS:
        return TextTable(title, about, 1, headings, rows)
    _, *by_label = zip(*rows, strict=True) if rows else [()]
    changed = [row[0] for row in rows]
    lines = [(label, *values) for label, values in zip(labels, by_label, strict=False)]
    return TextTable(title, about, 1, ["label", *changed], lines)


def rerun_command(run: Run) -> str:
    """Formats the command that repeats the runs in the directory of the result."""
    manifest = run.manifest
    words = ["cwnd", "run", SCENARIO]
    words += [] if manifest.seed_override is None else ["--seed", str(manifest.seed_override)]
    words += [word for override in manifest.overrides for word in ("--set", override)]
    return shlex.join(words)


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", _toml(value)))
    return pairs


def _toml(value: object) -> str:
    if isinstance(value, str):
        return value
    text = tomli_w.dumps({"v": [value]}, indent=0).partition("=")[2].strip()
    return " ".join(text.removeprefix("[").removesuffix("]").split()).removesuffix(",")
