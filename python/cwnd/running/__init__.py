"""Execution of scenarios: plans, the simulator or Linux, threads, sweeps into a directory, Ray.

A run is a sweep of one cell. A cell is named by its content: resolved scenario, seed and version of
its environment (`_core.engine`, or kernel and `_core.testbed`). Finished cells wait in a journal,
or in memory if all are done within a quarter of a second (`store.journal`). Simulated records do
not depend on the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.running.cells import Captures, SenderLogs
    from cwnd.running.code import check_trust
    from cwnd.running.environments import Environment, Linux
    from cwnd.running.executor import FillResult, environment_of, failures, fill, sweep
    from cwnd.running.installed import all_described
    from cwnd.running.packets import PacketLog, check_same_run, log_packets
    from cwnd.running.plans import (
        Overrides,
        Plan,
        Scenario,
        ScenarioLike,
        check,
        kernel_object_of,
        override_list,
        plan,
        read_text,
    )
    from cwnd.running.progress import OnProgress, Progress, bar
    from cwnd.running.simulating import captures, run, sender_logs
    from cwnd.running.verifying import verify

__all__ = [
    "Captures",
    "Environment",
    "FillResult",
    "Linux",
    "OnProgress",
    "Overrides",
    "PacketLog",
    "Plan",
    "Progress",
    "Scenario",
    "ScenarioLike",
    "SenderLogs",
    "all_described",
    "bar",
    "captures",
    "check",
    "check_same_run",
    "check_trust",
    "environment_of",
    "failures",
    "fill",
    "kernel_object_of",
    "log_packets",
    "override_list",
    "plan",
    "read_text",
    "run",
    "sender_logs",
    "sweep",
    "verify",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "cells": "Captures SenderLogs",
        "code": "check_trust",
        "environments": "Environment Linux",
        "executor": "failures fill sweep environment_of FillResult",
        "installed": "all_described",
        "packets": "PacketLog check_same_run log_packets",
        "plans": "Overrides Plan check Scenario ScenarioLike kernel_object_of override_list plan"
        " read_text",
        "progress": "OnProgress Progress bar",
        "simulating": "run captures sender_logs",
        "verifying": "verify",
    },
)
