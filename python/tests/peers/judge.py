"""Runs the scenarios of rows and says whether the results agree."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import tomli_w

from cwnd import _core
from cwnd.machine import usable_cores
from peers.rows import TABLES, Measures, Row, mean
from peers.scenarios import NotExpressibleError, sampled, scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Experiments change keys of the scenario: path and value.
Overrides = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Bounds:
    """Allowed differences from the peer's values, as shares of them."""

    goodput: float
    qdelay: float
    events: float


SIMULATORS = Bounds(goodput=0.05, qdelay=0.15, events=0.25)
LINUX = Bounds(goodput=0.10, qdelay=0.15, events=0.25)
#: A queueing delay this near agrees, whatever the ratio: less than one packet at 10 Mbit/s.
QDELAY_FLOOR_MS = 1.0
#: Difference of counts that agrees, whatever the ratio: the recorded seeds of one setting differ by
#: up to 6 where there are 30 (ns-2, CUBIC, RED, 100 ms: 35, 29, 31 drops).
EVENTS_FLOOR = 5.0
#: Share of drops and marks together by which either may differ: beside 17,200 marks, ns-2's BECN
#: rows have 0, 9, 3 or 0, 11, 0 drops by seed.
EVENTS_SHARE = 0.005


@dataclass(frozen=True)
class Comparison:
    """A row, ours beside it, and what does not agree."""

    row: Row
    #: The mean of the peer's runs of the setting.
    theirs: Measures
    ours: Measures | None
    #: Reason why there is no run of ours.
    missing: str | None
    differs: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """`true` if every compared measure is within its bounds."""
        return self.ours is not None and not self.differs


def bounds(row: Row) -> Bounds:
    """The bounds for a row."""
    return LINUX if row.table.startswith("linux") else SIMULATORS


def differences(row: Row, theirs: Measures, ours: Measures) -> tuple[str, ...]:
    """Returns the names of the measures out of bounds."""
    allowed = bounds(row)

    def events(mine: float | None, peer: float | None, both: float) -> bool:
        if mine is None or peer is None:
            return True
        return near(mine, peer, allowed.events, max(EVENTS_FLOOR, EVENTS_SHARE * both))

    def near(mine: float, peer: float, share: float, floor: float) -> bool:
        return abs(mine - peer) <= max(share * peer, floor)

    after = theirs.drops + theirs.marks
    whole = (theirs.drops_whole or 0) + (theirs.marks_whole or 0)
    checks = {
        "goodput": near(ours.goodput_mbit_s, theirs.goodput_mbit_s, allowed.goodput, 0),
        "delay": near(ours.qdelay_p50_ms, theirs.qdelay_p50_ms, allowed.qdelay, QDELAY_FLOOR_MS),
        "drops": events(ours.drops, theirs.drops, after),
        "marks": events(ours.marks, theirs.marks, after),
        "drops of the whole run": events(ours.drops_whole, theirs.drops_whole, whole),
        "marks of the whole run": events(ours.marks_whole, theirs.marks_whole, whole),
    }
    return tuple(name for name, holds in checks.items() if not holds)


def compare(rows: Iterable[Row]) -> list[Comparison]:
    """Compares rows; each setting is run once for all rows that recorded it."""
    jobs: dict[Row, Job] = {}
    missing: dict[Row, str] = {}
    for row in rows:
        try:
            jobs[row] = job(row)
        except NotExpressibleError as error:
            missing[row] = str(error)
    recorded: dict[tuple[str, ...], list[Measures]] = {}
    for row in jobs | missing:
        recorded.setdefault(row.same_setting, []).append(row.measured)
    measured = run_all(jobs.values())
    found = []
    for row in jobs | missing:
        theirs = mean(recorded[row.same_setting])
        ours = measured[jobs[row]] if row in jobs else None
        differs = differences(row, theirs, ours) if ours else ()
        found.append(Comparison(row, theirs, ours, missing.get(row), differs))
    return sorted(found, key=lambda each: (list(TABLES).index(each.row.table), each.row.number))


@dataclass(frozen=True)
class Job:
    """A setting to run, and how the peer measured it."""

    text: str
    overrides: tuple[str, ...]
    #: The delay is a median over time instead of one over packets.
    sampled: bool


def job(row: Row, overrides: Overrides = ()) -> Job:
    """The job of a row, perhaps with some keys of its scenario changed."""
    table = scenario(row)
    listed = tuple(f"{path}={json.dumps(value)}" for path, value in overrides)
    return Job(tomli_w.dumps(table), listed, sampled(row))


def experiment(row: Row, overrides: Overrides) -> Measures:
    """A row's scenario with some of its keys changed."""
    changed = job(row, overrides)
    return run_all([changed])[changed]


def run_all(jobs: Iterable[Job]) -> dict[Job, Measures]:
    """Means over the seeds of every job."""
    cells: list[tuple[Job, _core.Cell]] = []
    for each in dict.fromkeys(jobs):
        parsed = _core.parse(each.text, name="peer", overrides=each.overrides)
        cells += [(each, cell) for cell in parsed.cells]
    with ThreadPoolExecutor(usable_cores()) as pool:
        found = list(pool.map(lambda entry: _measure(entry[1], entry[0]), cells))
    by_job: dict[Job, list[Measures]] = {}
    for (each, _), measures in zip(cells, found, strict=True):
        by_job.setdefault(each, []).append(measures)
    return {each: mean(measures) for each, measures in by_job.items()}


def _measure(cell: _core.Cell, each: Job) -> Measures:
    result = cell.run()
    flows = pl.DataFrame(result.flows)
    link = pl.DataFrame(result.links).row(by_predicate=pl.col("link") == "bottleneck", named=True)
    delay_ms = link["qdelay_p50_us"] / 1e3
    if each.sampled:
        series = pl.DataFrame(result.link_series)
        counted = (pl.col("link") == "bottleneck") & (pl.col("time_s") > cell.warmup_s)
        lengths = series.filter(counted)["qlen_bytes"]
        delay_ms = (
            float(lengths.median() or 0)  # type: ignore[arg-type]
            * BITS_PER_BYTE
            / link["rate_bit_s"]
            * 1e3
        )
    return Measures(
        float(flows["goodput_bit_s"].sum()) / 1e6,
        delay_ms,
        float(link["dropped_pkts"]),
        float(link["marked_pkts"]),
        float(link["dropped_total_pkts"]),
        float(link["marked_total_pkts"]),
    )


BITS_PER_BYTE = 8
