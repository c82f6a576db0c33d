"""Figure of the deciding metrics at each point, in the simulator and on Linux."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.results import ALL, METRICS, interval_ends

if TYPE_CHECKING:
    from cwnd.study.agreement.verdict import Agreement, Row


#: Maximum number of panels side by side.
_COLUMNS = 4
#: Colour of the line of equal values, and of the tolerance around it.
_GREY = "#808080"


def figure(found: Agreement) -> Picture:
    """Describes a marker for each point and group, with both intervals; grey is the tolerance."""
    from cwnd.study.agreement.verdict import GOODPUT

    rows = found.deciding
    arm_of = partial(_arm, grouped=any(row.group != ALL for row in rows))
    arms = list(dict.fromkeys(arm_of(row) for row in rows))
    panels = list(dict.fromkeys(_panel(row) for row in rows)) or [("", GOODPUT)]
    metrics = {metric for _, metric in panels}
    rows_of_panels = -(-len(panels) // _COLUMNS)
    columns = -(-len(panels) // rows_of_panels)
    drawn = []
    for index, (title, metric) in enumerate(panels):
        scale, unit = METRICS[metric].scale, METRICS[metric].unit
        mine = [row for row in rows if _panel(row) == (title, metric)]
        by_arm = {arm: [row for row in mine if arm_of(row) == arm] for arm in arms}
        marks = [_marks(of, scale, n, arm) for n, (arm, of) in enumerate(by_arm.items()) if of]
        panel = Panel([_equal(mine, scale), *marks], title=title, x_label=f"Simulator ({unit})")
        panel.x_limits = panel.y_limits = _limits(mine, scale)
        if len(metrics) > 1 or index % columns == 0:
            what = "Goodput" if metric == GOODPUT else "Completion time"
            panel.y_label = f"{what} on Linux ({unit})"
        drawn.append(panel)
    height = 0.4 + 2.6 * rows_of_panels
    return Picture(drawn, height, columns=columns, shared_x="none", shared_y="none")


def _equal(rows: list[Row], scale: float) -> Line:
    """Builds the line of equal values, with the tolerance as a band."""
    from cwnd.study.agreement.verdict import TOLERANCE

    largest = max((max(row.simulator.mean, row.linux.mean) for row in rows), default=1.0) * scale
    ends = [0.0, largest * 1.05]
    low, high = ([x * (1 + t) for x in ends] for t in (-TOLERANCE, TOLERANCE))
    return Line(ends, ends, colour=_GREY, width=0.6, band=(low, high))


def _marks(rows: list[Row], scale: float, index: int, label: str) -> Line:
    worlds = [[row.simulator for row in rows], [row.linux for row in rows]]
    ours, theirs = ([each.mean * scale for each in world] for world in worlds)
    across, up = (interval_ends(world, scale) for world in worlds)
    return Line(
        ours,
        theirs,
        colour=line_style.colour(index),
        width=0.6,
        joined=False,
        marker=line_style.marker(index),
        label=label,
        interval=up,
        x_interval=across,
    )


def _limits(rows: list[Row], scale: float) -> tuple[float, float]:
    values = [value * scale for row in rows for value in (row.simulator.mean, row.linux.mean)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.08 * (high - low), 0.02 * high)
    return max(0.0, low - room), high + room


def _panel(row: Row) -> tuple[str, str]:
    """Panel of a row: the value of the first axis, and the metric."""
    return next(iter(row.point.values()), ""), row.metric


def _arm(row: Row, *, grouped: bool) -> str:
    """Marker of a row: the value of the last of several axes, and the group if `grouped`."""
    arm = [list(row.point.values())[-1]] if len(row.point) > 1 else []
    group = "all flows" if row.group == ALL else row.group
    return ", ".join([*arm, *([group] if grouped else [])])
