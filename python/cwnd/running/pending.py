"""Pending cells of a sweep, and the interface of backends that compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cwnd.running.environments import SIMULATOR

if TYPE_CHECKING:
    from collections.abc import Generator

    from cwnd import _core
    from cwnd.running.cells import Outcome
    from cwnd.running.environments import Environment
    from cwnd.running.progress import OnProgress
    from cwnd.store import Batch, Writer


class Backend(Protocol):
    """Computes cells in any order, and passes successful ones to the writer or to the caller."""

    def __call__(
        self, pending: PendingCells, writer: Writer, threads: int, on_progress: OnProgress
    ) -> Generator[Outcome | Batch, None, None]:
        """Yields the outcome of each cell, already written, or batches for the caller to write."""


class Work(Protocol):
    """A function that computes the records of a run, such as one that also captures packets."""

    def __call__(self, cell: _core.Cell, control: _core.Control, /) -> _core.Result:
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

    def cell(self, index: int, /) -> _core.Cell:
        """Creates the cell of an index."""
        return self._scenario.cell(self._indices[index])

    def duration_s(self, index: int, /) -> float:
        """Simulated duration of a cell, in seconds."""
        return self._scenario.duration_s(self._indices[index])
