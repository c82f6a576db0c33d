"""Measures of the TCP*(n) paper's claims: one value for each seed unless stated otherwise."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.models import backoff_multipliers, rejected_connections
from cwnd.studies.papers.tcpstar.inference import consecutive, growth, precision, recall
from cwnd.studies.papers.tcpstar.responses import (
    QUANTILES,
    aggregate_response_s,
    ratios,
    rejections,
    responses,
    timeouts_of,
    worst,
)
from cwnd.study import at, labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.results import Run
    from cwnd.study import Measure, Point, Results

#: Number of rounds in Fig. 1.
_ROUNDS = 7
#: Timeout of fig01 before backoff, s.
_BASE_S = 1.0


def distance_from_fig1(results: Results, figure: str) -> list[float]:
    """Largest difference between a timeout and Fig. 1, in timeouts before backoff; one value.

    It covers all n, seven rounds, data and SYNs.
    """
    worst = 0.0
    for (_, n), seen in timeouts_of(results[figure], _ROUNDS).items():
        expected = backoff_multipliers(float(n), _ROUNDS)
        worst = max(worst, *(abs(s / _BASE_S - e) for s, e in zip(seen, expected, strict=True)))
    return [worst]


def rejected(results: Results, figure: str, of: Point) -> list[float]:
    """Share of the connections that were given up at their SYN."""
    return rejections(results[figure], of)["rejected"].to_list()


def rejected_over_model(results: Results, figure: str, of: Point) -> list[float]:
    """Share given up ÷ pᵏ, for k SYNs and the queue's drop share p of all packets (§ 4.1)."""
    rows = rejections(results[figure], of)
    syns = int(of["syns"])
    return [
        row["rejected"] / rejected_connections(row["dropped"], syns)
        for row in rows.iter_rows(named=True)
    ]


def dead_share_of_first(results: Results, figure: str, of: Point) -> list[float]:
    """Share of dead packets among those that arrive at the upstream link, α of eq. 7."""
    rows = at(results[figure], results[figure].links, of, link="first").sort("seed")
    return (rows["dead_pkts"] / rows["arrived_pkts"]).to_list()


