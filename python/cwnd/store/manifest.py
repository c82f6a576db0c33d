"""Manifest of a sweep, independent of the time and place of its computation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cwnd.results import Manifest, sha256
from cwnd.store.activity import sessions
from cwnd.store.layout import FACTS
from cwnd.store.linux import summary

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from cwnd.results import Axis
    from cwnd.store.dataset import Info

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
