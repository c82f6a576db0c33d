"""Paints what a figure shows with matplotlib."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FuncFormatter

from cwnd.plots import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from cwnd.plots.picture import Line, Panel, Picture

#: Labels beside a title.
_BESIDE = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.3}


def figure(picture: Picture) -> style.NotebookFigure:
    """The figure, to be changed, shown or written."""
    with style.styled():
        made = style.figure(picture.height, picture.width)
        grid = made.subplots(
            picture.rows,
            picture.columns,
            sharex=picture.shared_x,
            sharey=picture.shared_y,
            squeeze=False,
            height_ratios=picture.heights or None,
        )
        places = list(grid.flat)
        shown = places[: len(picture.panels)]
        for place, panel in zip(shown, picture.panels, strict=True):
            _paint(place, panel)
            if not picture.legend_above and len(place.get_legend_handles_labels()[1]) > 1:
                place.legend(ncols=len(place.lines), **_BESIDE)
        # Panels that share an axis must all be filled before an end of it is fixed.
        for place, panel in zip(shown, picture.panels, strict=True):
            _limit(place, panel)
        for place in places[len(shown) :]:
            place.set_visible(False)
        if picture.x_label:
            made.supxlabel(picture.x_label)
        if picture.y_label:
            made.supylabel(picture.y_label)
        if picture.legend_above:
            style.legend(made, shown)
        made.align_ylabels()
    return made


def _paint(place: Axes, panel: Panel) -> None:
    if panel.x_log:
        place.set_xscale("log")
    for line in panel.lines:
        _paint_line(place, line)
    place.set_title(panel.title, loc="left" if panel.title_left else "center")
    place.set_xlabel(panel.x_label)
    place.set_ylabel(panel.y_label)
    if panel.x_tight:
        place.margins(x=0)
    if panel.ticks is not None:
        place.set_xticks([x for x, _ in panel.ticks], [text for _, text in panel.ticks])
        place.minorticks_off()
    elif panel.x_log:
        place.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if not panel.x_grid:
        place.grid(visible=False, axis="x")


def _limit(place: Axes, panel: Panel) -> None:
    if panel.x_limits != (None, None):
        place.set_xlim(*panel.x_limits)
    if panel.y_limits != (None, None):
        place.set_ylim(*panel.y_limits)


def _paint_line(place: Axes, line: Line) -> None:
    y = _with_gaps(line.y)
    look: dict[str, Any] = {
        "color": line.colour,
        "linestyle": style.dashes(line.dashes) if line.joined else "none",
        "lw": line.width,
        "label": line.label,
    }
    if line.marker is not None:
        look["marker"] = line.marker
    if line.band is not None:
        low, high = map(_with_gaps, line.band)
        place.fill_between(line.x, low, high, color=line.colour, alpha=0.25, lw=0)
    if line.half_widths is not None:
        place.errorbar(line.x, y, yerr=_with_gaps(line.half_widths), clip_on=False, **look)
        return
    place.plot(line.x, y, drawstyle="steps-post" if line.steps else "default", **look)


def _with_gaps(values: Sequence[float | None]) -> list[float]:
    """As matplotlib knows gaps: it draws nothing at NaN."""
    return [nan if value is None else value for value in values]
