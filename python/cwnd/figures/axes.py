"""Scales of axes: their ends, their ticks, and the labels of the ticks along x."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import polars as pl

from cwnd.figures.description import (
    Bars,
    Image,
    Limits,
    Line,
    Mark,
    Note,
    Panel,
    Picture,
    Rule,
    Span,
)
from cwnd.figures.text import TICK_LINE_PT, TICK_TEXT_PT, Text

#: Fraction of the data's range that stays free at either end of an axis.
_MARGIN = 0.05
#: Distances of ticks, as multiples of a power of ten.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Maximum number of decimals in the label of a tick.
_MAX_DECIMALS = 12
#: Magnitude above which a number is not drawn: differences would vanish or overflow.
LARGEST = 1e150
#: Relative distance below which two numbers count as equal: ends of an axis, a tick and zero.
_CLOSE = 1e-6
#: Magnitude from which, and number of decimals above which, labels of ticks have an exponent.
_LARGE = 1e7
_DECIMALS = 5
#: Length in decades below which a logarithmic axis has labelled ticks between powers of ten.
_FEW_DECADES = 2.0
#: Minimum length in points of a decade with unlabelled ticks.
_MINOR_PT = 12.0
#: Distance, in lengths of the axis, beyond which an edge of a band is clamped to the axis.
_FAR = 50.0
#: Length above which lists of numbers are searched by polars.
_LONG = 500


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`; both are common logarithms on a logarithmic axis."""

    low: float
    high: float
    log: bool

    def place(self, value: float) -> float:
        """Position of a value, 0 at the start of the axis and 1 at its end; NaN if it has none."""
        return (drawn(value, log=self.log) - self.low) / (self.high - self.low)

    def value(self, at: float) -> float:
        """Converts a coordinate to a value."""
        return 10.0**at if self.log else at

    @property
    def domain(self) -> list[float]:
        """Values at both ends."""
        return [self.value(self.low), self.value(self.high)]

    def clamped(self, value: float) -> float:
        """Limits a value to the axis.

        On a logarithmic axis, values up to zero become its start.
        """
        low, high = self.domain
        return min(max(value, low), high)

    def near(self, value: float) -> float:
        """Limits a value to a distance of some lengths of the axis, beyond which it is clamped.

        An edge that crosses the end of an axis thus keeps its slope. On a logarithmic axis, values
        up to zero become its start.
        """
        at = drawn(value, log=self.log)
        if math.isnan(at):
            return self.clamped(value)
        far = _FAR * (self.high - self.low)
        return self.value(at) if self.low - far <= at <= self.high + far else self.clamped(value)

    def contains(self, value: float) -> bool:
        """`True` if a value lies on the axis, ends included."""
        return self.low <= drawn(value, log=self.log) <= self.high


def drawn(value: float, *, log: bool) -> float:
    """Coordinate of a value, its logarithm on a logarithmic axis; NaN if it has none."""
    if log:
        return math.log10(value) if 1 / LARGEST <= value <= LARGEST else math.nan
    return value if abs(value) <= LARGEST else math.nan


def scales(picture: Picture) -> list[tuple[Scale, Scale]]:
    """Computes the axes along x and y of each panel; a shared axis covers all panels' data."""
    columns = picture.columns
    same: dict[str, Callable[[int], int]] = {
        "all": lambda _: 0,
        "row": lambda place: place // columns,
        "col": lambda place: place % columns,
        "none": lambda place: place,
    }
    along, up = same[picture.shared_x], same[picture.shared_y]
    # Panels share an axis only if both are linear, or both are logarithmic.
    x_groups: dict[tuple[int, bool], list[Panel]] = {}
    y_groups: dict[tuple[int, bool], list[Panel]] = {}
    for place, panel in enumerate(picture.panels):
        x_groups.setdefault((along(place), panel.x_log), []).append(panel)
        y_groups.setdefault((up(place), panel.y_log), []).append(panel)
    x_scales = {key: _x_scale(panels, log=key[1]) for key, panels in x_groups.items()}
    y_scales = {key: _y_scale(panels, log=key[1]) for key, panels in y_groups.items()}
    return [
        (x_scales[along(place), panel.x_log], y_scales[up(place), panel.y_log])
        for place, panel in enumerate(picture.panels)
    ]


def _x_scale(panels: Sequence[Panel], *, log: bool) -> Scale:
    values = (values for panel in panels for mark in panel.marks for values in _x_values(mark))
    ticks = ([at for at, _ in panel.ticks or ()] for panel in panels)
    margin = 0.0 if panels[-1].x_tight else _margin(panels)
    return _scale(chain(values, ticks), [panel.x_limits for panel in panels], margin, log=log)


def _y_scale(panels: Sequence[Panel], *, log: bool) -> Scale:
    values = (values for panel in panels for mark in panel.marks for values in _y_values(mark))
    ticks = ([at for at, _ in panel.y_ticks or ()] for panel in panels)
    limits = [panel.y_limits for panel in panels]
    return _scale(chain(values, ticks), limits, _margin(panels), log=log)


