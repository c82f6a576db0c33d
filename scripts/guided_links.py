"""BMCC, VCP and MLCP over links of any rate and length: a table of bmcc.md.

`docs/controllers/bmcc/links.toml` is run, about three minutes; `make docs` writes the table
again, a test runs a part of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "controllers" / "bmcc.md"
SCENARIO = PAGE.with_name("bmcc") / "links.toml"
TABLE = "scripts/guided_links.py"

#: The paper's results for BMCC (§ VII a to c): utilisation, queue, loss.
OF_RATES = "≥ 90 %, < 20 % of the BDP, negligible"
OF_ROUND_TRIPS = "≥ 80 %, ≤ 25 % of the BDP, negligible"
OF_FLOWS = "≥ 90 %, < 10 % of the BDP"
PAPER = {
    **dict.fromkeys(("1 Mbit/s", "10 Mbit/s", "155 Mbit/s"), OF_RATES),
    **dict.fromkeys(("2 ms", "500 ms", "2 s"), OF_ROUND_TRIPS),
    **dict.fromkeys(("100 flows", "1000 flows"), OF_FLOWS),
}
#: Shorter queues are shown with two digits.
TEN_MS = 10
#: Loss in per cent below which none is shown.
LEAST_LOSS = 0.005
HEADS = {"bmcc": "BMCC", "bmcc unpaced": "without pacing", "vcp": "VCP", "mlcp": "MLCP"}


def bottleneck(run: cwnd.Run) -> pl.DataFrame:
    """Measures of the bottleneck in each run: `used`, `queue_ms`, `p99_ms` and `lost`."""
    return run.links.filter(pl.col("link").cast(pl.String) == "bottleneck").select(
        "run_id",
        used="utilisation",
        queue_ms=pl.col("qdelay_mean_us") / 1e3,
        p99_ms=pl.col("qdelay_p99_us") / 1e3,
        lost="drop_ratio",
    )


def measure(overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """The bottleneck's use, mean queueing delay in ms and share of lost packets; means over seeds.

    Returns:
        A row for each `setting` and `scheme`, with `used`, `queue_ms` and `lost`.
    """
    run = cwnd.run(SCENARIO, set=dict(overrides or {}))
    labels = [pl.col(name).cast(pl.String) for name in ("setting", "scheme")]
    runs = run.runs.select("run_id", *labels)
    return (
        runs.join(bottleneck(run), on="run_id", maintain_order="left")
        .group_by("setting", "scheme", maintain_order=True)
        .agg(pl.col("used", "queue_ms", "lost").mean())
    )


def _cell(row: Mapping[str, float]) -> str:
    queue = f"{row['queue_ms']:.2g}" if row["queue_ms"] < TEN_MS else f"{row['queue_ms']:.0f}"
    lost = row["lost"] * 100
    loss = "0" if lost < LEAST_LOSS else f"{lost:.1g} %"
    return f"{row['used'] * 100:.0f} %, {queue} ms, {loss}"


def table(found: pl.DataFrame) -> list[str]:
    """The table of the page."""
    schemes = found["scheme"].unique(maintain_order=True).to_list()
    lines = page_tables.head(["", *(HEADS[s] for s in schemes), "the paper, of BMCC"])
    for (setting,), part in found.group_by("setting", maintain_order=True):
        cells = {row["scheme"]: _cell(row) for row in part.iter_rows(named=True)}
        lines.append(
            page_tables.line([str(setting), *(cells[s] for s in schemes), PAPER[str(setting)]])
        )
    return lines


def main() -> None:
    """Writes the page's table."""
    page_tables.write(PAGE, TABLE, table(measure()))


if __name__ == "__main__":
    main()
