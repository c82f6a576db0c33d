"""Runs on Linux, as a manifest describes them."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from cwnd.store.layout import LINUX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def summary(facts: Iterable[str]) -> dict[str, Any] | None:
    """The facts of runs on Linux that a manifest has; `None` if there are no runs."""
    told = [json.loads(each) for each in facts]
    if not told:
        return None
    flaws = [flaw for each in told for flaw in each["flaws"]]
    # Runs of older versions have none.
    notes = Counter(note for each in told for note in each.get("notes", ()))
    settings = [each["sysctls"] for each in told]
    return {
        "name": LINUX,
        "kernel": sorted({each["kernel"] for each in told}),
        "invalid_runs": sum(not each["valid"] for each in told),
        "flaws": list(dict.fromkeys(flaws)),
        "notes": [
            note if count == len(told) else f"{note} (in {count} of {len(told)} runs)"
            for note, count in notes.items()
        ],
        "controllers": sorted({_kernel_name(each) for run in told for each in run["controllers"]}),
        # They are what every run set and found; a run that found others says so in its own facts.
        "sysctls": settings[0],
        "sysctls_differ": any(each != settings[0] for each in settings),
        "calibration": _worst([each["calibration"] for each in told if each["calibration"]]),
        "lateness_p99_us": max(
            (
                direction["lateness_us"]["p99"] or 0.0
                for each in told
                for direction in each["router"]["directions"]
            ),
            default=None,
        ),
        "idle_least": min(each["router"]["idle"] for each in told),
    }


def _kernel_name(controller: str) -> str:
    """A controller's name without what keeps concurrent runs apart."""
    return "of cwnd-kernel" if controller.startswith("cw") else controller


def _worst(tables: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Of each quantity that was set the row whose measurement is farthest from it."""
    worst: dict[tuple[str, float], dict[str, Any]] = {}
    for row in (row for table in tables for row in table):
        key = (row["what"], row["set"])
        if key not in worst or _off(row) > _off(worst[key]):
            worst[key] = row
    return list(worst.values())


def _off(row: dict[str, Any]) -> float:
    """Distance of a measurement from what was set; infinite if nothing was measured."""
    return math.inf if row["measured"] is None else abs(row["measured"] - row["set"])
