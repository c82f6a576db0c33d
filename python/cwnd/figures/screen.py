"""Panels as specifications for a page, whose readers zoom, point at marks and hide lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cwnd.figures import axes
from cwnd.figures.axes import labelled
from cwnd.figures.description import Line
from cwnd.figures.layers import Layers
from cwnd.figures.layout import PanelLayout
from cwnd.figures.styles import collect_styles
from cwnd.figures.text import TICK_TEXT_PT, Text
from cwnd.figures.vega import SCHEMA, scale, x_ticks, y_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.figures.axes import Scale, XTicks
    from cwnd.figures.description import Panel, Picture

#: Pixels of a page for a point of a figure.
_PIXELS = 11 / TICK_TEXT_PT
#: Minimum width of an axis on a page in pixels, which limits the labels of its ticks.
_MIN_AXIS_PX = 130
#: Maximum length of a line of an axis's label in pixels, and maximum number of lines.
_LABEL_PX = {"x": 140, "y": 170}
_LABEL_LINES = 4
#: Height of a line of a tick's label.
_LINE_PX = 14.0
#: Room below markers at zero, as a fraction of the axis.
_MARGIN = 0.06
#: Approximate number of points that a downsampled line has for each point of width.
_POINTS_PER_WIDTH = 8
#: Opacity of grid lines on a logarithmic axis: full at powers of ten, faint between them.
_DECADES = {
    "condition": {"test": "abs(log(datum.value) / LN10 % 1) < 1e-9", "value": 1},
    "value": 0.3,
}


@dataclass(frozen=True)
class ScreenPanel:
    """A panel of a page."""

    spec: dict[str, Any]
    #: Labels of lines, by their names in the specification.
    labels: dict[str, str]
    #: Texts at points: x, y, text, and the label of their line.
    texts: list[tuple[float, float, str, str | None]]
    #: Ends of both axes, and `True` for each logarithmic axis.
    ends: dict[str, list[float]]
    log: dict[str, bool]
    #: Height in pixels of the ticks' labels beyond a single line.
    extra_label_height: float
    #: Ratio of height to width; `None` if the page chooses it.
    ratio: float | None

    def axis_label(self, side: str) -> str:
        """Label of an axis, in one line."""
        axis = self.spec["encoding"][side]["axis"] or {}
        title = axis.get("title") or ""
        return title if isinstance(title, str) else " ".join(title)


def screen_panels(picture: Picture, max_points: int) -> list[ScreenPanel]:
    """Builds the panels of a figure for a page.

    A panel without labels of its axes gets those of its row, column or figure.

    Args:
        picture: The figure.
        max_points: Approximate number of points to which longer lines are downsampled.
    """
    named = list(dict.fromkeys(line.label or "" for p in picture.panels for line in p.lines))
    panels = [_in_pixels(panel, named) for panel in picture.panels]
    styles, names = collect_styles(panels)
    found = []
    scales = axes.scales(picture)
    for index, (panel, own) in enumerate(zip(panels, names, strict=True)):
        place = PanelLayout(
            panel, *scales[index], height=1000, width=max(max_points // _POINTS_PER_WIDTH, 1)
        )
        labels = {
            name: line.label
            for name, line in zip(own, picture.panels[index].marks, strict=True)
            if name and isinstance(line, Line) and line.label
        }
        drawn = Layers(place, styles, own).all()
        layers = [_interactive(layer, number) for number, layer in enumerate(drawn)]
        texts = [
            (x, y, text, line.label)
            for line in picture.panels[index].lines
            for x, y, text in zip(line.x, line.y, line.texts, strict=False)
            if y is not None
        ]
        ends = {"x": place.x.domain, "y": _y_ends(place)}
        log = {"x": place.x.log, "y": place.y.log}
        spec = _spec(place, layers, _labels(picture, index), ends)
        spec["encoding"]["color"] = styles.colour() if styles.by_name else {"value": "black"}
        found.append(
            ScreenPanel(spec, labels, texts, ends, log, _extra_label_height(place), _ratio(place))
        )
    return found


def _in_pixels(panel: Panel, labels: Sequence[str]) -> Panel:
    """Scales the lines of a panel to pixels, and names them by numbers.

    Users' texts thus stay out of the data.
    """
    marks = [
        replace(
            mark,
            label=f"{labels.index(mark.label or '')}",
            width=mark.width * _PIXELS,
            size=mark.size * _PIXELS,
        )
        if isinstance(mark, Line)
        else mark
        for mark in panel.marks
    ]
    return replace(panel, marks=marks)


def _interactive(layer: dict[str, Any], number: int) -> dict[str, Any]:
    """Clips a layer at the edges of the panel, and filters out hidden lines."""
    found = dict(layer)
    if "mark" in layer:
        mark = layer["mark"] if isinstance(layer["mark"], dict) else {"type": layer["mark"]}
        found["mark"] = mark | {"clip": True}
    if "layer" in layer:
        found["layer"] = [_interactive(each, number) for each in layer["layer"]]
    if "line" in layer.get("data", {}).get("format", {}).get("parse", {}):
        found["data"] = {"name": f"values{number}", **layer["data"]}
        found["transform"] = [{"filter": "indexof(hidden, datum.line) < 0"}]
    return found


def _y_ends(place: PanelLayout) -> list[float]:
    low, high = place.y.domain
    marked = any(line.marker for line in place.panel.lines)
    return [low - _MARGIN * (high - low) if low == 0 and marked else low, high]


def _spec(
    place: PanelLayout,
    layers: list[dict[str, Any]],
    labels: tuple[str, str],
    ends: dict[str, list[float]],
) -> dict[str, Any]:
    """Builds a specification whose axes end at parameters that the page sets."""
    panel = place.panel
    params: list[dict[str, Any]] = [{"name": "hidden", "value": []}]
    encoding: dict[str, Any] = {}
    for side, own, label in (("x", place.x, labels[0]), ("y", place.y, labels[1])):
        names = [f"{side}_low", f"{side}_high"]
        params += [{"name": n, "value": v} for n, v in zip(names, ends[side], strict=True)]
        low, high = ({"expr": name} for name in names)
        free = {key: value for key, value in scale(own).items() if key != "domain"}
        encoding[side] = {
            "type": "quantitative",
            "scale": free | {"domainMin": low, "domainMax": high},
            "axis": None if panel.bare else _axis(panel, side, own, label),
        }
    empty = {"data": {"values": [{}]}, "mark": {"type": "rule", "opacity": 0}}
    at = {side: {"datum": ends[side][0]} for side in "xy"}
    return {
        "$schema": SCHEMA,
        "params": params,
        "encoding": encoding,
        "layer": layers or [empty | {"encoding": at}],
    }


def _axis(panel: Panel, side: str, own: Scale, label: str) -> dict[str, Any]:
    title = Text.fitted(label, _LABEL_PX[side] / _PIXELS, TICK_TEXT_PT, _LABEL_LINES)
    axis: dict[str, Any] = {"grid": True, "title": title.written() if title.lines else None}
    chosen = panel.ticks if side == "x" else panel.y_ticks
    if chosen is None:
        # Vega's default format writes 1e+6, and shows the rounding error of 0.1 + 0.2.
        axis |= {"format": ".12~g", "labelOverlap": "greedy", "labelSeparation": 4}
        return axis | ({"gridOpacity": _DECADES} if own.log else {})
    if side == "y":
        ticks = [(at, Text.fitted(t, _MIN_AXIS_PX, TICK_TEXT_PT, 1)) for at, t in chosen]
        return axis | y_ticks(ticks)
    found = _labelled(panel, own)
    overlap = False if found.upright else "greedy"
    return axis | {"grid": panel.x_grid, "labelOverlap": overlap} | x_ticks(found, line=_LINE_PX)


def _labelled(panel: Panel, x: Scale) -> XTicks:
    width = _MIN_AXIS_PX / _PIXELS
    ticks = [(at, text) for at, text in panel.ticks or [] if x.contains(at)]
    return labelled(ticks, [x.place(at) * width for at, _ in ticks], width)


def _extra_label_height(place: PanelLayout) -> float:
    """Height of the ticks' labels beyond a line, in pixels."""
    if place.panel.ticks is None or place.panel.bare:
        return 0.0
    return max(_labelled(place.panel, place.x).height * _PIXELS - 15, 0.0)


def _ratio(place: PanelLayout) -> float | None:
    if not place.panel.bare:
        return None
    x, y = place.x, place.y
    return (y.high - y.low) / (x.high - x.low)


def _labels(picture: Picture, index: int) -> tuple[str, str]:
    """Labels of the axes of a panel, or of its column, row or figure."""
    panels, columns = picture.panels, picture.columns
    column = panels[index % columns :: columns]
    row = panels[index - index % columns : index + 1]
    x = (
        panels[index].x_label
        or picture.x_label
        or next((panel.x_label for panel in reversed(column) if panel.x_label), "")
    )
    y = panels[index].y_label or next((panel.y_label for panel in row if panel.y_label), "")
    return x, (y or picture.y_label).replace("\n", " ")
