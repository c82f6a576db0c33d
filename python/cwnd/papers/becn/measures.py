"""Numbers that the claims of the BECN paper come down to: one for each seed.

`what` is a column of `flows.py`: `goodput` of flows, and their `loss` where there is a `group`;
`time` of web objects; `loss`, `marks`, `utilisation`, `queue` and `quenches` of the bottleneck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.papers.becn.flows import gains, leads, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd.reproduce import Measure, Point, Results, Sides


def number(
    results: Results, figure: str, what: str, of: Point, group: str | None = None
) -> list[float]:
    """The number itself, in the unit of its column."""
    return numbers(results[figure], what, of, group)


def more(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """How much more of it there is at `of` than at `over`, in per cent."""
    ((after, before),) = _points(results, figure, what, of, over)
    return gains(list(after), list(before))


def less(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """How much less of it there is at `of` than at `over`, in per cent."""
    return [-gain for gain in more(results, figure, what, of, over)]


def lead(results: Results, figure: str, of: Point) -> list[float]:
    """How much more goodput a tested flow has than a plain one beside it, in per cent."""
    return leads(results[figure], of)


def lead_beyond(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """How much larger that lead is at `of` than at `over`, in percentage points."""
    ((after, before),) = _leads(results, figure, of, over)
    return [a - b for a, b in zip(after, before, strict=True)]


def _points(results: Results, figure: str, what: str, of: Point, over: Point) -> list[Sides]:
    run = results[figure]
    return [(numbers(run, what, of), numbers(run, what, over))]


def _reversed(results: Results, figure: str, what: str, of: Point, over: Point) -> list[Sides]:
    return _points(results, figure, what, over, of)


def _leads(results: Results, figure: str, of: Point, over: Point) -> list[Sides]:
    return [(leads(results[figure], of), leads(results[figure], over))]


MEASURES: Mapping[str, Measure] = {
    function.__name__: function for function in (number, more, less, lead, lead_beyond)
}

#: What lies above what where a measure orders.
SIDES: Mapping[str, Callable[..., list[Sides]]] = {
    "more": _points,
    "less": _reversed,
    "lead_beyond": _leads,
}
