"""Measures of the BECN paper's claims: one value for each seed.

`what` is a column of `flows.py`: `goodput` of flows, and their `loss` with a `group`; `time` of web
objects; `loss`, `marks`, `utilisation`, `queue` and `quenches` of the bottleneck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.studies.papers.becn.flows import gains, leads, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd.study import Measure, Point, Results, Sides


def number(
    results: Results, figure: str, what: str, of: Point, group: str | None = None
) -> list[float]:
    """Value of a column of `flows.py`, in its unit."""
    return numbers(results[figure], what, of, group)


def more(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """Relative excess of the number at `of` over that at `over`, in per cent."""
    ((after, before),) = _points(results, figure, what, of, over)
    return gains(list(after), list(before))


def less(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """Relative deficit of the number at `of` to that at `over`, in per cent."""
    return [-gain for gain in more(results, figure, what, of, over)]


def lead(results: Results, figure: str, of: Point) -> list[float]:
    """Relative lead in goodput of a tested flow over a plain one beside it, in per cent."""
    return leads(results[figure], of)


def _points(results: Results, figure: str, what: str, of: Point, over: Point) -> list[Sides]:
    run = results[figure]
    return [(numbers(run, what, of), numbers(run, what, over))]


def _reversed(results: Results, figure: str, what: str, of: Point, over: Point) -> list[Sides]:
    return _points(results, figure, what, over, of)


def lead_beyond(results: Results, figure: str, of: Point, over: Point) -> list[Sides]:
    """Difference of that lead at `of` from that at `over`, in percentage points."""
    return [(leads(results[figure], of), leads(results[figure], over))]


MEASURES: Mapping[str, Measure] = {
    function.__name__: function for function in (number, more, less, lead)
}

#: Orders: functions with the values that they compare.
SIDES: Mapping[str, Callable[..., list[Sides]]] = {
    "more": _points,
    "less": _reversed,
    "lead_beyond": lead_beyond,
}
