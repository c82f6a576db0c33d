"""The figure of response times on a page: which part of the requests takes longer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.plots.layout import title
from cwnd.plots.responses import X_LABEL, Y_LABEL, curves_of, edges
from cwnd.report.figures import Choice, Figure, Panel, axis, colour, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.plots.responses import Curve
    from cwnd.results import Run

#: Significant digits of the numbers in a page: more than a screen resolves.
_DIGITS = 4


def responses_figure(run: Run) -> Figure | None:
    """The part of the requests that takes longer, on logarithmic axes."""
    try:
        found = curves_of(run)
    except InputError:
        return None
    xaxis = axis(X_LABEL, type="log", tickformat="~g")
    bottom = math.log10(found.least / 1.5)
    yaxis = axis(Y_LABEL, type="log", tickformat="~g", range=[bottom, 0.02])
    panels = []
    for point, curves in found.panels:
        name = title(point, found.grid.axes)
        where = f" at {name}" if name else ""
        alt = f"Distribution of response times{where}; the table of results has its quantiles."
        traces = [trace for curve in curves for trace in _traces(curve, found.least / 1.5)]
        panels.append(Panel(name, alt, traces, xaxis, yaxis, hover="closest"))
    several = len(run.manifest.seeds) > 1
    return Figure(
        kind="responses",
        title="Response times",
        caption=" ".join(
            (
                f"How large a part of the requests takes longer than this{found.grid.left_out}.",
                "The band is the 95 % interval of the mean over the seeds, at each time by itself."
                * several,
                "A curve that ends above the axis ends where all others were given up, or were"
                " open when the run ended.",
            )
        ).replace("  ", " "),
        choices=[Choice("", panels, found.grid.columns)],
        linked=True,
    )


def _traces(curve: Curve, least: float) -> list[dict[str, Any]]:
    name, shares = curve.label or "", curve.shares
    # A logarithmic axis has no place for none.
    some = [index for index, share in enumerate(shares.means) if share > 0]
    times = _rounded([shares.times_s[i] for i in some])
    head = "<b>%{fullData.name}</b><br>" if name else ""
    template = f"{head}%{{y:.2~%}} takes longer than %{{x:.3~g}} s<extra></extra>"
    means = _rounded([shares.means[i] for i in some])
    main = line(name, curve.look, times, means, hovertemplate=template)
    if shares.half_widths is None:
        return [main]
    edge = {"line": {"width": 0, "color": colour(curve.look)}, "hoverinfo": "skip"}
    low, high = (_rounded([max(each[i], least) for i in some]) for each in edges(shares))
    lower = line(name, curve.look, times, low, **edge)
    upper = line(name, curve.look, times, high, **edge)
    upper |= {"fill": "tonexty", "fillcolor": f"{colour(curve.look)}/25"}
    return [lower, upper, main]


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]
