"""What a comparison of the worlds comes to: rows of metrics, gains, and whether they agree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cwnd.results import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.results import Estimate

#: The metric that decides, and by which part of the simulator's value Linux may differ.
GOODPUT, TOLERANCE = "goodput_bit_s", 0.10
#: The part of the points that must keep to it.
SHARE = 0.90
#: Percentage points by which the gain of an arm over its base may differ.
GAIN_TOLERANCE = 5.0
#: Between a base's label and what an arm has besides, as in "Reno+ABE".
BESIDES = "+"


#: Labels of the axes, by their names.
Point: TypeAlias = "tuple[tuple[str, str], ...]"


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

    @property
    def relative(self) -> float | None:
        """The difference as a part of the simulator's value."""
        return self.difference.mean / self.simulator.mean if self.simulator.mean else None

    @property
    def holds(self) -> bool | None:
        """Whether the difference is within the tolerance; `None` without one."""
        if self.tolerance is None:
            return None
        return abs(self.difference.mean) <= self.tolerance * abs(self.simulator.mean)

    @property
    def tells(self) -> bool:
        """Whether the difference is known to better than the tolerance."""
        half_width = self.difference.half_width
        if self.tolerance is None:
            return True
        return half_width is not None and half_width <= self.tolerance * abs(self.simulator.mean)


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
        """The part of the points whose goodput is within its tolerance, each group by itself."""
        deciding = self.deciding
        return sum(bool(row.holds) for row in deciding) / len(deciding) if deciding else 0.0

    @property
    def holds(self) -> bool:
        """Whether the worlds agree: goodput at most points, every gain, no invalid run.

        Where there are several groups the goodput of each is asked, too: flows that fill a link
        together have the right sum however wrong their shares are.
        """
        return (
            self.share >= SHARE
            and all(gain.holds for gain in self.deciding_gains)
            and not self.world.get("invalid_runs")
        )

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "name": self.name,
            "agree": self.holds,
            "share_within_tolerance": self.share,
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


def _of(what: Row | Gain) -> tuple[object, ...]:
    return (*what.point.items(), what.group, what.metric if isinstance(what, Row) else what.arm)
