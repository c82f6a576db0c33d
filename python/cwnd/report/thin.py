"""Long series as shorter ones that look the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Significant digits of the numbers in a page: more than a screen resolves.
_DIGITS = 5
#: Times need more: ten milliseconds in an hour.
_TIME_DIGITS = 7
#: Points of a line are never fewer than this.
_FEWEST = 200
#: Nor more than this: two for each pixel of a wide screen.
_MOST = 4000


def points_per_line(budget: int, lines: int) -> int:
    """How many points each of so many lines may have."""
    return max(_FEWEST, min(_MOST, budget // max(lines, 1)))


def envelope(frame: pl.DataFrame, x: str, y: Sequence[str], most: int) -> pl.DataFrame:
    """At most `most` rows: of each span of rows that with the least and that with the greatest y.

    Spikes stay as high as they are, which a mean would not leave them. Of several columns `y` the
    first decides.
    """
    frame = frame.select(x, *y).with_columns(pl.col(y).cast(pl.Float64).fill_nan(None))
    if frame.height > most:
        spans = max(1, most // 2)
        rows = frame.with_row_index("row")
        span = (pl.col("row").cast(pl.UInt64) * spans // frame.height).alias("span")
        # Where a span has no value its first row keeps the gap.
        least = pl.col("row").get(pl.col(y[0]).arg_min().fill_null(0))
        greatest = pl.col("row").get(pl.col(y[0]).arg_max().fill_null(0))
        kept = rows.group_by(span).agg(least.alias("least"), greatest.alias("greatest"))
        chosen = pl.concat([kept["least"], kept["greatest"]]).unique().sort()
        frame = frame[chosen]
    return frame.with_columns(
        pl.col(x).cast(pl.Float64).round_sig_figs(_TIME_DIGITS), pl.col(y).round_sig_figs(_DIGITS)
    )


def steps(x: Sequence[float], y: Sequence[float], most: int) -> tuple[list[float], list[float]]:
    """Steps of a cumulative distribution, `x` and `y` in order, without those that no eye sees.

    At every x the level is that of all steps, or less than 1/most below it.
    """
    kept = [0]
    for index in range(1, len(x)):
        if y[index] - y[kept[-1]] >= 1 / most or index == len(x) - 1:
            kept.append(index)
    return [_rounded(x[i]) for i in kept], [_rounded(y[i]) for i in kept]


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
