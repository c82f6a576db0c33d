"""Measures of the BMCC paper's claims: one value for each seed.

`what` is a column of `dynamics.py`: `utilisation`, `queue`, `buffer_used`, `loss`, `lost` of the
bottleneck, `jain` and `time` of flows, `told` of ACKs; for overload `unseen`, P(R > d) as a share,
`late`, and `packets`, E[R].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from cwnd.models import bmcc as model
from cwnd.studies.papers.bmcc.dynamics import (
    BOTTLENECK,
    SPANS_S,
    fairness_rates,
    of_acks,
    of_flows,
    of_links,
    overload_detection,
    rounds,
    shares,
    windows,
)
from cwnd.study import at, differences, labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.results import Run
    from cwnd.study import Measure, Point, Results

#: Fraction of the fair share (half of the link) that counts as fair: "within 50 % of their fair
#: share" (§ I).
_WITHIN = 0.5
_OF_LINKS = {"utilisation", "queue", "buffer_used", "loss", "lost"}
_OVERLOAD_COLUMNS = {"unseen", "late", "packets"}


def values(run: Run, what: str, of: Point) -> list[float]:
    """Values of a column of `dynamics.py` or `overload_detection` at a point, for each seed."""
    if what in _OVERLOAD_COLUMNS:
        rows = overload_detection(run, of)
    elif what == "told":
        rows = of_acks(run, of)
    else:
        rows = of_links(run, of) if what in _OF_LINKS else of_flows(run, of)
    return rows[what].to_list()


def number(results: Results, figure: str, what: str, of: Point) -> list[float]:
    """Value of a column, in its unit, of the seeds that have one."""
    return [value for value in values(results[figure], what, of) if value is not None]


def lowest(
    results: Results,
    figure: str,
    what: str,
    *,
    along: str,
    among: Sequence[str],
    of: Point | None = None,
) -> list[float]:
    """Smallest value of a number among labels of an axis."""
    rows = _among(results[figure], what, along, among, of)
    return [min(row) for row in rows]


def highest(
    results: Results,
    figure: str,
    what: str,
    *,
    along: str,
    among: Sequence[str],
    of: Point | None = None,
) -> list[float]:
    """Largest value of a number among labels of an axis."""
    rows = _among(results[figure], what, along, among, of)
    return [max(row) for row in rows]


def _among(
    run: Run, what: str, along: str, among: Sequence[str], of: Point | None
) -> list[tuple[float, ...]]:
    """Values at labels of an axis, by seed; without seeds in which one has none, as no onset."""
    columns = [values(run, what, {**(of or {}), along: label}) for label in among]
    return [row for row in zip(*columns, strict=True) if None not in row]


def more(
    results: Results, figure: str, what: str, *, of: Point, over: Point, beside: str | None = None
) -> list[float]:
    """Difference of a number at `of` from that at `over`, which may be in the figure `beside`."""
    mine = values(results[figure], what, of)
    theirs = values(results[beside or figure], what, over)
    # Pairs equal seeds if one result has more of them.
    return differences(mine[: len(theirs)], theirs[: len(mine)])


def ratio(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """Ratio of a number at `of` to that at `over`."""
    mine, theirs = (values(results[figure], what, point) for point in (of, over))
    return [a / b for a, b in zip(mine, theirs, strict=True)]


def ratio_to_best(results: Results, figure: str, what: str, of: Point, along: str) -> list[float]:
    """Ratio of a number at `of` to its minimum along an axis: 1 for the best."""
    run = results[figure]
    # Each column is computed once, since the rounding of parallel sums may vary.
    found = {label: values(run, what, {**of, along: label}) for label in labels(run, along)}
    best = [min(row) for row in zip(*found.values(), strict=True)]
    return [a / b for a, b in zip(found[of[along]], best, strict=True)]


def seconds_to_half(results: Results, figure: str, of: Point) -> list[float]:
    """Time from the second flow's start until it keeps at least half of its share, s.

    It is the flow's whole lifetime if it never does.
    """
    run = results[figure]
    second = pl.col("group").cast(pl.String) == "second"
    began = float(run.flows.filter(second)["start_s"][0])
    fair_mbit_s = float(run.links["rate_bit_s"][0]) / 2e6
    rates = shares(run, of).filter(pl.col("group") == "second")
    found = []
    for _, part in rates.group_by("seed", maintain_order=True):
        rows = part.select("time_s", "mbit_s").iter_rows()
        below = [time_s for time_s, mbit_s in rows if mbit_s < _WITHIN * fair_mbit_s]
        found.append(max(below, default=began) - began)
    return found


def share_at_end(results: Results, figure: str, of: Point, last_s: float) -> list[float]:
    """Share of the second flow in both flows' rates during the last `last_s` of the run, %."""
    run = results[figure]
    both = shares(run, of).filter(pl.col("time_s") > float(run.runs["duration_s"][0]) - last_s)
    sums = both.pivot(on="group", index="seed", values="mbit_s", aggregate_function="mean")
    share = 100 * pl.col("second") / (pl.col("first") + pl.col("second"))
    return sums.sort("seed").select(share.alias("share"))["share"].to_list()


