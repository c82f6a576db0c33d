"""Measures of the ABE paper that other studies do not need; each returns a value for each seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import at, column, group_ratio, labels, share_faster, time_ratios

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.results import Run
    from cwnd.study import Measure, Point, Results

#: Overheads that the paper subtracts from an RTT, in seconds (ABE, note 10).
OVERHEADS_S = 1e-3


def on_the_wire_s(run: Run) -> pl.DataFrame:
    """Transmission time of a data packet and of its ACK, by run: their share of the path's RTT."""
    ends = run.flows.group_by("run_id").agg(
        (pl.col("start_s") + pl.col("duration_s")).max().alias("end_s")
    )
    per_packet = pl.col("utilisation") * pl.col("end_s") / pl.col("delivered_total_pkts")
    return (
        run.links.join(ends, on="run_id").group_by("run_id").agg(per_packet.sum().alias("wire_s"))
    )


def estimated_delays(run: Run) -> pl.DataFrame:
    """Queueing delays in milliseconds as the paper estimates them, with the number of packets.

    The estimate is an RTT between both ends of the path less the path's and 1 ms (note 10): the
    wait in the queue, and the times of the packet and its ACK on the wire, less 1 ms.
    """
    waits = run.qdelay.filter(pl.col("link").cast(pl.String) == "bottleneck")
    more_ms = (pl.col("wire_s") - OVERHEADS_S) * 1e3
    return waits.join(on_the_wire_s(run), on="run_id").with_columns(
        (pl.col("qdelay_us") / 1e3 + more_ms).alias("delay_ms")
    )


def _medians(run: Run, of: Point, along: str) -> list[dict[int, float]]:
    wire_ms = {row["run_id"]: row["wire_s"] * 1e3 for row in on_the_wire_s(run).to_dicts()}
    less_ms = OVERHEADS_S * 1e3
    rows = at(run, run.per_run(), of)
    return [
        {
            row["seed"]: row["qdelay_p50_us"] / 1e3 + wire_ms[row["run_id"]] - less_ms
            for row in rows.filter(pl.col(column(run, along)) == label).to_dicts()
        }
        for label in labels(run, along)
    ]


def most_estimated(results: Results, figure: str, of: Point, along: str) -> list[float]:
    """Largest median along an axis of the queueing delay as the paper estimates it, in ms."""
    return _by_seed(_medians(results[figure], of, along), max)


def least_estimated(results: Results, figure: str, of: Point, along: str) -> list[float]:
    """Smallest median along an axis of the queueing delay as the paper estimates it, in ms."""
    return _by_seed(_medians(results[figure], of, along), min)


def _of_sender(run: Run, of: Point, along: str) -> list[dict[int, float]]:
    flows = at(run, run.flows, of).with_columns(
        delay_ms=(pl.col("rtt_p50_us") - pl.col("rtt_base_us")) / 1e3 - OVERHEADS_S * 1e3
    )
    return [
        dict(
            flows.filter(pl.col(column(run, along)) == label).select("seed", "delay_ms").iter_rows()
        )
        for label in labels(run, along)
    ]


def most_by_sender(results: Results, figure: str, of: Point, along: str) -> list[float]:
    """Largest median along an axis of the sender's RTT less the path's and 1 ms, in ms."""
    return _by_seed(_of_sender(results[figure], of, along), max)


def least_by_sender(results: Results, figure: str, of: Point, along: str) -> list[float]:
    """Smallest median along an axis of the sender's RTT less the path's and 1 ms, in ms."""
    return _by_seed(_of_sender(results[figure], of, along), min)


def _by_seed(
    columns: Sequence[Mapping[int, float]], choose: Callable[[list[float]], float]
) -> list[float]:
    return [choose([values[seed] for values in columns]) for seed in sorted(columns[0])]


def early_gain(results: Results, figure: str, of: Point, over: Point, at_s: float) -> list[float]:
    """Gain in received bytes by a time after the start, minus that by the end; in points."""
    early = _gains(results[figure], of, over, at_s)
    late = _gains(results[figure], of, over, None)
    return [early[seed] - late[seed] for seed in sorted(early)]


