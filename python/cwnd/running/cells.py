"""A cell: one run, named by what it simulates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import MachineError
from cwnd.running.worlds import SIMULATOR
from cwnd.store import cell_id

if TYPE_CHECKING:
    from cwnd.running.worlds import World


@dataclass(frozen=True)
class Failure:
    """Reason for which a cell gave nothing."""

    error: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Takes down what was raised."""
        return cls(type(error).__name__, str(error) or type(error).__name__)


@dataclass(frozen=True)
class Outcome:
    """A cell that was computed, or the reason why there is none."""

    cell_id: str
    #: Its content, and what it recorded.
    made: tuple[str, _core.Cell, _core.Result] | None = None
    failure: Failure | None = None


def attempt(
    text: str,
    cell: _core.Cell | None = None,
    control: _core.Control | None = None,
    world: World = SIMULATOR,
) -> Outcome:
    """Runs a cell, which is made from its content if not given; a failure is its outcome."""
    name = cell_id(text, world.engine)
    try:
        made = cell or _core.parse(text, name="cell.toml").cell(0)
        run = simulate if world is SIMULATOR else world.run
        return Outcome(name, (text, made, run(made, control)))
    except (KeyboardInterrupt, SystemExit, _core.Cancelled, MachineError):
        raise
    except BaseException as error:  # a panic of the extension is no Exception
        return Outcome(name, failure=Failure.of(error))


def simulate(cell: _core.Cell, control: _core.Control | None = None) -> _core.Result:
    """Simulates a cell."""
    return cell.run(control)
