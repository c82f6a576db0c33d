"""Tables of results for terminals and pages, and the spread of metrics over the seeds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from cwnd import _core
from cwnd.results.metrics import METRICS, Metric, main_link
from cwnd.results.unsampled import flow_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from cwnd.results.run import Run


@dataclass(frozen=True)
class Spread:
    """A mean with its 95 % interval, or the median of a count with its quartiles."""

    value: float | None
    #: Ends of the interval, or quartiles; `None` below two seeds and if both ends are equal.
    ends: tuple[float, float] | None
    counts: bool
    #: `True` if all seeds gave the same result.
    deterministic: bool

    @property
    def values(self) -> list[float]:
        """The value and the ends, as far as they exist."""
        return [each for each in (self.value, *(self.ends or ())) if each is not None]

    def scaled(self, factor: float) -> Spread:
        """Converts value and ends to another unit."""
        value = None if self.value is None else self.value * factor
        ends = None if self.ends is None else (self.ends[0] * factor, self.ends[1] * factor)
        return replace(self, value=value, ends=ends)


def spreads(summary: pl.DataFrame, metric: Metric) -> list[Spread]:
    """Extracts the values of a metric from the rows of a summary."""
    name = metric.column
    columns = [name, f"{name}_ci95"]
    if metric.counts:
        columns = [f"{name}_p50", f"{name}_p25", f"{name}_p75"]
    rows = summary.select("n", "deterministic", *columns).iter_rows()
    return [_spread(metric, *row) for row in rows]


def _spread(metric: Metric, n: int, same: bool, value: float | None, *more: float | None) -> Spread:
    ends = None
    if value is not None and n > 1 and not same:
        if metric.counts:
            low, high = more
            ends = None if low is None or high is None or low == high else (low, high)
        elif more[0]:
            ends = value - more[0], value + more[0]
    return Spread(value, ends, metric.counts, same)


class Wording(NamedTuple):
    """Wording of tables or of figures for the numbers of several seeds."""

    mean: str
    median: str
    #: Text for points at which all seeds gave the same result, if others vary.
    same: str


IN_TABLES = Wording(
    "mean ± 95 % confidence",
    "median [quartiles]",
    "det.: deterministic, all seeds gave the same result",
)
#: Wording for tables without intervals.
CENTRES = IN_TABLES._replace(mean="mean", median="median")
IN_FIGURES = Wording(
    "mean and 95 % confidence interval",
    "median and quartiles",
    "deterministic where all seeds gave the same result",
)


def describe_spreads(
    summary: pl.DataFrame, metrics: Sequence[Metric], wording: Wording
) -> list[str]:
    """Phrases that describe the statistics shown over the seeds; none for a single seed."""
    seeds = max(summary["n"].to_list(), default=0)
    if seeds < 2:  # noqa: PLR2004 - there is nothing to average
        return []
    if summary["deterministic"].all():
        return [f"deterministic: {seeds} seeds gave the same result"]
    phrases = [wording.mean] if any(not metric.counts for metric in metrics) else []
    if any(metric.counts for metric in metrics):
        phrases.append(f"{'counts: ' if phrases else ''}{wording.median}")
    if not phrases:
        return []
    phrases[0] += f" of {seeds} seeds"
    return phrases + ([wording.same] if summary["deterministic"].any() else [])


#: Lines of a resolved scenario with the stack and the noise, which the caption states.
_STACK_OR_NOISE = re.compile(r"^(stack|noise) = (.+)$", re.MULTILINE)

#: Metrics of the table of results, in its order.
COLUMNS = (
    "goodput_bit_s",
    "utilisation",
    "qdelay_p50_us",
    "qdelay_p90_us",
    "drops",
    "marks",
    "reductions_loss",
    "reductions_ecn",
    "rto_count",
)
#: Metrics of requests, shown if there are requests.
OF_REQUESTS = (
    "requests",
    "given_up_ratio",
    "response_mean_s",
    "response_p50_s",
    "response_p99_s",
)
#: Metrics of mechanisms that few runs use.
_RARE = ("reductions_quench", "reductions_delay")
#: Metrics that are shown only if one of their values is not zero.
OPTIONAL = (*_RARE, "jain", "fct_s", *OF_REQUESTS)
#: Short headings of metrics; others use the metric's label.
_HEADINGS = {
    "goodput_bit_s": "goodput",
    "utilisation": "utilis.",
    "qdelay_p50_us": "qdelay\np50",
    "qdelay_p90_us": "qdelay\np90",
    "drops": "drops",
    "marks": "marks",
    "reductions_loss": "reduct.\nby loss",
    "reductions_ecn": "reduct.\nby ECN",
    "reductions_quench": "reduct. by\nquench",
    "reductions_delay": "reduct.\nby delay",
    "rto_count": "time-\nouts",
    "jain": "Jain's\nindex",
    "fct_s": "FCT\nmean",
    "requests": "requests",
    "given_up_ratio": "given\nup",
    "response_mean_s": "response\nmean",
    "response_p50_s": "response\np50",
    "response_p90_s": "response\np90",
    "response_p99_s": "response\np99",
    "response_max_s": "response\nmax",
    "rtt_p50_us": "RTT\np50",
    "delay_p95_us": "delay\np95",
    "jitter_us": "jitter\nmean",
    "lost_ratio": "lost",
    "retrans": "retrans",
    "goodput_share": "share",
    "goodput_ratio": "ratio\nper flow",
}
#: Metrics of datagrams, shown if a group of them has no RTT.
OF_DATAGRAMS = ("delay_p95_us", "jitter_us", "lost_ratio")
#: Metrics of the table of groups.
_GROUP_COLUMNS = (
    "goodput_bit_s",
    "goodput_share",
    "goodput_ratio",
    "rtt_p50_us",
    *OF_DATAGRAMS,
    "retrans",
    "reductions_loss",
    "reductions_ecn",
    *_RARE,
    "rto_count",
    "jain",
    "fct_s",
    *OF_REQUESTS,
)
#: Units of rates; a column uses the largest in which its largest mean is at least one.
_RATE_UNITS = (("kbit/s", 1e-3), ("Mbit/s", 1e-6), ("Gbit/s", 1e-9))
#: Significant digits of a value without an interval.
_DIGITS = 3
#: Maximum number of significant digits of a value with an interval.
_DIGITS_WITH_INTERVAL = 4
#: Value from which quantiles of counts are rounded to whole numbers.
_WHOLE_FROM = 100


@dataclass(frozen=True)
class MetricUnit:
    """A metric with the unit and scale of its column in a table."""

    metric: Metric
    unit: str
    scale: float

    @classmethod
    def of(cls, metric: Metric, means: Sequence[float | None]) -> MetricUnit:
        """Chooses the unit of a metric from its means."""
        largest = max((abs(mean) for mean in means if mean is not None), default=0.0)
        if metric.unit != "Mbit/s" or largest == 0:
            return cls(metric, metric.unit, metric.scale)
        fitting = [(u, s) for u, s in _RATE_UNITS if largest * s >= 1]
        unit, scale = fitting[-1] if fitting else _RATE_UNITS[0]
        return cls(metric, unit, scale)

    @property
    def heading(self) -> str:
        """Heading of the metric's column."""
        name = _HEADINGS.get(self.metric.column, self.metric.label)
        return f"{name}\n{self.unit}" if self.unit else name

    def text(self, mean: float | None, half_width: float | None) -> str:
        """Formats a mean, with its interval if it has one."""
        if mean is None:
            return "–"
        return with_interval(
            mean * self.scale, None if half_width is None else half_width * self.scale
        )

    def spread(self, of: Spread, *, intervals: bool = True, named_elsewhere: bool = False) -> str:
        """Formats a mean with its interval, or a median with its quartiles.

        A deterministic mean is marked "det." unless that is `named_elsewhere`.
        """
        if of.value is None or of.ends is None or not intervals:
            text = self.text(of.value, None)
            alone = of.deterministic and not of.counts and of.value is not None
            return f"{text} det." if alone and not named_elsewhere else text
        if not of.counts:
            return self.text(of.value, of.ends[1] - of.value)
        median, low, high = map(_count, of.scaled(self.scale).values)
        return f"{median} [{low}–{high}]"


