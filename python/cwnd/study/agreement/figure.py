"""Figure of metrics at each point, in the simulator and on Linux."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.results import ALL, METRICS, interval_ends

if TYPE_CHECKING:
    from collections.abc import Collection

    from cwnd.study.agreement.verdict import Agreement, Row


#: Maximum number of panels side by side.
_COLUMNS = 4
#: Colour of the line of equal values, and of the tolerance around it.
_GREY = "#808080"


def figure(found: Agreement, metrics: Collection[str] = ()) -> Picture:
    """Describes a marker for each point and group, with both intervals; grey is the tolerance.

    Args:
        found: The agreement.
        metrics: Columns of the metrics; those that decide if not given.

    Raises:
        InputError: The agreement has no such metric.
    """
    from cwnd.study.agreement.verdict import COMPLETION, GOODPUT

    rows = found.of_metrics(metrics) if metrics else found.deciding
    arm_of = partial(_arm, grouped=any(row.group != ALL for row in rows))
    arms = list(dict.fromkeys(arm_of(row) for row in rows))
    panels = list(dict.fromkeys(_panel(row) for row in rows)) or [("", GOODPUT)]
    several = len({metric for _, metric in panels}) > 1
    if metrics:
        panels.sort(key=lambda panel: list(metrics).index(panel[1]))
    # Panels of a metric are side by side if they fit.
    in_row = len({title for title, _ in panels}) if metrics else len(panels)
    rows_of_panels = -(-len(panels) // min(_COLUMNS, in_row))
    columns = -(-len(panels) // rows_of_panels)
    drawn = []
    for index, (title, metric) in enumerate(panels):
        scale, unit = METRICS[metric].scale, METRICS[metric].unit
        in_unit = f" ({unit})" if unit else ""
        mine = [row for row in rows if _panel(row) == (title, metric)]
        by_arm = {arm: [row for row in mine if arm_of(row) == arm] for arm in arms}
        marks = [_marks(of, scale, n, arm) for n, (arm, of) in enumerate(by_arm.items()) if of]
        panel = Panel([_equal(mine, scale), *marks], title=title, x_label=f"Simulator{in_unit}")
        panel.x_limits = panel.y_limits = _limits(mine, scale, intervals=bool(metrics))
        if several or index % columns == 0:
            what = "Completion time" if metric == COMPLETION else METRICS[metric].label
            what += "," * ("," in what)
            panel.y_label = f"{what} on Linux{in_unit}"
        drawn.append(panel)
    height = 0.4 + 2.6 * rows_of_panels
    return Picture(drawn, height, columns=columns, shared_x="none", shared_y="none")


def _equal(rows: list[Row], scale: float) -> Line:
    """Builds the line of equal values, with the tolerance of deciding metrics as a band."""
    from cwnd.study.agreement.verdict import COMPLETION, GOODPUT, TOLERANCE

    ends = [0.0, 1.05 * _limits(rows, scale, intervals=True)[1]]
    line = Line(ends, ends, colour=_GREY, width=0.6)
    if any(row.metric in (GOODPUT, COMPLETION) and row.allowed is not None for row in rows):
        line.band = ([x * (1 - TOLERANCE) for x in ends], [x * (1 + TOLERANCE) for x in ends])
    return line


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


def _limits(rows: list[Row], scale: float, *, intervals: bool) -> tuple[float, float]:
    """Returns limits around all means, which a tolerance is about, or around all intervals."""
    values = [each for row in rows for each in (row.simulator, row.linux)]
    means = [each.mean * scale for each in values]
    low, high = interval_ends(values, scale) if intervals else (means, means)
    least, most = min(low, default=0.0), max(high, default=0.0) or 1.0
    room = max(0.08 * (most - least), 0.02 * most)
    return max(0.0, least - room), most + room


def _panel(row: Row) -> tuple[str, str]:
    """Panel of a row: the value of the first axis, and the metric."""
    return next(iter(row.point.values()), ""), row.metric


def _arm(row: Row, *, grouped: bool) -> str:
    """Marker of a row: the value of the last of several axes, and the group if `grouped`."""
    arm = [list(row.point.values())[-1]] if len(row.point) > 1 else []
    group = "all flows" if row.group == ALL else row.group
    return ", ".join([*arm, *([group] if grouped else [])])
