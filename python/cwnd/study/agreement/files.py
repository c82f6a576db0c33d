"""Numbers of an agreement as data frames, and its files beside the two results."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.files import SUMS, write_atomically
from cwnd.plots import attempt
from cwnd.results import AGREE, METRICS, Estimate
from cwnd.store import AGREEMENT, pack
from cwnd.study.agreement.verdict import GAIN_TOLERANCE

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


#: Names of the table, the document and the figure.
TABLE, DOCUMENT, FIGURE = "agreement.csv", AGREEMENT, "agreement"
#: Name of the table of points that were run more often.
REPEATED = "repeated.csv"


def write(found: Agreement) -> None:
    """Writes tables, document, manifest, hashes and figure beside the results."""
    document = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    documents = {DOCUMENT: document.encode(), TABLE: table(found).encode()}
    if found.repeated is None:
        (found.directory / REPEATED).unlink(missing_ok=True)
    else:
        documents[REPEATED] = table(found.repeated).encode()
    (found.directory / SUMS).unlink(missing_ok=True)
    tables = {"differences": differences(found), "gains": gains(found)}
    for name, content in pack(AGREE, found.name, tables, documents).items():
        write_atomically(found.directory / name, content)
    then = (
        f"the numbers are complete in {found.directory}, and the same command tries again without"
        " running anything twice"
    )
    with attempt(f"figure `{FIGURE}`", then):
        from cwnd.figures import Figure
        from cwnd.plots import save
        from cwnd.study.agreement import figure as agreement

        save(Figure(agreement.figure(found)), found.directory, FIGURE)


def table(found: Agreement) -> str:
    """Formats all numbers as CSV in units for people; tolerances of gains are percentage points."""
    axes = found.rows[0].point if found.rows else {}
    out = io.StringIO()
    writer = csv.DictWriter(out, [*_axes(axes), *_COLUMNS], lineterminator="\n", restval="")
    writer.writeheader()
    for row in found.rows:
        metric = METRICS[row.metric]
        cells = {
            **_axes(row.point),
            "group": row.group,
            "metric": metric.label,
            "unit": metric.unit,
            **_linux_facts(row.simulator, row.linux, metric.scale),
            "difference": _shown(row.difference.mean, metric.scale),
            "difference_ci95": _shown(row.difference.half_width, metric.scale),
            "difference_percent": _shown(row.relative, 100),
            "tolerance": "" if row.tolerance is None else f"{100 * row.tolerance:g}",
            "tolerance_least": f"{row.least:g}" if row.least else "",
            "within": "" if row.holds is None else str(row.holds).lower(),
        }
        writer.writerow(cells)
    for gain in found.gains:
        cells = {
            **_axes({**gain.point, gain.axis: gain.arm}),
            "group": gain.group,
            "metric": GAIN_OVER + gain.base,
            "unit": "%",
            **_linux_facts(gain.simulator, gain.linux, 1),
            "difference": _shown(gain.difference.mean, 1),
            "difference_ci95": _shown(gain.difference.half_width, 1),
            "tolerance": f"{GAIN_TOLERANCE:g}",
            "within": str(gain.holds).lower(),
        }
        writer.writerow(cells)
    return out.getvalue()


#: Decimals of the numbers in the table.
DIGITS = 4
#: Prefix of a gain's metric in the table, before the base.
GAIN_OVER = "Gain over "
#: Columns of the table after the axes.
_COLUMNS = (
    *("group", "metric", "unit", "runs", "simulator", "simulator_ci95", "linux", "linux_ci95"),
    *("difference", "difference_ci95", "difference_percent", "tolerance"),
    *("tolerance_least", "within"),
)


def _axes(point: dict[str, str]) -> dict[str, str]:
    """Maps the columns of the axes to labels."""
    return {axis_column(axis): label for axis, label in point.items()}


def axis_column(axis: str) -> str:
    """Column of an axis, with a prefix if another column has its name."""
    return f"axis_{axis}" if axis in _COLUMNS else axis


def _linux_facts(simulator: Estimate, linux: Estimate, scale: float) -> dict[str, str]:
    return {
        "runs": str(min(simulator.n, linux.n)),
        "simulator": _shown(simulator.mean, scale),
        "simulator_ci95": _shown(simulator.half_width, scale),
        "linux": _shown(linux.mean, scale),
        "linux_ci95": _shown(linux.half_width, scale),
    }


def _shown(value: float | None, scale: float) -> str:
    return "" if value is None else f"{round(value * scale, DIGITS):.15g}"
