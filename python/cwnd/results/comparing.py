"""Comparison of two results: differences of their scenarios and of their metrics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cwnd import _core
from cwnd.errors import InputError
from cwnd.results.metrics import ALL, METRICS, groups, known_group
from cwnd.results.stats import Estimate, change_of
from cwnd.results.summaries import all_and_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from cwnd.results.conditions import Condition, Verdict
    from cwnd.results.run import Run

#: Labels of axes, each with the name of its axis.
Point: TypeAlias = "tuple[tuple[str, str], ...]"


@dataclass(frozen=True)
class Difference:
    """Difference of one metric between two results at a point of the sweep, with its interval."""

    #: Labels of the axes that both results have.
    point: dict[str, str]
    #: Name of the group of flows; `*` for all flows together.
    group: str
    metric: str
    before: Estimate
    after: Estimate
    #: `after` − `before`; paired by seed if `paired`, else by Welch's method.
    difference: Estimate
    paired: bool

    @property
    def clear(self) -> bool:
        """`True` if the interval of the difference excludes zero; `False` with one seed."""
        half = self.difference.half_width
        return half is not None and abs(self.difference.mean) > half

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as a JSON object."""
        return {**asdict(self), "clear": self.clear}


@dataclass(frozen=True)
class Change:
    """A setting that differs between the two scenarios."""

    path: str
    before: object
    after: object


@dataclass(frozen=True)
class Comparison:
    """Result of comparing two results, as `cwnd compare` shows it."""

    before: str
    after: str
    changes: list[Change]
    differences: list[Difference]
    #: Points of the sweep that only one of the results has.
    only_before: list[dict[str, str]]
    only_after: list[dict[str, str]]
    #: Groups of flows that only one of the results has, if there are several groups.
    groups_only_before: list[str]
    groups_only_after: list[str]
    #: Reference group of `goodput_ratio`.
    relative_to: str | None
    #: `True` if the records of both are equal, byte for byte.
    identical: bool
    #: Outcomes of the conditions.
    verdicts: list[Verdict]

    def to_json(self) -> dict[str, Any]:
        """Returns the comparison as a JSON object."""
        data = asdict(self)
        for name, items in (("differences", self.differences), ("verdicts", self.verdicts)):
            data[name] = [item.to_json() for item in items]
        return data


def compare(
    before: Run,
    after: Run,
    metrics: Sequence[str] = tuple(METRICS),
    link: str | None = None,
    group: str | None = None,
    *,
    relative_to: str | None = None,
    conditions: Sequence[Condition] = (),
) -> Comparison:
    """Compares two results at the points of the sweep that they share.

    It compares all flows together. If one of the results has several groups of flows, each group
    that both have is compared, too, unless one is chosen.

    Args:
        before: A result.
        after: The result that is compared with it.
        metrics: Columns of the metrics.
        link: Link whose queue is compared; the busiest if not given.
        group: Only this group of flows; `*` for all flows together.
        relative_to: Reference group of `goodput_ratio`; the first that both have if not given.
        conditions: Changes that are regressions, judged at each point and for each of these groups.

    Raises:
        InputError: They share no point, there is no such link or group in one of them, an axis that
            only one of them has varies within a point, or there is no value to judge.
    """
    names = [axis.name for axis in before.axes if axis.name in {a.name for a in after.axes}]
    several = len(before.groups) > 1 or len(after.groups) > 1
    both = [name for name in before.groups if name in after.groups]
    for run in (before, after):
        for asked in (group, relative_to):
            known_group(run, asked)
    shown = [ALL, *(both if several else [])] if group is None else [group]
    compared = relative_to if relative_to is not None else next(iter(both), None)
    wanted = list(dict.fromkeys([*metrics, *(condition.metric for condition in conditions)]))
    old, new = (_points(run, names, link, compared, wanted) for run in (before, after))
    shared = [point for point in old if point in new]
    if not shared:
        raise InputError(
            f"{before.name} and {after.name} share no point of a sweep: nothing can be compared"
        )
    differences = [
        difference
        for point in shared
        for part in shown
        for name in metrics
        if (
            difference := difference_at(
                dict(point), part, name, old[point].of(part, name), new[point].of(part, name)
            )
        )
        is not None
    ]
    changes = {
        change.path: change
        for point in shared
        for change in _changes(before.resolved[old[point].row], after.resolved[new[point].row])
    }
    return Comparison(
        before=before.name,
        after=after.name,
        changes=list(changes.values()),
        differences=differences,
        only_before=[dict(point) for point in old if point not in new],
        only_after=[dict(point) for point in new if point not in old],
        groups_only_before=[name for name in before.groups if several and name not in both],
        groups_only_after=[name for name in after.groups if several and name not in both],
        relative_to=compared,
        identical=before.manifest.records_sha256 == after.manifest.records_sha256,
        verdicts=[
            verdict
            for condition in conditions
            for verdict in _verdicts(condition, [(p, old[p], new[p]) for p in shared], shown)
        ],
    )


