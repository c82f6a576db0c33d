"""The worlds side by side: what decides at each point, in the simulator and on Linux."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cwnd.plots import style
from cwnd.results import ALL, METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.agreement.verdict import Agreement, Row


#: Panels side by side.
_COLUMNS = 4
_POINTS = 72.0
#: Numbers and names beside a panel.
_BESIDE_PT = 45.0


def figure(found: Agreement) -> Figure:
    """One mark for each point and group, with both intervals; grey is what may differ."""
    from cwnd.agreement.verdict import GOODPUT, TOLERANCE

    rows = found.deciding
    arm_of = partial(_arm, grouped=any(row.group != ALL for row in rows))
    arms = list(dict.fromkeys(arm_of(row) for row in rows))
    panels = list(dict.fromkeys(_panel(row) for row in rows)) or [("", GOODPUT)]
    metrics = {metric for _, metric in panels}
    with style.styled():
        rows_of_panels = -(-len(panels) // _COLUMNS)
        columns = -(-len(panels) // rows_of_panels)
        drawn = style.figure(0.4 + 2.6 * rows_of_panels)
        grid = list(drawn.subplots(rows_of_panels, columns, squeeze=False).flat)
        for place in grid[len(panels) :]:
            place.set_visible(False)
        grid = grid[: len(panels)]
        for (title, metric), panel in zip(panels, grid, strict=True):
            scale, unit = METRICS[metric].scale, METRICS[metric].unit
            mine = [row for row in rows if _panel(row) == (title, metric)]
            largest = max((max(r.simulator.mean, r.linux.mean) for r in mine), default=1.0) * scale
            ends = [0.0, largest * 1.05]
            low, high = ([x * (1 + t) for x in ends] for t in (-TOLERANCE, TOLERANCE))
            panel.fill_between(ends, low, high, color="0.9", lw=0)
            panel.plot(ends, ends, color="0.5", lw=0.6)
            for index, arm in enumerate(arms):
                _marks(panel, [r for r in mine if arm_of(r) == arm], scale, index, arm)
            wide = drawn.get_size_inches()[0] * _POINTS / columns - _BESIDE_PT
            panel.set_title(style.wrapped(title, wide), parse_math=False)
            panel.set_xlabel(f"Simulator ({unit})")
            panel.set_xlim(*_limits(mine, scale))
            panel.set_ylim(*_limits(mine, scale))
        for (_, metric), panel in zip(panels, grid, strict=True):
            if len(metrics) > 1 or panel in grid[::columns]:
                what = "Goodput" if metric == GOODPUT else "Completion time"
                panel.set_ylabel(f"{what} on Linux ({METRICS[metric].unit})")
        style.legend(drawn, list(grid), math=False)
    return drawn


def _marks(panel: Axes, rows: list[Row], scale: float, index: int, label: str) -> None:
    if not rows:
        return
    look = style.points(index) | {"linestyle": "none"}
    panel.errorbar(
        [row.simulator.mean * scale for row in rows],
        [row.linux.mean * scale for row in rows],
        xerr=[(row.simulator.half_width or 0.0) * scale for row in rows],
        yerr=[(row.linux.half_width or 0.0) * scale for row in rows],
        label=label,
        elinewidth=0.6,
        **look,
    )


def _limits(rows: list[Row], scale: float) -> tuple[float, float]:
    values = [value * scale for row in rows for value in (row.simulator.mean, row.linux.mean)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.08 * (high - low), 0.02 * high)
    return max(0.0, low - room), high + room


def _panel(row: Row) -> tuple[str, str]:
    """The panels are the values of the first axis, of each metric by itself."""
    return next(iter(row.point.values()), ""), row.metric


def _arm(row: Row, *, grouped: bool) -> str:
    """The marks are the values of the last, and groups."""
    arm = [list(row.point.values())[-1]] if len(row.point) > 1 else []
    group = "all flows" if row.group == ALL else row.group
    return ", ".join([*arm, *([group] if grouped else [])])
