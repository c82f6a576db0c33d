"""Two results side by side: what differs in what was asked, and in what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.metrics import METRICS, groups
from cwnd.stats import Estimate, paired_difference, welch_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.results import Run


@dataclass(frozen=True)
class Difference:
    """One metric at one point of the sweep."""

    #: Labels of the axes that both results have.
    point: dict[str, str]
    metric: str
    before: Estimate
    after: Estimate
    #: after − before; seed by seed where all seeds are the same, else by Welch's method.
    difference: Estimate
    paired: bool

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference leaves zero out; never so with one seed."""
        half = self.difference.half_width
        return half is not None and abs(self.difference.mean) > half

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {**asdict(self), "clear": self.clear}


@dataclass(frozen=True)
class Change:
    """A setting that differs between the two scenarios."""

    path: str
    before: object
    after: object


@dataclass(frozen=True)
class Comparison:
    """What `cwnd compare` shows."""

    before: str
    after: str
    changes: list[Change]
    differences: list[Difference]
    #: Points of the sweep that only one of them has.
    only_before: list[dict[str, str]]
    only_after: list[dict[str, str]]
    #: The records of both are the same, byte for byte.
    identical: bool

    def to_json(self) -> dict[str, Any]:
        """As data."""
        data = asdict(self)
        data["differences"] = [difference.to_json() for difference in self.differences]
        return data


def compare(
    before: Run, after: Run, metrics: Sequence[str] = tuple(METRICS), link: str | None = None
) -> Comparison:
    """Compares two results at the points of the sweep that they share."""
    names = [axis.name for axis in before.axes if axis.name in {a.name for a in after.axes}]
    old, new = _points(before, names, link), _points(after, names, link)
    shared = [point for point in old if point in new]
    if not shared:
        raise InputError(
            "the two results share no point of a sweep, so there is nothing to compare"
        )
    differences = [
        difference
        for point in shared
        for name in metrics
        if (difference := _difference(dict(point), name, old[point], new[point])) is not None
    ]
    changes = {
        change.path: change
        for point in shared
        for change in _changes(before.resolved[_row(old[point])], after.resolved[_row(new[point])])
    }
    return Comparison(
        before=before.name,
        after=after.name,
        changes=list(changes.values()),
        differences=differences,
        only_before=[dict(point) for point in old if point not in new],
        only_after=[dict(point) for point in new if point not in old],
        identical=before.manifest.records_sha256 == after.manifest.records_sha256,
    )


_Point = tuple[tuple[str, str], ...]


def _points(run: Run, names: list[str], link: str | None) -> dict[_Point, pl.DataFrame]:
    columns = {axis.name: axis.column for axis in run.axes}
    by = [columns[name] for name in names]
    rows = run.per_run(link).with_row_index("row")
    points: dict[_Point, pl.DataFrame] = {}
    for key, part in groups(rows, by):
        if part["seed"].n_unique() != part.height:
            raise InputError(
                f"{run.name}: an axis that the other result does not have varies within a point;"
                " compare results whose sweeps have the same axes"
            )
        labels = [str(label) for label in key.values()]
        points[tuple(zip(names, labels, strict=True))] = part
    return points


def _row(part: pl.DataFrame) -> int:
    return int(part["row"][0])


def _difference(
    point: dict[str, str], name: str, before: pl.DataFrame, after: pl.DataFrame
) -> Difference | None:
    both = [
        part.select("seed", pl.col(name).cast(pl.Float64)).drop_nulls() for part in (before, after)
    ]
    old, new = (part[name].to_list() for part in both)
    first, second = Estimate.of(old), Estimate.of(new)
    if first is None or second is None:
        return None
    joined = both[0].join(both[1], on="seed", maintain_order="left")
    paired = joined.height == both[0].height == both[1].height
    if paired:
        difference = paired_difference(joined[name].to_list(), joined[f"{name}_right"].to_list())
    else:
        difference = welch_difference(old, new)
    assert difference is not None
    return Difference(point, name, first, second, difference, paired)


def _changes(before: str, after: str) -> list[Change]:
    old = _flat(_core.read_toml(before, name="before"))
    new = _flat(_core.read_toml(after, name="after"))
    # These name the run and do not decide it.
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
