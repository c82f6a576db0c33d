"""A cell: one run of a scenario, named by a hash of its content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import MachineError
from cwnd.running.environments import SIMULATOR
from cwnd.store import cell_id

if TYPE_CHECKING:
    from cwnd.running.environments import Environment


@dataclass(frozen=True)
class Failure:
    """Error of a cell that could not be computed."""

    error: str
    message: str

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


def attempt(
    text: str,
    cell: _core.Cell | None = None,
    control: _core.Control | None = None,
    environment: Environment = SIMULATOR,
) -> Outcome:
    """Runs a cell, parsed from its content if not given, and catches its failure.

    Raises:
        KeyboardInterrupt: Ctrl-C; not a failure of the cell, as the next three.
        SystemExit: The process ends.
        Cancelled: The run was cancelled.
        MachineError: This machine lacks something.
    """
    name = cell_id(text, environment.engine)
    try:
        made = cell or _core.parse(text, name="cell.toml").cell(0)
        run = simulate if environment is SIMULATOR else environment.run
        return Outcome(name, (text, made, run(made, control)))
    except (KeyboardInterrupt, SystemExit, _core.Cancelled, MachineError):
        raise
    except BaseException as error:  # a panic of the extension is a BaseException
        return Outcome(name, failure=Failure.of(error))


def simulate(cell: _core.Cell, control: _core.Control | None = None) -> _core.Result:
    """Simulates a cell and returns its records."""
    return cell.run(control)
