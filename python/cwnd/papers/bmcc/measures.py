"""Numbers that the claims of the BMCC paper come down to: one for each seed.

`what` is a column of `numbers.py`: `utilisation`, `queue`, `loss`, `lost` of the bottleneck, `jain`
and `time` of flows, `told` of ACKs; of overload `unseen`, P(R > d) as a share, and `packets`, E[R].
"""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from cwnd.models import bmcc as model
from cwnd.papers.bmcc.dynamics import (
    SPANS_S,
    Case,
    fairness_rates,
    noticed,
    rounds,
    shares,
)
from cwnd.papers.bmcc.numbers import BOTTLENECK, of_acks, of_flows, of_links, windows
from cwnd.reproduce import at, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.reproduce import Measure, Point, Results, Sides
    from cwnd.results import Run

#: § I: "within 50 % of their fair share", which is half of the link.
_WITHIN = 0.5
_OF_LINKS = {"utilisation", "queue", "loss", "lost"}
_NOTICED = {"unseen", "packets"}


def values(run: Run, what: str, of: Point) -> list[float]:
    """A column of `numbers.py`, or of what flows noticed, at a point, for each seed."""
    if what in _NOTICED:
        rows = noticed(run, of)
    elif what == "told":
        rows = of_acks(run, of)
    else:
        rows = of_links(run, of) if what in _OF_LINKS else of_flows(run, of)
    return rows[what].to_list()


def number(results: Results, figure: str, what: str, of: Point) -> list[float]:
    """The number itself."""
    return values(results[figure], what, of)


def lowest(
    results: Results,
    figure: str,
    what: str,
    *,
    along: str,
    among: Sequence[str],
    of: Point | None = None,
) -> list[float]:
    """The least of a number among labels of an axis."""
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
    """The most of a number among labels of an axis."""
    rows = _among(results[figure], what, along, among, of)
    return [max(row) for row in rows]


def _among(
    run: Run, what: str, along: str, among: Sequence[str], of: Point | None
) -> list[tuple[float, ...]]:
    columns = [values(run, what, {**(of or {}), along: label}) for label in among]
    return list(zip(*columns, strict=True))


def more(
    results: Results, figure: str, what: str, *, of: Point, over: Point, beside: str | None = None
) -> list[float]:
    """How much more of it there is at `of` than at `over`, which may be of the figure `beside`."""
    ((mine, theirs),) = _of_and_over(results, figure, what, of=of, over=over, beside=beside)
    return [a - b for a, b in zip(mine, theirs, strict=True)]


def _of_and_over(
    results: Results, figure: str, what: str, *, of: Point, over: Point, beside: str | None = None
) -> list[Sides]:
    mine = values(results[figure], what, of)
    theirs = values(results[beside or figure], what, over)
    # Each seed of one beside the same of the other.
    return [(mine[: len(theirs)], theirs[: len(mine)])]


