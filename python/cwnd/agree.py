"""Do the worlds agree? One scenario in the simulator and on real Linux, metric by metric."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import runner, store
from cwnd.dataset.fill import sweep
from cwnd.metrics import METRICS, groups
from cwnd.stats import Estimate, welch_difference
from cwnd.worlds import LINUX, Linux

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    import polars as pl

    from cwnd.results import Run
    from cwnd.runner import OnProgress
    from cwnd.scenario import ScenarioLike

    #: Shows the progress of one world, given its name.
    Bars: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]

#: The two results, in the directory of a comparison.
SIMULATOR = "simulator"
#: What it leaves besides them.
TABLE, DOCUMENT, FIGURE = "agreement.csv", "agreement.json", "agreement"

#: What is compared, in the order of tables.
COMPARED = (
    "goodput_bit_s",
    "qdelay_mean_us",
    "qdelay_p50_us",
    "drops",
    "marks",
    "retrans",
)
#: The metric that decides, and by which part of the simulator's value Linux may differ.
GOODPUT, TOLERANCE = "goodput_bit_s", 0.10
#: The part of the points that must keep to it.
SHARE = 0.90
#: What is appended to an arm's label when it has ABE.
WITH_ABE = "+ABE"
#: Percentage points by which the gain of ABE may differ.
GAIN_TOLERANCE = 5.0

Point = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Row:
    """One metric at one point of the sweep."""

    point: dict[str, str]
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


@dataclass(frozen=True)
class Gain:
    """What ABE wins over its base in both worlds, in percent of goodput."""

    #: The point without the arm.
    point: dict[str, str]
    #: Label of the arm without ABE.
    base: str
    simulator: Estimate
    linux: Estimate

    @property
    def difference(self) -> float:
        """Percentage points, linux − simulator."""
        return self.linux.mean - self.simulator.mean

    @property
    def holds(self) -> bool:
        """Whether it is within the tolerance."""
        return abs(self.difference) <= GAIN_TOLERANCE


@dataclass(frozen=True)
class Agreement:
    """What came of comparing the worlds."""

    name: str
    rows: list[Row]
    gains: list[Gain]
    #: What is known of the runs on Linux: kernel, settings, calibration, validity.
    world: dict[str, Any]
    directory: Path

    @property
    def deciding(self) -> list[Row]:
        """The rows that have a tolerance."""
        return [row for row in self.rows if row.tolerance is not None]

    @property
    def share(self) -> float:
        """The part of the points whose goodput is within its tolerance."""
        deciding = self.deciding
        return sum(bool(row.holds) for row in deciding) / len(deciding) if deciding else 0.0

    @property
    def holds(self) -> bool:
        """Whether the worlds agree: goodput at most points, every gain, no invalid run."""
        return (
            self.share >= SHARE
            and all(gain.holds for gain in self.gains)
            and not self.world.get("invalid_runs")
        )

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return {
            "name": self.name,
            "agree": self.holds,
            "share_within_tolerance": self.share,
            "world": self.world,
            "rows": [
                {**asdict(row), "relative": row.relative, "holds": row.holds} for row in self.rows
            ],
            "gains": [
                {**asdict(gain), "difference": gain.difference, "holds": gain.holds}
                for gain in self.gains
            ],
        }


def agree(
    scenario: ScenarioLike,
    directory: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Bars | None = None,
    metrics: Sequence[str] = COMPARED,
) -> Agreement:
    """Runs a scenario in both worlds and compares them.

    Runs that are there from before are not done again: a comparison that was interrupted goes on.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        directory: Where both results, the table and the figure go.
        threads: Runs on Linux at a time; as many as the machine can route for if not given.
        progress: Makes the progress bar of a world.
        metrics: What is compared besides goodput.

    Raises:
        ScenarioError: Linux cannot provide something; the error shows where and what.
        MachineError: This machine cannot run the testbed.
    """
    place = Path(directory)
    plan = runner.plan(scenario)
    Linux().check(plan.scenario)
    simulated = _run(scenario, place / SIMULATOR, None, None, progress)
    real = _run(scenario, place / LINUX, LINUX, threads, progress)
    found = compare(simulated, real, place, metrics)
    write(found)
    return found


def _run(
    scenario: ScenarioLike, place: Path, on: str | None, threads: int | None, bars: Bars | None
) -> Run:
    name = on or SIMULATOR
    if bars is None:
        return sweep(scenario, place, on=on, threads=threads, replan=True)
    with bars(name) as on_progress:
        return sweep(scenario, place, on=on, threads=threads, replan=True, progress=on_progress)


def compare(
    simulated: Run, real: Run, directory: Path, metrics: Sequence[str] = COMPARED
) -> Agreement:
    """Compares two results of one scenario."""
    ours, theirs = _points(simulated), _points(real)
    wanted = tuple(dict.fromkeys((GOODPUT, *metrics)))
    rows = [
        row
        for point in ours
        if point in theirs
        for name in wanted
        if (row := _row(dict(point), name, ours[point], theirs[point])) is not None
    ]
    return Agreement(
        simulated.name, rows, _gains(ours, theirs), real.manifest.world or {}, directory
    )


def _points(run: Run) -> dict[Point, pl.DataFrame]:
    names = {axis.column: axis.name for axis in run.axes}
    return {
        tuple((names[column], str(label)) for column, label in key.items()): part
        for key, part in groups(run.per_run(), run.axis_columns)
    }


def _row(point: dict[str, str], name: str, ours: pl.DataFrame, theirs: pl.DataFrame) -> Row | None:
    first, second = ([float(value) for value in part[name].drop_nulls()] for part in (ours, theirs))
    simulator, linux = Estimate.of(first), Estimate.of(second)
    difference = welch_difference(first, second)
    if simulator is None or linux is None or difference is None:
        return None
    tolerance = TOLERANCE if name == GOODPUT else None
    return Row(point, name, simulator, linux, difference, tolerance)


def _gains(ours: dict[Point, pl.DataFrame], theirs: dict[Point, pl.DataFrame]) -> list[Gain]:
    gains = []
    for point in ours:
        for axis, label in point:
            base = tuple((a, v.removesuffix(WITH_ABE) if a == axis else v) for a, v in point)
            if not label.endswith(WITH_ABE) or base not in ours:
                continue
            if point not in theirs or base not in theirs:
                continue
            worlds = [_gain(world[base], world[point]) for world in (ours, theirs)]
            if worlds[0] is not None and worlds[1] is not None:
                rest = {a: v for a, v in point if a != axis}
                gains.append(Gain(rest, label.removesuffix(WITH_ABE), worlds[0], worlds[1]))
    return gains


def _gain(base: pl.DataFrame, abe: pl.DataFrame) -> Estimate | None:
    """Percent more, seed by seed."""
    joined = base.select("seed", GOODPUT).join(abe.select("seed", GOODPUT), on="seed")
    pairs = zip(joined[GOODPUT], joined[f"{GOODPUT}_right"], strict=True)
    return Estimate.of([100 * (with_abe / without - 1) for without, with_abe in pairs if without])


def write(found: Agreement) -> None:
    """Leaves the table, the document and the figure beside the results."""
    from cwnd.plots import agreement, write

    document = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    store.write_atomically(found.directory / DOCUMENT, document.encode())
    store.write_atomically(found.directory / TABLE, table(found).encode())
    write(agreement.figure(found), found.directory, FIGURE)


def table(found: Agreement) -> str:
    """All numbers as CSV, in the units of people; tolerances of gains are percentage points."""
    axes = list(found.rows[0].point) if found.rows else []
    out = io.StringIO()
    writer = csv.DictWriter(out, [*axes, *_COLUMNS], lineterminator="\n", restval="")
    writer.writeheader()
    for row in found.rows:
        metric = METRICS[row.metric]
        cells = {
            **row.point,
            "metric": metric.label,
            "unit": metric.unit,
            **_worlds(row.simulator, row.linux, metric.scale),
            "difference": _shown(row.difference.mean, metric.scale),
            "difference_percent": _shown(row.relative, 100),
            "tolerance": "" if row.tolerance is None else f"{100 * row.tolerance:g}",
            "within": "" if row.holds is None else str(row.holds).lower(),
        }
        writer.writerow(cells)
    for gain in found.gains:
        arm = next(axis for axis in axes if axis not in gain.point)
        cells = {
            **gain.point,
            arm: f"{gain.base}{WITH_ABE}",
            "metric": f"Gain over {gain.base}",
            "unit": "%",
            **_worlds(gain.simulator, gain.linux, 1),
            "difference": _shown(gain.difference, 1),
            "tolerance": f"{GAIN_TOLERANCE:g}",
            "within": str(gain.holds).lower(),
        }
        writer.writerow(cells)
    return out.getvalue()


#: The columns of that table after the axes.
_COLUMNS = (
    *("metric", "unit", "simulator", "simulator_ci95", "linux", "linux_ci95"),
    *("difference", "difference_percent", "tolerance", "within"),
)


def _worlds(simulator: Estimate, linux: Estimate, scale: float) -> dict[str, str]:
    return {
        "simulator": _shown(simulator.mean, scale),
        "simulator_ci95": _shown(simulator.half_width, scale),
        "linux": _shown(linux.mean, scale),
        "linux_ci95": _shown(linux.half_width, scale),
    }


def _shown(value: float | None, scale: float) -> str:
    return "" if value is None else f"{value * scale:.4f}"
