"""Response times of requests on connections that clients opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from cwnd.results.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cwnd.results.data import Data

#: Metrics that are quantiles of response times, and their probabilities.
QUANTILES = {"response_p50_s": 0.5, "response_p90_s": 0.9, "response_p99_s": 0.99}
#: Metrics that are quantiles of times until the response's last ACK reaches the server.
ACKED_QUANTILES = {"acked_p50_s": 0.5, "acked_p90_s": 0.9, "acked_p99_s": 0.99}
#: Metrics of times to the last acknowledgement.
_OF_ACKED = ("acked_mean_s", *ACKED_QUANTILES)
#: All metrics of requests.
COLUMNS = (
    *("requests", "given_up_ratio", "response_mean_s", *QUANTILES, "response_max_s"),
    *_OF_ACKED,
)

#: Counts of requests by their state at a time since they were sent: answered, still open at the end
#: of the run, or never answered because their connection was given up. The last have an infinite
#: time.
_COUNTS = ("answered", "open", "unanswered")
#: Outcomes of requests.
OUTCOMES = ("answered", "open", "rejected", "given-up")
#: Approximate number of requests that are read at a time.
_BATCH = 4_000_000
#: Tolerance for the rounding error of a product of a million factors below one.
_ROUNDING = 1e-9


def metrics_of(run: Data, by_columns: Sequence[str] = ()) -> pl.DataFrame:
    """Computes metrics of requests, a row for each run and group or flow with requests.

    The mean and the largest response time are of answered requests. Quantiles are of all requests.
    Those of connections that were given up count as infinite; those open at the end of the run are
    censored there (Kaplan & Meier 1958). A quantile is null if it lies beyond the last answer.
    Times to the last acknowledgement are counted likewise; they are null unless every request of
    the run has a row.

    Args:
        run: The result.
        by_columns: Columns that separate rows within a run: none, `group`, or `group` and
            `flow_id`.
    """
    key = ("responses", *by_columns)
    if key not in run.derived:
        by = ["run_id", *by_columns]
        parts = [_metrics(survival(counts, by), by) for counts in counts_of(run, by_columns)]
        if not parts:
            run.derived[key] = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Float64))
            return run.derived[key]
        found = pl.concat(parts)
        acked = [
            _acked(survival(counts, by), by)
            for counts in counts_of(run, by_columns, time="acked_s")
        ]
        if acked:
            found = found.join(pl.concat(acked), on=by, how="left", maintain_order="left")
        else:
            found = found.with_columns(pl.lit(None, pl.Float64).alias(name) for name in _OF_ACKED)
        run.derived[key] = found
    return run.derived[key]


def counts_of(
    run: Data,
    by_columns: Sequence[str] = (),
    run_ids: Sequence[str] | None = None,
    time: Literal["response_s", "acked_s"] = "response_s",
) -> Iterator[pl.DataFrame]:
    """Yields the response times of requests, in batches of whole runs; of these runs or of all.

    A run in which some requests have no row is counted by the buckets of its histograms, at their
    middles or the longest time if less; by flow, such requests are missing.

    Columns are `run_id`, those of `by_columns`, and `time_s`, the time since the request was sent.
    `answered`, `open` and `unanswered` count requests answered then, open at the end of the run,
    and given up (at an infinite time). `sum_s` and `longest_s` are the sum and the largest of the
    response times. With `time="acked_s"` these are times to the last acknowledgement of the
    response, of runs in which every request has a row.
    """
    for ids in _batches(run, run_ids):
        sketched, rowed = ([], ids) if "flow_id" in by_columns else _without_rows(run, ids)
        if sketched and time == "response_s":
            yield _sketched(run, sketched, by_columns)
        if not rowed:
            continue
        requests = run.samples_of("requests", rowed)
        if time not in requests.collect_schema():
            continue
        elapsed, outcome = pl.col(time).alias("elapsed_s"), pl.col("outcome").cast(pl.String)
        rows = requests.select("run_id", *by_columns, "start_s", elapsed, outcome)
        ends = run.runs.lazy().select("run_id", "duration_s")
        joined = rows.join(ends, on="run_id", maintain_order="left")
        counts = _counted(joined, ["run_id", *by_columns]).collect()
        if not counts.is_empty():
            yield counts


def _without_rows(run: Data, run_ids: list[str]) -> tuple[list[str], list[str]]:
    """Splits runs into those in which some requests have no row, and the others."""
    column = "requests_without_row"
    if column not in run.runs.columns:
        return [], run_ids
    lacking = set(run.runs.filter(pl.col(column).fill_null(0) > 0)["run_id"].to_list())
    return [i for i in run_ids if i in lacking], [i for i in run_ids if i not in lacking]


def _sketched(run: Data, run_ids: list[str], by_columns: Sequence[str]) -> pl.DataFrame:
    """Counts of all requests of these runs, by buckets of their histograms."""
    rows = run.samples_of("sketches", run_ids).with_columns(pl.col("what").cast(pl.String))
    what = pl.col("what")
    answered, still_open = what == "answered", what == "open"
    middle = pl.min_horizontal((pl.col("from_s") + pl.col("to_s")) / 2, "longest_s")
    none = pl.lit(0, pl.UInt64)
    return (
        rows.filter(what.is_in(OUTCOMES))
        .select(
            *(pl.col(n).cast(pl.String) if n == "group" else n for n in ("run_id", *by_columns)),
            pl.when(answered | still_open).then(middle).otherwise(float("inf")).alias("time_s"),
            pl.when(answered).then("count").otherwise(none).alias("answered"),
            pl.when(still_open).then("count").otherwise(none).alias("open"),
            pl.when(answered | still_open).then(none).otherwise("count").alias("unanswered"),
            pl.when(answered).then("sum_s").alias("sum_s"),
            pl.when(answered).then("longest_s").alias("longest_s"),
        )
        .collect()
    )


def _counted(rows: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    answered = pl.col("elapsed_s").is_not_null()
    unanswered = ~answered & pl.col("outcome").is_in(["rejected", "given-up"])
    time = (
        pl.when(answered)
        .then("elapsed_s")
        .when(unanswered)
        .then(float("inf"))
        .otherwise(pl.col("duration_s") - pl.col("start_s"))
    )
    return rows.select(
        *(pl.col(name).cast(pl.String) if name == "group" else name for name in by),
        time.alias("time_s"),
        answered.cast(pl.UInt64).alias("answered"),
        (~unanswered & ~answered).cast(pl.UInt64).alias("open"),
        unanswered.cast(pl.UInt64).alias("unanswered"),
        pl.col("elapsed_s").alias("sum_s"),
        pl.col("elapsed_s").alias("longest_s"),
    )


def _batches(run: Data, run_ids: Sequence[str] | None) -> Iterator[list[str]]:
    """Runs with requests, in batches of about `_BATCH` requests."""
    runs = run.runs
    if run_ids is not None:
        runs = runs.filter(pl.col("run_id").cast(pl.String).is_in(list(run_ids)))
    ids = runs["run_id"].to_list()
    if "requests" not in runs.columns:
        # Older results do not record the number of requests of a run.
        if ids:
            yield ids
        return
    batch: list[str] = []
    size = 0
    for run_id, count in zip(ids, runs["requests"].fill_null(0), strict=True):
        if count:
            batch.append(run_id)
            size += count
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def survival(counts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Sorts counts by time, and adds the fraction of requests that take longer, `longer`.

    The estimator is that of Kaplan & Meier (1958): at each time, the fraction is multiplied by one
    minus the ratio of requests answered then to requests that took at least so long. Without
    requests open at the end it is the fraction with a greater response time.
    """
    keys = list(by)
    # Without keys all rows belong together.
    own: list[Any] = keys or [pl.lit(0)]
    requests = pl.sum_horizontal(_COUNTS).cast(pl.Int64)
    # Of equal times, those of answered requests come first.
    return (
        counts.sort(*keys, "time_s", "open", maintain_order=True)
        .with_columns(requests.alias("together"))
        .with_columns(
            (
                pl.col("together").sum().over(own)
                - pl.col("together").cum_sum().over(own)
                + pl.col("together")
            ).alias("waiting")
        )
        .with_columns(
            (1 - pl.col("answered") / pl.col("waiting")).cum_prod().over(own).alias("longer")
        )
        .drop("together", "waiting")
    )


