"""Environments of runs: the simulator, or real time on this machine's Linux."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cwnd import _core
from cwnd.errors import CwndError, InputError, MachineError
from cwnd.machine import KERNEL_HELPER, kernel_helper, require_linux, usable_cores
from cwnd.running.code import classes, explained
from cwnd.running.compiling import kernel_object
from cwnd.store import LINUX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeAlias

    from cwnd.running.code import GivenClass

    #: Capture files, each with the links that it records.
    CaptureFiles: TypeAlias = Sequence[tuple[Path, Sequence[str]]]
    #: Directory of the logs of senders, and flow groups with the first word of their files.
    LogFiles: TypeAlias = tuple[Path, Sequence[tuple[str, str]]]
    #: Link whose packets are logged, both ends of the time in nanoseconds, and a maximum number.
    PacketWindow: TypeAlias = tuple[str, tuple[int, int], int]

#: Rate in bit/s up to which each core routes concurrent real-time runs. A run at 10 Mbit/s took 4
#: % of a core, one at 50 Mbit/s 15 %, so that a third of the core or more stays free.
_BIT_S_PER_CORE = 160e6
#: Maximum number of concurrent runs for each core, however slow their links.
_MAX_PER_CORE = 16


class Environment(Protocol):
    """An environment that runs a scenario and returns its tables."""

    @property
    def engine(self) -> str:
        """Name and version of the environment: part of the identifiers of a sweep's cells."""

    def check(self, scenario: _core.Scenario) -> None:
        """Raises an error if the environment lacks something that the scenario needs.

        Raises:
            ScenarioError: The scenario asks for something that the environment never has.
            MachineError: This machine lacks something.
        """

    def threads(self, scenario: _core.Scenario, wanted: int | None) -> int:
        """Returns the number of concurrent runs; `wanted` if given."""

    def run(
        self, cell: _core.Cell, control: _core.Control | None, captures: CaptureFiles = ()
    ) -> _core.Result:
        """Runs a cell, and writes packets of links to capture files."""


@dataclass(frozen=True)
class Simulator:
    """The simulator."""

    engine: str = _core.engine
    #: Classes of this process that scenarios name.
    given: tuple[GivenClass, ...] = ()

    def check(self, scenario: _core.Scenario) -> None:
        """Accepts every valid scenario."""

    def threads(self, scenario: _core.Scenario, wanted: int | None) -> int:
        """Returns the number of concurrent runs; all cores if not given."""
        del scenario
        return usable_cores() if wanted is None else at_least_one(wanted)

    def run(
        self,
        cell: _core.Cell,
        control: _core.Control | None,
        captures: CaptureFiles = (),
        log: PacketWindow | None = None,
        qlog: LogFiles | None = None,
    ) -> _core.Result:
        """Simulates a cell, with its own code if it names some, and logs packets and senders.

        Raises:
            CodeError: The code of the cell cannot be loaded, or raised an exception.
        """
        if not cell.code:
            return cell.run(control, captures, log=log, qlog=qlog)
        with explained(cell):
            given = classes(cell, self.given)
            return cell.run(control, captures, classes=given, log=log, qlog=qlog)


@dataclass(frozen=True)
class Linux:
    """Real TCP endpoints on this machine's kernel."""

    #: `True` if the router is measured before each run.
    calibrate: bool = True
    #: Maximum number of attempts until a run is valid; the last attempt counts.
    tries: int = 3

    @property
    def engine(self) -> str:
        """Version of the kernel and of the testbed."""
        return f"linux {platform.release()}, testbed {_core.testbed}"

    def check(self, scenario: _core.Scenario) -> None:
        """Checks that this machine can run a scenario on Linux.

        Raises:
            ScenarioError: Linux lacks something that the scenario needs; the error shows its line.
            MachineError: This machine lacks something.
        """
        require_linux("a run with real endpoints")
        try:
            needs_helper = scenario.check_linux()
        except _core.Unavailable as missing:
            raise MachineError(str(missing)) from missing
        if needs_helper and kernel_helper() is None:
            raise MachineError(
                f"a controller that Linux does not have itself needs {KERNEL_HELPER}, which is not"
                " here; `make kernel` builds it, or CWND_KERNEL names it"
            )

    def threads(self, scenario: _core.Scenario, wanted: int | None) -> int:
        """Returns the number of concurrent runs; as many as the machine can route if not given."""
        if wanted is not None:
            return at_least_one(wanted)
        rates = [scenario.cell(i).routed_bit_s for i in range(0, scenario.runs, scenario.repeat)]
        fastest = max((rate for rate in rates if rate is not None), default=0.0)
        cores = usable_cores()
        fitting = int(cores * _BIT_S_PER_CORE / fastest) if fastest > 0 else 1
        return max(1, min(fitting, cores * _MAX_PER_CORE))

    def run(
        self, cell: _core.Cell, control: _core.Control | None, captures: CaptureFiles = ()
    ) -> _core.Result:
        """Runs a cell in real time until it is valid, at most `tries` times; the last try counts.

        Raises:
            MachineError: This machine lacks something.
            CodeError: The code of a controller does not compile, or the kernel refuses it.
            CwndError: The run failed.
        """
        objects = [kernel_object(name, text) for _, _, name, text, _ in cell.code]
        try:
            for _ in range(self.tries):
                result = cell.run_on_linux(
                    control,
                    captures,
                    kernel=kernel_helper(),
                    objects=objects,
                    calibrate=self.calibrate,
                )
                if json.loads(result.facts or "{}").get("valid"):
                    break
        except _core.Unavailable as missing:
            raise MachineError(str(missing)) from missing
        except RuntimeError as error:
            raise CwndError(f"run {cell.id}: {error}") from error
        return result


SIMULATOR: Simulator = Simulator()


def environment_named(on: str | None) -> Environment:
    """Returns the environment of this name; the simulator if not given.

    Raises:
        InputError: There is no such environment.
    """
    if on is None:
        return SIMULATOR
    if on == LINUX:
        return Linux()
    raise InputError(f"--on takes {LINUX}, not {on!r}")


def at_least_one(threads: int) -> int:
    """Returns a number of threads unchanged if it is at least one.

    Raises:
        InputError: The number is below one.
    """
    if threads < 1:
        raise InputError(f"runs need at least one thread, not {threads}")
    return threads
