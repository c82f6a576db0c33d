"""Time–space diagram of packets as SVG, for slides and papers.

Lines of packets run from sender to router to receiver and back, while time runs down. The wait in
the queue is the vertical piece at the router.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from cwnd.figures import line_style
from cwnd.report.colours import page_colours

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

#: Width and height of a part, in CSS pixels, and the room above and beside its lines.
_WIDTH, _HEIGHT, _TOP, _SIDE, _BOTTOM = 480, 640, 92, 62, 16
#: Distances from the sender, as fractions of the way to the receiver.
_ROUTER = 0.3
_MARK, _QUENCH = (line_style.colour(index) for index in (3, 5))
_INK, _MUTED, _RULE = (page_colours("light")[name] for name in ("ink", "muted", "rule"))
#: Intervals between ticks of time, in nanoseconds.
_TICKS = tuple(factor * 10**power for power in range(3, 11) for factor in (1, 2, 5))
_MAX_TICKS = 12


@dataclass(frozen=True)
class Part:
    """Packets of one run."""

    title: str
    link: str
    #: Both ends of the time axis, in nanoseconds.
    window: tuple[int, int]
    #: Packets with the columns of `report.animation.shown_packets`.
    packets: pl.DataFrame
    #: Label and colour of each flow.
    flows: Mapping[int, tuple[str, int]]


def svg(parts: Sequence[Part], name: str) -> str:
    """Formats the diagram; equal parts give equal bytes."""
    width = len(parts) * _WIDTH
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}"'
            f' width="{width}" height="{_HEIGHT}" font-family="sans-serif" font-size="14"'
            f' role="img" aria-label={quoteattr(f"Packets of {name} over time")}>',
            f'<rect width="{width}" height="{_HEIGHT}" fill="#ffffff"/>',
            *(line for index, part in enumerate(parts) for line in _drawn(part, index)),
            "</svg>\n",
        ]
    )


def _drawn(part: Part, index: int) -> Iterator[str]:
    scale = _Scale(part, index * _WIDTH)
    left, router, right = scale.places
    yield f'<clipPath id="part-{index}"><rect x="{left - 20}" y="{_TOP}"'
    yield f' width="{right - left + 40}" height="{_HEIGHT - _TOP - _BOTTOM}"/></clipPath>'
    yield _text(left, 24, part.title, size=20, weight="bold", anchor="start")
    yield from _legend(part, left)
    for x, label in ((left, "sender"), (router, part.link), (right, "receiver")):
        yield _text(x, _TOP - 8, label, weight="bold")
        yield _line("rule", _INK, 2, [(x, _TOP), (x, _HEIGHT - _BOTTOM)])
    for at, label in scale.ticks():
        yield _text(left - 8, scale.y(at) + 5, label, anchor="end", fill=_MUTED, size=12)
        yield _line("rule", _RULE, 1, [(left, scale.y(at)), (right, scale.y(at))])
    yield f'<g clip-path="url(#part-{index})" fill="none">'
    # Signals are above the rest.
    drawn = sorted(
        (line for packet in part.packets.iter_rows(named=True) for line in _packet(packet, scale)),
        key=lambda line: line[0],
    )
    yield from (line for _, line in drawn)
    yield "</g>"


class _Scale:
    """Coordinates of times and places of a part."""

    def __init__(self, part: Part, x: float) -> None:
        self._part = part
        left, right = x + _SIDE, x + _WIDTH - 46
        self.places = (left, left + _ROUTER * (right - left), right)

    def y(self, ns: float) -> float:
        """Height of a time."""
        begin, end = self._part.window
        return _TOP + (ns - begin) / (end - begin) * (_HEIGHT - _TOP - _BOTTOM)

    def colour(self, flow: int) -> str:
        """Colour of a flow."""
        return line_style.colour(self._part.flows[flow][1])

    def ticks(self) -> Iterator[tuple[int, str]]:
        """Round times in the window, with their labels."""
        begin, end = self._part.window
        step = next(each for each in _TICKS if (end - begin) / each <= _MAX_TICKS)
        power, unit = (6, "ms") if end < 10**10 else (9, "s")
        digits = max(0, power - math.floor(math.log10(step)))
        for at in range(-(-begin // step) * step, end + 1, step):
            yield at, f"{at / 10**power:.{digits}f} {unit}"


def _packet(packet: Mapping[str, Any], scale: _Scale) -> Iterator[tuple[int, str]]:
    """Lines of a packet, each with its layer."""
    left, router, right = scale.places
    sent, arrived, gone, ended = (
        packet[name] for name in ("sent_ns", "arrived_ns", "left_ns", "ended_ns")
    )
    if packet["kind"] == "quench":
        to = [(left, ended)] if ended is not None else []
        yield 3, _way("quench", _QUENCH, 3.5, [(router, sent), *to], scale)
        return
    if arrived is None:
        echo = packet["echo"] == 1
        to = [(left, ended)] if ended is not None and not packet["lost"] else []
        kind, colour = ("echo", _MARK) if echo else ("ack", scale.colour(packet["flow_id"]))
        width = 1.2 if echo else 0.5
        yield 2 if echo else 0, _way(kind, colour, width, [(right, sent), *to], scale)
        if packet["lost"]:
            yield 4, _cross(right - 8, scale.y(ended))
        return
    colour = scale.colour(packet["flow_id"])
    marked = packet["ce_ns"] is not None
    before = [(left, sent), (router, arrived)]
    if gone is None:
        end = [(router, ended)] if packet["lost"] else []
        yield 1, _way("drop" if packet["lost"] else "data", colour, 0.7, [*before, *end], scale)
        if packet["lost"]:
            yield 4, _cross(router, scale.y(ended))
        return
    is_there = ended is not None and not packet["lost"]
    after = [(router, gone)] + ([(right, ended)] if is_there else [])
    if marked:
        yield 1, _way("before-mark", colour, 0.7, [*before, (router, gone)], scale)
        yield 2, _way("mark", _MARK, 3, after, scale)
    else:
        yield 1, _way("data", colour, 0.7, [*before, *after], scale)
    if packet["lost"]:
        yield 4, _cross(router + 8, scale.y(ended))


def _legend(part: Part, x: float) -> Iterator[str]:
    entries = list(dict.fromkeys((label, line_style.colour(c)) for label, c in part.flows.values()))
    packets = part.packets
    if packets["ce_ns"].is_not_null().any() or (packets["echo"] == 1).any():
        entries.append(("mark, echo", _MARK))
    if (packets["kind"] == "quench").any():
        entries.append(("quench", _QUENCH))
    # Two rows; of a label that is wider than its column, both ends are left.
    columns = max(3, -(-len(entries) // 2))
    width = (_WIDTH - _SIDE) / columns
    most = int((width - 24) / 7.5)
    for number, (label, colour) in enumerate(entries):
        at, y = x + number % columns * width, 34 + number // columns * 18
        text = label if len(label) <= most else f"{label[: most - 5]}…{label[-4:]}"
        yield f'<rect x="{at:.1f}" y="{y}" width="12" height="12" fill="{colour}"/>'
        yield _text(at + 17, y + 11, text, anchor="start", size=13)


def _way(
    kind: str,
    colour: str,
    width: float,
    points: Iterable[tuple[float, int]],
    scale: _Scale,
) -> str:
    return _line(kind, colour, width, [(x, scale.y(at)) for x, at in points])


def _line(kind: str, colour: str, width: float, points: Iterable[tuple[float, float]]) -> str:
    listed = " ".join(f"{x:.1f},{y:.2f}" for x, y in points)
    style = f'stroke="{colour}" stroke-width="{width}"'
    return f'<polyline class="{kind}" {style} points="{listed}"/>'


def _cross(x: float, y: float) -> str:
    ends = f"M{x - 5:.1f},{y - 5:.2f}l10,10m0,-10l-10,10"
    return f'<path class="cross" stroke="{_INK}" stroke-width="2.2" d="{ends}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 14,
    weight: str = "normal",
    anchor: str = "middle",
    fill: str = _INK,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}"'
        f' text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )
