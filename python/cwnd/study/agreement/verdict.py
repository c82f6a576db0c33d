"""Verdict of an agreement: rows of metrics, gains, and tolerances."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cwnd.results import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.results import Estimate

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
        """Rows with a tolerance, each with all runs of its point."""
        again = {_of(row): row for row in self.repeated.rows} if self.repeated else {}
        return [again.get(_of(row), row) for row in self.rows if row.tolerance is not None]

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

        If there are several groups, the goodput of each is tested, too: flows that fill a link
        together have the right sum however wrong their shares are.
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
    return (*what.point.items(), what.group, what.metric if isinstance(what, Row) else what.arm)
