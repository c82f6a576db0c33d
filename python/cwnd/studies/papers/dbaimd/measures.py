"""Measures of the delay-based AIMD thesis's claims: one value for each seed."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from statistics import linear_regression, mean, median
from typing import TYPE_CHECKING

import polars as pl

from cwnd.studies.papers.dbaimd import rtt_measures
from cwnd.studies.papers.dbaimd.runs import (
    BOTTLENECK,
    PACKET_B,
    RATE_MBIT_S,
    RIGHT_MS,
    THRESHOLD_MS,
    along_flows,
    bound_ms,
    correlations,
    crossing,
    eq_3_6_ms,
    errors,
    least_delays,
    of_runs,
    of_seeds,
    sending_ms,
    share_of_windows,
    window_shares,
)
from cwnd.study import at, differences, labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.results import Run
    from cwnd.study import Measure, Point, Results

#: Share of windows at the minimum that counts as all, in per cent (§ 4.3.2 has it for 100 flows).
_NEARLY_ALL = 90.0


def number(results: Results, figure: str, what: str, of: Point | None = None) -> list[float]:
    """Value of a column of `runs.of_runs`."""
    return of_runs(results[figure], of or {})[what].to_list()


def least_queue(results: Results, figure: str) -> list[float]:
    """Shortest queue at the bottleneck after the warm-up, packets."""
    run = results[figure]
    rows = at(run, run.link_series, {}, link=BOTTLENECK)
    rows = rows.filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    least = rows.group_by("seed").agg((pl.col("qlen_pkts").min()).alias("least")).sort("seed")
    return [float(x) for x in least["least"]]


def median_correlation(results: Results, figure: str, longest_s: float) -> list[float]:
    """Median over flows of the magnitude of the correlation of their delays with those of flow 1.

    Flows are shifted by up to `longest_s` against flow 1, to where they correlate most.
    """
    run = results[figure]
    rows = run.series.filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    parts = of_seeds(rows.select("seed", "flow_id", "time_s", "rtt_seen_us"))
    return [median(abs(r) for r in correlations(part, longest_s)) for _, part in parts]


def most_in_flight(results: Results, figure: str) -> list[float]:
    """Largest sum of windows after the warm-up, packets."""
    run = results[figure]
    rows = run.series.filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    sums = rows.group_by("seed", "time_s").agg(pl.col("snd_cwnd_pkts").sum())
    return (
        sums.group_by("seed")
        .agg(pl.col("snd_cwnd_pkts").max())
        .sort("seed")["snd_cwnd_pkts"]
        .to_list()
    )


def path_and_bound(results: Results, figure: str, longest: float) -> list[float]:
    """Capacity of the longest path and the queue of eq. 3.7 (eq. 3.2), packets; one value."""
    flows = results[figure].flows["flow_id"].n_unique()
    return [(longest + bound_ms(flows)) * RATE_MBIT_S * 1e3 / 8 / PACKET_B]


def beyond_bound(results: Results, figure: str, of: Point | None = None) -> list[float]:
    """Excess of the peak over eq. 3.7, ms, for the number of flows with the largest excess."""
    counts, peaks = along_flows(results[figure], of or {}, "peak")
    return [max(p - bound_ms(n) for n, p in zip(counts, row, strict=True)) for row in peaks]


def share_of_bound(
    results: Results, figure: str, most: int, of: Point | None = None
) -> list[float]:
    """Peak ÷ eq. 3.7, averaged over numbers of flows up to `most`."""
    counts, peaks = along_flows(results[figure], of or {}, "peak")
    kept = [i for i, n in enumerate(counts) if n <= most]
    return [mean(row[i] / bound_ms(counts[i]) for i in kept) for row in peaks]


def largest_fall(results: Results, figure: str, of: Point | None = None) -> list[float]:
    """Largest decrease of the peak from one number of flows to the next, ms."""
    _, peaks = along_flows(results[figure], of or {}, "peak")
    return [max(before - after for before, after in pairwise(row)) for row in peaks]


def rise(results: Results, figure: str, to: str, of: Point | None = None) -> list[float]:
    """Difference of the mean delay of `to` flows from that of one, ms."""
    first = labels(results[figure], "flows")[0]
    ends = ({**(of or {}), "flows": n} for n in (to, first))
    return differences(*(number(results, figure, "mean", end) for end in ends))


def slope(results: Results, figure: str, beyond: int, of: Point | None = None) -> list[float]:
    """Slope of the mean delay by the number of flows, ms per flow, from `beyond` flows on."""
    counts, means = along_flows(results[figure], of or {}, "mean")
    kept = [i for i, n in enumerate(counts) if n >= beyond]
    xs = [counts[i] for i in kept]
    return [linear_regression(xs, [row[i] for i in kept]).slope for row in means]


def limit(results: Results, figure: str, least: int = 1, of: Point | None = None) -> list[float]:
    """Number of flows from which 90 % of the windows are at the minimum, in whole packets."""
    run = results[figure]
    shares = window_shares(run, of or {})
    counts = labels(run, "flows")
    columns = [share_of_windows(shares, n, least) for n in counts]
    flows = [int(n) for n in counts]
    return [crossing(flows, row, _NEARLY_ALL) for row in zip(*columns, strict=True)]


def always_queued(results: Results, figure: str, of: Point | None = None) -> list[float]:
    """Number of flows from which the queue is always longer than τ0, at every sample.

    Delay then rises with each flow (§ 3.4.3): it is persistently above the threshold, where no
    window grows and none can be smaller.
    """
    counts, least = least_delays(results[figure], of or {})
    return [crossing(counts, row, THRESHOLD_MS) for row in least]


def beyond_eq_3_6(
    results: Results, figure: str, mean_rtt_ms: float, of: Point | None = None
) -> list[float]:
    """Excess of the peak over eq. 3.6, ms, for the number of flows with the largest excess."""
    _, peaks = along_flows(results[figure], of or {}, "peak")
    return [max(row) - eq_3_6_ms(mean_rtt_ms) for row in peaks]


def most_dropped(results: Results, figure: str) -> list[float]:
    """Largest number of dropped packets of any run of a seed."""
    rows = at(results[figure], results[figure].links, {}, link=BOTTLENECK)
    most = rows.group_by("seed").agg(pl.col("dropped_total_pkts").max()).sort("seed")
    return [float(x) for x in most["dropped_total_pkts"]]


def share_at(
    results: Results, figure: str, flows: str, windows: list[int], of: Point
) -> list[float]:
    """Share of time of windows between two sizes in packets, inclusive, in per cent."""
    shares = window_shares(results[figure], of)
    least, most = windows
    both = (share_of_windows(shares, flows, upto) for upto in (most, least - 1))
    return [a - b for a, b in zip(*both, strict=True)]


def given_up(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Largest relative loss of goodput from `over` to `of` over all numbers of flows, %."""
    run = results[figure]
    (_, mine), (_, theirs) = (along_flows(run, point, "goodput") for point in (of, over))
    both = zip(mine, theirs, strict=True)
    return [max(100 * (1 - a / b) for a, b in zip(*rows, strict=True)) for rows in both]


