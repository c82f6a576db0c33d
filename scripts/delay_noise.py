"""What delay noise costs those who heed delay: a table of docs/controllers/delay-aimd.md.

`scenarios/delay-noise.toml` is run; `make docs` writes the table again, a test runs a part of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "delay-noise.toml"
PAGE = ROOT / "docs" / "controllers" / "delay-aimd.md"
BEGIN, END = "<!-- scripts/delay_noise.py -->\n", "<!-- end -->\n"


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


def table(found: pl.DataFrame) -> str:
    """The table of the page."""
    noises = found.columns[2:]
    head = f"| controller | hangs together | {' | '.join(noises)} |\n"
    head += f"|---|--:|{'--:|' * len(noises)}\n"
    rows = (
        f"| {arm} | {correlation} | {' | '.join(f'{value:.1f}' for value in values)} |\n"
        for arm, correlation, *values in found.iter_rows()
    )
    return head + "".join(rows)


def written() -> str:
    """The table that the page has."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def main() -> None:
    """Writes the page's table."""
    text = PAGE.read_text(encoding="utf-8").replace(BEGIN + written(), BEGIN + table(measure()))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
