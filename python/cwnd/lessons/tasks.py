"""Parts that the checks of all lessons have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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
    """Returns the answer, which must be a finite number."""
    given(answer, what)
    known = isinstance(answer, (int, float)) and not isinstance(answer, bool)
    if not known or not math.isfinite(answer):  # type: ignore[arg-type]
        raise NotYet(f"{what} is to be a number, not {answer!r}")
    return float(answer)  # type: ignore[arg-type]


def value(function: object, what: str, **arguments: float) -> float:
    """Calls the answer, a function of numbers, and returns its number."""
    if not callable(function):
        raise NotYet(f"{what} is to be a function, not {function!r}")
    call: Callable[..., object] = function
    shown = ", ".join(f"{name}={argument:g}" for name, argument in arguments.items())
    return number(call(**arguments), f"{what}({shown})")


def measured(
    scenario: Scenario, changes: dict[str, Any], **options: Any
) -> dict[str, dict[str, float]]:
    """Runs a scenario with changes; returns the means of its metrics, by group and metric."""
    rows = run(scenario, set=changes, **options).summary()
    return {row["group"]: row for row in rows.iter_rows(named=True)}
