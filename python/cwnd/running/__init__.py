"""Runs: scenarios read, cells run in a world, their tables put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.running.frames import KEYS, RUN_COLUMNS, axes_of, name_axes
    from cwnd.running.pcap import captures
    from cwnd.running.plans import Plan, check, plan
    from cwnd.running.progress import OnProgress, Progress, bar, shown
    from cwnd.running.runner import run
    from cwnd.running.scenario import Overrides, Scenario, ScenarioLike, read_text, run_id
    from cwnd.running.workers import Workers
    from cwnd.running.worlds import LINUX, SIMULATOR, Linux, World, world_named

__all__ = [
    "KEYS",
    "LINUX",
    "RUN_COLUMNS",
    "SIMULATOR",
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
    "name_axes",
    "plan",
    "read_text",
    "run",
    "run_id",
    "shown",
    "world_named",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "frames": "KEYS RUN_COLUMNS axes_of name_axes",
        "pcap": "captures",
        "plans": "Plan check plan",
        "progress": "OnProgress Progress bar shown",
        "runner": "run",
        "scenario": "Overrides Scenario ScenarioLike read_text run_id",
        "workers": "Workers",
        "worlds": "LINUX Linux SIMULATOR World world_named",
    },
)