def estimate_error(results: Results, figure: str, of: Point, after_s: float) -> list[float]:
    """Median absolute error of the flows' estimates of the load factor one round trip earlier."""
    run = results[figure]
    factors = at(run, run.link_series, of, link=BOTTLENECK)
    both = at(run, run.series, of).join(
        factors.select("seed", "time_s", "load_factor"), on=["seed", "time_s"]
    )
    # Senders learn the load factor a round trip later, which is one sample.
    feedback = (
        pl.col("load_factor").shift(1).over("seed", "flow_id").clip(model.ETA_0, model.OVERLOAD)
    )
    off = both.sort("seed", "flow_id", "time_s").with_columns(
        off=(pl.col("load_factor_seen") - feedback).abs()
    )
    late = off.filter(pl.col("time_s") > after_s)
    return late.group_by("seed").agg(pl.col("off").median()).sort("seed")["off"].to_list()


def unfairer(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Largest ratio of fairness rates at `of` to those at `over`, over the averaging intervals."""
    run = results[figure]
    columns = [
        [
            a / b
            for a, b in zip(fairness_rates(run, of, s), fairness_rates(run, over, s), strict=True)
        ]
        for s in SPANS_S
    ]
    return [max(row) for row in zip(*columns, strict=True)]


def rounds_more(
    results: Results, figure: str, what: str, *, of: str, over: str, lacking: float
) -> list[float]:
    """Difference of `m`, `d_e` or `r` of the case `of` from that of the case `over`, by seed.

    Seeds whose runs end before the late flow has its share have no value.
    """
    run = results[figure]
    mine, theirs = (rounds(run, case, lacking).select("seed", what) for case in (of, over))
    both = mine.join(theirs, on="seed", suffix="_over").sort("seed")
    return (both[what] - both[f"{what}_over"]).drop_nulls().to_list()


def seconds_to_window(results: Results, figure: str, of: Point, packets: float) -> list[float]:
    """Time at which the window first reaches `packets`, s; without seeds that never do."""
    rows = windows(results[figure], of).filter(pl.col("cwnd") >= packets)
    return rows.group_by("seed").agg(pl.col("time_s").min()).sort("seed")["time_s"].to_list()


def ratio_of_seconds(
    results: Results, figure: str, of: Point, over: Point, packets: float
) -> list[float]:
    """Ratio of the times until the window reaches `packets`: `of` ÷ `over`."""
    mine, theirs = (seconds_to_window(results, figure, each, packets) for each in (of, over))
    return [a / b for a, b in zip(mine, theirs, strict=True)]


def window_at(results: Results, figure: str, of: Point, time_s: float) -> list[float]:
    """Window of the only flow at a time, packets."""
    rows = windows(results[figure], of).filter(pl.col("time_s") <= time_s)
    return rows.group_by("seed").agg(pl.col("cwnd").last()).sort("seed")["cwnd"].to_list()


def window_at_first_loss(results: Results, figure: str, of: Point) -> list[float]:
    """Window of the only flow at the first drop, packets; without seeds that drop nothing."""
    run = results[figure]
    link = at(run, run.link_series, of, link=BOTTLENECK).filter(pl.col("drop") > 0)
    first = link.group_by("seed").agg(first=pl.col("time_s").min())
    rows = windows(run, of).join(first, on="seed").filter(pl.col("time_s") <= pl.col("first"))
    return rows.group_by("seed").agg(pl.col("cwnd").last()).sort("seed")["cwnd"].to_list()


def straight(
    results: Results, figure: str, what: str, *, along: str, among: Sequence[str], of: Point
) -> list[float]:
    """Correlation of a number with the numeric labels of an axis: 1 for a straight line."""
    xs = [float(label) for label in among]
    rows = _among(results[figure], what, along, among, of)
    return [float(np.corrcoef(xs, row)[0, 1]) for row in rows]


MEASURES: Mapping[str, Measure] = {
    function.__name__: function
    for function in (
        *(number, lowest, highest, ratio, ratio_to_best, ratio_of_seconds),
        *(seconds_to_half, share_at_end, estimate_error, unfairer, rounds_more),
        *(seconds_to_window, window_at, window_at_first_loss),
        *(straight, more),
    )
}