def more(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """Difference of a column of `runs.of_runs` at `of` from that at `over`."""
    return differences(*(number(results, figure, what, point) for point in (of, over)))


def largest_difference(
    results: Results, figure: str, what: str, of: Point, over: Point
) -> list[float]:
    """Largest difference of a number between two points, over all numbers of flows."""
    run = results[figure]
    (_, mine), (_, theirs) = (along_flows(run, point, what) for point in (of, over))
    both = zip(mine, theirs, strict=True)
    return [max(abs(a - b) for a, b in zip(*rows, strict=True)) for rows in both]


def settled(results: Results, figure: str, of: Point | None = None) -> list[float]:
    """Time after which all estimates of baseRTT are right within 2 ms, s; 0 if they always are."""
    found = []
    for _, part in of_seeds(errors(results[figure], of or {})):
        wrong = part.filter(pl.col("error") > RIGHT_MS)
        found.append(float(wrong["time_s"].max() or 0.0))  # type: ignore[arg-type]
    return found


def sooner(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Time by which all estimates are right sooner at `of` than at `over`, s."""
    return differences(settled(results, figure, over), settled(results, figure, of))


def error_at_end(
    results: Results, figure: str, of: Point | None = None, group: str | None = None
) -> list[float]:
    """Largest error of minRTT at the end of the run, ms."""
    return [
        float(
            part.filter(  # type: ignore[arg-type]
                pl.col("time_s") == part["time_s"].max(),
            )["error"].max()
        )
        for _, part in of_seeds(errors(results[figure], of or {}, group))
    ]


def error_at_first(results: Results, figure: str, of: Point | None = None) -> list[float]:
    """Largest error of minRTT of the whole run, ms."""
    return [
        float(part["error"].max())  # type: ignore[arg-type]
        for _, part in of_seeds(errors(results[figure], of or {}))
    ]


def off_recursion(results: Results, figure: str) -> list[float]:
    """Largest excess of an estimate over δ times the one before it, %.

    For one flow § 4.3.1's recursion of queues, q_k ≤ δ q_(k−1) − (1 − δ) baseRTT, is minRTT_k ≤ δ
    minRTT_(k−1), until the queue is empty.
    """
    run = results[figure]
    worst: dict[int, float] = {}
    for delta in labels(run, "delta"):
        of = {"delta": delta}
        base = at(run, run.flows, of)["rtt_base_us"][0] / 1e3 + sending_ms(run, of)
        for seed, part in of_seeds(errors(run, of)):
            for before, after in steps_down(part["error"].to_list()):
                expected = float(delta) * (before + base)
                if expected > base + RIGHT_MS:
                    off = 100 * ((after + base) / expected - 1)
                    worst[seed] = max(worst.get(seed, off), off)
    return [worst[seed] for seed in sorted(worst)]


def steps_down(values: list[float]) -> list[tuple[float, float]]:
    """Errors of one flow at one backoff and the next, from the largest on.

    RTTs fall over several samples while the queue drains: of consecutive falls the last counts.
    """
    start = values.index(max(values))
    plateaus = [values[start]]
    last = values[start]
    for value in values[start + 1 :]:
        if value == last and value != plateaus[-1]:
            plateaus.append(value)
        last = value
    return list(pairwise(plateaus))


def first_errors(results: Results, figure: str, of: Point) -> list[float]:
    """Number of flows from which the worst error of minRTT at the end is more than 2 ms."""
    counts, worst = along_flows(results[figure], of, "error")
    return [crossing(counts, row, RIGHT_MS) for row in worst]


#: Age of a flow in seconds below which its estimate may still be wrong.
_YOUNG_S = 20


def flows_before_errors(results: Results, figure: str) -> list[float]:
    """Number of flows started until all estimates of flows older than 20 s were last right."""
    run = results[figure]
    found = []
    for _, part in of_seeds(errors(run, {})):
        # A flow that has just started had no time to correct its estimate.
        old = part.filter(pl.col("time_s") >= pl.col("start_s") + _YOUNG_S)
        worst = old.group_by("time_s").agg(pl.col("error").max()).sort("time_s")
        right = worst.filter(pl.col("error") <= RIGHT_MS)["time_s"].max()
        begun = part.filter(pl.col("start_s") <= right)["flow_id"].n_unique() if right else 0
        found.append(float(begun))
    return found


def backoff_factors(run: Run, of: Point) -> float:
    """Fraction of the window after a backoff: the smallest window ÷ the largest."""
    rows = at(run, run.series, of).filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    window = rows["snd_cwnd_pkts"]
    return float(min(window) / max(window))


def factor(base_ms: float, queue_ms: float, delta: float = 0.8) -> float:
    """Eq. 4.1 at a backoff at τ0: δ · baseRTT / (baseRTT + τ0)."""
    return delta * base_ms / (base_ms + queue_ms)


def off_factor(results: Results, figure: str) -> list[float]:
    """Largest distance of a backoff factor from eq. 4.1; one value."""
    run = results[figure]
    return [
        max(
            abs(
                backoff_factors(run, {"queue": queue, "rtt": rtt})
                - factor(float(rtt), float(queue.removesuffix(" ms")))
            )
            for queue in labels(run, "queue")
            for rtt in labels(run, "rtt")
        )
    ]


def window_ratio(results: Results, figure: str, of: Point) -> list[float]:
    """Mean window of a far flow ÷ that of a near one."""
    run = results[figure]
    rows = at(run, run.series, of).filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    means = rows.group_by("seed", pl.col("group").cast(pl.String)).agg(
        pl.col("snd_cwnd_pkts").mean()
    )
    wide = means.pivot(on="group", index="seed", values="snd_cwnd_pkts").sort("seed")
    return (wide["far"] / wide["near"]).to_list()


def more_equal(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Decrease of the inequality of mean windows from `over` to `of`, %: larger ÷ smaller."""

    def unequal(point: Point) -> list[float]:
        return [100 * (exp(abs(log(x))) - 1) for x in window_ratio(results, figure, point)]

    return differences(unequal(over), unequal(of))


def more_corrections(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Difference in corrections of estimates per long flow at `of` from those at `over`."""
    return differences(corrections(results, figure, of), corrections(results, figure, over))


def corrections(results: Results, figure: str, of: Point) -> list[float]:
    """Falls of minRTT by at least 1 ms after the first 20 s, per long flow."""
    found = []
    for _, part in of_seeds(errors(results[figure], of, "long")):
        late = part.filter(pl.col("time_s") >= _YOUNG_S)
        fall = -pl.col("error").diff().over("flow_id")
        count = late.select((fall >= 1).sum()).item()
        found.append(count / late["flow_id"].n_unique())
    return found


#: All measures, by their names in `study.toml`.
MEASURES: Mapping[str, Measure] = {
    **rtt_measures.MEASURES,
    **{
        function.__name__: function
        for function in (
            *(number, least_queue, median_correlation, most_in_flight, path_and_bound),
            *(beyond_bound, share_of_bound, largest_fall, rise, slope, limit, always_queued),
            *(beyond_eq_3_6, most_dropped, share_at, given_up, more, largest_difference),
            *(settled, sooner, error_at_end, error_at_first, off_recursion, first_errors),
            *(flows_before_errors, off_factor, window_ratio, more_equal, corrections),
            more_corrections,
        )
    },
}
