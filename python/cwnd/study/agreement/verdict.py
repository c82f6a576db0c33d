"""Comparison of two results of one scenario: rows of metrics, gains, tolerances and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from cwnd.errors import InputError
from cwnd.results import (
    ALL,
    Estimate,
    all_and_groups,
    by_point,
    difference_at,
    known_group,
    of_seeds,
    welch,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from cwnd.results import Axis, Point, Run

#: Deciding metric, and tolerance of Linux relative to the simulator's value.
GOODPUT, TOLERANCE = "goodput_bit_s", 0.10
#: Deciding metric if all flows are finite transfers, whose goodput follows from their arrivals.
COMPLETION = "fct_s"
#: Metric of timeouts, its relative tolerance, and the absolute one per run.
TIMEOUTS, TIMEOUTS_TOLERANCE, TIMEOUTS_LEAST = "rto_count", 0.25, 1.0
#: Fraction of the points that must be within the tolerance.
SHARE = 0.95
#: Tolerance of the gain of an arm over its base, in percentage points.
GAIN_TOLERANCE = 5.0
#: Separator of a base's label and the additions of an arm, as in "Reno+ABE".
ARM_SEPARATOR = "+"


@dataclass(frozen=True)
class Row:
    """One metric of a group at a point of the sweep, in the simulator and on Linux."""

    point: dict[str, str]
    #: Name of the group of flows; `*` for all flows together.
    group: str
    metric: str
    simulator: Estimate
    linux: Estimate
    #: Linux − simulator, by Welch's method.
    difference: Estimate
    #: Tolerance relative to the simulator's value; `None` for metrics that do not decide.
    tolerance: float | None
    #: Absolute tolerance, which applies if it is larger.
    least: float = 0.0

    @property
    def relative(self) -> float | None:
        """Difference relative to the simulator's value; `None` if that is zero."""
        return self.difference.mean / self.simulator.mean if self.simulator.mean else None

    @property
    def holds(self) -> bool | None:
        """`True` if the difference is within the tolerance; `None` without one."""
        return None if self.allowed is None else abs(self.difference.mean) <= self.allowed

    @property
    def is_decided(self) -> bool:
        """`True` if the half-width of the interval is at most the tolerance, or there is none."""
        half_width = self.difference.half_width
        if self.allowed is None:
            return True
        return half_width is not None and half_width <= self.allowed

    @property
    def allowed(self) -> float | None:
        """Allowed absolute difference; `None` for metrics that do not decide."""
        if self.tolerance is None:
            return None
        return max(self.tolerance * abs(self.simulator.mean), self.least)


@dataclass(frozen=True)
class Gain:
    """Gain in goodput of an arm over its base, in percent, in the simulator and on Linux."""

    #: Point of the sweep without the axis of the arms.
    point: dict[str, str]
    #: Name of the group of flows; `*` for all flows together.
    group: str
    #: Axis of the arms.
    axis: str
    #: Labels of the base, such as "Reno", and of the arm, such as "Reno+ABE".
    base: str
    arm: str
    simulator: Estimate
    linux: Estimate
    #: Linux − simulator in percentage points, by Welch's method.
    difference: Estimate

    @property
    def additions(self) -> str:
        """Additions of the arm to its base, such as "ABE"."""
        return self.arm.removeprefix(self.base + ARM_SEPARATOR)

    @property
    def holds(self) -> bool:
        """`True` if the difference is within the tolerance."""
        return abs(self.difference.mean) <= GAIN_TOLERANCE

    @property
    def is_decided(self) -> bool:
        """`True` if the half-width of the difference's interval is at most the tolerance."""
        half_width = self.difference.half_width
        return half_width is not None and half_width <= GAIN_TOLERANCE


