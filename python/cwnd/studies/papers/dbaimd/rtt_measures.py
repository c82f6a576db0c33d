"""Measures of chapter 5 of the delay-based AIMD thesis, and of late flows: one for each seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.studies.papers.dbaimd.runs import BOTTLENECK, errors
from cwnd.study import at, differences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.results import Run
    from cwnd.study import Measure, Point, Results


def share_of(results: Results, figure: str, group: str, of: Point) -> list[float]:
    """Share of a group in all flows' goodput, in per cent."""
    run = results[figure]
    rows = at(run, run.flows, of)
    mine = pl.col("goodput_bit_s").filter(pl.col("group").cast(pl.String) == group).sum()
    shares = rows.group_by("seed").agg(share=100 * mine / pl.col("goodput_bit_s").sum())
    return shares.sort("seed")["share"].to_list()


def share_beyond(results: Results, figure: str, group: str, of: Point) -> list[float]:
    """Difference of a group's share from that of the other one, in percentage points."""
    mine = share_of(results, figure, group, of)
    return [2 * share - 100 for share in mine]


def late_share(results: Results, figure: str, of: Point) -> list[float]:
    """Goodput of the flow that started last ÷ the mean of all."""
    last, others = _last_and_others(results[figure], of)
    flows = len(at(results[figure], results[figure].flows, of)) / len(last)
    return [a * flows / (a + (flows - 1) * b) for a, b in zip(last, others, strict=True)]


def late_more(results: Results, figure: str, of: Point) -> list[float]:
    """Difference of the goodput of the flow that started last from the others' mean, Mbit/s."""
    return differences(*_last_and_others(results[figure], of))


def _last_and_others(run: Run, of: Point) -> tuple[list[float], list[float]]:
    """Goodput of the flow that started last, and the others' mean, Mbit/s."""
    rows = at(run, run.flows, of).sort("seed", "flow_id")
    last = pl.col("flow_id") == pl.col("flow_id").max()
    goodput = pl.col("goodput_bit_s") / 1e6
    both = rows.group_by("seed").agg(
        last=goodput.filter(last).mean(), others=goodput.filter(~last).mean()
    )
    both = both.sort("seed")
    return both["last"].to_list(), both["others"].to_list()


def late_error(results: Results, figure: str, of: Point) -> list[float]:
    """Error of minRTT at the end, of the flow that started last, ms."""
    rows = errors(results[figure], of)
    end = (pl.col("time_s") == pl.col("time_s").max()) & (
        pl.col("flow_id") == pl.col("flow_id").max()
    )
    return rows.filter(end).sort("seed")["error"].to_list()


def later_wrong(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Difference of the last flow's error of minRTT at `of` from that at `over`, ms."""
    return differences(late_error(results, figure, of), late_error(results, figure, over))


def of_group(results: Results, figure: str, what: str, group: str, of: Point) -> list[float]:
    """Value of a column of the single flow of a group.

    `noise` is the mean measured delay beyond the queue, ms; `backoffs` are those for delay per
    minute; `goodput` is in Mbit/s.
    """
    run = results[figure]
    rows = at(run, run.flows, of, group=group)
    minutes = pl.col("duration_s") / 60
    return (
        rows.sort("seed")
        .select(
            noise=(pl.col("qdelay_seen_us") - pl.col("qdelay_true_us")) / 1e3,
            backoffs=pl.col("cwnd_reductions_delay") / minutes,
            goodput=pl.col("goodput_bit_s") / 1e6,
        )[what]
        .to_list()
    )


def group_more(
    results: Results, figure: str, what: str, group: str, *, of: Point, over: Point
) -> list[float]:
    """Difference of a column of a group's single flow at `of` from that at `over`."""
    return differences(*(of_group(results, figure, what, group, point) for point in (of, over)))


def worst_noise(results: Results, figure: str, group: str, of: Point) -> list[float]:
    """95th percentile of a flow's RTT samples beyond baseRTT and the queue of that moment, ms."""
    run = results[figure]
    start = run.runs["warmup_s"].max()
    rows = at(run, run.series, of, group=group).filter(pl.col("time_s") >= start)
    queue = at(run, run.link_series, of, link=BOTTLENECK)
    base = at(run, run.flows, of).select("seed", "flow_id", "rtt_base_us")
    joined = (
        rows.select("seed", "flow_id", "time_s", "rtt_seen_us")
        .join(queue.select("seed", "time_s", "sojourn_us"), on=["seed", "time_s"])
        .join(base, on=["seed", "flow_id"])
    )
    noise = (pl.col("rtt_seen_us") - pl.col("rtt_base_us") - pl.col("sojourn_us")) / 1e3
    return joined.group_by("seed").agg(noise=noise.quantile(0.95)).sort("seed")["noise"].to_list()


#: Period in seconds of a swing: longer than a chunk, shorter than a cycle of the window.
_SWING_S = 0.2


def swing(results: Results, figure: str, of: Point, quantile: float | None = None) -> list[float]:
    """Range of the flow's RTTs within periods of 0.2 s, ms.

    The value is the mean over the run after its warm-up, or a quantile.
    """
    run = results[figure]
    rows = at(run, run.series, of).filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    parts = (
        rows.with_columns(part=(pl.col("time_s") / _SWING_S).floor())
        .group_by("seed", "part")
        .agg(swing=(pl.col("rtt_seen_us").max() - pl.col("rtt_seen_us").min()) / 1e3)
    )
    value = pl.col("swing").mean() if quantile is None else pl.col("swing").quantile(quantile)
    return parts.group_by("seed").agg(value).sort("seed")["swing"].to_list()


def calmer(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Decrease of the swing from `over` to `of`, ms."""
    return differences(swing(results, figure, over), swing(results, figure, of))


def taken_away(
    results: Results, figure: str, *, of: Point, over: Point, plain: Point
) -> list[float]:
    """Part of the swing due to chunks at `over` that is absent at `of`, in per cent."""
    mine, theirs, least = (swing(results, figure, point) for point in (of, over, plain))
    return [100 * (b - a) / (b - c) for a, b, c in zip(mine, theirs, least, strict=True)]


#: Measures, by their names in `study.toml`.
MEASURES: Mapping[str, Measure] = {
    function.__name__: function
    for function in (
        share_of,
        late_share,
        late_error,
        of_group,
        worst_noise,
        swing,
        taken_away,
        *(share_beyond, late_more, later_wrong, group_more, calmer),
    )
}
