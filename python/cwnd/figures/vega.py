"""Conversion of a description into a specification of Vega-Lite, whose pixels are points."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cwnd.figures import axes
from cwnd.figures.description import Image
from cwnd.figures.layers import INTO_LINE, Layers, legend_layers, text_layer
from cwnd.figures.layout import MARGIN_PT, lay_out
from cwnd.figures.styles import collect_styles
from cwnd.figures.text import LINE_PT, TEXT_PT, TICK_LINE_PT, TICK_PT, TICK_TEXT_PT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.figures.axes import Scale, XTicks
    from cwnd.figures.description import Picture
    from cwnd.figures.layout import Layout, PanelLayout
    from cwnd.figures.styles import Styles
    from cwnd.figures.text import Text

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
#: The package includes DejaVu Sans; a viewer of an SVG may have one of the others only.
_FONT = "DejaVu Sans, Verdana, sans-serif"
_TICK_LENGTH = 3.0
_CONFIG = {
    "font": _FONT,
    "background": "white",
    "padding": MARGIN_PT,
    "view": {"stroke": None},
    # Screen readers read texts aloud, but not thousands of marks.
    "mark": {"aria": False},
    "text": {"aria": True, "font": _FONT, "fontSize": TEXT_PT, "color": "black"},
    "tick": {"opacity": 1},
    "axis": {
        "labelFontSize": TICK_TEXT_PT,
        "labelLineHeight": TICK_LINE_PT,
        "labelColor": "black",
        "labelPadding": TICK_PT - _TICK_LENGTH,
        "labelFlush": False,
        "labelOverlap": False,
        "labelLimit": 0,
        "titleFontSize": TEXT_PT,
        "titleLineHeight": LINE_PT,
        "titleFontWeight": "normal",
        "titleColor": "black",
        "titleLimit": 0,
        "gridColor": "#DDDDDD",
        "gridWidth": 0.5,
        "domainColor": "black",
        "domainWidth": 0.6,
        "tickColor": "black",
        "tickWidth": 0.6,
        "tickSize": _TICK_LENGTH,
        # A pixel is a point here, which is too coarse for rounding.
        "tickRound": False,
        "translate": 0,
    },
    "legend": {"labelColor": "black", "titleColor": "black", "titleFontWeight": "normal"},
}
#: Contents of an empty view.
_EMPTY = {"data": {"values": []}, "mark": "point"}


@dataclass(frozen=True)
class Drawing:
    """A specification, the size of its figure, and the position of its first view, in points."""

    spec: dict[str, Any]
    width: float
    height: float
    #: Top left corner of the first view.
    corner: tuple[float, float]


def draw(picture: Picture) -> Drawing:
    """Converts a figure to a specification."""
    layout = lay_out(picture)
    styles, names = collect_styles(picture.panels)
    views = [
        _view(place, Layers(place, styles, own).all(), styles)
        for place, own in zip(layout.places, names, strict=True)
    ]
    rest = _label_all(layout, views)
    spec: dict[str, Any] = {"$schema": SCHEMA, "config": _CONFIG}
    images = any(isinstance(mark, Image) for panel in picture.panels for mark in panel.marks)
    apart = {"resolve": {"scale": {"color": "independent"}}} if images else {}
    body = _grid(layout, views, picture.columns) | apart
    if views and not layout.legend.entries and not rest:
        return Drawing(spec | body, layout.width, layout.height, layout.corner)
    header = _header(layout, rest, styles)
    head = [header, body] if views else [header]
    top = _header_top(layout)
    gap = layout.corner[1] - top - header["height"]
    whole = {"vconcat": head, "spacing": gap, "bounds": "flush", **apart}
    corner = (layout.corner[0], top)
    return Drawing(spec | whole, layout.width, layout.height, corner)


def _grid(layout: Layout, views: list[dict[str, Any]], columns: int) -> dict[str, Any]:
    """Arranges views row by row; empty views fill gaps of different widths between columns."""
    gaps = layout.column_gaps
    spacing = {"row": layout.row_gap, "column": gaps[0] if gaps else 0}
    if len(set(gaps)) > 1:
        spread = []
        for index, view in enumerate(views):
            if index % columns:
                between = {"width": gaps[index % columns - 1], "height": view["height"]}
                spread.append(between | _EMPTY)
            spread.append(view)
        views, columns, spacing["column"] = spread, 2 * columns - 1, 0
    return {"concat": views, "columns": columns, "spacing": spacing, "bounds": "flush"}


def _view(place: PanelLayout, layers: list[dict[str, Any]], styles: Styles) -> dict[str, Any]:
    view: dict[str, Any] = {"width": place.width, "height": place.height}
    panel = place.panel
    if not panel.shown:
        return view | _EMPTY
    own = {} if panel.bare else {"x": _x_axis(place), "y": _y_axis(place)}
    sides = {
        side: {"type": "quantitative", "scale": scale(of), "axis": own.get(side)}
        for side, of in (("x", place.x), ("y", place.y))
    }
    texts = _title(place) if place.title.lines else []
    left = place.width - place.legend.width
    texts += legend_layers(place.legend, (left, -place.legend.height), styles)
    # Axes belong to a layer, so that a panel without marks needs an empty one.
    empty = {"data": {"values": [{}]}, "mark": {"type": "rule", "opacity": 0}}
    ends = {"x": {"datum": place.x.domain[0]}, "y": {"datum": place.y.domain[0]}}
    layers = layers or [empty | {"encoding": ends}]
    view["encoding"] = sides
    if styles.by_name:
        view["encoding"]["color"] = styles.colour()
    view["layer"] = [*layers, *texts]
    if any(isinstance(mark, Image) for mark in panel.marks):
        view["resolve"] = {"scale": {"color": "independent"}}
    return view


def scale(of: Scale) -> dict[str, Any]:
    """Converts an axis to a scale of Vega."""
    kind = {"type": "log"} if of.log else {"zero": False}
    return {"domain": of.domain, "nice": False, **kind}


def _x_axis(place: PanelLayout) -> dict[str, Any]:
    axis: dict[str, Any] = {"grid": place.panel.x_grid, "title": None}
    minor = axes.between_decades(place.x, place.width) if place.panel.ticks is None else []
    axis |= x_ticks(place.x_ticks, minor, written=place.x_written)
    if place.x_label.lines:
        axis |= _x_title(place.x_label, place.width / 2, place.ticks_height)
    return axis


def x_ticks(
    ticks: XTicks,
    minor: Sequence[float] = (),
    *,
    written: bool = True,
    line: float = TICK_LINE_PT,
) -> dict[str, Any]:
    """Converts ticks along x to properties of a Vega axis; `line` is the height of a text line."""
    found = y_ticks(ticks.ticks, minor, written=written)
    if not ticks.upright:
        return found
    found |= {"labelAngle": -90, "labelAlign": "right", "labelBaseline": "middle"}
    return found | _beside_ticks(ticks.ticks, line)


def _beside_ticks(ticks: Sequence[tuple[float, Text]], line: float) -> dict[str, Any]:
    """Centres upright labels of several lines at their ticks, where Vega puts the first line."""
    conditions = []
    for count in sorted({text.height for _, text in ticks} - {0, 1}):
        values = [at for at, text in ticks if text.height == count]
        test = f"indexof({json.dumps(values)}, datum.value) >= 0"
        conditions.append({"test": test, "value": -line * (count - 1) / 2})
    return {"labelOffset": {"condition": conditions, "value": 0}} if conditions else {}


def _y_axis(place: PanelLayout) -> dict[str, Any]:
    # The grid is explicit, since a rule in front of the other marks would have none.
    axis: dict[str, Any] = {"grid": True, "title": None}
    minor = axes.between_decades(place.y, place.height) if place.panel.y_ticks is None else []
    axis |= y_ticks(place.y_ticks, minor, written=place.y_written)
    if place.y_label.lines:
        axis |= _y_title(place.y_label, -place.y_room, place.height / 2)
    return axis


def _x_title(label: Text, middle: float, top: float) -> dict[str, Any]:
    place = {"titleX": round(middle, 2), "titleY": round(top + INTO_LINE, 2)}
    return _axis_title(label) | place


def _y_title(label: Text, left: float, middle: float) -> dict[str, Any]:
    place = {"titleX": round(left + INTO_LINE, 2), "titleY": round(middle, 2)}
    return _axis_title(label) | place


def _axis_title(label: Text) -> dict[str, Any]:
    whole = {"description": label.whole} if label.whole else {}
    return {"title": label.written(), "titleBaseline": "top", "titleAlign": "center", **whole}


def y_ticks(
    ticks: Sequence[tuple[float, Text]], minor: Sequence[float] = (), *, written: bool = True
) -> dict[str, Any]:
    """Converts labelled ticks, and shorter unlabelled ones between them, to axis properties."""
    major = [at for at, _ in ticks]
    added = [at for at in minor if at not in major]
    found: dict[str, Any] = {"values": major + added}
    place = f"indexof({json.dumps(major)}, datum.value)"
    if added:
        labelled = f"{place} >= 0"
        for name, own, other in (("tickSize", 3, 1.5), ("gridOpacity", 1, 0)):
            found[name] = {"condition": {"test": labelled, "value": own}, "value": other}
    if not written or not any(text.lines for _, text in ticks):
        return found | {"labels": False}
    texts = [text.written() if text.lines else "" for _, text in ticks]
    # A label of one line is a string, of several a list; those of unlabelled ticks are empty.
    texts.append("")
    lookup = json.dumps(texts, ensure_ascii=False)
    return found | {"labelExpr": f"{lookup}[{place} < 0 ? {len(major)} : {place}]"}


def _title(place: PanelLayout) -> list[dict[str, Any]]:
    left = place.panel.title_left
    align = {"align": "left"} if left else {"align": "center"}
    at = 0.0 if left else place.width / 2
    return [text_layer(place.title, at, -place.title_rise, **align)]


def _label_all(layout: Layout, views: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sets the figure's labels as titles of free axes; returns layers for labels that have none."""
    across, down = layout.middle
    below = layout.height - MARGIN_PT - layout.x_label.height * LINE_PT
    free = [
        (place, view)
        for place, view in zip(layout.places, views, strict=True)
        if place.panel.shown and not place.panel.bare
    ]
    left = layout.corner[0]
    rest: list[dict[str, Any]] = []
    if layout.x_label.lines:
        found = next((each for each in free if not each[0].x_label.lines), None)
        if found:
            place, view = found
            down_from = place.top + place.height
            title = _x_title(layout.x_label, across - place.left, below - down_from)
            view["encoding"]["x"]["axis"] |= title
        else:
            top = below - _header_top(layout)
            rest.append(text_layer(layout.x_label, across - left, top, align="center"))
    if layout.y_label.lines:
        found = next((each for each in free if not each[0].y_label.lines), None)
        if found:
            place, view = found
            title = _y_title(layout.y_label, MARGIN_PT - place.left, down - place.top)
            view["encoding"]["y"]["axis"] |= title
        else:
            text = text_layer(layout.y_label, 0.0, 0.0, align="center", angle=-90)
            text["encoding"]["x"]["value"] = round(MARGIN_PT - left + INTO_LINE, 2)
            text["encoding"]["y"]["value"] = round(down - _header_top(layout), 2)
            rest.append(text)
    return rest


def _header_height(layout: Layout) -> int:
    # Zero would select the default height.
    return max(math.ceil(layout.legend.height), 1)


def _header_top(layout: Layout) -> float:
    return min(MARGIN_PT, layout.corner[1] - _header_height(layout))


def _header(layout: Layout, rest: list[dict[str, Any]], styles: Styles) -> dict[str, Any]:
    """Builds the view above all panels: the legend, and labels without a free axis."""
    legend = layout.legend
    left = (layout.width - legend.width) / 2 - layout.corner[0]
    right = max((place.left + place.width for place in layout.places), default=layout.width)
    view: dict[str, Any] = {
        "width": math.ceil(right - layout.corner[0]),
        "height": _header_height(layout),
    }
    layers = [*legend_layers(legend, (left, 0.0), styles), *rest]
    return view | ({"layer": layers} if layers else _EMPTY)
