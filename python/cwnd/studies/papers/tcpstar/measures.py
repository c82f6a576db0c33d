"""Measures of the TCP*(n) paper's claims: one value for each seed unless stated otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.models import backoff_multipliers, dead_share, rejected_connections
from cwnd.studies.papers.tcpstar.inference import precision, recall
from cwnd.studies.papers.tcpstar.responses import (
    QUANTILES,
    aggregate_response_s,
    rejections,
    responses,
    statistic,
    timeouts_of,
)
from cwnd.study import at

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


def dead(results: Results, figure: str, both: float, p1: float, p2: float) -> list[float]:
    """α by eq. 7; one value, independent of runs."""
    del results, figure
    return [dead_share(both, p1, p2)]


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
    before, after = _both(results, figure, what, of=of, over=over, group=group)
    return [a / b for a, b in zip(after, before, strict=True)]


def response_gain(results: Results, figure: str, what: str, **where: Any) -> list[float]:
    """Relative decrease of response times from `over` to `of`, in per cent.

    Arguments are those of `response_ratio`.
    """
    return [100 * (1 - ratio) for ratio in response_ratio(results, figure, what, **where)]


def _both(
    results: Results,
    figure: str,
    what: str,
    *,
    of: Point,
    over: Point,
    group: str | None = None,
) -> tuple[list[float], list[float]]:
    """Statistic `what` of the response times at `over`, and at `of`, seed by seed."""
    run = results[figure]
    before, after = (
        responses(run, point, group).group_by("seed").agg(statistic(what).alias("value"))
        for point in (over, of)
    )
    joined = before.join(after, on="seed", suffix="_after").sort("seed")
    return joined["value"].to_list(), joined["value_after"].to_list()


def worst_quantile(
    results: Results, figure: str, of: Point, over: Point, group: str | None = None
) -> list[float]:
    """Largest ratio of quantiles of response times at `of` to `over`; one value.

    Quantiles are those of all seeds together, from the first tenth to the slowest in a thousand.
    The largest ratio is where the distribution at `of` lies farthest to the right.
    """
    run = results[figure]
    after, before = (
        responses(run, point, group).select(
            statistic(f"p{100 * q:g}").alias(str(q)) for q in QUANTILES
        )
        for point in (of, over)
    )
    return [max(after[str(q)][0] / before[str(q)][0] for q in QUANTILES)]


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
        dead,
        response_over_bound,
        response_over_closed_form,
        response_ratio,
        response_gain,
        worst_quantile,
        goodput_gain,
        recall,
        precision,
    )
}
