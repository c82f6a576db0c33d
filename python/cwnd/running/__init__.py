"""Scenarios as plans of runs, worlds that run cells, threads, progress, captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.running.frames import KEYS, RUN_COLUMNS, axes_of, renamed_axes
    from cwnd.running.pcap import Captures, LinksLike, captures
    from cwnd.running.plans import Plan, check, plan
    from cwnd.running.progress import OnProgress, Progress, bar, shown
    from cwnd.running.scenario import Overrides, Scenario, ScenarioLike, read_text, run_id
    from cwnd.running.workers import Workers
    from cwnd.running.worlds import LINUX, SIMULATOR, Linux, World, world_named

__all__ = [
    "KEYS",
    "LINUX",
    "RUN_COLUMNS",
    "SIMULATOR",
    "Captures",
    "LinksLike",
    "Linux",
    "OnProgress",
    "Overrides",
    "Plan",
    "Progress",
    "Scenario",
    "ScenarioLike",
    "Workers",
    "World",
    "axes_of",
    "bar",
    "captures",
    "check",
    "plan",
    "read_text",
    "renamed_axes",
    "run_id",
    "shown",
    "world_named",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "frames": "KEYS RUN_COLUMNS axes_of renamed_axes",
        "pcap": "Captures LinksLike captures",
        "plans": "Plan check plan",
        "progress": "OnProgress Progress bar shown",
        "scenario": "Overrides Scenario ScenarioLike read_text run_id",
        "workers": "Workers",
        "worlds": "LINUX Linux SIMULATOR World world_named",
    },
)
