"""Linux's own Vegas and H-TCP beside the simulator's: tables of their pages.

`crates/linux/kernel/tests/kernels/record.py` ran `linux.toml` of a page on Linux in QEMU and wrote
`linux.csv`; here the simulator runs it. `make docs` writes the tables again, the tests run it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import cwnd
import page_tables

PAGES = Path(__file__).resolve().parents[1] / "docs" / "controllers"
TABLE = "scripts/kernel_rows.py"

#: Linux times the newest segment, whatever sets its timer (docs/explanation/rtt.md).
AS_TODAY = {"preset": "linux", "rtt_from": "sack"}


@dataclass(frozen=True)
class Page:
    """A controller's page, and what its table shows of each cell: heading, column and digits."""

    controller: str
    shown: tuple[tuple[str, str, int], ...]

    @property
    def path(self) -> Path:
        """The page."""
        return PAGES.parent / "reference" / "controllers" / f"{self.controller}.md"

    @property
    def scenario(self) -> Path:
        """The scenario that Linux and the simulator run."""
        return PAGES / self.controller / "linux.toml"


VEGAS = Page(
    "vegas",
    (
        ("goodput, Mbit/s", "goodput", 2),
        ("queue, ms", "wait", 1),
        ("window of the first, segments", "first_window", 0),
        ("last / first", "last_by_first", 2),
    ),
)
HTCP = Page(
    "htcp",
    (
        ("utilisation, %", "utilisation", 1),
        ("queue, ms", "wait", 1),
        ("window, segments", "first_window", 0),
        ("drops", "drops", 0),
    ),
)


def compared(page: Page, **more: object) -> pl.DataFrame:
    """Both worlds, a row for each cell.

    Args:
        page: Whose.
        more: What the simulator's scenario has otherwise, with `__` for the dots of a path.

    Returns:
        The axes' labels, and of each number of the table `<name>_sim` and `<name>_linux`, in the
        units of the page.
    """
    otherwise = {path.replace("__", "."): value for path, value in more.items()}
    run = cwnd.run(page.scenario, set={"flow.main.endpoint": AS_TODAY, **otherwise})
    cells = run.runs.select(
        pl.int_range(pl.len()).alias("cell"),
        "run_id",
        *(pl.col(axis.column).cast(pl.String).alias(axis.name) for axis in run.axes),
    )
    names = cells.select("run_id", "cell")
    of_link = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    flows = run.flows.join(of_link, on="run_id").join(names, on="run_id")
    simulated = flows.select(
        "cell",
        flow=pl.col("flow_id").cast(pl.Int64),
        goodput_mbit_s=pl.col("goodput_bit_s") / 1e6,
        qdelay_mean_ms=pl.col("qdelay_mean_us") / 1e3,
        utilisation=pl.col("utilisation"),
        drops=pl.col("dropped_pkts"),
    )
    series = run.series.join(names, on="run_id").select(
        "cell",
        "time_s",
        flow=pl.col("flow_id").cast(pl.Int64),
        cwnd=pl.col("snd_cwnd_pkts"),
        ssthresh=pl.col("snd_ssthresh_pkts"),
    )
    settings = tomllib.loads(page.scenario.read_text(encoding="utf-8"))
    begin = float(settings["run"]["warmup"].removesuffix(" s"))
    recorded = pl.read_csv(page.scenario.with_suffix(".csv"))
    over_time = pl.read_csv(page.scenario.with_name("linux-windows.csv"))
    both = _numbers(simulated, series, begin).join(
        _numbers(recorded, over_time, begin), on="cell", suffix="_linux"
    )
    shown = [name for _, name, _ in page.shown]
    return (
        cells.join(both, on="cell", maintain_order="left")
        .drop("run_id", "cell")
        .select(
            *(axis.name for axis in run.axes),
            *(pl.col(name).alias(f"{name}_sim") for name in shown),
            *(f"{name}_linux" for name in shown),
        )
    )


def _numbers(flows: pl.DataFrame, series: pl.DataFrame, begin: float) -> pl.DataFrame:
    """Measures of each cell, after the warm-up."""
    after = series.filter((pl.col("time_s") > begin) & (pl.col("flow") == 0)).sort("time_s")
    windows = after.group_by("cell").agg(first_window=pl.col("cwnd").mean())
    totals = flows.group_by("cell").agg(
        goodput=pl.col("goodput_mbit_s").sum(),
        wait=pl.col("qdelay_mean_ms").first(),
        utilisation=pl.col("utilisation").first() * 100,
        drops=pl.col("drops").first(),
        last_by_first=pl.col("goodput_mbit_s").sort_by("flow").last()
        / pl.col("goodput_mbit_s").sort_by("flow").first(),
    )
    return totals.join(windows, on="cell")


def table(page: Page) -> list[str]:
    """The table of a page: of each number the simulator's and the kernel's."""
    found = compared(page)
    axes = found.columns[: -2 * len(page.shown)]
    lines = page_tables.head([*axes, *(heading for heading, _, _ in page.shown)])
    for row in found.iter_rows(named=True):
        pairs = [
            f"{row[f'{name}_sim']:.{digits}f}, {row[f'{name}_linux']:.{digits}f}"
            for _, name, digits in page.shown
        ]
        lines.append(page_tables.line([*(str(row[axis]) for axis in axes), *pairs]))
    return lines


def main() -> None:
    """Writes the tables."""
    for page in (VEGAS, HTCP):
        page_tables.write(page.path, TABLE, table(page))


if __name__ == "__main__":
    main()