def _count(value: float) -> str:
    """Formats a quantile of counts, which may lie between whole numbers if seeds are few."""
    return f"{value:.0f}" if value == int(value) or value >= _WHOLE_FROM else f"{value:.1f}"


def with_interval(mean: float, half_width: float | None) -> str:
    """Formats a number, with half the width of its interval if it has one."""
    if half_width is None:
        return number(mean)
    places = 0 if mean == int(mean) else _default_places(mean, _DIGITS_WITH_INTERVAL)
    if half_width > 0:
        places = _default_places(mean, _DIGITS_WITH_INTERVAL)
        # Two digits of the interval determine how many of the mean are significant.
        places = min(places, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{mean:.{places}f} ±{half_width:.{places}f}"


def number(value: float) -> str:
    """Formats a number with three significant digits, or more before the point.

    It has at most four decimals. Whole numbers have none.
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.{_default_places(value, _DIGITS)}f}"


def _default_places(value: float, digits: int) -> int:
    if value == 0:
        return 0
    return min(4, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


#: Characters between two columns of a terminal's table.
_PAD = 3
#: Minimum width of a key column in characters, if there is room at all.
_MIN_KEY_WIDTH = 8


@dataclass(frozen=True)
class TextTable:
    """A table before it is drawn on a terminal or on a page."""

    title: str
    #: Phrases of the caption.
    caption_parts: list[str]
    #: Number of key columns, from the left, which identify the row.
    keys: int
    headings: list[str]
    rows: list[tuple[str, ...]]

    @property
    def caption(self) -> str:
        """Caption of the table."""
        return "; ".join(self.caption_parts)

    def starts_block(self, index: int) -> bool:
        """`True` if the outermost of several keys changes at this row."""
        return self.keys > 1 and index > 0 and self.rows[index][0] != self.rows[index - 1][0]

    def cut(self, max_rows: int) -> TextTable:
        """Returns the first `max_rows` rows, with a caption that says so."""
        if len(self.rows) <= max_rows:
            return self
        caption_parts = [f"the first {max_rows} of {len(self.rows)} rows", *self.caption_parts]
        return replace(self, caption_parts=caption_parts, rows=self.rows[:max_rows])

    @property
    def width(self) -> int:
        """Characters that a terminal needs to show each row in one line."""
        return sum(map(self._natural, range(len(self.headings)))) + _PAD * len(self.headings)

    def fitting(self, width: int) -> list[Table]:
        """Splits the table to fit a terminal of this width.

        Keys are broken into lines; metrics that do not fit beside each other continue in a table
        below. No number is cut.
        """
        every = range(self.keys, len(self.headings))
        if self.width <= width:
            return [self._drawn(every, {}, first=True, last=True)]
        widths = self._key_widths(width, max(map(self._natural, every), default=0))
        room = width - sum(each + _PAD for each in widths.values())
        parts: list[list[int]] = []
        left = 0
        for column in every:
            needed = self._natural(column) + _PAD
            if needed > left:
                parts.append([])
                left = room
            parts[-1].append(column)
            left -= needed
        return [
            self._drawn(part, widths, first=part is parts[0], last=part is parts[-1])
            for part in parts or [[]]
        ]

    def rich(self) -> Table:
        """Draws the table for a terminal that is wide enough."""
        return self._drawn(range(self.keys, len(self.headings)), {}, first=True, last=True)

    def _natural(self, column: int) -> int:
        cells = [*self.headings[column].split("\n"), *(row[column] for row in self.rows)]
        return max(map(cell_len, cells))

    def _key_widths(self, width: int, metric: int) -> dict[int, int]:
        """Widths of the keys: all together half of the width, or `_MIN_KEY_WIDTH` each, at most.

        The latter holds only as far as one metric leaves the room.
        """
        natural = {column: self._natural(column) for column in range(self.keys)}
        room = max(width // 2, width - metric - _PAD) - _PAD * self.keys
        if sum(natural.values()) <= width // 2:
            return natural
        room = min(room, max(width // 2, _MIN_KEY_WIDTH * self.keys))
        found: dict[int, int] = {}
        # Short columns come first: the width that they leave is shared by the others.
        for left, column in enumerate(sorted(natural, key=lambda each: natural[each])):
            share = (room - sum(found.values())) // (self.keys - left)
            found[column] = max(1, min(natural[column], share))
        return found

    def _drawn(
        self, metrics: Iterable[int], widths: Mapping[int, int], *, first: bool, last: bool
    ) -> Table:
        table = Table(
            title=Text(self.title) if first else None,
            caption=Text(self.caption) if last else None,
            box=box.SIMPLE_HEAD,
            header_style="bold",
            title_style="bold",
            caption_style="dim",
            pad_edge=False,
        )
        metrics = list(metrics)
        for index in range(self.keys):
            width = widths.get(index)
            # Without an explicit width, rich would shrink this column before it breaks a line.
            table.add_column(Text(self.headings[index]), width=width, overflow="fold")
        for index in metrics:
            table.add_column(Text(self.headings[index]), justify="right", no_wrap=True)
        for index, row in enumerate(self.rows):
            # A line between the blocks of the outermost axis makes a long table readable.
            if self.starts_block(index):
                table.add_section()
            # A label is plain text, which rich would parse as markup otherwise.
            table.add_row(*(Text(row[each]) for each in (*range(self.keys), *metrics)))
        return table


def result_table(run: Run, link: str | None = None, *, intervals: bool = True) -> TextTable:
    """Builds the table of results: a row per point, each metric with its spread over the seeds.

    Without `intervals` it is narrower: means and medians only.
    """
    link = link if link is not None else main_link(run)
    summary = run.summary(link=link, by="all")
    columns = [*COLUMNS, *(c for c in OPTIONAL if _has_nonzero(summary, c))]
    metrics = [METRICS[column] for column in columns]
    caption_parts = [f"link {link}, after the warm-up"] if link is not None else []
    caption_parts += _stacks_and_noise(run)
    keys = run.remarks.keys(summary)
    return summary_table(run.name, caption_parts, keys, summary, metrics, intervals=intervals)


def _stacks_and_noise(run: Run) -> list[str]:
    """Stacks and noise of all points, for the caption: a scenario may leave both to defaults."""
    found: dict[str, dict[str, None]] = {"stack": {}, "noise": {}}
    for indices in run.rows_by_point.values():
        for key, value in _STACK_OR_NOISE.findall(run.resolved[indices[0]]):
            found[key][value] = None
    return [f"{key} {', '.join(map(_in_words, values))}" for key, values in found.items() if values]


def _in_words(toml: str) -> str:
    """Formats a TOML value: a name, or a stack with parts, such as `linux without rack, prr`."""
    value = _core.read_toml(f"value = {toml}", name="resolved")["value"]
    if isinstance(value, str):
        return value
    parts = [f" {key} {', '.join(value[key])}" for key in ("without", "with") if value[key]]
    return f"{value['base']}{''.join(parts)}"


def group_table(run: Run, *, intervals: bool = True) -> TextTable | None:
    """Builds the table of groups: a row per point and group; `None` if there is only one group."""
    if len(run.groups) < 2:  # noqa: PLR2004
        return None
    rows = run.summary(_GROUP_COLUMNS, by="group")
    flows = flow_counts(run)
    keys = run.remarks.keys(rows)
    keys["group (flows)"] = [
        f"{group} ({number(flows.get((*point, group), 0))}){run.remarks.group(tuple(point), group)}"
        for *point, group in rows.select(*run.axis_columns, "group").iter_rows()
    ]
    caption_parts = [
        "goodput of all flows of a group together",
        f"ratio of the mean goodput of a flow to that of a flow of {run.groups[0]}",
    ]
    datagrams = rows.filter(rows["rtt_p50_us"].is_null() & rows["delay_p95_us"].is_not_null())
    left_out = [] if datagrams.height else [*OF_DATAGRAMS]
    left_out += [c for c in OPTIONAL if not _has_nonzero(rows, c)]
    metrics = [METRICS[c] for c in _GROUP_COLUMNS if c not in left_out]
    return summary_table(
        "by group of flows", caption_parts, keys, rows, metrics, intervals=intervals
    )


def summary_table(
    title: str,
    caption_parts: list[str],
    keys: dict[str, list[str]],
    rows: pl.DataFrame,
    metrics: Sequence[Metric],
    *,
    intervals: bool = True,
) -> TextTable:
    """Builds a table of summaries; counts that are zero everywhere move to the caption.

    Args:
        title: Title of the table.
        caption_parts: Phrases of the caption.
        keys: Texts of the key columns, by heading.
        rows: Summary from `summarise`.
        metrics: Metrics to show.
        intervals: `True` shows intervals and quartiles.
    """
    zero_counts = [metric for metric in metrics if _all_zero(rows, metric)]
    shown = [
        MetricUnit.of(metric, rows[metric.column].to_list())
        for metric in metrics
        if metric not in zero_counts and not _empty(rows, metric.column)
    ]
    shown_metrics = [each.metric for each in shown]
    caption_parts = [
        *caption_parts,
        *describe_spreads(rows, shown_metrics, IN_TABLES if intervals else CENTRES),
    ]
    if not intervals and rows.height and max(rows["n"]) > 1 and not rows["deterministic"].all():
        caption_parts.append("intervals and quartiles in summary.csv")
    if zero_counts:
        labels = [metric.label for metric in zero_counts]
        caption_parts.append(f"no {', '.join(label[0].lower() + label[1:] for label in labels)}")
    all_the_same = bool(rows["deterministic"].all())
    columns = [
        [
            each.spread(of, intervals=intervals, named_elsewhere=all_the_same)
            for of in spreads(rows, each.metric)
        ]
        for each in shown
    ]
    cells = zip(*columns, strict=True) if columns else [()] * rows.height
    return TextTable(
        title=title,
        caption_parts=caption_parts,
        keys=len(keys),
        headings=[*keys, *(each.heading for each in shown)],
        rows=[
            (*point, *values)
            for point, values in zip(_transposed(keys, rows.height), cells, strict=True)
        ],
    )


def _transposed(keys: dict[str, list[str]], height: int) -> list[tuple[str, ...]]:
    return list(zip(*keys.values(), strict=True)) if keys else [()] * height


def _all_zero(rows: pl.DataFrame, metric: Metric) -> bool:
    """`True` if a count is zero everywhere, which the caption states instead of a column."""
    return metric.counts and rows.height > 0 and all(mean == 0 for mean in rows[metric.column])


def _has_nonzero(summary: pl.DataFrame, column: str) -> bool:
    """`True` if a value of the column is neither null nor zero."""
    return any(mean for mean in summary[column])


def _empty(summary: pl.DataFrame, column: str) -> bool:
    return summary[column].null_count() == summary.height