def ratio(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """A number at `of` ÷ the same at `over`."""
    ((mine, theirs),) = _of_and_over(results, figure, what, of=of, over=over)
    return [a / b for a, b in zip(mine, theirs, strict=True)]


def ratio_to_best(results: Results, figure: str, what: str, of: Point, along: str) -> list[float]:
    """A number at `of` ÷ the least of it along an axis: 1 where it is the best."""
    run = results[figure]
    # Each column once: means that threads add up may differ in their last bit.
    found = {label: values(run, what, {**of, along: label}) for label in labels(run, along)}
    best = [min(row) for row in zip(*found.values(), strict=True)]
    return [a / b for a, b in zip(found[of[along]], best, strict=True)]


def seconds_to_half(results: Results, figure: str, of: Point) -> list[float]:
    """How long after it came the second flow has half of its share, and from then on keeps it, s.

    If it never does it is all the time that it had.
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
    """The second flow's share of both flows' rates in the end, %."""
    run = results[figure]
    both = shares(run, of).filter(pl.col("time_s") > float(run.runs["duration_s"][0]) - last_s)
    sums = both.pivot(on="group", index="seed", values="mbit_s", aggregate_function="mean")
    share = 100 * pl.col("second") / (pl.col("first") + pl.col("second"))
    return sums.sort("seed").select(share.alias("share"))["share"].to_list()


def estimate_error(results: Results, figure: str, of: Point, after_s: float) -> list[float]:
    """The median distance of the flows' estimates from the load factor of a round trip before."""
    run = results[figure]
    factors = at(run, run.link_series, of).filter(pl.col("link").cast(pl.String) == BOTTLENECK)
    both = at(run, run.series, of).join(
        factors.select("seed", "time_s", "load_factor"), on=["seed", "time_s"]
    )
    # What packets are told now their senders know a round trip later: one sample.
    told = pl.col("load_factor").shift(1).over("seed", "flow_id").clip(model.ETA_0, model.OVERLOAD)
    off = both.sort("seed", "flow_id", "time_s").with_columns(
        off=(pl.col("load_factor_seen") - told).abs()
    )
    late = off.filter(pl.col("time_s") > after_s)
    return late.group_by("seed").agg(pl.col("off").median()).sort("seed")["off"].to_list()


def unfairer(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """The largest ratio of fairness rates, `of` ÷ `over`, over the averaging intervals."""
    run = results[figure]
    columns = [
        [
            a / b
            for a, b in zip(fairness_rates(run, of, s), fairness_rates(run, over, s), strict=True)
        ]
        for s in SPANS_S
    ]
    return [max(row) for row in zip(*columns, strict=True)]


def over_model(
    results: Results, figure: str, what: str, cases: Sequence[str], lacking: float
) -> list[float]:
    """`m`, `d_e` or `r` of the simulation ÷ that of the model, the mean over cases."""
    run = results[figure]
    columns = []
    # A quick look has some of them only.
    for label in [case for case in cases if case in labels(run, "case")]:
        theory = Case.of(label).model(what, lacking)
        columns.append(
            [float("nan") if v is None else v / theory for v in rounds(run, label, lacking)[what]]
        )
    return [mean(row) for row in zip(*columns, strict=True)]


def seconds_to_window(results: Results, figure: str, of: Point, packets: float) -> list[float]:
    """When the window first has so many packets, s."""
    rows = windows(results[figure], of).filter(pl.col("cwnd") >= packets)
    return rows.group_by("seed").agg(pl.col("time_s").min()).sort("seed")["time_s"].to_list()


def ratio_of_seconds(
    results: Results, figure: str, of: Point, over: Point, packets: float
) -> list[float]:
    """Until the window is so many packets: at `of` ÷ at `over`."""
    mine, theirs = (seconds_to_window(results, figure, each, packets) for each in (of, over))
    return [a / b for a, b in zip(mine, theirs, strict=True)]


def window_at(results: Results, figure: str, of: Point, time_s: float) -> list[float]:
    """The window at a time, packets."""
    rows = windows(results[figure], of).filter(pl.col("time_s") <= time_s)
    return rows.group_by("seed").agg(pl.col("cwnd").last()).sort("seed")["cwnd"].to_list()


def window_at_first_loss(results: Results, figure: str, of: Point) -> list[float]:
    """The window when the first packet is dropped, packets."""
    run = results[figure]
    link = at(run, run.link_series, of).filter(
        (pl.col("link").cast(pl.String) == BOTTLENECK) & (pl.col("drop") > 0)
    )
    first = link.group_by("seed").agg(first=pl.col("time_s").min())
    rows = windows(run, of).join(first, on="seed").filter(pl.col("time_s") <= pl.col("first"))
    return rows.group_by("seed").agg(pl.col("cwnd").last()).sort("seed")["cwnd"].to_list()


def straight(
    results: Results, figure: str, what: str, *, along: str, among: Sequence[str], of: Point
) -> list[float]:
    """The correlation of a number with the labels of an axis, which are numbers: 1 of a line."""
    xs = [float(label) for label in among]
    rows = _among(results[figure], what, along, among, of)
    return [float(np.corrcoef(xs, row)[0, 1]) for row in rows]


MEASURES: Mapping[str, Measure] = {
    function.__name__: function
    for function in (
        *(number, lowest, highest, more, ratio, ratio_to_best, ratio_of_seconds),
        *(seconds_to_half, share_at_end, estimate_error, unfairer, over_model),
        *(seconds_to_window, window_at, window_at_first_loss),
        straight,
    )
}

#: What lies above what where a measure orders.
SIDES: Mapping[str, Callable[..., list[Sides]]] = {"more": _of_and_over}