def _gains(run: Run, of: Point, over: Point, at_s: float | None) -> dict[int, float]:
    until = run.series if at_s is None else run.series.filter(pl.col("time_s") <= at_s)
    after, before = (
        dict(
            at(run, until, point)
            .sort("time_s")
            .group_by("seed", maintain_order=True)
            .agg(pl.col("delivered").last())
            .iter_rows()
        )
        for point in (of, over)
    )
    return {seed: 100 * (after[seed] / before[seed] - 1) for seed in after}


def most_faster(results: Results, figure: str, of: Point, over: Point, along: str) -> list[float]:
    """Largest share along an axis of the cases, in per cent, that converge sooner than `over`."""
    others = [label for label in labels(results[figure], along) if label != over[along]]
    shares = [share_faster(results, figure, {**of, along: label}, over) for label in others]
    return [max(row) for row in zip(*shares, strict=True)]


def median_of_all(results: Results, figure: str, of: Point, over: Point, along: str) -> list[float]:
    """Median of T ÷ T at `over`, over all cases and all other labels of an axis."""
    ratios = time_ratios(results[figure], of, over).filter(
        pl.col(column(results[figure], along)) != over[along]
    )
    by_seed = ratios.group_by("seed").agg(pl.col("ratio").median()).sort("seed")
    return by_seed["ratio"].to_list()


def error_bar(run: Run, of: Point, group: str, to: str) -> float:
    """Standard deviation, over all runs at a point, of the ratio of the groups' goodputs."""
    flows = at(run, run.flows.with_columns(pl.col("group").cast(pl.String)), of)
    means = flows.group_by("run_id", "group").agg(pl.col("goodput_bit_s").mean())
    wide = means.pivot(on="group", index="run_id", values="goodput_bit_s")
    return float((wide[group] / wide[to]).std() or 0.0)  # type: ignore[arg-type]


def ratio_beyond_bar(
    results: Results, figure: str, of: Point, group: str, to: str, **points: Point
) -> list[float]:
    """Ratio of the groups' goodputs at `of` minus the upper end of the error bar at `from`.

    Both are averaged over the other axes.
    """
    base = points["from"]
    bar = error_bar(results[figure], base, group, to)
    pairs = (group_ratio(results, figure, point, group, to) for point in (of, base))
    return [a - b - bar for a, b in zip(*pairs, strict=True)]


def queue_gap_beyond_bar(
    results: Results, figure: str, beside: str, along: str, *, group: str, to: str
) -> list[float]:
    """Distance of the ratios of two figures minus the first one's error bar, along an axis."""
    run = results[figure]
    betas = labels(run, along)
    bars = [error_bar(run, {along: label}, group, to) for label in betas]
    one, two = (_mean_ratio(results, name, along, group, to) for name in (figure, beside))
    return [abs(a - b) - sum(bars) / len(bars) for a, b in zip(one, two, strict=True)]


def all_ratios(
    results: Results, figure: str, beside: str, of: Point, *, group: str, to: str
) -> list[float]:
    """Ratio of the groups' goodputs, averaged over two figures and the other axes."""
    pairs = (group_ratio(results, name, of, group, to) for name in (figure, beside))
    return [(a + b) / 2 for a, b in zip(*pairs, strict=True)]


def _mean_ratio(results: Results, figure: str, along: str, group: str, to: str) -> list[float]:
    rows = [
        group_ratio(results, figure, {along: label}, group, to)
        for label in labels(results[figure], along)
    ]
    return [sum(row) / len(row) for row in zip(*rows, strict=True)]


MEASURES: dict[str, Measure] = {
    function.__name__: function
    for function in (
        *(most_estimated, least_estimated, most_by_sender, least_by_sender),
        *(early_gain, most_faster, median_of_all),
        *(ratio_beyond_bar, queue_gap_beyond_bar, all_ratios),
    )
}
