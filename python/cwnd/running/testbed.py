"""The testbed beside its runs: does it do what it is told, and what did a dead run leave?"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

from cwnd.errors import CwndError
from cwnd.machine import kernel_helper
from cwnd.running import plans, runner
from cwnd.running.scenario import Scenario
from cwnd.running.worlds import Linux

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is measured when nothing else is asked for: rate and round-trip time.
SETTINGS = (
    ("1 Mbit/s", "20 ms"),
    ("10 Mbit/s", "20 ms"),
    ("10 Mbit/s", "200 ms"),
    ("50 Mbit/s", "100 ms"),
    ("100 Mbit/s", "20 ms"),
)
#: A run that is over as soon as its router was measured.
_SHORTEST = "10 ms"
#: The controllers of a run: the number of its process, and one of its own.
_OF_A_RUN = re.compile(r"cw([0-9a-f]+)_[0-9a-f]+")


def calibrate(rate: str, rtt: str, mss: str | None = None) -> list[dict[str, Any]]:
    """Gives a router a rate and half a round-trip time each way, and measures what comes out.

    It is measured with packets as large as those of segments with `mss`, or of 1500 B.
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
    # In another thread: this one waits for Ctrl-C.
    with runner.running(plan.scenario, linux.run, 1) as (results, _):
        ((_, result),) = results
    rows: list[dict[str, Any]] = json.loads(result.facts or "{}")["calibration"]
    return rows


def clean() -> list[str]:
    """Removes what runs left that did not end by themselves; says what that was.

    Namespaces, devices and sockets end with their process. A controller that was loaded into an
    old kernel may not.
    """
    return list(_controllers())


def _controllers() -> Iterator[str]:
    program = kernel_helper()
    if program is None:
        return
    for card in json.loads(_ask(program, "status", "--json") or "[]"):
        name = str(card.get("name", ""))
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
