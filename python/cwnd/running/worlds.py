"""Where runs happen: in the simulator, or on this machine's Linux, in real time."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cwnd import _core
from cwnd.errors import CwndError, InputError, MachineError
from cwnd.machine import KERNEL_HELPER, kernel_helper, usable_cores
from cwnd.store import LINUX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeAlias

    #: Capture files, each with the links whose packets it gets.
    CaptureFiles: TypeAlias = Sequence[tuple[Path, Sequence[str]]]

#: Real-time runs are begun together while the rates that data crosses are below this, for each
#: core: a run at 10 Mbit/s takes 4 % of a core of ours, one at 50 Mbit/s 15 %, so half is free.
_BIT_S_PER_CORE = 160e6
#: However slow their links, no more than so many for each core.
_MOST_PER_CORE = 16


class World(Protocol):
    """What gives a run's tables from its scenario."""

    @property
    def engine(self) -> str:
        """What decides what a run gives, besides its scenario: it names cells of sweeps."""

    def check(self, scenario: _core.Scenario) -> None:
        """Raises what keeps it from providing what a scenario asks for."""

    def threads(self, scenario: _core.Scenario, wanted: int | None) -> int:
        """How many runs at a time."""

    def run(
        self, cell: _core.Cell, control: _core.Control | None, captures: CaptureFiles = ()
    ) -> _core.Result:
        """Runs a cell; the packets of links go to capture files."""


@dataclass(frozen=True)
class Simulator:
    """The simulator."""

    engine: str = _core.engine

    def check(self, scenario: _core.Scenario) -> None:
        """It provides all that a scenario can ask for."""

    def threads(self, scenario: _core.Scenario, wanted: int | None) -> int:
        """All cores if not given."""
        del scenario
        return usable_cores() if wanted is None else at_least_one(wanted)

    def run(
        self, cell: _core.Cell, control: _core.Control | None, captures: CaptureFiles = ()
    ) -> _core.Result:
        """Simulates a cell."""
        return cell.run(control, captures)


@dataclass(frozen=True)
class Linux:
    """Real endpoints on this machine."""

    #: Whether each run's router is measured before it.
    calibrate: bool = True
    #: How often a run is tried until it is valid; the last one counts.
    tries: int = 3

    @property
    def engine(self) -> str:
        """The kernel, and the testbed's own version."""
        return f"linux {platform.release()}, testbed {_core.testbed}"

    def check(self, scenario: _core.Scenario) -> None:
        """Raises what Linux can't provide, with its place, or what the machine lacks."""
        try:
            needs_helper = scenario.check_linux()
        except _core.Unavailable as lack:
            raise MachineError(str(lack)) from lack
        if needs_helper and kernel_helper() is None:
            raise MachineError(
                f"a controller that Linux does not have itself needs {KERNEL_HELPER}, which is not"
                " here; `make kernel` builds it, or CWND_KERNEL names it"
            )

    def threads(self, scenario: _core.Scenario, wanted: int | None) -> int:
        """As many as the machine can route for at once, if not given."""
        if wanted is not None:
            return at_least_one(wanted)
        rates = [scenario.cell(i).routed_bit_s for i in range(0, scenario.runs, scenario.repeat)]
        fastest = max((rate for rate in rates if rate is not None), default=0.0)
        cores = usable_cores()
        fitting = int(cores * _BIT_S_PER_CORE / fastest) if fastest > 0 else 1
        return max(1, min(fitting, cores * _MOST_PER_CORE))

    def run(
        self, cell: _core.Cell, control: _core.Control | None, captures: CaptureFiles = ()
    ) -> _core.Result:
        """Runs a cell in real time; again, if it was not valid: captures are those of the last."""
        try:
            for _ in range(self.tries):
                result = cell.run_on_linux(
                    control, captures, kernel=kernel_helper(), calibrate=self.calibrate
                )
                if json.loads(result.facts or "{}").get("valid"):
                    break
        except _core.Unavailable as lack:
            raise MachineError(str(lack)) from lack
        except RuntimeError as error:
            raise CwndError(f"run {cell.id}: {error}") from error
        return result


SIMULATOR: Simulator = Simulator()


def world_named(on: str | None) -> World:
    """The world of this name; the simulator if not given."""
    if on is None:
        return SIMULATOR
    if on == LINUX:
        return Linux()
    raise InputError(f"--on takes {LINUX}, not {on!r}")


def at_least_one(threads: int) -> int:
    """Refuses a number of threads that would do nothing."""
    if threads < 1:
        raise InputError(f"runs need at least one thread, not {threads}")
    return threads
