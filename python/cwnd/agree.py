"""Do the worlds agree? One scenario in the simulator and on real Linux, metric by metric."""

from __future__ import annotations

import csv
import io
import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import runner
from cwnd.atomic import write_atomically
from cwnd.dataset.fill import Progress, failures, fill, world_of
from cwnd.dataset.load import load
from cwnd.drawing import attempt
from cwnd.errors import CwndError, InputError
from cwnd.metrics import METRICS, groups
from cwnd.stats import Estimate, welch, welch_difference
from cwnd.worlds import LINUX, Linux

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    import polars as pl

    from cwnd.results import Run
    from cwnd.runner import OnProgress, Plan
    from cwnd.scenario import ScenarioLike

    #: Shows the progress of one world, given its name.
    Bars: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]

#: The two results, in the directory of a comparison.
SIMULATOR = "simulator"
#: What it leaves besides them.
TABLE, DOCUMENT, FIGURE = "agreement.csv", "agreement.json", "agreement"
#: The same table of the points that were run more often.
REPEATED = "repeated.csv"

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

    @property
    def tells(self) -> bool:
        """Whether the difference is known to better than the tolerance."""
        half_width = self.difference.half_width
        if self.tolerance is None:
            return True
        return half_width is not None and half_width <= self.tolerance * abs(self.simulator.mean)


@dataclass(frozen=True)
class Gain:
    """What ABE wins over its base in both worlds, in percent of goodput."""

    #: The point without the arm.
    point: dict[str, str]
    #: Label of the arm without ABE.
    base: str
    simulator: Estimate
    linux: Estimate

    #: Percentage points, linux − simulator, by Welch's method.
    difference: Estimate

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
        """The part of the points whose goodput is within its tolerance."""
        deciding = self.deciding
        return sum(bool(row.holds) for row in deciding) / len(deciding) if deciding else 0.0

    @property
    def holds(self) -> bool:
        """Whether the worlds agree: goodput at most points, every gain, no invalid run."""
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
    return (*what.point.items(), what.metric if isinstance(what, Row) else what.base)


def agree(
    scenario: ScenarioLike,
    directory: str | os.PathLike[str],
    *,
    threads: int | None = None,
    up_to: int | None = None,
    progress: Bars | None = None,
    metrics: Sequence[str] = COMPARED,
) -> Agreement:
    """Runs a scenario in both worlds and compares them.

    Runs that are there from before are not done again: a comparison that was interrupted goes on.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        directory: Where both results, the table and the figure go.
        threads: Runs on Linux at a time; as many as the machine can route for if not given.
        up_to: Runs of each world at points where the scenario's own runs scatter too far to tell
            whether the worlds agree; see `unclear`. No more than the scenario's if not given.
        progress: Makes the progress bar of a world.
        metrics: What is compared besides goodput.

    Raises:
        ScenarioError: Linux cannot provide something; the error shows where and what.
        InputError: `up_to` is less than the scenario's own runs.
        MachineError: This machine cannot run the testbed.
    """
    place = Path(directory)
    plan = runner.plan(scenario)
    Linux().check(plan.scenario)
    own = plan.scenario.repeat
    if up_to is not None and up_to < own:
        raise InputError(f"--up-to {up_to}: the scenario has {own} runs of each point already")
    if up_to is not None and up_to > own:
        plan = runner.plan(scenario, overrides={"sweep.repeat": up_to})
    worlds = _Worlds(plan, place, threads, progress)
    first = [run for run in range(plan.runs) if run % plan.scenario.repeat < own]
    simulated, real = worlds.run(first)
    seeds = {plan.scenario.cell(run).seed for run in first[:own]}
    found = compare(simulated, real, place, metrics, seeds=seeds)
    again = unclear(found)
    if plan.scenario.repeat > own and again:
        more = [run for run in range(plan.runs) if _point(plan.scenario.cell(run).axes) in again]
        simulated, real = worlds.run([*first, *more])
        repeated = compare(simulated, real, place, metrics, points=again)
        world = real.manifest.world or {}
        found = replace(found, world=world, repeated=repeated)
    write(found)
    return found


@dataclass(frozen=True)
class _Worlds:
    plan: Plan
    place: Path
    threads: int | None
    bars: Bars | None

    def run(self, numbers: Collection[int]) -> tuple[Run, Run]:
        return self._run(None, None, numbers), self._run(LINUX, self.threads, numbers)

    def _run(self, on: str | None, threads: int | None, numbers: Collection[int]) -> Run:
        name = on or SIMULATOR
        with nullcontext() if self.bars is None else self.bars(name) as told:

            def on_cells(now: Progress) -> None:
                if told is not None:
                    told(now.fraction, now.done + now.failed, now.total)

            filled = fill(
                self.plan,
                self.place / name,
                threads=threads,
                world=world_of(on),
                replan=True,
                only=numbers,
                on_cells=on_cells,
            )
        if filled.failed:
            raise CwndError(failures(filled))
        return filled.run or load(self.place / name)