def response_over_bound(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Smallest ratio of mean response times at `of` to `over`, over all numbers of users."""
    after, before = (aggregate_response_s(results[figure], point) for point in (of, over))
    joined = after.join(before, on=["seed", "flows"], suffix="_before")
    ratio = pl.col("response_s") / pl.col("response_s_before")
    return joined.group_by("seed").agg(ratio.min().alias("least")).sort("seed")["least"].to_list()


def response_over_closed_form(results: Results, figure: str, of: Point) -> list[float]:
    """Mean response time ÷ eq. 3, for the number of users with the ratio farthest from 1.

    It covers the numbers of users at which packets are lost by eq. 1.
    """
    rows = aggregate_response_s(results[figure], of)
    lossy = rows["bound_s"] > rows["bound_s"].min()
    rows = rows.filter(lossy).with_columns(ratio=pl.col("response_s") / pl.col("bound_s"))
    far = rows.sort((pl.col("ratio").log()).abs()).group_by("seed", maintain_order=True).last()
    return far.sort("seed")["ratio"].to_list()


def whole_backoff(results: Results, figure: str, users: int | None = None) -> list[float]:
    """Increase of r′ over r in % where all flows back off k times, with the whole k of eq. 5.

    r′ is simulated, r is eq. 3. Without `users` it is the largest one over all numbers of users.
    """
    rows = aggregate_response_s(results[figure], {})
    if users is not None:
        rows = rows.filter(pl.col("flows") == users)
    increase = (100 * (pl.col("response_s") / pl.col("bound_s") - 1)).max()
    return rows.group_by("seed").agg(increase.alias("by")).sort("seed")["by"].to_list()


def response_ratio(
    results: Results,
    figure: str,
    what: str,
    *,
    of: Point,
    over: Point,
    group: str | None = None,
) -> list[float]:
    """Ratio of response times at `of` to `over`: `mean`, `max`, or a quantile such as `p99`."""
    return ratios(results[figure], of, over, group, [what])[what]


def response_gain(results: Results, figure: str, what: str, **where: Any) -> list[float]:
    """Relative decrease of response times from `over` to `of`, in per cent.

    Arguments are those of `response_ratio`.
    """
    return [100 * (1 - ratio) for ratio in response_ratio(results, figure, what, **where)]


def worst_quantile(
    results: Results,
    figure: str,
    *,
    of: Point,
    over: Point,
    group: str | None = None,
    along: str | None = None,
) -> list[float]:
    """Ratio of a quantile of response times at `of` to `over`, seed by seed.

    The quantile is the one with the largest mean ratio, from the first tenth to the slowest in a
    thousand: there the distribution at `of` lies farthest to the right. With `along` the label of
    this axis is also the worst one.
    """
    run = results[figure]
    found = {}
    for label in labels(run, along) if along else [""]:
        here = {along: label} if along else {}
        points = {**of, **here}, {**over, **here}
        for name, values in ratios(run, *points, group, QUANTILES).items():
            found[f"{label} {name}"] = values
    return worst(found)[1]


def least_gain(results: Results, figure: str, what: str, along: str, **where: Any) -> list[float]:
    """`response_gain` for the label of an axis with the smallest mean, seed by seed."""
    of, over = where.pop("of"), where.pop("over")
    gains = (
        response_gain(results, figure, what, of={**of, along: x}, over={**over, along: x}, **where)
        for x in labels(results[figure], along)
    )
    return min(gains, key=fmean)


def gain_over_others(
    results: Results, figure: str, what: str, of: Point, along: str
) -> list[float]:
    """Relative decrease of response times at `of` from the best other label of an axis, in %."""
    gains = (
        response_gain(results, figure, what, of=of, over={**of, along: other})
        for other in labels(results[figure], along)
        if other != of[along]
    )
    return [min(each) for each in zip(*gains, strict=True)]


def response_growth(results: Results, figure: str, what: str, **where: Any) -> list[float]:
    """Relative increase of response times from `over` to `of`, in per cent."""
    return [-gain for gain in response_gain(results, figure, what, **where)]


def tail_beyond_mean(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Ratio of 99th percentiles of response times at `of` to `over`, minus that of the means."""
    found = ratios(results[figure], of, over, None, ["p99", "mean"])
    return [p99 - mean for p99, mean in zip(found["p99"], found["mean"], strict=True)]


def answered_gain(
    results: Results, figure: str, within_s: float, *, of: Point, over: Point, group: str
) -> list[float]:
    """Increase of the share of requests answered in time, in percentage points."""
    run = results[figure]
    share = (100 * (pl.col("response_s") < within_s).mean()).alias("share")
    after, before = (
        responses(run, point, group).group_by("seed").agg(share).sort("seed")["share"]
        for point in (of, over)
    )
    return (after - before).to_list()


def goodput_gain(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Relative increase of all receivers' payload from `over` to `of`, in per cent."""
    run = results[figure]
    both = [_delivered(run, point) for point in (of, over)]
    joined = both[0].join(both[1], on="seed", suffix="_over").sort("seed")
    return (100 * (joined["bytes_received"] / joined["bytes_received_over"] - 1)).to_list()


def _delivered(run: Run, point: Point) -> pl.DataFrame:
    """Received payload by `seed`: of flows with a row of their own, and of those without."""
    tables = (at(run, table, point) for table in (run.flows, run.unrecorded))
    parts = pl.concat(
        [part.select("seed", "bytes_received") for part in tables], how="vertical_relaxed"
    )
    return parts.group_by("seed").agg(pl.col("bytes_received").sum())


MEASURES: Mapping[str, Measure] = {
    function.__name__: function
    for function in (
        distance_from_fig1,
        rejected,
        rejected_over_model,
        dead_share_of_first,
        response_over_bound,
        response_over_closed_form,
        whole_backoff,
        response_ratio,
        response_gain,
        worst_quantile,
        least_gain,
        gain_over_others,
        response_growth,
        tail_beyond_mean,
        answered_gain,
        goodput_gain,
        recall,
        precision,
        consecutive,
        growth,
    )
}
