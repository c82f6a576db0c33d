"""Files of an agreement beside the two results: tables, a document and a figure."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from cwnd.files import SUMS, write_atomically
from cwnd.plots import attempt
from cwnd.results import AGREE, METRICS
from cwnd.store import AGREEMENT, pack
from cwnd.study.agreement.frames import differences, gains
from cwnd.study.agreement.verdict import GAIN_TOLERANCE

if TYPE_CHECKING:
    from cwnd.results import Estimate
    from cwnd.study.agreement.verdict import Agreement

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
    return "" if value is None else f"{value * scale:.{DIGITS}f}"
