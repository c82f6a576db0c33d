"""Functions that the checks of several lessons use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cwnd._core import ScenarioError
from cwnd.errors import CwndError
from cwnd.running import Scenario, run

if TYPE_CHECKING:
    from collections.abc import Callable


#: The lessons, in their order.
NAMES = ("sawtooth", "bufferbloat", "ecn", "fairness", "bbr", "own")


class NotYet(CwndError):  # noqa: N818 - it is a comment on an answer
    """An answer that is not right, with what it lacks."""

    def _render_traceback_(self) -> list[str]:
        """Lines that a notebook shows in place of a traceback."""
        return [f"✗ not yet: {self}"]


def require(holds: bool, lacking: str) -> None:
    """Raises `NotYet` unless something holds."""
    if not holds:
        raise NotYet(lacking)


def right(text: str) -> None:
    """Prints that an answer is right."""
    print(f"✓ right: {text}")  # noqa: T201 - the output of a cell


def given(answer: object, what: str) -> None:
    """Raises `NotYet` if the answer is still the `...` of the notebook."""
    require(answer is not ..., f"{what} is still `...`")


def number(answer: object, what: str) -> float:
    """Returns the answer as a number, which must be finite."""
    given(answer, what)
    # Text converts, too, but is no number.
    is_number = hasattr(answer, "__float__") and not isinstance(answer, bool)
    require(is_number, f"{what} is to be a number, not {answer!r:.80}")
    try:
        found = float(answer)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise NotYet(f"{what} is no number that can be used: {error}") from error
    require(math.isfinite(found), f"{what} is to be a finite number, not {found}")
    return found


def value(function: object, what: str, **arguments: float) -> float:
    """Calls the answer, a function of numbers, and returns its number."""
    if not callable(function):
        raise NotYet(f"{what} is to be a function, not {function!r:.80}")
    call: Callable[..., object] = function
    called = f"{what}({', '.join(f'{name}={given:g}' for name, given in arguments.items())})"
    try:
        answer = call(**arguments)
    except Exception as error:
        raise NotYet(f"{called} fails: {type(error).__name__}: {error}") from error
    return number(answer, called)


def measured(
    scenario: Scenario, changes: dict[str, Any], **options: Any
) -> dict[str, dict[str, float]]:
    """Runs a scenario with changes; returns the means of its metrics, by group and metric.

    Raises:
        NotYet: The changes, or the code in `options`, cannot be run.
    """
    try:
        rows = run(scenario, set=changes, **options).summary()
    except (CwndError, ScenarioError) as error:
        raise NotYet(str(error)) from error
    return {row["group"]: row for row in rows.iter_rows(named=True)}
