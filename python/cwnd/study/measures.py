"""Measures: numbers behind claims, each computed run by run from the results of a figure.

A function takes the results by figure, and the arguments in `study.toml`: `figure` names the
result, `of` the point of the sweep (axis = label), `metric` a metric by a prefix of its column. It
returns one value for each seed unless stated otherwise, in the metric's unit for people.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from cwnd.errors import InputError
from cwnd.models import smallest_full_buffer
from cwnd.models import utilisation as sawtooth
from cwnd.results import metric as find_metric
from cwnd.study.drawing import labels, run_axis
from cwnd.study.toml_table import meant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.results import Run

Point: TypeAlias = "Mapping[str, str]"
Results: TypeAlias = "Mapping[str, Run]"
Measure: TypeAlias = "Callable[..., list[float]]"


def measure(name: str, own: Mapping[str, Measure] = {}) -> Measure:
    """Finds a measure by its name.

    Args:
        name: Name of the measure.
        own: `MEASURES` of the study.

    Raises:
        InputError: There is none.
    """
    found = {**MEASURES, **own}
    if name not in found:
        raise InputError(
            f"there is no measure `{name}`{meant(name, found)}; there are {', '.join(found)};"
            " MEASURES of measures.py adds others"
        )
    return found[name]


def differences(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Differences of two lists of the same seeds, `above` − `below`: what an order judges."""
    return [a - b for a, b in zip(above, below, strict=True)]


def as_numbers(name: str, values: Any) -> list[float]:
    """Checks that a measure returned a list of numbers.

    Raises:
        InputError: It returned something else.
    """
    if isinstance(values, list | tuple) and all(isinstance(each, int | float) for each in values):
        return list(values)
    raise InputError(
        f"measure `{name}` returns a list of numbers, one for each seed, not {values!r:.80}"
    )


def at(run: Run, rows: pl.DataFrame, point: Point, **only: str | None) -> pl.DataFrame:
    """Selects the rows at a point of the sweep, given by names of axes.

    Args:
        run: The run.
        rows: Rows of one of its tables.
        point: Labels of axes.
        only: Values of columns, such as `group` or `link`; `None` keeps all.

    Raises:
        InputError: There is no such axis.
    """
    values = {column(run, name): label for name, label in point.items()} | only
    for name, value in values.items():
        if value is not None:
            rows = rows.filter(pl.col(name).cast(pl.String) == value)
    return rows


def column(run: Run, axis: str) -> str:
    """Finds the column of an axis.

    Raises:
        InputError: There is no such axis.
    """
    return run_axis(run, axis).column


def gain(results: Results, figure: str, metric: str, of: Point, over: Point) -> list[float]:
    """Relative difference in per cent of a metric at `of` from that at `over`, seed by seed."""
    after, before = _pairs(results[figure], metric, of, over)
    return [100 * (a / b - 1) for a, b in zip(after, before, strict=True)]


def least(results: Results, figure: str, metric: str, of: Point, along: str) -> list[float]:
    """Smallest value of a metric along an axis, for each seed."""
    return [min(row) for row in _along(results[figure], metric, of, along)]


def most(results: Results, figure: str, metric: str, of: Point, along: str) -> list[float]:
    """Largest value of a metric along an axis, for each seed."""
    return [max(row) for row in _along(results[figure], metric, of, along)]


def least_step(results: Results, figure: str, metric: str, of: Point, along: str) -> list[float]:
    """Smallest increase of a metric from one label of an axis to the next, for each seed."""
    return [
        min(after - before for before, after in pairwise(row))
        for row in _along(results[figure], metric, of, along)
    ]


def largest_move(results: Results, figure: str, metric: str, along: str) -> list[float]:
    """Largest range of a metric along an axis, of all points of the other axes, by seed."""
    run = results[figure]
    measured = _metric(metric).column
    others = [name for name in run.axis_columns if name != column(run, along)]
    moves = (
        run.per_run()
        .group_by("seed", *others, maintain_order=True)
        .agg((pl.col(measured).max() - pl.col(measured).min()).alias("move"))
        .group_by("seed", maintain_order=True)
        .agg(pl.col("move").max())
    )
    return [value * _metric(metric).scale for value in moves["move"]]


def distance_from_sawtooth(results: Results, figure: str, buffer: str, beta: str) -> list[float]:
    """Largest distance of utilisation from the closed form, in percentage points.

    `buffer` and `beta` name the columns with the buffer in BDP and with β (ABE § II-A).
    """
    rows = results[figure].per_run()
    far: dict[int, float] = {}
    for row in rows.iter_rows(named=True):
        distance = 100 * abs(row["utilisation"] - sawtooth(row[beta], row[buffer]))
        far[row["seed"]] = max(distance, far.get(row["seed"], 0.0))
    return list(far.values())


