"""Texts and legends as layers of Vega-Lite, in points of their view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cwnd.figures.layers import point
from cwnd.figures.legend import KEY_PT
from cwnd.figures.sizes import LINE_PT, TEXT_PT

if TYPE_CHECKING:
    from cwnd.figures.legend import Legend
    from cwnd.figures.styles import Styles
    from cwnd.figures.text import Text

#: Offset in points from the top of a line of text to Vega's baseline "top", which centres it.
INTO_LINE = (LINE_PT - TEXT_PT) / 2 + 0.5
#: Gap in points between a key and its name.
_KEY_GAP_PT = 4.0
#: Height of a colour patch in points.
_PATCH_PT = 6.0


def text_layer(text: Text, x: float, y: float, **mark: Any) -> dict[str, Any]:
    """Builds the layer of a text whose top is at `y`, in points of its view."""
    drawn = {"type": "text", "text": text.written(), "baseline": "top", "lineHeight": LINE_PT}
    drawn |= {"description": text.whole} if text.whole else {}
    place = {"x": {"value": round(x, 2)}, "y": {"value": round(y + INTO_LINE, 2)}}
    return {
        "data": {"values": [{}]},
        "mark": drawn | mark,
        "encoding": place | {"color": {"value": "black"}},
    }


def legend_layers(
    legend: Legend, corner: tuple[float, float], styles: Styles
) -> list[dict[str, Any]]:
    """Builds the layers of a legend: its names, with a line, a marker or a colour patch as keys."""
    rows: dict[str, list[dict[str, Any]]] = {"rule": [], "rect": [], "point": []}
    texts: list[dict[str, Any]] = []
    for entry in legend.entries:
        left, top = corner[0] + entry.left, corner[1] + entry.top
        texts.append(text_layer(entry.text, left + KEY_PT, top, align="left"))
        if entry.label is None:
            continue
        name = styles.by_label[entry.label]
        style, right, middle = styles.by_name[name], left + KEY_PT - _KEY_GAP_PT, top + LINE_PT / 2
        key = {"line": name, "left": left, "right": right, "y": middle}
        if style.joined:
            rows["rule"].append(key)
        if style.patch:
            rows["rect"].append(key | {"y": middle - _PATCH_PT / 2, "low": middle + _PATCH_PT / 2})
        if style.marker is not None:
            at = {"x": (left + right) / 2, "hollow": style.hollow, "size": style.size}
            rows["point"].append(key | at)
    y, colour = _pixels("y"), {"color": styles.colour()}
    across = {"x": _pixels("left"), "x2": {"field": "right"}, "y": y} | colour
    found: list[dict[str, Any]] = []
    if rows["rule"]:
        line = across | {"strokeDash": styles.dash(), "strokeWidth": styles.width()}
        found.append({"data": {"values": rows["rule"]}, "mark": "rule", "encoding": line})
    if rows["rect"]:
        patch = across | {"y2": {"field": "low"}}
        found.append({"data": {"values": rows["rect"]}, "mark": "rect", "encoding": patch})
    for hollow, size in dict.fromkeys((row["hollow"], row["size"]) for row in rows["point"]):
        own = [row for row in rows["point"] if (row["hollow"], row["size"]) == (hollow, size)]
        marker = {"x": _pixels("x"), "y": y, "shape": styles.shape()} | colour
        mark = point(hollow=hollow, size=size)
        found.append({"data": {"values": own}, "mark": mark, "encoding": marker})
    return [*found, *texts]


def _pixels(field: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "scale": None, "axis": None}
