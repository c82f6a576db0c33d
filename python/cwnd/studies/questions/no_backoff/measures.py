"""Conditions in which TCP without exponential backoff loses: figures of docs/no-backoff.md.

Eight scenarios are run; what they give is written to docs/no-backoff/results.csv, and the page and
the figures are made from that file alone. `make docs` runs this; the tests run some points again.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import cwnd
from cwnd.figures import Figure, Image, Panel, Picture
from cwnd.plots import save
from cwnd.results import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RESULTS = DOCS / "no-backoff" / "results.csv"

#: The labels of the axes that every map has.
TIMESTAMPS = ("without timestamps", "with timestamps")
WITH, WITHOUT = "TCP", "TCP*(∞)"

#: Quantities of a point: column → its name, and digits after the decimal point.
GAIN, P99 = "goodput_change", "p99_change"
QUANTITIES = {
    GAIN: ("Change of goodput (%)", 1),
    P99: ("Change of the 99th percentile of response times (%)", 0),
    "spurious": ("Spurious timeouts of TCP*(∞) (%)", 1),
    "spurious_tcp": ("Spurious timeouts of TCP (%)", 1),
    "duplicates": ("Duplicates of TCP*(∞) (%)", 1),
    "duplicates_tcp": ("Duplicates of TCP (%)", 1),
}


@dataclass(frozen=True)
class Map:
    """A scenario that varies two things, with backoff and without it."""

    name: str
    #: Axes of the scenario, and how they are called in a figure.
    x: tuple[str, str]
    y: tuple[str, str]

    @property
    def path(self) -> Path:
        """The scenario."""
        return DOCS / "no-backoff" / f"{self.name}.toml"

    def measure(self, overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
        """Runs the scenario, or with overrides a part of it.

        Returns:
            A row for each point: `map`, `x`, `y`, `timestamps`, and for each quantity its mean over
            seeds and half the 95 % confidence interval (`…_ci`); all in per cent.
        """
        run = cwnd.run(self.path, set=dict(overrides or {}))
        rows = _by_run(run)
        key = ["seed", "x", "y", "timestamps"]
        names = {axis.name: axis.column for axis in run.axes}
        rows = rows.rename(
            {
                names[self.x[0]]: "x",
                names[self.y[0]]: "y",
                names["timestamps"]: "timestamps",
                names["n"]: "n",
            }
        )
        both = [rows.filter(pl.col("n").cast(pl.String) == n).drop("n") for n in (WITHOUT, WITH)]
        joined = both[0].join(both[1], on=key, suffix="_tcp", maintain_order="left")
        changes = joined.with_columns(
            (100 * (pl.col("goodput") / pl.col("goodput_tcp") - 1)).alias(GAIN),
            (100 * (pl.col("p99") / pl.col("p99_tcp") - 1)).alias(P99),
        )
        found = []
        for (x, y, timestamps), part in changes.group_by(
            "x", "y", "timestamps", maintain_order=True
        ):
            row: dict[str, Any] = {"map": self.name, "x": x, "y": y, "timestamps": timestamps}
            for name in QUANTITIES:
                estimate = Estimate.of(part[name].to_list())
                assert estimate is not None
                row[name] = round(estimate.mean, 3) + 0.0
                row[f"{name}_ci"] = round(estimate.half_width or 0.0, 3)
            found.append(row)
        return pl.DataFrame(found).with_columns(pl.col("x", "y", "timestamps").cast(pl.String))


#: Axis of mechanisms that detect spurious timeouts or avoid timeouts.
REPAIR = ("repair", "What the endpoint has")

MAPS = {
    each.name: each
    for each in (
        Map("queue", ("buffer", "Buffer (BDP of 100 ms)"), ("load", "Load")),
        Map("timers", ("buffer", "Buffer (BDP of 100 ms)"), ("timers", "Least, first timeout")),
        Map("gaps", ("gap", "The line stands still (s)"), ("users", "Users")),
        Map("loss", ("loss", "Loss (%)"), ("users", "Users")),
        Map("users", ("users", "Users"), ("rto_min", "Least timeout")),
        Map("repair-queue", REPAIR, ("buffer", "Buffer (BDP of 100 ms)")),
        Map("repair-gaps", REPAIR, ("gap", "The line stands still (s)")),
        Map("repair-loss", REPAIR, ("loss", "Loss (%)")),
    )
}


def _by_run(run: cwnd.Run) -> pl.DataFrame:
    """A row for each run: its axes, `seed`, and what is compared.

    Requests of the warm-up are not counted; one without an answer counts as what it waited.
    """
    keys = [axis.column for axis in run.axes] + ["seed"]
    expired = pl.col("rto_count") + pl.col("rto_syn") + pl.col("rto_request")
    in_time = pl.sum_horizontal(
        pl.col(name) for name in ("rto_under_way", "rto_ack_late") if name in run.flows.columns
    )
    copies = pl.col("duplicates") if "duplicates" in run.flows.columns else pl.lit(0)
    flows = run.flows.group_by(keys, maintain_order=True).agg(
        pl.col("bytes_received").sum().alias("goodput"),
        (100 * in_time.sum() / pl.max_horizontal(expired.sum(), 1)).alias("spurious"),
        (100 * copies.sum() / pl.col("segments_sent").sum()).alias("duplicates"),
    )
    times = run.runs.select("run_id", "duration_s", "warmup_s")
    waited = pl.col("duration_s") - pl.col("start_s")
    requests = (
        run.requests.join(times, on="run_id")
        .filter(pl.col("start_s") >= pl.col("warmup_s"))
        .group_by(keys, maintain_order=True)
        .agg(pl.coalesce("response_s", waited).quantile(0.99, "linear").alias("p99"))
    )
    return flows.join(requests, on=keys, maintain_order="left")


# The page ----------------------------------------------------------------------------------------


def read() -> pl.DataFrame:
    """Reads the recorded results."""
    texts = dict.fromkeys(("map", "x", "y", "timestamps"), pl.String)
    return pl.read_csv(RESULTS, schema_overrides=texts)


def at(results: pl.DataFrame, name: str, x: str, y: str, timestamps: str) -> dict[str, Any]:
    """The row of a point."""
    return results.row(
        by_predicate=(pl.col("map") == name)
        & (pl.col("x") == x)
        & (pl.col("y") == y)
        & (pl.col("timestamps") == timestamps),
        named=True,
    )


def written(row: Mapping[str, Any], quantity: str) -> str:
    """A mean and its interval, as the page has them."""
    digits = QUANTITIES[quantity][1]
    sign = "+" if quantity in (GAIN, P99) else ""
    mean = f"{row[quantity]:{sign}.{digits}f}".replace("-", "−")
    half = row[f"{quantity}_ci"]
    return f"{mean} ± {half:.{digits}f}" if half else mean


def page(results: pl.DataFrame) -> str:
    """The page as Markdown: the template with numbers at their places.

    `{{map | x | y | timestamps | quantity}}` is one of them.
    """
    template = (DOCS / "no-backoff" / "template.md").read_text(encoding="utf-8")

    def filled(match: re.Match[str]) -> str:
        name, x, y, timestamps, quantity = (word.strip() for word in match[1].split("|"))
        return written(at(results, name, x, y, timestamps), quantity)

    return re.sub(r"\{\{(.+?)\}\}", filled, template)


def figure(results: pl.DataFrame, of: Map) -> Picture:
    """Changes of goodput and of the slowest hundredth, as grids with their numbers."""
    rows = results.filter(pl.col("map") == of.name)
    panels = []
    for timestamps in TIMESTAMPS:
        part = rows.filter(pl.col("timestamps") == timestamps)
        for quantity, sign, limit in ((GAIN, 1, 20.0), (P99, -1, 50.0)):
            panel = _grid(part, quantity, sign, limit)
            panel.title = f"{QUANTITIES[quantity][0]}, {timestamps}"
            panels.append(panel)
    return Picture(panels, 4.2, columns=2, x_label=of.x[1], y_label=of.y[1])


def _grid(rows: pl.DataFrame, quantity: str, sign: int, limit: float) -> Panel:
    """Draws one grid: red where TCP without backoff is worse, blue where it is better."""
    xs, ys = (rows[name].unique(maintain_order=True).to_list() for name in ("x", "y"))
    found = {(x, y): value for x, y, value in rows.select("x", "y", quantity).iter_rows()}
    digits = QUANTITIES[quantity][1]

    def written(value: float) -> str:
        text = f"{value:+.{digits}f}" if abs(value) >= 0.5 * 10**-digits else "0"
        return text.replace("-", "−")

    image = Image([[sign * found[x, y] for x in xs] for y in ys], limit)
    image.texts = [[written(found[x, y]) for x in xs] for y in ys]
    return Panel([image], ticks=list(enumerate(xs)), y_ticks=list(enumerate(ys)))


def main() -> None:
    """Measures the maps that are named, or all, and writes results, page and figures."""
    names = sys.argv[1:] or list(MAPS)
    kept = [read().filter(~pl.col("map").is_in(names))] if sys.argv[1:] else []
    results = pl.concat([*kept, *(MAPS[name].measure() for name in names)])
    results.write_csv(RESULTS)
    write(results)


def write(results: pl.DataFrame) -> None:
    """Writes the page and the figures."""
    (DOCS / "no-backoff.md").write_text(page(results), encoding="utf-8")
    folder = DOCS / "images" / "no-backoff"
    for each in MAPS.values():
        save(Figure(figure(results, each)), folder, each.name)


if __name__ == "__main__":
    main()
