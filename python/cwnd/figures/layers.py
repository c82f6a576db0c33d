"""Layers of Vega-Lite: marks of a panel in units of its axes, texts and legends in points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from cwnd.figures.axes import LARGEST
from cwnd.figures.description import Bars, Image, Line, Note, Rule, Span
from cwnd.figures.downsample import downsampled
from cwnd.figures.layout import KEY_PT
from cwnd.figures.text import LINE_PT, TEXT_PT, TICK_TEXT_PT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.figures.description import Values
    from cwnd.figures.layout import Legend, PanelLayout
    from cwnd.figures.styles import Styles
    from cwnd.figures.text import Text

Layer: TypeAlias = dict[str, Any]

#: Width of the caps of an interval, in points.
_CAP_PT = 5.0
#: Length in points up to which an interval is not drawn.
_MIN_INTERVAL_PT = 0.01
#: Distance in points up to which a marker outside the panel still belongs to it.
_ON_EDGE_PT = 0.5
#: Opacity of a band.
_BAND_OPACITY = 0.25
#: Vertical travel of a line, in widths of the panel, above which its dashes would be invisible.
_DENSE = 24.0
#: Minimum number of points of a line.
_SEGMENT = 2
#: Overlap of neighbouring cells of an image, in cells, which hides seams between them.
_OVERLAP = 0.1
#: Fraction of the limit above which texts in cells are white.
_DARK = 0.6
#: Addition to a marker's diameter, in points.
_EDGE_PT = 0.8


@dataclass
class Layers:
    """Builds the layers of a panel from its marks."""

    place: PanelLayout
    styles: Styles
    names: Sequence[str | None]

    def all(self) -> list[Layer]:
        """Returns all layers, from the back to the front."""
        found: list[Layer] = []
        lines: list[tuple[str, Line]] = []
        for name, mark in zip(self.names, self.place.panel.marks, strict=True):
            match mark:
                case Line():
                    lines.append((name or "", downsampled(mark, self.place)))
                case Bars():
                    found.append(self._bars(mark, name or ""))
                case Image():
                    found += self._image(mark)
                case Rule():
                    found.append(self._rule(mark))
                case Span():
                    found.append(self._span(mark))
                case Note():
                    found.append(self._note(mark))
        return [*found, *self._bands(lines), *self._joined(lines), *self._points(lines)]

    def _drawn(self, values: Values, *, up: bool = True) -> list[float | None]:
        """Replaces values that have no coordinate by `None`."""
        log = (self.place.y if up else self.place.x).log
        least = 1 / LARGEST if log else -LARGEST
        return [v if v is not None and least <= v <= LARGEST else None for v in values]

    def _inside(self, xs: Values, ys: Values) -> bool:
        """`True` if no point lies beyond the axes."""
        for scale, values in ((self.place.x, xs), (self.place.y, ys)):
            given = [value for value in values if value is not None]
            if given and not (scale.contains(min(given)) and scale.contains(max(given))):
                return False
        return True

    def _bands(self, lines: list[tuple[str, Line]]) -> list[Layer]:
        columns = _columns("x", "low", "high")
        inside = True
        for name, line in lines:
            if line.band is None:
                continue
            x = self._drawn(line.x, up=False)
            for at, low, high in zip(x, *line.band, strict=False):
                edges: tuple[float | None, float | None] = (None, None)
                if at is not None and _is_number(low) and _is_number(high):
                    edges = self.place.y.near(low), self.place.y.near(high)
                    inside = inside and all(map(self.place.y.contains, edges))
                _add(columns, name, at, *edges)
            inside = inside and self._inside(x, [])
        if not columns["x"]:
            return []
        mark = {"type": "area", "opacity": _BAND_OPACITY, **_PATH, **_clip(inside)}
        return [
            {"data": table(columns), "mark": mark, "encoding": _field(x="x", y="low", y2="high")}
        ]

    def _joined(self, lines: list[tuple[str, Line]]) -> list[Layer]:
        """Builds one layer for lines, and one for step functions."""
        found = []
        for steps in (False, True):
            columns, inside = _columns("x", "y"), True
            dense = False
            for name, line in lines:
                if not line.joined or line.steps != steps or len(line.x) < _SEGMENT:
                    continue
                x, y = self._drawn(line.x, up=False), self._drawn(line.y)
                count = min(len(x), len(y))
                columns["line"] += [name] * count
                columns["x"] += x[:count]
                columns["y"] += y[:count]
                inside = inside and self._inside(x, y)
                dense = dense or (bool(line.dashes) and self._is_dense(x, y))
            if not columns["x"]:
                continue
            mark = {"type": "line", **_PATH, **_clip(inside)}
            mark |= {"interpolate": "step-after"} if steps else {}
            encoding = _field(x="x", y="y") | {"strokeWidth": self.styles.width()}
            encoding |= {} if dense else {"strokeDash": self.styles.dash()}
            found.append({"data": table(columns), "mark": mark, "encoding": encoding})
        return found

    def _is_dense(self, xs: Values, ys: Values) -> bool:
        """`True` if a line oscillates so often that its dashes would be invisible."""
        height = 0.0
        before: float | None = None
        for x, y in zip(xs, ys, strict=False):
            if x is None or y is None or not self.place.x.contains(x):
                before = None
                continue
            at = self.place.y.place(y) * self.place.height
            height += abs(at - before) if before is not None else 0.0
            before = at
        return height > _DENSE * self.place.width

    def _points(self, lines: list[tuple[str, Line]]) -> list[Layer]:
        """Builds the layers of intervals and markers whose points lie inside the panel."""
        found: list[Layer] = []
        names = ("at", "low", "high", "low_cap", "high_cap")
        bars = {up: _columns(*names) for up in (True, False)}
        points: dict[tuple[bool, float], dict[str, list[Any]]] = {}
        for name, line in lines:
            style = self.styles.by_name[name]
            if style.marker is None and line.interval is None and line.x_interval is None:
                continue
            for index, (x, y) in enumerate(zip(line.x, line.y, strict=False)):
                if y is None or not self._contains(x, y):
                    continue
                for up, ends in ((True, line.interval), (False, line.x_interval)):
                    if ends is not None:
                        low, high = ends[0][index], ends[1][index]
                        self._add_interval(bars[up], name, x if up else y, low, high, up=up)
                if style.marker is not None:
                    columns = points.setdefault((style.hollow, style.size), _columns("x", "y"))
                    _add(columns, name, x, y)
        for up, columns in bars.items():
            if columns["at"]:
                found.append(self._intervals(columns, up=up))
        for (hollow, size), columns in points.items():
            encoding = _field(x="x", y="y") | {"shape": self.styles.shape()}
            mark = point(hollow=hollow, size=size)
            found.append({"data": table(columns), "mark": mark, "encoding": encoding})
        return found

    def _contains(self, x: float, y: float) -> bool:
        """`True` if a point lies in the panel, or on its edge up to rounding."""
        sides = (self.place.x, x, self.place.width), (self.place.y, y, self.place.height)
        return all(
            -_ON_EDGE_PT <= scale.place(at) * length <= length + _ON_EDGE_PT
            for scale, at, length in sides
        )

    def _add_interval(
        self,
        columns: dict[str, list[Any]],
        name: str,
        at: float,
        low: float | None,
        high: float | None,
        *,
        up: bool,
    ) -> None:
        if not (_is_number(low) and _is_number(high)):
            return
        place = self.place
        scale, length = (place.y, place.height) if up else (place.x, place.width)
        ends = scale.clamped(low), scale.clamped(high)
        if (scale.place(ends[1]) - scale.place(ends[0])) * length > _MIN_INTERVAL_PT:
            # An interval that continues beyond the axis has no cap there.
            caps = (end if scale.contains(end) else None for end in (low, high))
            _add(columns, name, at, *ends, *caps)

    def _intervals(self, columns: dict[str, list[Any]], *, up: bool) -> Layer:
        """Builds a layer of rules with a cap at each end inside the panel."""
        at, along = ("x", "y") if up else ("y", "x")
        cap = {"type": "tick", "orient": "horizontal" if up else "vertical", "size": _CAP_PT}
        width = {"strokeWidth": self.styles.width()}
        # A tick is a rectangle, whose thickness is no stroke width.
        thickness = max(style.width for style in self.styles.by_name.values())
        caps = [
            {
                "mark": cap | {"thickness": min(thickness, 1.2)},
                "encoding": _field(**{at: "at", along: end}),
            }
            for end in ("low_cap", "high_cap")
        ]
        rule = {
            "mark": "rule",
            "encoding": _field(**{at: "at", along: "low", f"{along}2": "high"}) | width,
        }
        return {"data": table(columns), "layer": [rule, *caps]}

    def _bars(self, bars: Bars, name: str) -> Layer:
        columns = _columns("from", "to", "value")
        for at, value in zip(bars.at, self._drawn(bars.values, up=bars.upright), strict=False):
            _add(columns, name, at - bars.width / 2, at + bars.width / 2, value)
        zero = {"datum": (self.place.y if bars.upright else self.place.x).clamped(0.0)}
        sides = ("x", "y") if bars.upright else ("y", "x")
        encoding = _field(**{sides[0]: "from", f"{sides[0]}2": "to", sides[1]: "value"})
        return {
            "data": table(columns),
            "mark": {"type": "rect", "clip": True},
            "encoding": encoding | {f"{sides[1]}2": zero},
        }

    def _image(self, image: Image) -> list[Layer]:
        columns: dict[str, list[Any]] = {
            name: [] for name in ("left", "right", "low", "high", "value")
        }
        texts: dict[str, dict[str, list[Any]]] = {
            colour: {"x": [], "y": [], "text": []} for colour in ("white", "black")
        }
        for j, row in enumerate(image.rows):
            for i, value in enumerate(row):
                if not _is_number(value):
                    continue
                # The last cells end with the image, without overlap.
                right = i + 0.5 + _OVERLAP * (i + 1 < len(row))
                high = j + 0.5 + _OVERLAP * (j + 1 < len(image.rows))
                cell = (i - 0.5, right, j - 0.5, high, value)
                for name, number in zip(columns, cell, strict=True):
                    columns[name].append(number)
                if image.texts is not None:
                    dark = abs(value) > _DARK * image.limit
                    own = texts["white" if dark else "black"]
                    for name, part in zip(own, (i, j, image.texts[j][i]), strict=True):
                        own[name].append(part)
        encoding = _field(x="left", x2="right", y="low", y2="high")
        found: list[Layer] = [
            {
                "data": table(columns),
                "mark": {"type": "rect", "stroke": None, "clip": True},
                "encoding": encoding | {"color": self._colours(image)},
            }
        ]
        for colour, own in texts.items():
            if own["text"]:
                mark = {"type": "text", "fontSize": TICK_TEXT_PT, "baseline": "middle"}
                text = {"text": {"field": "text", "type": "nominal"}, "color": {"value": colour}}
                found.append(
                    {"data": table(own), "mark": mark, "encoding": _field(x="x", y="y") | text}
                )
        return found

    def _colours(self, image: Image) -> dict[str, Any]:
        limit = image.limit
        bar = {
            "orient": "right",
            "direction": "vertical",
            "title": image.key,
            "titleOrient": "right",
            "titleAnchor": "middle",
            "titleFontSize": TEXT_PT,
            "titleLimit": 0,
            "labelFontSize": TICK_TEXT_PT,
            "gradientLength": self.place.height,
            "gradientThickness": 8,
            "offset": 6,
        }
        return {
            "field": "value",
            "type": "quantitative",
            "scale": {"domain": [-limit, 0.0, limit], "scheme": "redblue", "clamp": True},
            "legend": bar if image.key else None,
        }

    def _rule(self, rule: Rule) -> Layer:
        x, y = self.place.x.domain, self.place.y.domain
        if rule.x is not None:
            ends = {"x": {"datum": rule.x}, "y": {"datum": y[0]}, "y2": {"datum": y[1]}}
            inside = self.place.x.contains(rule.x)
        else:
            assert rule.y is not None, "a rule has a place along x or along y"
            ends = {"x": {"datum": x[0]}, "x2": {"datum": x[1]}, "y": {"datum": rule.y}}
            inside = self.place.y.contains(rule.y)
        mark = {"type": "rule", "strokeWidth": rule.width, **_clip(inside)}
        if rule.dashes:
            mark["strokeDash"] = [round(part * rule.width, 2) for part in rule.dashes]
        encoding = ends | {"color": {"value": rule.colour}}
        return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}

    def _span(self, span: Span) -> Layer:
        ends = [*self.place.x.domain, *map(self.place.y.clamped, span.y)]
        channels = zip(("x", "x2", "y", "y2"), ends, strict=True)
        encoding: Layer = {channel: {"datum": end} for channel, end in channels}
        encoding["color"] = {"value": span.colour}
        return {"data": {"values": [{}]}, "mark": "rect", "encoding": encoding}

    def _note(self, note: Note) -> Layer:
        mark = {"type": "text", "text": note.text, "fontSize": TICK_TEXT_PT, "align": "left"}
        encoding = {"x": {"datum": note.x}, "y": {"datum": note.y}, "color": {"value": "black"}}
        return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def point(*, hollow: bool, size: float) -> dict[str, Any]:
    """Builds the mark of a marker with a diameter in points."""
    # Vega's size is the area of the square around a circle.
    area = round((size + _EDGE_PT) ** 2, 2)
    return {
        "type": "point",
        "filled": not hollow,
        "size": area,
        "opacity": 1,
        "strokeWidth": int(hollow),
    }


#: Lines and bands follow the order of their points, and break at points without a value.
_PATH = {"order": False, "invalid": "break-paths-show-path-domains"}


def _columns(*names: str) -> dict[str, list[Any]]:
    return {"line": [], **{name: [] for name in names}}


def _add(columns: dict[str, list[Any]], *row: Any) -> None:
    for column, value in zip(columns.values(), row, strict=True):
        column.append(value)


def _field(**channels: str) -> dict[str, Any]:
    return {channel: {"field": name} for channel, name in channels.items()}


def _clip(inside: bool) -> dict[str, bool]:
    """Clips marks at the panel's edge only if they cross it, as a clip costs a layer."""
    return {} if inside else {"clip": True}


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and abs(value) <= LARGEST


#: Significant digits of numbers, which resolve a millisecond in an hour.
_DIGITS = 7


def table(columns: Mapping[str, Sequence[float | str | None]]) -> dict[str, Any]:
    """Writes columns of numbers and texts as CSV, which is a third of the size of JSON rows."""
    texts = {name for name, values in columns.items() if any(isinstance(v, str) for v in values)}
    written = (map(_text if name in texts else _number, v) for name, v in columns.items())
    rows = [",".join(columns), *map(",".join, zip(*written, strict=True))]
    parse = {name: "string" if name in texts else "number" for name in columns}
    return {"values": "\n".join([*rows, ""]), "format": {"type": "csv", "parse": parse}}


def _text(value: float | str | None) -> str:
    return '"' + str(value or "").replace('"', '""') + '"'


def _number(value: float | str | None) -> str:
    return "" if value is None or value != value else f"{value:.{_DIGITS}g}"  # noqa: PLR0124


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
