"""Cells, each named by a hash of its content: their names, results, and those still pending."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from cwnd import _core
from cwnd.errors import CodeError, CwndError, DivergedError, MachineError
from cwnd.machine import usable_cores
from cwnd.results import sha256
from cwnd.running.code import classes, explained, sources
from cwnd.running.environments import SIMULATOR, Simulator
from cwnd.running.plans import run_id
from cwnd.running.runner import Workers
from cwnd.store import (
    CELL,
    CELL_ID,
    CELL_SHA,
    KEYS,
    BatchBuilder,
    Info,
    Planned,
    axes_of,
    cell_id,
    content,
    heading,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from cwnd.running.code import GivenClass, SourceCode
    from cwnd.running.environments import Environment, LogFiles, PacketWindow
    from cwnd.running.plans import Plan
    from cwnd.running.progress import OnProgress
    from cwnd.store import Batch, MemoryBatch, Writer

#: Table of logged packets, beside those that results keep.
PACKETS = "packets"


@dataclass(frozen=True)
class Failure:
    """Error of a cell that could not be computed."""

    error: str
    message: str

    def exception(self) -> CwndError:
        """Returns the error as an exception: of its own type if that is cwnd's."""
        types = {each.__name__: each for each in (CodeError, DivergedError)}
        return types.get(self.error, CwndError)(self.message)

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Records an exception by its type and message."""
        return cls(type(error).__name__, str(error) or type(error).__name__)


@dataclass(frozen=True)
class Outcome:
    """Result of a cell, or the error that prevented it."""

    cell_id: str
    #: Content of the cell, the cell, and its records; `None` if it failed or was written already.
    made: tuple[str, _core.Cell, _core.Result] | None = None
    failure: Failure | None = None

    def tabled(self) -> Outcome | MemoryBatch:
        """Returns the tables of the cell; the outcome itself if it has no records."""
        if self.made is None:
            return self
        finished = BatchBuilder(_core.engine)
        finished.add(*self.made)
        batch = finished.take()
        if (packets := self.made[2].packets) is not None:
            batch.tables[PACKETS] = pl.DataFrame(packets)
        return batch


def attempt(
    text: str,
    cell: _core.Cell | None = None,
    control: _core.Control | None = None,
    environment: Environment = SIMULATOR,
    work: Work | None = None,
) -> Outcome:
    """Runs a cell, parsed from its content if not given, by `work` or by the environment.

    Its failure is caught.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        SystemExit: The process ends.
        Cancelled: The run was cancelled.
        MachineError: This machine lacks something.
    """
    name = cell_id(text, environment.engine)
    try:
        made = cell or _core.parse(text, name="cell.toml").cell(0)
        run = simulate if environment is SIMULATOR else environment.run
        return Outcome(name, (text, made, (work or run)(made, control)))
    except (KeyboardInterrupt, SystemExit, _core.Cancelled, MachineError):
        raise
    except BaseException as error:  # a panic of the extension is a BaseException
        return Outcome(name, failure=Failure.of(error))


def simulate(cell: _core.Cell, control: _core.Control | None = None) -> _core.Result:
    """Simulates a cell and returns its records."""
    return SIMULATOR.run(cell, control)


def simulate_twice(
    cell: _core.Cell, control: _core.Control | None = None, given: Sequence[GivenClass] = ()
) -> _core.Result:
    """Simulates a run twice, step by step, and compares the steps.

    Its code is of `given` classes, or loaded.

    Raises:
        DivergedError: Two steps differ.
        CodeError: The code of the cell cannot be loaded, or raised an exception.
    """
    try:
        with explained(cell):
            # Each of the two runs loads the code anew: what one left in a module or a class would
            # change the other.
            return cell.check(control, [*classes(cell, given), *classes(cell, given)])
    except _core.Diverged as diverged:
        raise DivergedError(f"run {cell.id}: {diverged}") from diverged


@dataclass
class Checked:
    """Simulates runs twice, and keeps the hash of each run's steps."""

    given: Sequence[GivenClass] = ()
    steps: dict[int, str] = field(default_factory=dict)

    def __call__(self, cell: _core.Cell, control: _core.Control | None, /) -> _core.Result:
        """Simulates a run twice, step by step.

        Raises:
            DivergedError: Two steps differ.
        """
        result = simulate_twice(cell, control, self.given)
        self.steps[cell.index] = result.steps_hash or ""
        return result

    def of_runs(self, runs: int) -> list[str]:
        """Returns the hashes of steps in the order of the plan."""
        return [self.steps[index] for index in range(runs)]


@dataclass(frozen=True)
class Captures:
    """Capture files of the runs of a scenario, in a directory for each run."""

    #: Links by name of file.
    files: dict[str, list[str]]
    directory: Path

    def of(self, run_id: str) -> list[tuple[Path, list[str]]]:
        """Returns paths and links of one run's files, and creates their directory."""
        run_directory = self.directory / run_id
        run_directory.mkdir(parents=True, exist_ok=True)
        return [(run_directory / name, links) for name, links in self.files.items()]


@dataclass(frozen=True)
class SenderLogs:
    """Logs of senders of the runs of a scenario, in a directory for each run."""

    #: Flow groups, each with the first word of the names of its files.
    groups: list[tuple[str, str]]
    directory: Path

    def of(self, run_id: str) -> LogFiles:
        """Returns directory and groups of one run's logs, and creates the directory."""
        run_directory = self.directory / run_id
        run_directory.mkdir(parents=True, exist_ok=True)
        return run_directory, self.groups


