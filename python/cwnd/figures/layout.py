"""Layout of panels and texts; further lines of text extend the figure, not the panels.

Vega lays out views in whole pixels, which are points here. Sizes of panels and gaps are therefore
integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from cwnd.figures import axes
from cwnd.figures.axes import XTicks, labelled
from cwnd.figures.description import Image
from cwnd.figures.text import LINE_PT, TEXT_PT, TICK_PT, TICK_TEXT_PT, Text, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwnd.figures.axes import Scale
    from cwnd.figures.description import Panel, Picture

#: Width of a key of a legend (a dash or a marker).
KEY_PT = 20.0
#: Gap between two columns of a legend.
GAP_PT = 12.0
#: Maximum number of lines of a name in a legend.
_MAX_LINES = 3
#: Maximum number of names in a legend; further ones are counted, since so many lines are
#: indistinguishable.
_MAX_ENTRIES = 60


@dataclass(frozen=True)
class Entry:
    """A name and its offset from the top left corner of the legend, in points."""

    #: Label of the marks; `None` for the number of names left out.
    label: str | None
    text: Text
    left: float = 0.0
    top: float = 0.0


@dataclass(frozen=True)
class Legend:
    """Names in columns, filled one after the other; sizes in points."""

    entries: Sequence[Entry] = ()
    columns: int = 0
    width: float = 0.0
    height: float = 0.0


def names(panels: Iterable[Panel]) -> list[str]:
    """Distinct labels of marks in shown panels; empty if there is only one."""
    labels = (getattr(mark, "label", None) for p in panels if p.shown for mark in p.marks)
    found = list(dict.fromkeys(label for label in labels if label and label.strip()))
    return found if len(found) > 1 else []


def row_width(labels: Sequence[str]) -> float:
    """Width of a legend in a single row."""
    each = sum(KEY_PT + width(label, TEXT_PT) for label in labels)
    return each + GAP_PT * max(len(labels) - 1, 0)


def legend(labels: Sequence[str], room: float) -> Legend:
    """Lays out names in as many columns as fit, and so in the fewest rows."""
    if not labels:
        return Legend()
    shown = labels if len(labels) <= _MAX_ENTRIES else labels[: _MAX_ENTRIES - 1]
    left_out = len(labels) - len(shown)

    def entry(label: str | None, text: str) -> Entry:
        return Entry(label, Text.fitted(text, room - KEY_PT, TEXT_PT, _MAX_LINES))

    entries = [entry(label, label) for label in shown]
    entries += [entry(None, f"… and {left_out} more")] if left_out else []
    count = len(entries)
    # Numbers of columns that are filled evenly.
    possible = [n for n in range(count, 0, -1) if n == -(-count // -(-count // n))]
    columns = next((n for n in possible if _widths(entries, n)[1] <= room), 1)
    widths, total = _widths(entries, columns)
    placed: list[Entry] = []
    height = left = 0.0
    for column, own in zip(_columns(entries, columns), widths, strict=True):
        top = 0.0
        for each in column:
            placed.append(replace(each, left=left, top=top))
            top += each.text.height * LINE_PT + 1.0
        height = max(height, top)
        left += own + GAP_PT
    return Legend(placed, columns, total, height)


def _columns(entries: Sequence[Entry], count: int) -> list[Sequence[Entry]]:
    """Splits entries into columns; the first ones have one more if the division leaves a rest."""
    each, more = divmod(len(entries), count)
    ends = [column * each + min(column, more) for column in range(count + 1)]
    return [entries[start:end] for start, end in pairwise(ends)]


def _widths(entries: Sequence[Entry], count: int) -> tuple[list[float], float]:
    """Widths of the columns, and of the whole legend."""
    widths = [
        max(KEY_PT + entry.text.width(TEXT_PT) for entry in column)
        for column in _columns(entries, count)
    ]
    return widths, sum(widths) + GAP_PT * (count - 1)


#: Margin around a figure.
MARGIN_PT = 4.0
#: Room at the right for half of the last tick's label.
_RIGHT_PT = 12.0
#: Gaps between panels side by side, and between rows.
_GAP_PT = 7.0
_ROW_GAP_PT = 10.0
#: Gap below the legend above all panels.
_LEGEND_GAP_PT = 4.0
#: Gap above the lines of a title.
TITLE_GAP_PT = 1.5
#: Preferred distances between ticks.
_X_TICK_PT = 22.0
_Y_TICK_PT = 15.0
#: Maximum number of steps between ticks.
_MAX_STEPS = 9.0
#: Minimum width and height of a panel.
_MIN_WIDTH_PT = 40
_MIN_HEIGHT_PT = 54
#: Maximum number of lines of a title, and of the label of an axis.
_TITLE_LINES = 8
_LABEL_LINES = 4
#: Room for the colour bar of an image with its title.
_COLOUR_BAR_PT = 48.0
#: Iterations in which panels give up room to the labels of their ticks, and may get fewer ticks.
_MAX_ITERATIONS = 3


@dataclass
class PanelLayout:
    """Position of a panel with its axes and the texts around it; sizes in points."""

    panel: Panel
    x: Scale
    y: Scale
    height: int
    width: int = 0
    left: float = 0.0
    top: float = 0.0
    title: Text = field(default_factory=Text)
    #: Distance from the panel's top to that of its title, with the legend below or beside it.
    title_rise: float = 0.0
    #: Legend of the panel, at the right above it.
    legend: Legend = field(default_factory=Legend)
    x_label: Text = field(default_factory=Text)
    y_label: Text = field(default_factory=Text)
    x_ticks: XTicks = field(default_factory=XTicks)
    y_ticks: list[tuple[float, Text]] = field(default_factory=list)
    #: `True` if labels of the ticks are drawn; a neighbour's labels serve for a shared axis.
    x_written: bool = True
    y_written: bool = True
    #: Distance from the left end of the axis to the end of its label.
    y_room: float = 0.0

    @property
    def ticks_height(self) -> float:
        """Distance from the panel's bottom to the end of the ticks' labels."""
        return TICK_PT + self.x_ticks.height + 1.0 if self.x_written else 0.0

    @property
    def below(self) -> float:
        """Distance from the panel's bottom to the end of the texts below it."""
        return self.ticks_height + self.x_label.height * LINE_PT


