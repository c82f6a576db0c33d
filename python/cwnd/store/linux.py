"""Summary of runs on Linux for a manifest."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from cwnd.store.layout import LINUX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def summary(facts: Iterable[str]) -> dict[str, Any] | None:
    """Summarises the facts of runs on Linux; `None` if there are no runs."""
    runs = [json.loads(each) for each in facts]
    if not runs:
        return None
    flaws = [flaw for each in runs for flaw in each["flaws"]]
    # Facts of older versions have no notes.
    notes = Counter(note for each in runs for note in each.get("notes", ()))
    settings = [each["sysctls"] for each in runs]
    return {
        "name": LINUX,
        "kernel": sorted({each["kernel"] for each in runs}),
        "invalid_runs": sum(not each["valid"] for each in runs),
        "flaws": list(dict.fromkeys(flaws)),
        "notes": [
            note if count == len(runs) else f"{note} (in {count} of {len(runs)} runs)"
            for note, count in notes.items()
        ],
        "controllers": sorted({_kernel_name(each) for run in runs for each in run["controllers"]}),
        # Every run should have the same sysctls; one that differs has its own in its facts.
        "sysctls": settings[0],
        "sysctls_differ": any(each != settings[0] for each in settings),
        "calibration": _worst([each["calibration"] for each in runs if each["calibration"]]),
        "lateness_p99_us": max(
            (
                direction["lateness_us"]["p99"] or 0.0
                for each in runs
                for direction in each["router"]["directions"]
            ),
            default=None,
        ),
        "idle_least": min(each["router"]["idle"] for each in runs),
    }


def _kernel_name(controller: str) -> str:
    """Name of a controller; `of cwnd-kernel` for those that runs load under a name of their own."""
    return "of cwnd-kernel" if controller.startswith("cw") else controller


def _worst(tables: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Selects, for each quantity and setting, the row whose measurement deviates most."""
    worst: dict[tuple[str, float], dict[str, Any]] = {}
    for row in (row for table in tables for row in table):
        key = (row["what"], row["set"])
        if key not in worst or _off(row) > _off(worst[key]):
            worst[key] = row
    return list(worst.values())


def _off(row: dict[str, Any]) -> float:
    """Absolute deviation of a measurement from its setting; infinite if nothing was measured."""
    return math.inf if row["measured"] is None else abs(row["measured"] - row["set"])
