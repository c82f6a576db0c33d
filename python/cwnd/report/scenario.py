"""What was simulated: what each axis of the sweep changes, and how to run it again."""

from __future__ import annotations

import shlex
import tomllib
from typing import TYPE_CHECKING, Any

import tomli_w

from cwnd.store import SCENARIO
from cwnd.table import Sheet

if TYPE_CHECKING:
    from cwnd.manifest import Axis
    from cwnd.results import Run

#: What a key that a label does not have is shown as.
_ABSENT = "–"


def axis_sheets(run: Run) -> list[Sheet]:
    """For each axis a row per key that it changes, and a column per label."""
    base = {axis.column: axis.labels[0] for axis in run.axes}
    return [_axis_sheet(run, axis, base) for axis in run.axes]


def _axis_sheet(run: Run, axis: Axis, base: dict[str, str]) -> Sheet:
    # One run per label, all other axes at their first; every default is written out in it.
    columns = []
    for label in axis.labels:
        point = {**base, axis.column: label}
        resolved = _resolved_at(run, point)
        columns.append({} if resolved is None else dict(_flat(tomllib.loads(resolved))))
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows = []
    for key in keys:
        values = [column.get(key, _ABSENT) for column in columns]
        if len(set(values)) > 1:
            rows.append((key, *values))
    others = [a.name for a in run.axes if a is not axis and len(a.labels) > 1]
    about = ["what differs in the resolved scenarios"]
    about += [f"{' and '.join(others)} at the first label"] if others else []
    return Sheet(f"Axis {axis.name}", about, 1, ["key", *axis.labels], rows)


def rerun_command(run: Run) -> str:
    """The command that gives this result again from its directory."""
    manifest = run.manifest
    words = ["cwnd", "run", SCENARIO]
    words += [] if manifest.seed_override is None else ["--seed", str(manifest.seed_override)]
    words += [word for override in manifest.overrides for word in ("--set", override)]
    return shlex.join(words)


def _resolved_at(run: Run, point: dict[str, str]) -> str | None:
    for row, resolved in zip(run.runs.iter_rows(named=True), run.resolved, strict=True):
        if all(row[column] == label for column, label in point.items()):
            return resolved
    return None


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