def _verdicts(
    condition: Condition, points: list[tuple[Point, _Rows, _Rows]], groups: list[str]
) -> list[Verdict]:
    """Judges a condition at these points, for each group with values in the first result."""
    found = []
    for point, old, new in points:
        for group in groups:
            before, after = (rows.of(group, condition.metric) for rows in (old, new))
            if not before:
                continue
            # Seeds without a value, such as transfers that never completed, would look good.
            lost = len(after) < new.runs(group) and len(before) == old.runs(group)
            found.append(condition.judge(dict(point), group, before, {} if lost else after))
    if not found:
        raise InputError(
            f"`{condition.text}`: the first result has no value of {condition.metric} to compare"
        )
    return found


def by_point(
    run: Run, rows: pl.DataFrame, names: Sequence[str]
) -> dict[Point, dict[str, pl.DataFrame]]:
    """Splits rows by the point on these axes and, at each point, by the group of flows.

    Args:
        run: The result.
        rows: A row for each run and group, with the columns of the axes and `group`.
        names: The axes.
    """
    columns = {axis.name: axis.column for axis in run.axes}
    found: dict[Point, dict[str, pl.DataFrame]] = {}
    for key, part in groups(rows, [*(columns[name] for name in names), "group"]):
        point = tuple((name, str(key[columns[name]])) for name in names)
        found.setdefault(point, {})[str(key["group"])] = part
    return found


def of_seeds(seeds: Iterable[int], values: Iterable[float | None]) -> dict[int, float]:
    """Maps seeds to the values of a metric; null values are left out."""
    pairs = zip(seeds, values, strict=True)
    return {seed: float(value) for seed, value in pairs if value is not None}


def difference_at(
    point: dict[str, str],
    group: str,
    metric: str,
    before: Mapping[int, float],
    after: Mapping[int, float],
    *,
    paired: bool | None = None,
) -> Difference | None:
    """Compares a metric of a group of flows at a point; `None` where one side has no value.

    Args:
        point: Labels of the axes.
        group: The group of flows, or `*`.
        metric: Column of the metric.
        before: Values by seed.
        after: Values by seed that are compared with them.
        paired: Pair the values by seed; by default if both have the same seeds.
    """
    first, second = (Estimate.of(list(values.values())) for values in (before, after))
    if first is None or second is None:
        return None
    difference, paired = change_of(before, after, paired=paired)
    return Difference(point, group, metric, first, second, difference, paired)


@dataclass(frozen=True)
class _Rows:
    """Rows of a result at a point of the sweep: one for each run and group of flows."""

    #: Index in the result of the point's first run.
    row: int
    #: Values by group and column, as lists: thousands of look-ups in a data frame are much slower.
    columns: dict[str, dict[str, list[Any]]]

    def of(self, group: str, metric: str) -> dict[int, float]:
        """Returns the values of a metric by seed, of a group or of all flows."""
        columns = self.columns.get(group, {"seed": [], metric: []})
        return of_seeds(columns["seed"], columns[metric])

    def runs(self, group: str) -> int:
        """Returns the number of runs."""
        return len(self.columns.get(group, {"seed": []})["seed"])


def _points(
    run: Run,
    names: list[str],
    link: str | None,
    relative_to: str | None,
    metrics: Sequence[str],
) -> dict[Point, _Rows]:
    # Rows of all flows come first, in the order of the runs.
    rows = all_and_groups(run, link, relative_to=relative_to).with_row_index("row")
    points: dict[Point, _Rows] = {}
    for point, parts in by_point(run, rows, names).items():
        if parts[ALL]["seed"].n_unique() != parts[ALL].height:
            varied = [a.name for a in run.axes if len(a.labels) > 1 and a.name not in names]
            raise InputError(
                f"{run.name}: its axis {', '.join(varied)} varies, and another result lacks it;"
                " compare results whose sweeps have the same axes"
            )
        points[point] = _Rows(
            int(parts[ALL]["row"][0]),
            {
                group: part.select("seed", *metrics).to_dict(as_series=False)
                for group, part in parts.items()
            },
        )
    return points


def _changes(before: str, after: str) -> list[Change]:
    old = _flat(_core.read_toml(before, name="before"))
    new = _flat(_core.read_toml(after, name="after"))
    # Names and seed are no settings to compare.
    for path in ("name", "description", "run.seed"):
        old.pop(path, None)
        new.pop(path, None)
    return [
        Change(path, old.get(path), new.get(path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    ]


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
