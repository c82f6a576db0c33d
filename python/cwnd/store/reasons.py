"""Drops and marks by reason from results with one column for each of six reasons."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

#: Columns of links with a count by reason, such as `drops_codel` and `marks_red_early`.
_COLUMN = re.compile(r"(drop|mark)s_(.+)")
_VERDICTS = {"drop": "dropped", "mark": "marked"}


def reasons_of(links: pl.LazyFrame) -> pl.LazyFrame:
    """Builds the table `reasons` from a table of links of version 1.

    Args:
        links: A row for each link, behind the key columns.

    Returns:
        A row for each reason that occurred; `total_packets` is null.
    """
    import polars as pl

    columns = list(links.collect_schema())
    keys = columns[: columns.index("link") + 1] if "link" in columns else []
    found = {name: match for name in columns if (match := _COLUMN.fullmatch(name))}
    names = {name: _VERDICTS[match[1]] for name, match in found.items()}
    return (
        links.with_row_index("_row")
        .unpivot(list(found), index=["_row", *keys], variable_name="reason", value_name="packets")
        .filter(pl.col("packets") > 0)
        .sort("_row", maintain_order=True)
        .select(
            *keys,
            pl.col("reason").replace_strict(names, return_dtype=pl.String).alias("verdict"),
            pl.col("reason").str.slice(6),
            "packets",
            pl.lit(None, pl.UInt64).alias("total_packets"),
        )
    )
