"""What a comparison of the worlds comes to: rows of metrics, gains, and whether they agree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cwnd.results import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.results import Estimate

#: The metric that decides, and by which part of the simulator's value Linux may differ.
GOODPUT, TOLERANCE = "goodput_bit_s", 0.10
#: What decides in its place where all flows are transfers, whose goodput is what was asked for.
COMPLETION = "fct_s"
#: Timeouts decide besides: by which part of the simulator's they may differ, or by how many a run.
TIMEOUTS, TIMEOUTS_TOLERANCE, TIMEOUTS_LEAST = "rto_count", 0.25, 1.0
#: The part of the points that must keep to it.
SHARE = 0.95
#: Percentage points by which the gain of an arm over its base may differ.
GAIN_TOLERANCE = 5.0
#: Between a base's label and what an arm has besides, as in "Reno+ABE".
BESIDES = "+"


@dataclass(frozen=True)
class Row:
    """One metric at one point of the sweep."""

    point: dict[str, str]
    #: The group of flows; `*` for all flows together.
    group: str
    metric: str
    simulator: Estimate
    linux: Estimate
    #: linux − simulator, by Welch's method.
    difference: Estimate
    #: By which part of the simulator's value Linux may differ; `None` where nothing is asked.
    tolerance: float | None
    #: By how much it may differ however small that value is.
    least: float = 0.0

    @property
    def relative(self) -> float | None:
        """The difference as a part of the simulator's value."""
        return self.difference.mean / self.simulator.mean if self.simulator.mean else None

    @property
    def holds(self) -> bool | None:
        """Whether the difference is within the tolerance; `None` without one."""
        return None if self.allowed is None else abs(self.difference.mean) <= self.allowed

    @property
    def tells(self) -> bool:
        """Whether the difference is known to better than the tolerance."""
        half_width = self.difference.half_width
        if self.allowed is None:
            return True
        return half_width is not None and half_width <= self.allowed

    @property
    def allowed(self) -> float | None:
        """By how much Linux may differ; `None` where nothing is asked."""
        if self.tolerance is None:
            return None
        return max(self.tolerance * abs(self.simulator.mean), self.least)


@dataclass(frozen=True)
class Gain:
    """What an arm wins over its base in both worlds, in percent of goodput."""

    #: The point without the arm.
    point: dict[str, str]
    #: The group of flows whose goodput it is; `*` for all flows together.
    group: str
    #: The axis of the arms.
    axis: str
    #: Labels of the base, such as "Reno", and of the arm, such as "Reno+ABE".
    base: str
    arm: str
    simulator: Estimate
    linux: Estimate
    #: Percentage points, linux − simulator, by Welch's method.
    difference: Estimate

    @property
    def what(self) -> str:
        """What the arm has besides its base."""
        return self.arm.removeprefix(self.base + BESIDES)

    @property
    def holds(self) -> bool:
        """Whether it is within the tolerance."""
        return abs(self.difference.mean) <= GAIN_TOLERANCE

    @property
    def tells(self) -> bool:
        """Whether the difference is known to better than the tolerance."""
        half_width = self.difference.half_width
        return half_width is not None and half_width <= GAIN_TOLERANCE


@dataclass(frozen=True)
class Agreement:
    """What came of comparing the worlds."""

    name: str
    rows: list[Row]
    gains: list[Gain]
    #: What is known of the runs on Linux: kernel, settings, calibration, validity.
    world: dict[str, Any]
    directory: Path
    #: The points that were run more often, with all of their runs.
    repeated: Agreement | None = None

    @property
    def grouped(self) -> bool:
        """Whether groups of flows are compared, not only all flows together."""
        return any(row.group != ALL for row in self.rows)

    @property
    def deciding(self) -> list[Row]:
        """The rows of goodput or completion time, each with all runs of its point."""
        return [row for row in self._asked if row.metric != TIMEOUTS]

    @property
    def deciding_timeouts(self) -> list[Row]:
        """The rows of timeouts, each with all runs of its point."""
        return [row for row in self._asked if row.metric == TIMEOUTS]

    @property
    def _asked(self) -> list[Row]:
        """The rows that have a tolerance, each with all runs of its point."""
        again = {_of(row): row for row in self.repeated.rows} if self.repeated else {}
        return [again.get(_of(row), row) for row in self.rows if row.tolerance is not None]

    @property
    def deciding_gains(self) -> list[Gain]:
        """The gains, each with all runs of its points."""
        again = {_of(gain): gain for gain in self.repeated.gains} if self.repeated else {}
        return [again.get(_of(gain), gain) for gain in self.gains]

    @property
    def share(self) -> float:
        """The part of the points whose goodput or completion time is within its tolerance.

        Each group counts by itself.
        """
        return _share(self.deciding) or 0.0

    @property
    def timeouts_share(self) -> float | None:
        """The same of timeouts; `None` where the kernel does not tell them."""
        return _share(self.deciding_timeouts)

    @property
    def holds(self) -> bool:
        """Whether the worlds agree: goodput and timeouts at most points, all gains, all runs valid.

        Where there are several groups the goodput of each is asked, too: flows that fill a link
        together have the right sum however wrong their shares are.
        """
        return (
            self.share >= SHARE
            and (self.timeouts_share is None or self.timeouts_share >= SHARE)
            and all(gain.holds for gain in self.deciding_gains)
            and not self.world.get("invalid_runs")
        )

    def to_json(self) -> dict[str, Any]:
        """As data."""
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
