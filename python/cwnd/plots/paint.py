"""Paints what a figure shows with matplotlib, where `_core.lay_out` puts it."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, Any, Literal

from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from cwnd import _core
from cwnd.plots import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from cwnd.figures import Line, Panel, Picture

_POINTS = 72.0
#: Numbers beyond this are not drawn, as in `crates/picture`.
_LARGEST = 1e150
#: Free around a figure, in points.
_MARGIN = 4.0


def figure(picture: Picture) -> style.NotebookFigure:
    """The figure, to be changed, shown or written."""
    laid = _core.lay_out(picture)
    width, height = laid["width"], laid["height"]
    with style.styled():
        made = style.figure(height / _POINTS, width / _POINTS, constrained=False)
        # By panel and line, for the legends.
        drawn: dict[tuple[int, int], Any] = {}
        for index, (panel, place) in enumerate(zip(picture.panels, laid["panels"], strict=True)):
            if not panel.shown:
                continue
            box = place["left"], height - place["top"] - place["height"], place["width"]
            axes = made.add_axes(
                (box[0] / width, box[1] / height, box[2] / width, place["height"] / height)
            )
            # What is drawn does not move the ends of the axes any more.
            axes.set_xlim(*place["x_limits"])
            axes.set_ylim(*place["y_limits"])
            if panel.x_log:
                axes.set_xscale("log")
            if panel.y_log:
                axes.set_yscale("log")
            for number, line in enumerate(panel.lines):
                drawn[index, number] = _paint_line(axes, line, place)
            _write(axes, panel, place)
            _mark(axes, place)
            if panel.bare:
                axes.set_axis_off()
            _legend(axes, place["legend"], drawn, loc="lower right", anchor=(1.0, 1.0))
        across, up = laid["middle"]
        if laid["x_label"]:
            below = {"x": across / width, "y": _MARGIN / height, "va": "bottom"}
            made.supxlabel(laid["x_label"], parse_math=False, **below)
        if laid["y_label"]:
            beside = {"x": _MARGIN / width, "y": 1 - up / height, "ha": "left", "va": "center"}
            made.supylabel(laid["y_label"], parse_math=False, **beside)
        _legend(made, laid["legend"], drawn, loc="upper center", anchor=(0.5, 1 - _MARGIN / height))
    return made


def _write(axes: Axes, panel: Panel, place: _core.LaidPanel) -> None:
    # A legend between the title and the axes, if it is not beside the title.
    lines = place["title"].count("\n") + 1
    beside = place["title_rise"] < style.LINE_PT * lines + place["legend"]["height"]
    rise = style.TITLE_PAD + (0.0 if beside else place["legend"]["height"])
    where: Literal["left", "center"] = "left" if panel.title_left else "center"
    axes.set_title(place["title"], loc=where, pad=rise, y=1.0, parse_math=False)
    axes.set_xlabel(place["x_label"], parse_math=False)
    axes.set_ylabel(place["y_label"], parse_math=False)
    # In line with all others of the row, and of the column.
    axes.xaxis.set_label_coords(0.5, -(place["x_marks_height"] + 1.0) / place["height"])
    left = style.LINE_PT * (place["y_label"].count("\n") + 1) - place["y_room"]
    axes.yaxis.set_label_coords(left / place["width"], 0.5)


def _mark(axes: Axes, place: _core.LaidPanel) -> None:
    for axis, marks in ((axes.xaxis, place["x_marks"]), (axes.yaxis, place["y_marks"])):
        axis.set_ticks(
            [at for at, _ in marks], labels=[text for _, text in marks], parse_math=False
        )
        axis.set_minor_formatter(NullFormatter())
    if place["x_upright"]:
        axes.tick_params(axis="x", labelrotation=90)
    axes.tick_params(axis="x", labelbottom=place["x_written"])
    axes.tick_params(axis="y", labelleft=place["y_written"])


def _paint_line(axes: Axes, line: Line, place: _core.LaidPanel) -> Any:
    x, y = _with_gaps(line.x), _with_gaps(line.y)
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
        axes.fill_between(x, low, high, color=line.colour, alpha=0.25, lw=0)
    if line.interval is not None:
        low, high = (_ends(line, ends) for ends in line.interval)
        # A point on the edge is drawn whole.
        bottom, top = place["y_limits"]
        inside = all(bottom <= end <= top for end in (*low, *high) if not isnan(end))
        below = [value - end for value, end in zip(y, low, strict=True)]
        above = [end - value for value, end in zip(y, high, strict=True)]
        return axes.errorbar(x, y, yerr=(below, above), clip_on=not inside, **look)
    (drawn,) = axes.plot(x, y, drawstyle="steps-post" if line.steps else "default", **look)
    return drawn


def _ends(line: Line, ends: Sequence[float | None]) -> list[float]:
    """The ends of intervals; a point without one is its own."""
    return _with_gaps([y if end is None else end for y, end in zip(line.y, ends, strict=True)])


def _legend(
    of: Any,
    legend: _core.LaidLegend,
    drawn: dict[tuple[int, int], Any],
    *,
    loc: str,
    anchor: tuple[float, float],
) -> None:
    """Writes a legend of a figure or of axes."""
    if not legend["entries"]:
        return
    nothing = Line2D([], [], linestyle="none")
    handles = [nothing if line is None else drawn[line] for line, _ in legend["entries"]]
    texts = [text for _, text in legend["entries"]]
    columns = legend["columns"]
    made = of.legend(
        handles, texts, loc=loc, bbox_to_anchor=anchor, ncols=columns, borderaxespad=0.0
    )
    for text in made.get_texts():
        text.set_parse_math(False)


def _with_gaps(values: Sequence[float | None]) -> list[float]:
    """As matplotlib knows gaps: it draws nothing at NaN."""
    return [nan if value is None or not abs(value) <= _LARGEST else value for value in values]