@dataclass
class Layout:
    """Size of a figure and positions of all its parts, in points."""

    width: float
    #: Height, which may exceed that of the description.
    height: float
    legend: Legend
    places: list[PanelLayout]
    #: Labels below and left of all panels.
    x_label: Text
    y_label: Text
    #: Centre of the panels, across and down.
    middle: tuple[float, float]
    #: Gaps between columns, and between rows.
    column_gaps: list[int]
    row_gap: int
    #: Top left corner of the first panel.
    corner: tuple[float, float]


def lay_out(picture: Picture) -> Layout:
    """Computes the layout of a figure."""
    scales = axes.scales(picture)
    found = _with_y_label(picture, scales, math.inf)
    room = _room_for_y_label(found)
    # The left label's lines take width from the panels, but leave their height unchanged.
    return found if found.y_label.width(TEXT_PT) <= room else _with_y_label(picture, scales, room)


def _with_y_label(picture: Picture, scales: list[tuple[Scale, Scale]], room: float) -> Layout:
    """Computes the layout with lines of at most `room` points in the label at the left."""
    columns = picture.columns
    labels = names(picture.panels) if picture.legend_above else []
    above = legend(labels, picture.width_pt - 2 * MARGIN_PT)
    top = MARGIN_PT + math.ceil(above.height) + (_LEGEND_GAP_PT if labels else 0.0)
    heights = _heights(picture, with_legend=bool(labels))
    y_label = Text.fitted(picture.y_label, room, TEXT_PT, _LABEL_LINES)
    places = [
        _place(picture, place, scales, heights[place // columns])
        for place in range(len(picture.panels))
    ]
    across = _Columns(picture, places, MARGIN_PT + y_label.height * LINE_PT)
    for place in places:
        _write_title(place, own_legend=not picture.legend_above)
        place.x_label = Text.fitted(place.panel.x_label, place.width, TEXT_PT, _LABEL_LINES)
    rows = [places[row * columns : (row + 1) * columns] for row in range(picture.rows)]
    rises = [max(place.title_rise for place in row) for row in rows]
    belows = [max(place.below for place in row) for row in rows]
    between = [below + _ROW_GAP_PT + rise for below, rise in zip(belows, rises[1:], strict=False)]
    row_gap = math.ceil(max(between, default=0.0))
    y: float = top + (math.ceil(rises[0]) if rises else 0)
    for row, height in zip(rows, heights, strict=True):
        for place in row:
            place.top = y
        y += height + row_gap
    corner = (places[0].left, places[0].top) if places else (MARGIN_PT, top)
    bottom = max((place.top + place.height for place in places), default=top)
    right = max((place.left + place.width for place in places), default=across.total)
    middle = (corner[0] + right) / 2 if places else across.total / 2
    room = 2 * min(middle, across.total - middle) - 2 * MARGIN_PT
    x_label = Text.fitted(picture.below, room, TEXT_PT, _LABEL_LINES)
    under = max((place.top + place.height + place.below for place in places), default=top)
    total = under + x_label.height * LINE_PT + MARGIN_PT
    return Layout(
        width=across.total,
        height=total if places else max(total, picture.height_pt),
        legend=above,
        places=places,
        x_label=x_label,
        y_label=y_label,
        middle=(middle, (corner[1] + bottom) / 2),
        column_gaps=across.gaps,
        row_gap=row_gap,
        corner=corner,
    )


def _room_for_y_label(found: Layout) -> float:
    """Available length for the label at the left: up to texts above and below it."""
    edge = 2 * MARGIN_PT + found.y_label.height * LINE_PT
    above = 0.0 if (found.width - found.legend.width) / 2 > edge else found.legend.height
    beside = found.middle[0] - found.x_label.width(TEXT_PT) / 2 > edge
    below = 0.0 if beside else found.x_label.height * LINE_PT
    up, down = found.middle[1] - above, found.height - below - found.middle[1]
    return 2 * (min(up, down) - MARGIN_PT)


def _heights(picture: Picture, *, with_legend: bool) -> list[int]:
    """Heights of the rows: the figure's height without its texts, assuming one line for each."""
    rows, columns = picture.rows, picture.columns
    apart = picture.shared_x in ("row", "none")
    taken = MARGIN_PT + (LINE_PT + 1.0 + _LEGEND_GAP_PT if with_legend else 0.0)
    taken += (LINE_PT if picture.below else MARGIN_PT) + _ROW_GAP_PT * (rows - 1)
    for row in range(rows):
        panels = picture.panels[row * columns : (row + 1) * columns]
        taken += LINE_PT * (any(p.title for p in panels) + any(p.x_label for p in panels))
        taken += TICK_PT + LINE_PT if row + 1 == rows or apart else 0.0
    parts = [*picture.heights, *[1.0] * rows][:rows]
    free = picture.height_pt - taken
    return [max(round(free * part / sum(parts)), _MIN_HEIGHT_PT) for part in parts]


def _place(
    picture: Picture, place: int, scales: list[tuple[Scale, Scale]], height: int
) -> PanelLayout:
    """Computes the position of a panel without its width."""
    panels, columns = picture.panels, picture.columns
    panel, (x, y) = panels[place], scales[place]
    below = panels[place + columns] if place + columns < len(panels) else None
    # Neighbours with the same axis share one set of labels.
    x_written = (
        picture.shared_x in ("row", "none")
        or below is None
        or not below.shown
        or bool(panel.x_label)
    )
    y_written = (
        place % columns == 0
        or picture.shared_y == "col"
        or (picture.shared_y == "none" and y != scales[place - 1][1])
    )
    drawn = panel.shown and not panel.bare
    found = PanelLayout(
        panel, x, y, height, x_written=x_written and drawn, y_written=y_written and drawn
    )
    if not panel.bare:
        about = min(height / _Y_TICK_PT, _MAX_STEPS)
        chosen = panel.y_ticks if panel.y_ticks is not None else axes.ticks(y, about)
        found.y_ticks = [
            (at, Text.fitted(text, math.inf, TICK_TEXT_PT, 1))
            for at, text in chosen
            if y.contains(at)
        ]
    if found.y_written:
        found.y_label = Text.fitted(panel.y_label, height + _GAP_PT, TEXT_PT, _LABEL_LINES)
        widest = max((text.width(TICK_TEXT_PT) for _, text in found.y_ticks), default=0.0)
        found.y_room = widest + TICK_PT + 1.0 + found.y_label.height * LINE_PT
    return found


class _Columns:
    """The columns of panels, all of one width."""

    def __init__(self, picture: Picture, places: list[PanelLayout], left: float) -> None:
        self._columns = columns = picture.columns
        self._left = left
        rooms = [
            max((place.y_room for place in places[column::columns]), default=0.0)
            for column in range(columns)
        ]
        keyed = any(isinstance(m, Image) and m.key for p in picture.panels for m in p.marks)
        self._rooms = rooms
        self._key = _COLOUR_BAR_PT if keyed else 0.0
        self.total = picture.width_pt
        self._overhang = [(0.0, 0.0)] * columns
        # Labels of ticks need room that the panels give up, which may then have fewer ticks.
        for _ in range(_MAX_ITERATIONS):
            self._compute_widths()
            for index, place in enumerate(places):
                place.left = self._lefts[index % columns]
                place.width = self._width
                place.x_ticks = _x_ticks(place)
            overhang = [self._overhang_of(places[column::columns]) for column in range(columns)]
            if all(map(self._fits, range(columns), overhang)):
                break
            self._overhang = overhang
        for index, place in enumerate(places):
            place.y_room = rooms[index % columns]
            self._drop_labels_without_room(place, self._room_for_overhang(index % columns))

    def _compute_widths(self) -> None:
        needed = (a[1] + b[0] + 2 * MARGIN_PT for a, b in pairwise(self._overhang))
        self.gaps = [
            math.ceil(max(_GAP_PT + room, labels) + self._key)
            for room, labels in zip(self._rooms[1:], needed, strict=True)
        ]
        first = self._left + max(self._rooms[0], self._overhang[0][0])
        last = max(self._overhang[-1][1] + MARGIN_PT, _RIGHT_PT) + self._key
        taken = first + last + sum(self.gaps)
        self._width = max(math.floor((self.total - taken) / self._columns), _MIN_WIDTH_PT)
        self.total = max(self.total, taken + self._width * self._columns)
        self._lefts = [first]
        for gap in self.gaps:
            self._lefts.append(self._lefts[-1] + self._width + gap)

    @staticmethod
    def _overhang_of(places: Sequence[PanelLayout]) -> tuple[float, float]:
        """Reach of the tick labels of x beyond the panels of a column, left and right."""
        reach = [place.x_ticks.overhang for place in places if place.x_written]
        return (
            max((left for left, _ in reach), default=0.0),
            max((right for _, right in reach), default=0.0),
        )

    def _room_for_overhang(self, column: int) -> tuple[float, float]:
        """Room for labels beyond a panel; neighbours halve the room that neither needs."""

        def spare(left_one: int) -> float:
            needed = self._overhang[left_one][1] + self._overhang[left_one + 1][0]
            return (self.gaps[left_one] - self._key - needed) / 2 - 1.0

        own = self._overhang[column]
        start = self._left - MARGIN_PT / 2
        left = self._lefts[0] - start if column == 0 else own[0] + spare(column - 1)
        if column + 1 < self._columns:
            return left, own[1] + spare(column)
        return left, self.total - self._lefts[column] - self._width - MARGIN_PT / 2

    def _fits(self, column: int, overhang: tuple[float, float]) -> bool:
        left, right = self._room_for_overhang(column)
        return overhang[0] <= left and overhang[1] <= right

    @staticmethod
    def _drop_labels_without_room(place: PanelLayout, room: tuple[float, float]) -> None:
        """Leaves out labels that still have no room."""
        ticks = place.x_ticks
        for index, (at, text) in enumerate(ticks.ticks):
            middle, half = place.x.place(at) * place.width, ticks.width(text) / 2
            if middle - half < -room[0] or middle + half > place.width + room[1]:
                ticks.ticks[index] = (at, Text())


def _x_ticks(place: PanelLayout) -> XTicks:
    """Chooses the ticks along x, with their labels."""

    def write(ticks: list[tuple[float, str]]) -> XTicks:
        inside = [(at, text) for at, text in ticks if place.x.contains(at)]
        return labelled(inside, [place.x.place(at) * place.width for at, _ in inside], place.width)

    if place.panel.bare:
        return XTicks()
    if place.panel.ticks is not None:
        return write(place.panel.ticks)
    about = min(max(place.width / _X_TICK_PT, 1.0), _MAX_STEPS)
    while True:
        found = write(axes.ticks(place.x, about))
        # Fewer ticks are better than ticks without a label.
        if about <= 1.0 or place.x.log or all(text.lines for _, text in found.ticks):
            return found
        about = max(about * 0.8, 1.0)


def _write_title(place: PanelLayout, *, own_legend: bool) -> None:
    """Places a panel's title and legend: side by side if both have room, else the legend below."""
    labels = names([place.panel]) if own_legend else []
    place.title = Text.fitted(place.panel.title, place.width, TEXT_PT, _TITLE_LINES)
    place.legend = legend(labels, place.width)
    beside = row_width(labels) + GAP_PT
    left_over = place.width - width(place.panel.title, TEXT_PT)
    left_over = left_over if place.panel.title_left else left_over / 2
    lines = place.title.height * LINE_PT + (TITLE_GAP_PT if place.title.lines else 0.0)
    in_one_row = place.legend.columns == len(labels)
    place.title_rise = (
        max(lines, place.legend.height)
        if in_one_row and beside <= left_over
        else lines + place.legend.height
    )
