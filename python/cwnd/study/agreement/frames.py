"""Agreements as data frames, in SI units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.results import Estimate

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.study.agreement.verdict import Agreement, Gain, Row

_ESTIMATES = ("simulator", "linux", "difference")
#: Columns of both frames beside the axes; `repeated` marks points that were run more often.
_COMMON = {"repeated": pl.Boolean, "group": pl.String, "runs": pl.UInt32}
_COMMON |= {f"{name}{end}": pl.Float64 for name in _ESTIMATES for end in ("", "_ci95")}
_OF_DIFFERENCES = {"metric": pl.String, "allowed": pl.Float64, "within": pl.Boolean}
_OF_GAINS = {"over": pl.String, "within": pl.Boolean}


def differences(found: Agreement) -> pl.DataFrame:
    """Builds a row for each point, group and metric: both values, their difference, the verdict."""
    rows = [
        {
            **_shared(row, row.point, repeated=repeated),
            "metric": row.metric,
            "allowed": row.allowed,
            "within": row.holds,
        }
        for repeated, part in _parts(found)
        for row in part.rows
    ]
    return _frame(rows, _OF_DIFFERENCES)


def stored(table: pl.DataFrame, name: str, directory: Path) -> Agreement:
    """Reconstructs an agreement from its table of differences, without gains and Linux's facts."""
    from cwnd.study.agreement.verdict import Agreement, Row

    axes = table.columns[1 : table.columns.index("group")]

    def estimate(row: dict[str, Any], column: str) -> Estimate:
        return Estimate(row["runs"], row[column], None, row[f"{column}_ci95"])

    def rows(*, repeated: bool) -> list[Row]:
        return [
            Row(
                {axis.removeprefix("axis_"): row[axis] for axis in axes},
                row["group"],
                row["metric"],
                estimate(row, "simulator"),
                estimate(row, "linux"),
                estimate(row, "difference"),
                # The allowed difference is stored as an absolute value.
                tolerance=None if row["allowed"] is None else 0.0,
                least=row["allowed"] or 0.0,
            )
            for row in table.filter(pl.col("repeated") == repeated).iter_rows(named=True)
        ]

    found = Agreement(name, rows(repeated=True), [], {}, directory)
    repeated = found if found.rows else None
    return Agreement(name, rows(repeated=False), [], {}, directory, repeated)


def gains(found: Agreement) -> pl.DataFrame:
    """Builds a row for each arm, base, point and group, in percent of goodput."""
    rows = [
        {
            **_shared(gain, {**gain.point, gain.axis: gain.arm}, repeated=repeated),
            "over": gain.base,
            "within": gain.holds,
        }
        for repeated, part in _parts(found)
        for gain in part.gains
    ]
    return _frame(rows, _OF_GAINS)


def _parts(found: Agreement) -> list[tuple[bool, Agreement]]:
    return [(False, found), *([(True, found.repeated)] if found.repeated is not None else [])]


def _shared(what: Row | Gain, point: dict[str, str], *, repeated: bool) -> dict[str, Any]:
    taken = {*_COMMON, *_OF_DIFFERENCES, *_OF_GAINS}
    axes = {f"axis_{name}" if name in taken else name: label for name, label in point.items()}
    row: dict[str, Any] = {"repeated": repeated, **axes, "group": what.group}
    row["runs"] = min(what.simulator.n, what.linux.n)
    for name in _ESTIMATES:
        estimate = getattr(what, name)
        row |= {name: estimate.mean, f"{name}_ci95": estimate.half_width}
    return row


def _frame(rows: list[dict[str, Any]], own: dict[str, Any]) -> pl.DataFrame:
    schema = {**_COMMON, **own}
    if not rows:
        return pl.DataFrame(schema=schema)
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
