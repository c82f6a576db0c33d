"""Several results as one, with a further axis."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import polars as pl

from cwnd.errors import InputError
from cwnd.results.data import LazyTables, Resolved
from cwnd.results.manifest import Axis, sha256
from cwnd.results.metrics import main_link
from cwnd.results.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Name of the axis whose labels are the names of the results.
RESULT = "result"


def merged(runs: Mapping[str, Run], link: str | None = None) -> Run:
    """Joins results into one, for figures and tables: `result` is the last of its axes.

    Tables of samples are left out, but for those of delays, requests and unsampled flows.

    Args:
        runs: Results by name, at least one.
        link: Link that is kept, each result's busiest if not given; it has the name that it has in
            the first result.

    Raises:
        InputError: An axis that not all of them have varies, or one is called `result`.
    """
    results = list(runs.values())
    axes = _axes(results)
    kept = {name for axis in axes for name in (axis.column, axis.value_column)}
    dropped = {name for run in results for name in run.key_columns[2:]} - kept
    links = [link if link is not None else main_link(run) for run in results]

    def joined(table: Callable[[int, Run], pl.LazyFrame]) -> pl.LazyFrame:
        frames = [
            table(index, run)
            .drop(dropped, strict=False)
            .with_columns(
                pl.format("{}-{}", pl.lit(index), "run_id").alias("run_id"),
                pl.lit(name).alias(RESULT),
            )
            for index, (name, run) in enumerate(runs.items())
        ]
        return pl.concat(frames, how="diagonal_relaxed")

    def link_of(index: int, run: Run) -> pl.LazyFrame:
        rows = run.links.lazy().filter(pl.col("link").cast(pl.String) == links[index])
        return rows.with_columns(pl.lit(links[0], pl.String).alias("link"))

    manifest = replace(
        results[0].manifest,
        name=", ".join(runs),
        axes=[*axes, Axis(RESULT, RESULT, None, None, list(runs))],
        runs=sum(run.manifest.runs for run in results),
        seeds=list(dict.fromkeys(seed for run in results for seed in run.manifest.seeds)),
        activity=dict(sum((Counter(run.manifest.activity) for run in results), Counter())),
        records_sha256=sha256([run.manifest.records_sha256 for run in results]),
    )
    samples = ("delays", "requests", "sketches", "unrecorded")
    names = [name for name in samples if name in results[0].samples]
    return Run(
        manifest=manifest,
        source=results[0].source,
        runs=joined(lambda _, run: run.runs.lazy()).collect(),
        flows=joined(lambda _, run: run.flows.lazy()).collect(),
        links=joined(link_of).collect(),
        samples=LazyTables(names, lambda name: joined(lambda _, run: run.samples[name])),
        resolved=_resolved(results),
    )


def _axes(results: Sequence[Run]) -> list[Axis]:
    """Axes that all results have, with the labels of all."""
    for run in results:
        for axis in run.axes:
            if axis.name == RESULT:
                raise InputError(
                    f"{run.name}: rename its axis `{RESULT}`, as results are an axis here"
                )
            shared = all(axis.name in {other.name for other in each.axes} for each in results)
            if len(axis.labels) > 1 and not shared:
                raise InputError(
                    f"{run.name}: its axis `{axis.name}` varies, and another result lacks it"
                )
    found = []
    for axis in results[0].axes:
        same = [each for run in results for each in run.axes if each.name == axis.name]
        if len(same) < len(results):
            continue
        labels = list(dict.fromkeys(label for each in same for label in each.labels))
        numbers = len({(each.value_column, each.unit) for each in same}) == 1
        found.append(
            replace(axis, labels=labels, over={})
            if numbers
            else replace(axis, labels=labels, over={}, value_column=None, unit=None)
        )
    return found


def _resolved(results: Sequence[Run]) -> Resolved:
    """Resolved scenarios of all results, one after the other."""
    ends = list(accumulate(len(run.resolved) for run in results))

    def one(index: int) -> str:
        which = next(n for n, end in enumerate(ends) if index < end)
        return results[which].resolved[index - ends[which]]

    return Resolved(ends[-1], one)
