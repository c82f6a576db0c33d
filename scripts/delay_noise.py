"""Cost of delay noise for delay-based controllers: a table of docs/controllers/delay-aimd.md.

`scenarios/delay-noise.toml` is run; `make docs` writes the table again, a test runs a part of it.
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
SCENARIO = ROOT / "scenarios" / "delay-noise.toml"
PAGE = ROOT / "docs" / "controllers" / "delay-aimd.md"
TABLE = "scripts/delay_noise.py"


def measure(overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """Goodput of all flows together in Mbit/s, the mean over seeds.

    Returns:
        A row for each controller (`arm`) and each time that the noise hangs together
        (`correlation`), a column for each mean of the noise.
    """
    run = cwnd.run(SCENARIO, set=dict(overrides or {}))
    labels = ["arm", "correlation", "noise"]
    flows = run.flows.group_by("run_id").agg((pl.col("goodput_bit_s").sum() / 1e6).alias("goodput"))
    runs = run.runs.select("run_id", *(pl.col(name).cast(pl.String) for name in labels))
    means = runs.join(flows, on="run_id", maintain_order="left").group_by(
        labels, maintain_order=True
    )
    return means.agg(pl.col("goodput").mean()).pivot(
        "noise", index=["arm", "correlation"], values="goodput"
    )


def table(found: pl.DataFrame) -> list[str]:
    """The table of the page."""
    rows = (
        page_tables.line([arm, correlation, *(f"{value:.1f}" for value in values)])
        for arm, correlation, *values in found.iter_rows()
    )
    return [*page_tables.head(["controller", "hangs together", *found.columns[2:]]), *rows]


def main() -> None:
    """Writes the page's table."""
    page_tables.write(PAGE, TABLE, table(measure()))


if __name__ == "__main__":
    main()
