"""Conditions in which TCP without exponential backoff loses: changes from TCP to TCP*(∞)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Image, Panel, Picture
from cwnd.results import Estimate

if TYPE_CHECKING:
    from cwnd.results import Run

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
    #: Axes of the scenario, and their labels in a figure.
    x: tuple[str, str]
    y: tuple[str, str]

    def record(self, run: Run) -> pl.DataFrame:
        """Compares TCP*(∞) with TCP, seed by seed.

        Returns:
            A row for each point: `map`, `x`, `y`, `timestamps`, and for each quantity its mean
            over seeds and half the 95 % confidence interval (`…_ci`); all in per cent.
        """
        key = ["seed", "x", "y", "timestamps"]
        names = {axis.name: axis.column for axis in run.axes}
        new = {self.x[0]: "x", self.y[0]: "y", "timestamps": "timestamps", "n": "n"}
        rows = _by_run(run).rename({names[old]: name for old, name in new.items()})
        both = [rows.filter(pl.col("n").cast(pl.String) == n).drop("n") for n in (WITHOUT, WITH)]
        joined = both[0].join(both[1], on=key, suffix="_tcp", maintain_order="left")
        changes = joined.with_columns(
            (100 * (pl.col("goodput") / pl.col("goodput_tcp") - 1)).alias(GAIN),
            (100 * (pl.col("p99") / pl.col("p99_tcp") - 1)).alias(P99),
        )
        found = []
        for point, part in changes.group_by(*key[1:], maintain_order=True):
            row: dict[str, Any] = {"map": self.name}
            row |= zip(key[1:], map(str, point), strict=True)
            for name in QUANTITIES:
                estimate = Estimate.of(part[name].to_list())
                assert estimate is not None
                row[name] = round(estimate.mean, 3) + 0.0
                row[f"{name}_ci"] = round(estimate.half_width or 0.0, 3)
            found.append(row)
        return pl.DataFrame(found)

    def draw(self, rows: pl.DataFrame) -> Picture:
        """Changes of goodput and of the slowest hundredth, as grids with their numbers."""
        panels = []
        for timestamps in TIMESTAMPS:
            part = rows.filter(map=self.name, timestamps=timestamps)
            for quantity, sign, limit in ((GAIN, 1, 20.0), (P99, -1, 50.0)):
                panel = _grid(part, quantity, sign, limit)
                panel.title = f"{QUANTITIES[quantity][0]}, {timestamps}"
                panels.append(panel)
        return Picture(panels, 4.2, columns=2, x_label=self.x[1], y_label=self.y[1])


#: Axis of mechanisms that detect spurious timeouts or avoid timeouts.
REPAIR = ("repair", "What the endpoint has")
BUFFER = ("buffer", "Buffer (BDP of 100 ms)")
GAP = ("gap", "The line stands still (s)")
LOSS = ("loss", "Loss (%)")
USERS = ("users", "Users")

MAPS = (
    Map("queue", BUFFER, ("load", "Load")),
    Map("timers", BUFFER, ("timers", "Least, first timeout")),
    Map("gaps", GAP, USERS),
    Map("loss", LOSS, USERS),
    Map("users", USERS, ("rto_min", "Least timeout")),
    Map("repair-loss", REPAIR, LOSS),
    Map("repair-queue", REPAIR, BUFFER),
    Map("repair-gaps", REPAIR, GAP),
)


def _by_run(run: Run) -> pl.DataFrame:
    """A row for each run: its axes, `seed`, and the compared quantities.

    Requests of the warm-up are not counted; one without an answer counts as its waiting time.
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


def results(*runs: Run) -> pl.DataFrame:
    """The changes of all maps."""
    return pl.concat([each.record(run) for each, run in zip(MAPS, runs, strict=True)])


RECORDS = {"results.csv": results}
FIGURES = {each.name: each.draw for each in MAPS}