@dataclass(frozen=True)
class Captured:
    """Runs cells, and writes their packets to capture files and their senders' logs."""

    environment: Environment
    files: Captures | None = None
    #: Only of the simulator.
    logs: SenderLogs | None = None

    def __call__(self, cell: _core.Cell, control: _core.Control | None, /) -> _core.Result:
        """Runs a cell with its capture files and logs.

        Raises:
            OSError: A file cannot be written.
        """
        if not isinstance(self.environment, Simulator):
            return self.environment.run(cell, control, self.of(cell))
        return self.environment.run(cell, control, self.of(cell), qlog=self.logs_of(cell))

    def of(self, cell: _core.Cell) -> list[tuple[Path, list[str]]]:
        """Returns the capture files of a run, each with its links."""
        return self.files.of(run_id(cell)) if self.files else []

    def logs_of(self, cell: _core.Cell) -> LogFiles | None:
        """Returns directory and groups of the logs of a run's senders."""
        return self.logs.of(run_id(cell)) if self.logs else None


@dataclass(frozen=True)
class Logged:
    """Simulates cells and logs their packets."""

    log: PacketWindow

    def __call__(self, cell: _core.Cell, control: _core.Control | None, /) -> _core.Result:
        """Simulates a cell with its log of packets."""
        return SIMULATOR.run(cell, control, log=self.log)


class Backend(Protocol):
    """Computes cells in any order, and passes successful ones to the writer or to the caller."""

    def __call__(
        self, pending: PendingCells, writer: Writer, threads: int, on_progress: OnProgress
    ) -> Generator[Outcome | Batch, None, None]:
        """Yields outcomes of failed or written cells, or batches for the caller to write."""


class Work(Protocol):
    """A function that computes the records of a run, such as one that also captures packets."""

    def __call__(self, cell: _core.Cell, control: _core.Control | None, /) -> _core.Result:
        """Runs a cell; an exception ends the whole call and is raised from it."""


class PendingCells:
    """Pending cells; each is created when it is requested."""

    def __init__(
        self,
        scenario: _core.Scenario,
        indices: list[int],
        environment: Environment = SIMULATOR,
        work: Work | None = None,
    ) -> None:
        self._scenario = scenario
        self._indices = indices
        self.environment = environment
        #: Function that computes the records of a run in place of the environment.
        self.work = work

    @property
    def runs(self) -> int:
        """Number of cells."""
        return len(self._indices)

    @property
    def may_have_code(self) -> bool:
        """`False` if no cell has a part whose code is the user's."""
        return self._scenario.may_have_code

    def cell(self, index: int, /) -> _core.Cell:
        """Creates the cell of an index."""
        return self._scenario.cell(self._indices[index])

    def duration_s(self, index: int, /) -> float:
        """Simulated duration of a cell, in seconds."""
        return self._scenario.duration_s(self._indices[index])


@dataclass(frozen=True)
class CellTexts:
    """Cells by their contents."""

    texts: list[str]

    @property
    def runs(self) -> int:
        """Number of cells."""
        return len(self.texts)

    def cell(self, index: int, /) -> _core.Cell:
        """Creates the cell of an index."""
        return _core.parse(self.texts[index], name="cell.toml").cell(0)

    def duration_s(self, index: int, /) -> float:
        """Simulated duration of a cell, in seconds."""
        return self.cell(index).duration_s

    def named_code(self) -> Iterator[tuple[str, list[SourceCode]]]:
        """Yields each content that this version reads, and the code that it names."""
        for index, text in enumerate(self.texts):
            with suppress(_core.ScenarioError):
                yield text, sources([self.cell(index)])


#: Runs that a thread names at a time.
_BLOCK = 512


def name_cells(plan: Plan, engine: str = _core.engine) -> Planned:
    """Computes identifiers, run ids and axis values of all cells of a plan for an engine."""
    scenario = plan.scenario
    axes = axes_of(scenario, {*KEYS, CELL, CELL_SHA, CELL_ID})
    of_axes = [(axis.name, axis.column, axis.value_column) for axis in axes]

    def row(index: int) -> tuple[object, ...]:
        cell = scenario.cell(index)
        labels, values = cell.axes, cell.axis_values
        point = ([labels[name], values.get(name)] for name, _, _ in of_axes)
        return (
            cell_id(content(cell.resolved), engine),
            run_id(cell),
            scenario.name,
            cell.seed,
            index,
            cell.id,
            *chain.from_iterable(point),
        )

    def rows(block: int) -> list[tuple[object, ...]]:
        first = block * _BLOCK
        return [row(index) for index in range(first, min(first + _BLOCK, scenario.runs))]

    blocks = -(-scenario.runs // _BLOCK)
    with Workers(blocks, min(blocks, usable_cores()), rows) as workers:
        columns = zip(*chain.from_iterable(workers.results()), strict=True)
    names: list[str | None] = [CELL_ID, *KEYS, CELL, CELL_SHA]
    names += chain.from_iterable(pair for _, *pair in of_axes)
    named = {name: column for name, column in zip(names, columns, strict=True) if name}
    types: dict[str, Any] = {"seed": pl.UInt64}
    types.update({value: pl.Float64 for _, _, value in of_axes if value is not None})
    frame = pl.DataFrame(named, schema_overrides=types)
    info = Info(
        name=scenario.name,
        description=scenario.description,
        heading=heading(scenario.cell(0).resolved),
        cwnd_version=_core.__version__,
        engine=engine,
        scenario_sha256=sha256([plan.source.text]),
        overrides=plan.overrides,
        seed_override=plan.seed,
        installed=plan.installed,
        runs=frame.height,
        cells=frame[CELL_ID].n_unique(),
        axes=axes,
        warnings=[dict(warning) for warning in scenario.warnings],
    )
    return Planned(info, frame, plan.source.text)