def utilisation_where_full(results: Results, figure: str, buffer: str, beta: str) -> list[float]:
    """Least utilisation in per cent of the runs with β ≥ BDP/(b + BDP) (ABE eq. 2), by seed."""
    rows = results[figure].per_run()
    least: dict[int, float] = {}
    for row in rows.iter_rows(named=True):
        if row[buffer] >= smallest_full_buffer(row[beta]):
            used = 100 * row["utilisation"]
            least[row["seed"]] = min(used, least.get(row["seed"], used))
    return list(least.values())


def median_time_ratio(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Median over all cases of T at `of` ÷ T at `over`, for each seed (ABE § IV-C).

    T is the time from the start of the last flow until the fairness index at which the run ends. A
    run that ends before it reaches the index has no T; its time from that start on counts.
    """
    return _ratios_by_seed(results[figure], of, over, pl.col("ratio").median())


def share_faster(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Share of cases, in per cent, that converge sooner at `of` than at `over`, by seed."""
    return _ratios_by_seed(results[figure], of, over, 100 * (pl.col("ratio") < 1).mean())


def fastest(results: Results, figure: str, of: Point, over: Point, along: str) -> list[float]:
    """Value along an axis at which most cases converge sooner than at `over`, for each seed."""
    run = results[figure]
    values = [label for label in labels(run, along) if label != over[along]]
    shares = [share_faster(results, figure, {**of, along: label}, over) for label in values]
    return [float(values[row.index(max(row))]) for row in zip(*shares, strict=True)]


def median_by_chance(
    results: Results, figure: str, of: Point, over: Point, most: float
) -> list[float]:
    """Largest median over all cases of T ÷ T with both at `over`, over all pairs of seeds.

    This is the deviation from 1 that chance alone causes, limited to `most`. The result is one
    value.
    """
    run = results[figure]
    times = _at(run, convergence_s(run), {**of, **over})
    cases = [name for name in run.axis_columns if name not in {column(run, a) for a in over}]
    pairs = (
        times.join(times, on=cases, suffix="_of_other")
        .filter(pl.col("seed") != pl.col("seed_of_other"))
        .group_by("seed", "seed_of_other")
        .agg((pl.col("time_s") / pl.col("time_s_of_other")).median().alias("median"))
    )
    return [min(most, float(pairs["median"].max()))]  # type: ignore[arg-type]


def group_ratio(results: Results, figure: str, of: Point, group: str, to: str) -> list[float]:
    """Goodput of a flow of one group ÷ that of another, averaged over the other axes, by seed."""
    run = results[figure]
    flows = _at(run, run.flows.with_columns(pl.col("group").cast(pl.String)), of)
    mean = (
        flows.group_by("run_id", "seed", "group", maintain_order=True)
        .agg(pl.col("goodput_bit_s").mean())
        .pivot(on="group", index=["run_id", "seed"], values="goodput_bit_s")
        .with_columns((pl.col(group) / pl.col(to)).alias("ratio"))
    )
    return mean.group_by("seed", maintain_order=True).agg(pl.col("ratio").mean())["ratio"].to_list()


def convergence_s(run: Run) -> pl.DataFrame:
    """Computes for each run `time_s`, the duration of the flow that starts last."""
    last = (
        run.flows.sort("start_s")
        .group_by("run_id", maintain_order=True)
        .agg(pl.col("duration_s").last().alias("time_s"))
    )
    return run.runs.select("run_id", *run.key_columns).join(last, on="run_id")


def time_ratios(run: Run, of: Point, over: Point) -> pl.DataFrame:
    """Computes T at `of` ÷ T at `over` for each case; `over` replaces axes of `of`."""
    times = convergence_s(run)
    after, before = _at(run, times, of), _at(run, times, {**of, **over})
    same = ["seed", *(c for c in run.axis_columns if c not in {column(run, name) for name in over})]
    joined = after.join(before.select(*same, base="time_s"), on=same)
    return joined.with_columns((pl.col("time_s") / pl.col("base")).alias("ratio"))


def _ratios_by_seed(run: Run, of: Point, over: Point, what: pl.Expr) -> list[float]:
    ratios = time_ratios(run, of, over)
    by_seed = ratios.group_by("seed", maintain_order=True).agg(what.alias("value"))
    return by_seed.sort("seed")["value"].to_list()


def change(results: Results, figure: str, metric: str, **points: Point) -> list[float]:
    """Difference of a metric at `of` from that at `from`, seed by seed."""
    return differences(*_pairs(results[figure], metric, points["of"], points["from"]))


def _pairs(run: Run, metric: str, of: Point, over: Point) -> tuple[list[float], list[float]]:
    """Values of a metric at two points, of the seeds that both have."""
    after, before = _by_seed(run, metric, of), _by_seed(run, metric, over)
    seeds = _common(after, before)
    return [after[seed] for seed in seeds], [before[seed] for seed in seeds]


def gain_beyond(
    results: Results, figure: str, metric: str, *, of: Point, over: Point, beyond: Point
) -> list[float]:
    """Gain of `of` over `over`, minus that gain with axes in `beyond` replaced; seed by seed."""
    there = gain(results, figure, metric, {**of, **beyond}, {**over, **beyond})
    return differences(gain(results, figure, metric, of, over), there)


def change_of_rounds_below_bdp(
    results: Results, figure: str, share: float, **points: Point
) -> list[float]:
    """Difference of the round trips with a window below a share of the BDP, `of` minus `from`.

    They are counted from the first window of at least ssthresh to the end, in base round trips.
    """
    run = results[figure]
    of, other = (_rounds_below_bdp(run, points[key], share) for key in ("of", "from"))
    seeds = _common(of, other)
    return [of[seed] - other[seed] for seed in seeds]


def _rounds_below_bdp(run: Run, point: Point, share: float) -> dict[int, float]:
    columns = ["run_id", "rate_bit_s"]
    rate = run.links.filter(pl.col("link") == "bottleneck").select(columns)
    base = run.flows.select("run_id", "rtt_base_us")
    per_packet = run.flows.select(
        "run_id",
        wire=pl.col("throughput_bit_s") * pl.col("duration_s") / 8 / pl.col("segments_sent"),
    )
    rows = (
        _at(run, run.series, point)
        .join(rate, on="run_id")
        .join(base, on="run_id")
        .join(per_packet, on="run_id")
        .with_columns(bdp=pl.col("rate_bit_s") * pl.col("rtt_base_us") / 8e6 / pl.col("wire"))
    )
    out = pl.col("snd_cwnd_pkts") >= pl.col("snd_ssthresh_pkts")
    after = rows.filter(out.cum_max().over("run_id"))
    step = after.select(pl.col("time_s").diff().median()).item()
    below = after.group_by("seed", maintain_order=True).agg(
        (pl.col("snd_cwnd_pkts") < share * pl.col("bdp")).sum().alias("samples"),
        pl.col("rtt_base_us").first(),
    )
    return {
        row["seed"]: row["samples"] * step / (row["rtt_base_us"] / 1e6)
        for row in below.iter_rows(named=True)
    }


def _metric(name: str) -> Any:
    # A prefix such as `goodput` or `qdelay_p50` identifies one column.
    return find_metric(name)


def _by_seed(run: Run, metric: str, point: Point) -> dict[int, float]:
    shown = _metric(metric)
    rows = _at(run, run.per_run(), point)
    if rows.height != rows["seed"].n_unique():
        raise InputError(f"{run.name}: the point {dict(point)} is more than one run for each seed")
    return {
        seed: value * shown.scale for seed, value in rows.select("seed", shown.column).iter_rows()
    }


def _along(run: Run, metric: str, point: Point, along: str) -> list[list[float]]:
    columns = [_by_seed(run, metric, {**point, along: label}) for label in labels(run, along)]
    return [[values[seed] for values in columns] for seed in columns[0]]


def _at(run: Run, rows: pl.DataFrame, point: Point) -> pl.DataFrame:
    """Selects the rows at a point of the sweep.

    Raises:
        InputError: There are none.
    """
    rows = at(run, rows, point)
    if rows.is_empty():
        raise InputError(f"{run.name}: no run at {dict(point)}")
    return rows


def _common(a: Mapping[int, float], b: Mapping[int, float]) -> Sequence[int]:
    return [seed for seed in a if seed in b]


#: All measures, by their names in `study.toml`.
MEASURES: dict[str, Measure] = {
    function.__name__: function
    for function in (
        gain,
        least,
        most,
        least_step,
        largest_move,
        distance_from_sawtooth,
        utilisation_where_full,
        median_time_ratio,
        median_by_chance,
        share_faster,
        fastest,
        group_ratio,
        change,
        gain_beyond,
        change_of_rounds_below_bdp,
    )
}