def _margin(panels: Sequence[Panel]) -> float:
    filled = any(isinstance(mark, Image) for panel in panels for mark in panel.marks)
    return 0.0 if filled else _MARGIN


def _x_values(mark: Mark) -> Iterator[Iterable[float | None]]:
    match mark:
        case Line():
            yield (
                mark.x
                if len(mark.x) > _LONG
                else [x for x, y in zip(mark.x, mark.y, strict=False) if y is not None]
            )
            yield from mark.x_interval or ()
        case Bars(upright=True):
            yield from _around(mark.at, mark.width)
        case Bars():
            yield chain(mark.values, [0.0])
        case Image(size=(count, _)):
            yield -0.5, count - 0.5
        case Rule(x=float() | int() as x) | Note(x=x):
            yield (x,)


def _y_values(mark: Mark) -> Iterator[Iterable[float | None]]:
    match mark:
        case Line():
            yield mark.y
            yield from mark.interval or ()
            yield from mark.band or ()
        case Bars(upright=True):
            yield chain(mark.values, [0.0])
        case Bars():
            yield from _around(mark.at, mark.width)
        case Image(size=(_, count)):
            yield -0.5, count - 0.5
        case Span():
            yield mark.y
        case Rule(y=float() | int() as y) | Note(y=y):
            yield (y,)


def _around(middles: Sequence[float], width: float) -> Iterator[list[float]]:
    for side in (-0.5, 0.5):
        yield [middle + side * width for middle in middles]


def _scale(
    values: Iterable[Iterable[float | None]], limits: Sequence[Limits], margin: float, *, log: bool
) -> Scale:
    found = [ends for each in values if (ends := _ends(each, log=log)) is not None]
    low = min((ends[0] for ends in found), default=0.0)
    high = max((ends[1] for ends in found), default=1.0)
    room = margin * (high - low)

    def limit(end: int, otherwise: float) -> float:
        given = (drawn(value, log=log) for each in limits if (value := each[end]) is not None)
        return next((at for at in given if not math.isnan(at)), otherwise)

    low, high = limit(0, low - room), limit(1, high + room)
    if high - low > max(_CLOSE * max(abs(low), abs(high)), 1 / LARGEST):
        return Scale(low, high, log)
    # All values are equal, or lie beyond a given limit.
    free = all(end is None for each in limits for end in each)
    room = max(abs(low), 1.0) * _MARGIN
    return Scale(low - room * (free and margin > 0), low + room, log)


def _ends(values: Iterable[float | None], *, log: bool) -> tuple[float, float] | None:
    """Smallest and largest coordinate of the values that have one; `None` if none has."""
    if isinstance(values, Sequence) and len(values) > _LONG:
        numbers = pl.Series(values, dtype=pl.Float64, strict=False)
        lowest = 1 / LARGEST if log else -LARGEST
        numbers = numbers.filter(numbers.is_between(lowest, LARGEST))
        smallest, largest = numbers.min(), numbers.max()
        values = [] if numbers.is_empty() else [smallest, largest]  # type: ignore[list-item]
    places = [at for value in values if value is not None and (at := drawn(value, log=log)) == at]
    return (min(places), max(places)) if places else None


def ticks(scale: Scale, about: float) -> list[tuple[float, str]]:
    """Chooses about `about` round values on an axis, with their labels."""
    if not scale.log:
        return _linear_ticks(scale, about)
    found = _log_ticks(scale, about)
    if len(found) > 1 or scale.high - scale.low >= 1.0:
        return found
    # On a short logarithmic axis, round values at linear distances fit better.
    low, high = scale.domain
    return _linear_ticks(Scale(low, high, log=False), about)


def _linear_ticks(scale: Scale, about: float) -> list[tuple[float, str]]:
    step = _step(scale.high - scale.low, about)
    digits = range(_MAX_DECIMALS)
    decimals = next((n for n in digits if _is_whole(step * 10.0**n)), _MAX_DECIMALS)
    largest = max(abs(scale.low), abs(scale.high))
    with_power = largest >= _LARGE or decimals > _DECIMALS
    power = math.floor(math.log10(step))
    # Decimals of the mantissa: 2.5 needs one more than its power says.
    half = 0 if _is_whole(step / 10.0**power) else 1
    places = min(max(math.floor(math.log10(largest)) - power + half, 0), _MAX_DECIMALS)
    first = math.ceil(scale.low / step)
    found = []
    for index in range(max(0, math.floor(scale.high / step - first + 1e-9)) + 1):
        value = (first + index) * step
        # Rounding may leave a tiny number, or a negative sign, in place of zero.
        value = 0.0 if abs(value) < _CLOSE * step else value
        if not with_power:
            text = f"{value:.{decimals}f}"
        else:
            text = _with_power(value, places) if value else "0"
        found.append((value, text))
    return found


def _with_power(value: float, digits: int) -> str:
    mantissa, _, power = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(power)}"


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < _CLOSE * number