def unclear(found: Agreement) -> set[Point]:
    """The points whose runs scatter too far to tell whether the worlds agree.

    Chosen by the width of the confidence intervals alone, not by the differences: else points that
    agree by chance would stay, and those that differ by chance would get another one.
    """
    points = {_point(row.point) for row in found.rows if not row.tells}
    for gain in found.gains:
        if not gain.tells:
            points |= {_point(row.point) for row in found.rows if _is_of(row, gain)}
    return points


def _is_of(row: Row, gain: Gain) -> bool:
    """Whether a row is of one of the two points that a gain compares."""
    rest = {axis: label for axis, label in row.point.items() if axis not in gain.point}
    return all(row.point[axis] == label for axis, label in gain.point.items()) and {
        label.removesuffix(WITH_ABE) for label in rest.values()
    } == {gain.base}


def compare(
    simulated: Run,
    real: Run,
    directory: Path,
    metrics: Sequence[str] = COMPARED,
    *,
    seeds: Collection[int] | None = None,
    points: Collection[Point] | None = None,
) -> Agreement:
    """Compares two results of one scenario: all that is there, or these seeds and points."""
    ours, theirs = (_points(run, seeds, points) for run in (simulated, real))
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


def _point(axes: dict[str, str]) -> Point:
    return tuple(axes.items())


def _points(
    run: Run, seeds: Collection[int] | None, points: Collection[Point] | None
) -> dict[Point, pl.DataFrame]:
    names = {axis.column: axis.name for axis in run.axes}
    runs = run.per_run()
    if seeds is not None:
        runs = runs.filter(runs["seed"].is_in(list(seeds)))
    found = {
        tuple((names[column], str(label)) for column, label in key.items()): part
        for key, part in groups(runs, run.axis_columns)
    }
    return {point: part for point, part in found.items() if points is None or point in points}


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
            simulator, linux = (_gain(world[base], world[point]) for world in (ours, theirs))
            if simulator is not None and linux is not None:
                rest = {a: v for a, v in point if a != axis}
                difference = welch(simulator, linux)
                name = label.removesuffix(WITH_ABE)
                gains.append(Gain(rest, name, simulator, linux, difference))
    return gains


def _gain(base: pl.DataFrame, abe: pl.DataFrame) -> Estimate | None:
    """Percent more, seed by seed."""
    joined = base.select("seed", GOODPUT).join(abe.select("seed", GOODPUT), on="seed")
    pairs = zip(joined[GOODPUT], joined[f"{GOODPUT}_right"], strict=True)
    return Estimate.of([100 * (with_abe / without - 1) for without, with_abe in pairs if without])


def write(found: Agreement) -> None:
    """Leaves the table, the document and the figure beside the results."""
    document = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    write_atomically(found.directory / DOCUMENT, document.encode())
    write_atomically(found.directory / TABLE, table(found).encode())
    if found.repeated is None:
        (found.directory / REPEATED).unlink(missing_ok=True)
    else:
        write_atomically(found.directory / REPEATED, table(found.repeated).encode())
    then = (
        f"the numbers are complete in {found.directory}, and the same command tries again without"
        " running anything twice"
    )
    with attempt(f"figure `{FIGURE}`", then):
        from cwnd.plots import agreement, write

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
            "difference_ci95": _shown(row.difference.half_width, metric.scale),
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
            "difference": _shown(gain.difference.mean, 1),
            "difference_ci95": _shown(gain.difference.half_width, 1),
            "tolerance": f"{GAIN_TOLERANCE:g}",
            "within": str(gain.holds).lower(),
        }
        writer.writerow(cells)
    return out.getvalue()


#: The columns of that table after the axes.
_COLUMNS = (
    *("metric", "unit", "runs", "simulator", "simulator_ci95", "linux", "linux_ci95"),
    *("difference", "difference_ci95", "difference_percent", "tolerance", "within"),
)


def _worlds(simulator: Estimate, linux: Estimate, scale: float) -> dict[str, str]:
    return {
        "runs": str(min(simulator.n, linux.n)),
        "simulator": _shown(simulator.mean, scale),
        "simulator_ci95": _shown(simulator.half_width, scale),
        "linux": _shown(linux.mean, scale),
        "linux_ci95": _shown(linux.half_width, scale),
    }


def _shown(value: float | None, scale: float) -> str:
    return "" if value is None else f"{value * scale:.4f}"
