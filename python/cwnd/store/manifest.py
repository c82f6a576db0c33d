"""Manifest of a sweep, and summary of its runs on Linux; independent of time and place."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cwnd.results import Manifest, sha256
from cwnd.store.activity import sessions
from cwnd.store.layout import FACTS, LINUX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import polars as pl

    from cwnd.results import Axis
    from cwnd.store.dataset import Info


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


#: Prefix of the columns of counters.
ACTIVITY_COLUMN = "activity_"


def manifest(info: Info, axes: list[Axis], runs: pl.DataFrame, *, missing: int) -> Manifest:
    """Builds the manifest of the finished runs; `with_activity` adds times and machine."""
    activity = [column for column in runs.columns if column.startswith(ACTIVITY_COLUMN)]
    return Manifest(
        name=info.name,
        description=info.description,
        cwnd_version=info.cwnd_version,
        scenario_sha256=info.scenario_sha256,
        overrides=info.overrides,
        seed_override=info.seed_override,
        installed=info.installed,
        seeds=runs["seed"].unique(maintain_order=True).to_list(),
        runs=runs.height,
        axes=axes,
        warnings=info.warnings,
        activity={name.removeprefix(ACTIVITY_COLUMN): int(runs[name].sum()) for name in activity},
        records_sha256=sha256(runs["digest"].to_list()),
        started_at="",
        wall_s=0.0,
        cpu_s=0.0,
        threads=1,
        machine={},
        missing=missing,
        world=summary(runs[FACTS]) if FACTS in runs.columns else None,
        engine=info.engine,
    )


def with_activity(manifest: Manifest, root: Path) -> Manifest:
    """Adds start, cost, threads, machine and path of the scenario from the logs of the writers.

    Without logs the manifest stays as it is.
    """
    logs = sessions(root)
    if not logs:
        return manifest
    ends: list[dict[str, Any]] = [each.end for each in logs if each.end is not None]
    return replace(
        manifest,
        started_at=str(logs[0].start.get("time")),
        wall_s=float(sum(end.get("wall_s", 0.0) for end in ends)),
        cpu_s=float(sum(end.get("cpu_s", 0.0) for end in ends)),
        threads=max(int(each.start.get("threads", 1)) for each in logs),
        machine=logs[-1].start.get("machine", {}),
        scenario_file=logs[-1].start.get("scenario_file"),
    )