@dataclass(frozen=True)
class Agreement:
    """Result of comparing simulator and Linux."""

    name: str
    rows: list[Row]
    gains: list[Gain]
    #: Facts about the runs on Linux: kernel, settings, calibration, validity.
    world: dict[str, Any]
    directory: Path
    #: Comparison of the points that were run more often, with all of their runs.
    repeated: Agreement | None = None

    @property
    def grouped(self) -> bool:
        """`True` if groups of flows are compared, not only all flows together."""
        return any(row.group != ALL for row in self.rows)

    @property
    def deciding(self) -> list[Row]:
        """Rows of goodput or completion time, each with all runs of its point."""
        return [row for row in self._with_tolerance if row.metric != TIMEOUTS]

    @property
    def deciding_timeouts(self) -> list[Row]:
        """Rows of timeouts, each with all runs of its point."""
        return [row for row in self._with_tolerance if row.metric == TIMEOUTS]

    @property
    def _with_tolerance(self) -> list[Row]:
        return [row for row in self._with_all_runs if row.tolerance is not None]

    @property
    def _with_all_runs(self) -> list[Row]:
        """Rows, each with all runs of its point."""
        again = {_of(row): row for row in self.repeated.rows} if self.repeated else {}
        return [again.get(_of(row), row) for row in self.rows]

    def of_metrics(self, columns: Collection[str]) -> list[Row]:
        """Rows of these metrics, each with all runs of its point.

        Raises:
            InputError: The agreement has no such metric.
        """
        known = list(dict.fromkeys(row.metric for row in self.rows))
        for column in columns:
            if column not in known:
                raise InputError(
                    f"{self.directory}: `{column}` was not compared; there are {', '.join(known)}"
                )
        return [row for row in self._with_all_runs if row.metric in columns]

    @property
    def deciding_gains(self) -> list[Gain]:
        """Gains, each with all runs of its points."""
        again = {_of(gain): gain for gain in self.repeated.gains} if self.repeated else {}
        return [again.get(_of(gain), gain) for gain in self.gains]

    @property
    def share(self) -> float:
        """Fraction of the points whose goodput or completion time is within its tolerance.

        Each group counts as a point.
        """
        return _share(self.deciding) or 0.0

    @property
    def timeouts_share(self) -> float | None:
        """Fraction of the points whose timeouts are within tolerance; `None` if unknown."""
        return _share(self.deciding_timeouts)

    @property
    def holds(self) -> bool:
        """`True` if the metrics agree at `SHARE` of points, all gains agree, all runs are valid.

        The metrics are goodput or completion time, and timeouts.

        If there are several groups, those of each are tested, too: flows that fill a link together
        have the right sum however wrong their shares are.
        """
        return (
            self.share >= SHARE
            and (self.timeouts_share is None or self.timeouts_share >= SHARE)
            and all(gain.holds for gain in self.deciding_gains)
            and not self.world.get("invalid_runs")
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the agreement as a JSON object."""
        return {
            "name": self.name,
            "agree": self.holds,
            "share_within_tolerance": self.share,
            "share_of_timeouts_within_tolerance": self.timeouts_share,
            "world": self.world,
            **_tables(self),
            "repeated": None if self.repeated is None else _tables(self.repeated),
        }


def _tables(found: Agreement) -> dict[str, Any]:
    return {
        "rows": [
            {**asdict(row), "relative": row.relative, "holds": row.holds} for row in found.rows
        ],
        "gains": [{**asdict(gain), "holds": gain.holds} for gain in found.gains],
    }


def _share(rows: list[Row]) -> float | None:
    return sum(bool(row.holds) for row in rows) / len(rows) if rows else None


def _of(what: Row | Gain) -> tuple[object, ...]:
    number = (what.metric,) if isinstance(what, Row) else (what.axis, what.base, what.arm)
    return (*what.point.items(), what.group, *number)


#: Metrics to compare, in the order of tables.
COMPARED = (
    "goodput_bit_s",
    "goodput_share",
    "fct_s",
    "qdelay_mean_us",
    "qdelay_p50_us",
    "drops",
    "marks",
    "retrans",
    "rto_count",
)


def compare(
    simulated: Run,
    real: Run,
    directory: Path,
    metrics: Sequence[str] = COMPARED,
    *,
    group: str | None = None,
    relative_to: str | None = None,
    seeds: Collection[int] | None = None,
    points: Collection[Point] | None = None,
) -> Agreement:
    """Compares two results of one scenario, restricted to these seeds and points if given.

    Raises:
        InputError: There is no such group; the message names the existing ones.
    """
    chosen = Restrictions(group, relative_to, seeds, points)
    ours, theirs = (parts_of(run, chosen) for run in (simulated, real))
    rows = [
        row
        for point, parts in ours.items()
        for part in parts
        if point in theirs and part in theirs[point]
        for row in _rows(dict(point), part, parts[part], theirs[point][part], metrics)
    ]
    gains = _gains(ours, theirs, simulated.axes)
    return Agreement(simulated.name, rows, gains, real.manifest.world or {}, directory)


#: Rows of a result at each point, by group: one for each run.
Points: TypeAlias = "dict[Point, dict[str, pl.DataFrame]]"


@dataclass(frozen=True)
class Restrictions:
    """Restrictions of a comparison; `None` means everything."""

    group: str | None = None
    relative_to: str | None = None
    seeds: Collection[int] | None = None
    points: Collection[Point] | None = None


def parts_of(run: Run, chosen: Restrictions | None = None) -> Points:
    """Rows of a result at each point, by group: one for each run, with its metrics.

    Raises:
        InputError: There is no such group; the message names the existing ones.
    """
    chosen = chosen or Restrictions()
    for asked in (chosen.group, chosen.relative_to):
        known_group(run, asked)
    shown = [ALL, *(run.groups if len(run.groups) > 1 else [])]
    rows = all_and_groups(run, relative_to=chosen.relative_to)
    rows = rows.filter(pl.col("group").is_in(shown if chosen.group is None else [chosen.group]))
    if chosen.seeds is not None:
        rows = rows.filter(pl.col("seed").is_in(chosen.seeds))
    timeouts = _timeouts_of(run)
    rows = rows.drop(TIMEOUTS).join(
        timeouts, on=["run_id", "group"], how="left", maintain_order="left"
    )
    found = by_point(run, rows, [axis.name for axis in run.axes])
    if chosen.points is None:
        return found
    return {point: parts for point, parts in found.items() if point in chosen.points}


def _rows(
    point: dict[str, str],
    group: str,
    ours: pl.DataFrame,
    theirs: pl.DataFrame,
    metrics: Sequence[str],
) -> Iterator[Row]:
    """Compares the deciding metrics of a group at a point, and the other wanted ones."""
    deciding = COMPLETION if _all_complete(ours) and _all_complete(theirs) else GOODPUT
    for name in dict.fromkeys((GOODPUT, deciding, *metrics, TIMEOUTS)):
        first, second = (of_seeds(part["seed"], part[name]) for part in (ours, theirs))
        # Equal seeds of simulator and Linux share no random numbers, so pairing is meaningless.
        found = difference_at(point, group, name, first, second, paired=False)
        if found is None:
            continue
        tolerance, least = TOLERANCE if name == deciding else None, 0.0
        if name == TIMEOUTS:
            tolerance, least = TIMEOUTS_TOLERANCE, TIMEOUTS_LEAST
        estimates = (found.before, found.after, found.difference)
        yield Row(point, group, name, *estimates, tolerance, least)


def _all_complete(rows: pl.DataFrame) -> bool:
    """`True` if all flows of these runs are finite transfers, and some completed in each run."""
    return rows["transfers"].all() and not rows[COMPLETION].has_nulls()


def _timeouts_of(run: Run) -> pl.DataFrame:
    """Timeouts of each run and group, and of all flows together, and `transfers` if all are finite.

    Linux counts timeouts of SYNs and of data together (`tcpi_total_rto`), the simulator separately.
    """
    flows = run.flows.with_columns(pl.col("group").cast(pl.String))
    together = flows.with_columns(group=pl.lit(ALL))
    timeouts = pl.col("rto_count") + pl.col("rto_syn").fill_null(0)
    known = pl.col("rto_count").null_count() == 0
    return (
        pl.concat([flows, together])
        .group_by("run_id", "group")
        .agg(
            pl.when(known).then(timeouts.sum()).alias(TIMEOUTS),
            pl.col("size_bytes").is_not_null().all().alias("transfers"),
        )
    )


def _gains(ours: Points, theirs: Points, axes: Sequence[Axis]) -> list[Gain]:
    """Computes the gain of each arm over each of its bases, in every group."""
    gains = []
    for point in ours:
        for axis, (name, arm) in zip(axes, point, strict=True):
            for base in bases(axis, arm):
                other = tuple((a, base if a == name else label) for a, label in point)
                if not all(at in points for at in (point, other) for points in (ours, theirs)):
                    continue
                rest = {a: label for a, label in point if a != name}
                for group in ours[point]:
                    simulator, linux = (
                        gain_of(points[other], points[point], group) for points in (ours, theirs)
                    )
                    if simulator is not None and linux is not None:
                        difference = welch(simulator, linux)
                        gain = Gain(rest, group, name, base, arm, simulator, linux, difference)
                        gains.append(gain)
    return gains


def bases(axis: Axis, arm: str) -> list[str]:
    """Labels over which an arm's gain is computed: those that the axis lists in `over`.

    For an arm without an entry it is the longest label that the arm's extends, such as "Reno" for
    "Reno+ABE", if there is one.
    """
    if arm in axis.over:
        return axis.over[arm]
    parts = arm.split(ARM_SEPARATOR)
    shorter = (ARM_SEPARATOR.join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
    return [base for base in shorter if base in axis.labels][:1]


def gain_of(
    base: dict[str, pl.DataFrame], arm: dict[str, pl.DataFrame], group: str
) -> Estimate | None:
    """Relative gain of an arm over its base in percent, seed by seed; `None` if it is unknown."""
    if group not in base or group not in arm:
        return None
    ours = arm[group].select("seed", with_it=GOODPUT)
    joined = base[group].select("seed", without=GOODPUT).join(ours, on="seed").drop_nulls()
    pairs = zip(joined["with_it"], joined["without"], strict=True)
    return Estimate.of([100 * (with_it / without - 1) for with_it, without in pairs if without])


def undecided(found: Agreement) -> set[Point]:
    """Points whose runs scatter too much to decide whether simulator and Linux agree.

    The choice depends on the width of the confidence intervals alone, not on the differences.
    Otherwise points that agree by chance would stay, and those that differ by chance would be
    repeated.
    """
    points = {tuple(row.point.items()) for row in found.rows if not row.is_decided}
    unknown = [gain for gain in found.gains if not gain.is_decided]
    return points | {
        tuple(row.point.items()) for row in found.rows for gain in unknown if _is_of(row, gain)
    }


def _is_of(row: Row, gain: Gain) -> bool:
    """`True` if a row belongs to one of the two points that a gain compares."""
    return row.point[gain.axis] in (gain.base, gain.arm) and all(
        row.point[axis] == label for axis, label in gain.point.items()
    )
