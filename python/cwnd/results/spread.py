"""Values of a metric at the points of a sweep with their spread over the seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from cwnd.results.metrics import Metric


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
