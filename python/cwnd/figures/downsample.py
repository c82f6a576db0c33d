"""Downsampling of lines and markers to the resolution of a panel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.figures.axes import Scale
    from cwnd.figures.description import Ends, Line, Values
    from cwnd.figures.layout import PanelLayout

#: Width of a pixel of a PNG in points: points of a line that are closer along x are
#: indistinguishable, as are markers that are closer along both axes.
_COLUMN_PT = 0.36
#: Number of points per pixel column above which a line is downsampled.
_DENSE = 2
#: Number of separate markers above which hidden ones are removed.
_MAX_MARKERS = 2000


def downsampled(line: Line, place: PanelLayout) -> Line:
    """Downsamples a line that is denser than the resolution of its panel.

    Of the points in a pixel column it keeps the first, the last, and those with the smallest and
    the largest value, also of each edge of a band. Gaps stay. Of separate markers it keeps the
    first in each pixel. `texts` are left as they are.
    """
    count = min(len(line.x), len(line.y))
    limit = _DENSE * place.width / _COLUMN_PT if line.joined else _MAX_MARKERS
    if count <= limit:
        return line
    columns = {"x": line.x, "y": line.y, **_named("band", line.band)}
    frame = pl.DataFrame(
        {name: _numbers(values[:count]) for name, values in columns.items()}
    ).with_row_index("row")
    x_bin = _bins(place.x, "x", place.width)
    if line.joined:
        kept = _extremes(
            frame.with_columns(pl.struct(x_bin, pl.col("y").is_null()).rle_id().alias("group")),
            list(columns)[1:],
        )
    else:
        y_bin = _bins(place.y, "y", place.height).alias("up")
        kept = frame.with_columns(x_bin, y_bin).unique(["across", "up"], keep="first")["row"].sort()
    rows = kept.to_list()

    def chosen(values: Values) -> Values:
        return [values[row] for row in rows]

    def both(ends: Ends | None) -> Ends | None:
        return None if ends is None else (chosen(ends[0]), chosen(ends[1]))

    return replace(
        line,
        x=[line.x[row] for row in rows],
        y=chosen(line.y),
        band=both(line.band),
        interval=both(line.interval),
        x_interval=both(line.x_interval),
    )


def _numbers(values: Sequence[float | None]) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64, strict=False).fill_nan(None)


def _named(name: str, ends: Ends | None) -> dict[str, Values]:
    return {} if ends is None else {f"{name}_low": ends[0], f"{name}_high": ends[1]}


def _bins(scale: Scale, column: str, length: float) -> pl.Expr:
    value = pl.col(column)
    coordinate = value.log10() if scale.log else value
    place = (coordinate - scale.low) / (scale.high - scale.low) * length
    # Values far beyond the panel share a column.
    return (place / _COLUMN_PT).floor().clip(-4, length / _COLUMN_PT + 4).alias("across")


def _extremes(frame: pl.DataFrame, columns: list[str]) -> pl.Series:
    row = pl.col("row")
    kept = [row.first().alias("first"), row.last().alias("last")]
    for name in columns:
        kept += [
            row.get(pl.col(name).arg_min().fill_null(0)).alias(f"{name} least"),
            row.get(pl.col(name).arg_max().fill_null(0)).alias(f"{name} greatest"),
        ]
    found = frame.group_by("group").agg(kept).drop("group")
    return pl.concat(found.get_columns()).unique().sort()