def _step(length: float, about: float) -> float:
    """Distance between two ticks."""
    min_step = length / max(about, 1.0)
    power = 10.0 ** math.floor(math.log10(min_step))
    return next((m * power for m in _STEPS if m * power >= min_step), 10.0 * power)


def between_decades(scale: Scale, length: float) -> list[float]:
    """Values from 2 to 9 times powers of ten, for ticks on a logarithmic axis of `length` points.

    The list is empty without room, and for a linear axis.
    """
    if not scale.log or length < _MINOR_PT * (scale.high - scale.low):
        return []
    powers = range(math.floor(scale.low), math.ceil(scale.high) + 1)
    values = [float(f"{factor}e{power}") for power in powers for factor in range(2, 10)]
    return [value for value in values if scale.contains(value)]


def _log_ticks(scale: Scale, about: float) -> list[tuple[float, str]]:
    """Powers of ten on an axis, with 2 and 5 times them on one of less than two decades.

    If there are more than `about` decades, about that many.
    """
    decades = scale.high - scale.low
    factors = (1, 2, 5) if decades < _FEW_DECADES else (1,)
    every = max(math.ceil(decades / max(about, 1.0)), 1)
    found = []
    for power in range(math.floor(scale.low), math.ceil(scale.high) + 1, every):
        for factor in factors:
            value = float(f"{factor}e{power}")
            if scale.low - 1e-9 <= math.log10(value) <= scale.high + 1e-9:
                short = -power <= _DECIMALS and value < _LARGE
                text = f"{value:.{max(-power, 0)}f}" if short else f"{factor}e{power}"
                found.append((value, text))
    return found


#: Minimum gap between two level labels of ticks along x; upright ones may touch.
_GAP_PT = 4.0
#: Maximum number of lines of level labels, and maximum length and number of lines of upright ones.
_MAX_LINES = 4
_UPRIGHT_PT = 120.0
_MAX_UPRIGHT_LINES = 3


@dataclass
class XTicks:
    """Ticks along x, by value, with their labels; the text is empty where there is no room."""

    ticks: list[tuple[float, Text]] = field(default_factory=list)
    #: `True` if labels are rotated to read from below.
    upright: bool = False
    #: Height of the labels in points.
    height: float = 0.0
    #: Reach of labels beyond the axis, left and right.
    overhang: tuple[float, float] = (0.0, 0.0)

    def width(self, text: Text) -> float:
        """Width of a label along the axis in points."""
        return text.height * TICK_LINE_PT if self.upright else text.width(TICK_TEXT_PT)


def labelled(
    ticks: Sequence[tuple[float, str]], positions: Sequence[float], width: float
) -> XTicks:
    """Chooses the form of the labels; `positions` are points from the start of the axis."""
    spacing = min((b - a for a, b in pairwise(sorted(positions))), default=width)
    spacing = min(spacing, width)

    def texts(max_width: float, max_lines: int) -> list[Text]:
        return [Text.fitted(text, max_width, TICK_TEXT_PT, max_lines) for _, text in ticks]

    def separate(texts: list[Text]) -> bool:
        return all(text.width(TICK_TEXT_PT) + _GAP_PT <= spacing for text in texts)

    values = [at for at, _ in ticks]
    level = texts(math.inf, 1)
    if all(_is_number(text) for _, text in ticks):
        return _placed(values, level, positions, width, upright=False)
    if separate(level) or (len(ticks) < 2 and width > _UPRIGHT_PT):  # noqa: PLR2004
        return _placed(
            values, texts(max(width, spacing), _MAX_LINES), positions, width, upright=False
        )
    # Words are broken only if all other forms fail.
    in_lines = texts(spacing - _GAP_PT, _MAX_LINES)
    whole_words = all(
        fitted.whole is None
        and sum(len(line.split()) for line in fitted.lines) == len(text.split())
        for (_, text), fitted in zip(ticks, in_lines, strict=True)
    )
    if whole_words and separate(in_lines):
        return _placed(values, in_lines, positions, width, upright=False)
    lines = min(max(int(spacing / TICK_LINE_PT), 1), _MAX_UPRIGHT_LINES)
    return _placed(values, texts(_UPRIGHT_PT, lines), positions, width, upright=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _placed(
    values: list[float],
    texts: list[Text],
    positions: Sequence[float],
    width: float,
    *,
    upright: bool,
) -> XTicks:
    """Leaves out labels that would touch the previous one."""
    found = XTicks(upright=upright)
    kept = [Text()] * len(values)
    end = -math.inf
    gap = 0.0 if upright else _GAP_PT
    left = right = 0.0
    for index in sorted(range(len(values)), key=lambda each: positions[each]):
        text, at = texts[index], positions[index]
        across = found.width(text)
        if not text.lines or at - across / 2 < end + gap:
            continue
        down = text.width(TICK_TEXT_PT) + 2.0 if upright else text.height * TICK_LINE_PT
        end = at + across / 2
        found.height = max(found.height, down)
        left, right = max(left, across / 2 - at), max(right, end - width)
        kept[index] = text
    found.overhang = left, right
    found.ticks = list(zip(values, kept, strict=True))
    return found
