"""The graph of a result on a page: each link with what it did, where the pointer is."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.plots.graph import LOSS, UTILISATION, map_of
from cwnd.plots.layout import points_of
from cwnd.report.figures import Choice, Figure, Panel, axis

if TYPE_CHECKING:
    from cwnd.plots.graph import DrawnLink, Map, Quantity
    from cwnd.results import Run

#: Points of the sweep to choose from.
_MAX_POINTS = 30
#: Links of all maps together: what keeps a page below a few megabytes.
_MAX_LINKS = 12_000
_HEIGHT = 520
_MARGIN = 0.05


def graph_figure(run: Run) -> Figure | None:
    """Maps of utilisation and of loss, for each point of the sweep; none of a dumbbell."""
    choices: list[Choice] = []
    drawn = 0
    for point in points_of(run.axes)[:_MAX_POINTS]:
        try:
            found = map_of(run, point)
        except InputError:
            continue
        drawn += 2 * len(found.links)
        if choices and drawn > _MAX_LINKS:
            break
        choices += [
            Choice(found.name, [_panel(found, quantity)], 1, quantity.title)
            for quantity in (UTILISATION, LOSS)
        ]
    if not choices:
        return None
    return Figure(
        kind="graph",
        title="Graph",
        caption=(
            "Each direction of a link is on the right of the line between its nodes, seen along"
            " it; means of all seeds, after the warm-up. Squares are nodes that send data."
        ),
        choices=sorted(choices, key=lambda choice: choice.view == LOSS.title),
        chooses="Point",
        views_called="Of each link",
    )


def _panel(found: Map, quantity: Quantity) -> Panel:
    traces = []
    for index, band in enumerate(quantity.bands):
        x: list[float | None] = []
        y: list[float | None] = []
        for link in found.band(quantity, index):
            (x1, y1), (x2, y2) = link.ends
            x += [round(x1, 4), round(x2, 4), None]
            y += [round(y1, 4), round(y2, 4), None]
        if x:
            width = 1.4 * band.width
            line = {"color": f"@{band.colour}", "dash": "solid", "width": width}
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": band.name,
                    # What the legend shows; the pointer finds the middle of a link.
                    "meta": band.name,
                    "hoverinfo": "none",
                    "x": x,
                    "y": y,
                    "line": line,
                }
            )
    middles = [
        (round((a[0] + b[0]) / 2, 4), round((a[1] + b[1]) / 2, 4))
        for a, b in (link.ends for link in found.links)
    ]
    texts = [_about(link) for link in found.links]
    traces.append(_dots(middles, texts, {"opacity": 0, "size": 10, "color": "@6"}))
    for symbol, there in (
        ("circle", [node for node in found.nodes if node not in found.senders]),
        ("square", [node for node in found.nodes if node in found.senders]),
    ):
        at = [(round(x, 4), round(y, 4)) for x, y in (found.nodes[node] for node in there)]
        names = [f"<b>{escape(node)}</b>" for node in there]
        traces.append(_dots(at, names, {"symbol": symbol, "size": 7, "color": "@6"}))
    across, up = found.size
    hidden: dict[str, Any] = {"visible": False, "showgrid": False, "zeroline": False}
    return Panel(
        "",
        f"Map of the graph with the {quantity.title.lower()} of its links; the values are in the"
        " table of links.",
        traces,
        axis("", range=[-_MARGIN, across + _MARGIN], **hidden),
        axis("", range=[-_MARGIN, up + _MARGIN], scaleanchor="x", **hidden),
        height=_HEIGHT,
    )


def _dots(
    at: list[tuple[float, float]], texts: list[str], marker: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "",
        "meta": "",
        "x": [x for x, _ in at],
        "y": [y for _, y in at],
        "hovertext": texts,
        "hoverinfo": "text",
        "marker": marker,
    }


def _about(link: DrawnLink) -> str:
    said = [f"<b>{escape(link.name)}</b>: {escape(link.source)} → {escape(link.target)}"]
    if link.utilisation is not None:
        said.append(f"utilisation {link.utilisation:.1%}")
    if link.loss is not None:
        said.append(f"loss {link.loss:.3%}")
    return "<br>".join(said)
