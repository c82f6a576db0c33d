"""Reads the panels of a page back from their specifications: points of lines by their labels."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, float | None]


def lines(panel: dict[str, Any]) -> dict[str, list[Row]]:
    """Points of lines: x and y."""
    return _read(panel, "line", "y")


def points(panel: dict[str, Any]) -> dict[str, list[Row]]:
    """Markers: x and y."""
    return _read(panel, "point", "y")


def intervals(panel: dict[str, Any]) -> dict[str, list[Row]]:
    """Intervals along y: at, low and high."""
    return _read(panel, "rule", "low")


def bands(panel: dict[str, Any]) -> dict[str, list[Row]]:
    """Bands: x, low and high."""
    return _read(panel, "area", "low")


def colours(panel: dict[str, Any]) -> dict[str, str]:
    """The colours of lines."""
    scale = panel["spec"]["encoding"]["color"]["scale"]
    by_name = dict(zip(scale["domain"], scale["range"], strict=True))
    return {label: by_name[name] for name, label in panel["labels"].items()}


def figures(page: str) -> dict[str, Any]:
    """The figures of a page."""
    data = page.partition('id="figures-data">')[2].partition("</script>")[0]
    return dict(json.loads(data))


def title(panel: dict[str, Any], side: str = "y") -> str:
    """The label of an axis."""
    found = panel["spec"]["encoding"][side]["axis"]["title"]
    return found if isinstance(found, str) else " ".join(found)


def _read(panel: dict[str, Any], kind: str, column: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for data, marks in _tables(panel["spec"]["layer"]):
        parse = data["format"]["parse"]
        if kind not in marks or column not in parse:
            continue
        for row in csv.DictReader(io.StringIO(data["values"])):
            label = panel["labels"].get(row.pop("line"), "")
            found[label].append({name: float(v) if v else None for name, v in row.items()})
    return dict(found)


def _tables(layers: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """The named tables with the kinds of marks that show them."""
    for layer in layers:
        parts = [layer, *layer.get("layer", [])]
        marks = {part["mark"]["type"] for part in parts if "mark" in part}
        if "name" in layer.get("data", {}):
            yield layer["data"], marks
