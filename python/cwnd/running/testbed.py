"""Testbed maintenance: calibration of the router, and removal of leftovers of dead runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

from cwnd.errors import CwndError
from cwnd.machine import kernel_helper
from cwnd.running import plans, runner
from cwnd.running.environments import Linux
from cwnd.running.plans import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Pairs of rate and round-trip time that are measured by default.
SETTINGS = (
    ("1 Mbit/s", "20 ms"),
    ("10 Mbit/s", "20 ms"),
    ("10 Mbit/s", "200 ms"),
    ("50 Mbit/s", "100 ms"),
    ("100 Mbit/s", "20 ms"),
)
#: Duration of a run whose only purpose is the calibration before it.
_SHORTEST = "10 ms"
#: Name of a controller that a run has loaded: process id and a number, in hexadecimal.
_OF_A_RUN = re.compile(r"cw([0-9a-f]+)_[0-9a-f]+")


def calibrate(rate: str, rtt: str, mss: str | None = None) -> list[dict[str, Any]]:
    """Measures a router with the given rate and half the round-trip time in each direction.

    Rate and buffer are measured with packets as large as those of segments of `mss`, or 1500 B, the
    delay with packets of 100 B. The result has a row for each measured quantity, with its setting
    and tolerance.

    Raises:
        ScenarioError: A quantity is malformed.
        MachineError: This machine cannot run the testbed.
        CwndError: The run failed.
    """
    scenario = Scenario(
        name="calibration",
        run={"duration": _SHORTEST, "sample": None},
        dumbbell={"rate": rate},
        flow={
            "main": {
                "rtt": rtt,
                "controller": {"kind": "newreno", "preset": "linux"},
                "endpoint": {"preset": "linux"} | ({"mss": mss} if mss else {}),
            }
        },
    )
    plan, linux = plans.plan(scenario), Linux()
    linux.check(plan.scenario)
    # The run has a thread of its own, while this one waits for Ctrl-C.
    with runner.running(plan.scenario, linux.run, 1) as (results, _):
        ((_, result),) = results
    rows: list[dict[str, Any]] = json.loads(result.facts or "{}")["calibration"]
    return rows


def clean() -> list[str]:
    """Removes what dead runs have left, and returns a description of each removed object.

    Namespaces, devices and sockets end with their process. A controller that was loaded into an old
    kernel may not.

    Raises:
        CwndError: `cwnd-kernel` failed.
    """
    return list(_controllers())


def _controllers() -> Iterator[str]:
    program = kernel_helper()
    if program is None:
        return
    for controller_info in json.loads(_ask(program, "status", "--json") or "[]"):
        name = str(controller_info.get("name", ""))
        found = _OF_A_RUN.fullmatch(name)
        if found is None or _is_alive(int(found[1], 16)):
            continue
        _ask(program, "unload", name)
        yield f"controller {name}"


def _ask(program: str, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own program
        [program, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CwndError(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
