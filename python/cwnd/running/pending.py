"""Cells that are to be computed, and what computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cwnd.running.worlds import SIMULATOR

if TYPE_CHECKING:
    from collections.abc import Generator

    from cwnd import _core
    from cwnd.running.cells import Outcome
    from cwnd.running.progress import OnProgress
    from cwnd.running.worlds import World
    from cwnd.store import Batch, Writer


class Backend(Protocol):
    """Computes cells somewhere, in any order, and gives those that succeed to the writer."""

    def __call__(
        self, todo: Todo, writer: Writer, threads: int, on_progress: OnProgress
    ) -> Generator[Outcome | Batch, None, None]:
        """Yields the outcome of each, written already, or batches to write."""


class Work(Protocol):
    """Gives the records of a run; raises what fails."""

    def __call__(self, cell: _core.Cell, control: _core.Control, /) -> _core.Result:
        """Runs a cell."""


class Todo:
    """The cells to compute, made when they are asked for."""

    def __init__(
        self,
        scenario: _core.Scenario,
        indices: list[int],
        world: World = SIMULATOR,
        work: Work | None = None,
    ) -> None:
        self._scenario = scenario
        self._indices = indices
        self.world = world
        #: Gives the records of a run, in place of the world.
        self.work = work

    @property
    def runs(self) -> int:
        """Number of cells."""
        return len(self._indices)

    def cell(self, index: int, /) -> _core.Cell:
        """Makes one."""
        return self._scenario.cell(self._indices[index])

    def duration_s(self, index: int, /) -> float:
        """Simulated seconds of a cell."""
        return self._scenario.duration_s(self._indices[index])
