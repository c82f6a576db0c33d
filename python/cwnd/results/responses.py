"""Response times of requests on connections that clients opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from cwnd.results.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cwnd.results.data import Data

#: Metrics of response times that are quantiles: which.
QUANTILES = {"response_p50_s": 0.5, "response_p90_s": 0.9, "response_p99_s": 0.99}
#: The same of times to the last acknowledgement of the response at the server.
ACKED_QUANTILES = {"acked_p50_s": 0.5, "acked_p90_s": 0.9, "acked_p99_s": 0.99}
#: Metrics of these times.
_OF_ACKED = ("acked_mean_s", *ACKED_QUANTILES)
#: All metrics of requests.
COLUMNS = (
    *("requests", "given_up_ratio", "response_mean_s", *QUANTILES, "response_max_s"),
    *_OF_ACKED,
)

#: What came of requests at a time since they were sent: answered, still open when the run ended.
#: Those without an answer for ever, because their connection was given up, have no such time.
_COUNTS = ("answered", "open", "never")
#: What becomes of requests.
OUTCOMES = ("answered", "open", "rejected", "given-up")
#: Requests that are read at a time, about.
_BATCH = 4_000_000
#: Of the products of a million factors below one.
_ROUNDING = 1e-9


def metrics_of(run: Data, apart: Sequence[str] = ()) -> pl.DataFrame:
    """The metrics of requests, a row for each run and group or flow that has some.

    The mean and the largest response time are of the requests that were answered. Quantiles are of
    all: those of connections that were given up take longer than any other, and of those that were
    open when the run ended it is known that they take longer than until then (Kaplan & Meier 1958).
    A quantile among requests of which no answer is known is null. Times to the last acknowledgement
    are counted likewise; where not every request has a row they are null.

    Args:
        run: The result.
        apart: What has a row of its own in a run: nothing, `group`, or `group` and `flow_id`.
    """
    key = ("responses", *apart)
    if key not in run.derived:
        by = ["run_id", *apart]
        parts = [_metrics(survival(counts, by), by) for counts in counts_of(run, apart)]
        if not parts:
            run.derived[key] = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Float64))
            return run.derived[key]
        found = pl.concat(parts)
        acked = [
            _acked(survival(counts, by), by) for counts in counts_of(run, apart, time="acked_s")
        ]
        if acked:
            found = found.join(pl.concat(acked), on=by, how="left", maintain_order="left")
        else:
            found = found.with_columns(pl.lit(None, pl.Float64).alias(name) for name in _OF_ACKED)
        run.derived[key] = found
    return run.derived[key]


def counts_of(
    run: Data,
    apart: Sequence[str] = (),
    run_ids: Sequence[str] | None = None,
    time: Literal["response_s", "acked_s"] = "response_s",
) -> Iterator[pl.DataFrame]:
    """When requests were answered, in batches of whole runs; of these runs or of all.

    Columns: `run_id`, those that are `apart`, the time since the request was sent `time_s`, how
    many requests were answered then (`answered`), were open when the run ended (`open`) and were
    given up (`never`, at an infinite time), the sum of the response times `sum_s` and the largest
    `longest_s`. With `time="acked_s"` these are times to the last acknowledgement of the response,
    of runs in which every request has a row.
    """
    for ids in _batches(run, run_ids):
        sketched, rowed = ([], ids) if "flow_id" in apart else _without_rows(run, ids)
        if sketched and time == "response_s":
            yield _sketched(run, sketched, apart)
        if not rowed:
            continue
        requests = run.samples_of("requests", rowed)
        if time not in requests.collect_schema():
            continue
        took, outcome = pl.col(time).alias("took_s"), pl.col("outcome").cast(pl.String)
        rows = requests.select("run_id", *apart, "start_s", took, outcome)
        ends = run.runs.lazy().select("run_id", "duration_s")
        joined = rows.join(ends, on="run_id", maintain_order="left")
        counts = _counted(joined, ["run_id", *apart]).collect()
        if not counts.is_empty():
            yield counts


def _without_rows(run: Data, run_ids: list[str]) -> tuple[list[str], list[str]]:
    """Those of the runs in which not every request has a row, and the others."""
    column = "requests_without_row"
    if column not in run.runs.columns:
        return [], run_ids
    lacking = set(run.runs.filter(pl.col(column).fill_null(0) > 0)["run_id"].to_list())
    return [i for i in run_ids if i in lacking], [i for i in run_ids if i not in lacking]


def _sketched(run: Data, run_ids: list[str], apart: Sequence[str]) -> pl.DataFrame:
    """The counts of all requests of these runs, by the buckets that they are in."""
    rows = run.samples_of("sketches", run_ids).with_columns(pl.col("what").cast(pl.String))
    what = pl.col("what")
    answered, still_open = what == "answered", what == "open"
    middle = pl.min_horizontal((pl.col("from_s") + pl.col("to_s")) / 2, "longest_s")
    none = pl.lit(0, pl.UInt64)
    return (
        rows.filter(what.is_in(OUTCOMES))
        .select(
            *(pl.col(n).cast(pl.String) if n == "group" else n for n in ("run_id", *apart)),
            pl.when(answered | still_open).then(middle).otherwise(float("inf")).alias("time_s"),
            pl.when(answered).then("count").otherwise(none).alias("answered"),
            pl.when(still_open).then("count").otherwise(none).alias("open"),
            pl.when(answered | still_open).then(none).otherwise("count").alias("never"),
            pl.when(answered).then("sum_s").alias("sum_s"),
            pl.when(answered).then("longest_s").alias("longest_s"),
        )
        .collect()
    )


def _counted(rows: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    answered = pl.col("took_s").is_not_null()
    never = ~answered & pl.col("outcome").is_in(["rejected", "given-up"])
    time = (
        pl.when(answered)
        .then("took_s")
        .when(never)
        .then(float("inf"))
        .otherwise(pl.col("duration_s") - pl.col("start_s"))
    )
    return rows.select(
        *(pl.col(name).cast(pl.String) if name == "group" else name for name in by),
        time.alias("time_s"),
        answered.cast(pl.UInt64).alias("answered"),
        (~never & ~answered).cast(pl.UInt64).alias("open"),
        never.cast(pl.UInt64).alias("never"),
        pl.col("took_s").alias("sum_s"),
        pl.col("took_s").alias("longest_s"),
    )


def _batches(run: Data, run_ids: Sequence[str] | None) -> Iterator[list[str]]:
    """The runs that have requests, in batches."""
    runs = run.runs
    if run_ids is not None:
        runs = runs.filter(pl.col("run_id").cast(pl.String).is_in(list(run_ids)))
    ids = runs["run_id"].to_list()
    if "requests" not in runs.columns:
        # Written before runs said how many they have.
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
    """The counts in order of time, with the part of the requests that take longer, `longer`.

    It is that of Kaplan & Meier (1958): at each time the part of the requests that are known to
    take at least so long, and are answered then, is taken off. Without any that were open when the
    run ended it is the part of the requests whose response time is greater.
    """
    keys = list(by)
    # Without keys all rows belong together.
    own: list[Any] = keys or [pl.lit(0)]
    together = pl.sum_horizontal(_COUNTS).cast(pl.Int64)
    # Of equal times those that were answered come first.
    return (
        counts.sort(*keys, "time_s", "open", maintain_order=True)
        .with_columns(together.alias("together"))
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
        (pl.col("never").sum() / every).alias("given_up_ratio"),
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
    """The part of the requests that take longer than each of some times."""

    times_s: list[float]
    #: The mean over the seeds.
    means: list[float]
    #: Half the width of the 95 % interval of that mean at each time by itself, by Student's t;
    #: `None` with one seed.
    half_widths: list[float] | None


def distribution(of_seeds: Sequence[pl.DataFrame], times_s: Sequence[float]) -> Distribution:
    """The part of the requests that take longer than these times, over seeds.

    Args:
        of_seeds: For each seed the counts of `counts_of`, with what `survival` adds.
        times_s: Rising, s.
    """
    shares = [share_longer(seed, times_s) for seed in of_seeds]
    estimates = [Estimate.of(list(at_time)) for at_time in zip(*shares, strict=True)]
    means = [0.0 if each is None else each.mean for each in estimates]
    several = len(of_seeds) > 1
    widths = [0.0 if each is None else each.half_width or 0.0 for each in estimates]
    return Distribution(list(times_s), means, widths if several else None)


def share_longer(ordered: pl.DataFrame, times_s: Sequence[float]) -> list[float]:
    """The part of the requests of one run, from `survival`, that take longer than these times."""
    passed = ordered["time_s"].search_sorted(pl.Series(times_s, dtype=pl.Float64), side="right")
    longer = ordered["longer"]
    return [1.0 if count == 0 else float(longer[count - 1]) for count in passed]


def counts_of_times(times_s: pl.Series) -> pl.DataFrame:
    """The same counts of response times that are all known, s."""
    size = times_s.len()
    one, none = pl.repeat(1, size, dtype=pl.UInt64), pl.repeat(0, size, dtype=pl.UInt64)
    return pl.select(
        times_s.alias("time_s"),
        one.alias("answered"),
        none.alias("open"),
        none.alias("never"),
        times_s.alias("sum_s"),
        times_s.alias("longest_s"),
    )