def _metrics(ordered: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    every = pl.sum_horizontal(pl.col(_COUNTS).sum())
    return ordered.group_by(by, maintain_order=True).agg(
        every.cast(pl.Float64).alias("requests"),
        (pl.col("unanswered").sum() / every).alias("given_up_ratio"),
        _mean().alias("response_mean_s"),
        *_quantiles(QUANTILES),
        pl.col("longest_s").max().alias("response_max_s"),
    )


def _acked(ordered: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    return ordered.group_by(by, maintain_order=True).agg(
        _mean().alias("acked_mean_s"), *_quantiles(ACKED_QUANTILES)
    )


def _mean() -> pl.Expr:
    answered = pl.col("answered").sum()
    return pl.when(answered > 0).then(pl.col("sum_s").sum() / answered)


def _quantiles(named: Mapping[str, float]) -> Iterator[pl.Expr]:
    some = pl.col("answered") > 0
    for name, q in named.items():
        known = some & (pl.col("longer") <= 1 - q + _ROUNDING)
        yield pl.col("time_s").filter(known).first().alias(name)


@dataclass(frozen=True)
class Distribution:
    """Fraction of the requests that take longer than each of some times, over seeds."""

    times_s: list[float]
    #: Mean over the seeds.
    means: list[float]
    #: Half the width of the pointwise 95 % interval of the mean, by Student's t; `None` with one
    #: seed.
    half_widths: list[float] | None


def distribution(of_seeds: Sequence[pl.DataFrame], times_s: Sequence[float]) -> Distribution:
    """Averages the fraction of requests that take longer than these times over seeds.

    Args:
        of_seeds: For each seed the counts of `counts_of`, extended by `survival`.
        times_s: Times in seconds, in ascending order.
    """
    shares = [share_longer(seed, times_s) for seed in of_seeds]
    estimates = [Estimate.of(list(at_time)) for at_time in zip(*shares, strict=True)]
    means = [0.0 if each is None else each.mean for each in estimates]
    several = len(of_seeds) > 1
    widths = [0.0 if each is None else each.half_width or 0.0 for each in estimates]
    return Distribution(list(times_s), means, widths if several else None)


def share_longer(ordered: pl.DataFrame, times_s: Sequence[float]) -> list[float]:
    """Fraction of the requests of one run, from `survival`, that take longer than these times."""
    passed = ordered["time_s"].search_sorted(pl.Series(times_s, dtype=pl.Float64), side="right")
    longer = ordered["longer"]
    return [1.0 if count == 0 else float(longer[count - 1]) for count in passed]


def counts_of_times(times_s: pl.Series) -> pl.DataFrame:
    """Builds the table of `counts_of` from response times in seconds that are all known."""
    size = times_s.len()
    one, none = pl.repeat(1, size, dtype=pl.UInt64), pl.repeat(0, size, dtype=pl.UInt64)
    return pl.select(
        times_s.alias("time_s"),
        one.alias("answered"),
        none.alias("open"),
        none.alias("unanswered"),
        times_s.alias("sum_s"),
        times_s.alias("longest_s"),
    )
