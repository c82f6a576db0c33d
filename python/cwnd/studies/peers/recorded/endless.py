"""Rows of flows without end: their jobs, and ours beside theirs within bounds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import tomli_w

from cwnd.studies.peers.recorded.ours import Job, described
from cwnd.studies.peers.recorded.rows import TABLES, Measures, Row, mean
from cwnd.studies.peers.recorded.scenarios import NotExpressibleError, sampled, scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd import _core
    from cwnd.studies.peers.recorded.ours import Ours, Overrides


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
        """`True` if there is a run of ours and every compared measure is within its bounds."""
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


def compare(rows: Iterable[Row], figures: Ours[Measures]) -> list[Comparison]:
    """Compares rows with ours."""
    recorded: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        recorded.setdefault(row.same_setting, []).append(row)
    found = []
    for alike in recorded.values():
        theirs = mean([row.measured for row in alike])
        for row in alike:
            mine = figures.get((row.key, "")) or figures.get((alike[0].key, ""))
            differs = differences(row, theirs, mean(mine)) if mine else ()
            missing = None if mine else _reason(row)
            found.append(Comparison(row, theirs, mean(mine) if mine else None, missing, differs))
    return sorted(found, key=lambda each: (list(TABLES).index(each.row.table), each.row.number))


def _reason(row: Row) -> str:
    """Reason why no scenario can express a row; `LookupError` if one can, which was not run."""
    try:
        scenario(row)
    except NotExpressibleError as error:
        return str(error)
    raise LookupError(f"{row.key} was not run")


def jobs(rows: Iterable[Row]) -> list[Job]:
    """Jobs of rows; rows of one setting share those with the same scenario."""
    found: dict[tuple[tuple[str, ...], str], Job] = {}
    for row in rows:
        try:
            each = job(row)
        except NotExpressibleError:
            continue
        found.setdefault((row.same_setting, each.text), each)
    return list(found.values())


def job(row: Row, overrides: Overrides = ()) -> Job:
    """The job of a row, perhaps with some keys of its scenario changed."""
    listed = tuple(f"{path}={json.dumps(value)}" for path, value in overrides)
    measured = partial(measure, median_over_time=sampled(row))
    return Job(row.key, tomli_w.dumps(scenario(row)), measured, described(overrides), listed)


def means(found: Ours[Measures]) -> dict[tuple[str, str], list[Measures]]:
    """Means over the seeds, which is all that is compared."""
    return {key: [mean(each)] for key, each in found.items()}


def measure(cell: _core.Cell, *, median_over_time: bool) -> Measures:
    """Measures a run; the delay is a median over time or over packets."""
    result = cell.run()
    flows = pl.DataFrame(result.flows)
    link = pl.DataFrame(result.links).row(by_predicate=pl.col("link") == "bottleneck", named=True)
    delay_ms = link["qdelay_p50_us"] / 1e3
    if median_over_time:
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
