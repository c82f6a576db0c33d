"""The interval over ten seeds, held against 60 further seeds: a table of docs/explanation/noise.md.

`scenarios/noise.toml` is run; `make docs` writes the table again, a test runs a part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables
from cwnd._core import read_toml
from cwnd.results.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "noise.toml"
PAGE = ROOT / "docs" / "explanation" / "noise.md"
TABLE = "scripts/noise.py"
#: Seeds of the interval, and those of the mean that it should contain.
SEEDS, OTHERS = 10, 60
#: RTTs within ±0.5 % of a cell's, in parts of it.
NEAR = [1 + (i - 5) / 1000 for i in range(11)]


@dataclass(frozen=True)
class Cell:
    """A queue, a rate and an RTT: goodputs in bit/s."""

    queue: str
    rate: str
    rtt: str
    #: Over ten seeds, with noise.
    estimate: Estimate
    #: The mean of 60 other seeds, with noise.
    others: float
    #: The range over RTTs within ±0.5 %, without noise, in parts of the mean.
    spread: float

    @property
    def half_width(self) -> float:
        """Half the interval, in parts of the mean."""
        return (self.estimate.half_width or 0.0) / self.estimate.mean

    @property
    def error(self) -> float:
        """The mean of ten seeds beside that of the others, in parts of it."""
        return self.estimate.mean / self.others - 1

    @property
    def contained(self) -> bool:
        """`True` if the interval contains the mean of the others."""
        return abs(self.estimate.mean - self.others) <= (self.estimate.half_width or 0.0)

    @property
    def silent(self) -> bool:
        """`True` if the interval hides a range over RTTs: below 0.5 % where that is over 3 %."""
        return self.spread > 0.03 and self.half_width < 0.005  # noqa: PLR2004 - the bar


def measure(overrides: Mapping[str, object] | None = None) -> list[Cell]:
    """Runs all cells with noise, and without it over neighbouring RTTs."""
    given = dict(overrides or {})
    found = _goodputs({**given, "sweep.repeat": SEEDS + OTHERS})
    rtts = given.get("sweep.axis.rtt.values") or _rtts()
    near = {f"{float(rtt.split()[0]) * part:.4f} ms": rtt for rtt in rtts for part in NEAR}
    quiet = {"run.noise": "none", "sweep.repeat": 1, "sweep.axis.rtt.values": list(near)}
    ranges: dict[tuple[str, str, str], list[float]] = {}
    for (queue, rate, rtt), values in _goodputs({**given, **quiet}).items():
        ranges.setdefault((queue, rate, near[rtt]), []).extend(values)
    cells = []
    for key, values in found.items():
        estimate, still = Estimate.of(values[:SEEDS]), ranges[key]
        if estimate is not None:
            spread = (max(still) - min(still)) / fmean(still)
            cells.append(Cell(*key, estimate, fmean(values[SEEDS:]), spread))
    return cells


def _rtts() -> list[str]:
    text = SCENARIO.read_text(encoding="utf-8")
    values: list[str] = read_toml(text, name="noise.toml")["sweep"]["axis"]["rtt"]["values"]
    return values


def _goodputs(overrides: Mapping[str, object]) -> dict[tuple[str, str, str], list[float]]:
    """Goodputs by queue, rate and RTT, in the order of the seeds."""
    run = cwnd.run(SCENARIO, set=dict(overrides))
    labels = [pl.col(name).cast(pl.String) for name in ("queue", "rate", "rtt")]
    rows = run.runs.select("run_id", *labels).join(
        run.flows.select("run_id", "goodput_bit_s"), on="run_id", maintain_order="left"
    )
    found: dict[tuple[str, str, str], list[float]] = {}
    for _, queue, rate, rtt, goodput in rows.iter_rows():
        found.setdefault((queue, rate, rtt), []).append(goodput)
    return found


def table(cells: list[Cell]) -> list[str]:
    """The table of the page: by queue and rate, a column for each RTT."""
    rtts = list(dict.fromkeys(cell.rtt for cell in cells))
    by = {(cell.queue, cell.rate, cell.rtt): cell for cell in cells}
    rows = [
        page_tables.line([queue, rate, *(_shown(by[queue, rate, rtt]) for rtt in rtts)])
        for queue, rate in dict.fromkeys((cell.queue, cell.rate) for cell in cells)
    ]
    return [*page_tables.head(["queue", "rate", *rtts]), *rows]


def _shown(cell: Cell) -> str:
    # Adding zero takes the sign from what rounds to nothing.
    error = f"{round(cell.error, 3) + 0.0:+.1%}"
    shown = error if cell.contained else f"**{error}**"
    return f"±{cell.half_width:.1%}, {shown}, {cell.spread:.1%}"


def main() -> None:
    """Writes the page's table."""
    page_tables.write(PAGE, TABLE, table(measure()))


if __name__ == "__main__":
    main()
