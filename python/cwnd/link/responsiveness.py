"""Measurements of an RRUL test, real or simulated: goodputs and delays, also as data of Flent."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.link.rrul import DIRECTIONS, DSCPS, LEAD_S, PINGS, STEP_S, scenario, total_s
from cwnd.results import FlentData, until_end
from cwnd.running import OnProgress
from cwnd.running import run as run_scenario
from cwnd.store import RRUL, RRUL_FLENT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cwnd.link.settings import Settings
    from cwnd.results import Run

#: Name of all pings together.
_ALL_PINGS = "all"


@dataclass(frozen=True)
class Rrul:
    """Measurements of an RRUL test. Times are seconds since the first ping."""

    #: Bits that arrived since the row before of a flow: `direction`, `dscp`, `time_s`, `bits`.
    flows: pl.DataFrame
    #: Pings: `ping`, `sent_s`, `rtt_ms`, and the one-way delays `up_ms`, `down_ms`; `rtt_ms` is
    #: `None` if no answer came, a one-way delay also if it is not known.
    pings: pl.DataFrame
    #: Time under load in seconds.
    length_s: int
    title: str
    note: str
    #: `False` if a lost ping is late instead, as TCP sends it again.
    shows_losses: bool = True

    def goodputs(self) -> dict[str, dict[str, float]]:
        """Mean goodput in Mbit/s by direction and DSCP, for `length_s` from a flow's start.

        Data that waited in queues arrive after it.
        """
        found = {d: dict.fromkeys(DSCPS, 0.0) for d in DIRECTIONS}
        for (direction, dscp), part in self.flows.group_by("direction", "dscp"):
            times = part["time_s"].to_list()
            bits = _arrived(part)(min(times[0] + self.length_s, times[-1])) or 0.0
            found[str(direction)][str(dscp)] = bits / self.length_s / 1e6
        return found

    def _starts(self) -> list[float]:
        """Times at which flows started: later than `LEAD_S` by the handshakes of iperf3."""
        first = self.flows.group_by("direction", "dscp").agg(pl.col("time_s").min())
        return first["time_s"].to_list() or [LEAD_S]

    def delays(self) -> list[dict[str, Any]]:
        """Round-trip times of each ping, idle and under load, and of all pings together.

        Times are in ms. Idle pings are those before the load, which lasts from the start of the
        last flow. Loss, jitter and one-way delays are those under load, `None` if they cannot be
        measured. Jitter is the mean difference of successive round-trip times.
        """
        starts = self._starts()
        idle = pl.col("sent_s") < min(*starts, LEAD_S)
        load = pl.col("sent_s").is_between(max(starts), max(starts) + self.length_s)
        parts = [(name, self.pings.filter(pl.col("ping") == name)) for name in PINGS]
        parts = [(name, part) for name, part in parts if not part.is_empty()]
        found = [_delays(*part, idle, load) for part in (*parts, (_ALL_PINGS, self.pings))]
        return found if self.shows_losses else [{**row, "lost_ratio": None} for row in found]

    def to_json(self) -> dict[str, Any]:
        """Returns goodputs and delays as one JSON object."""
        return {
            "title": self.title,
            "note": self.note,
            "length_s": self.length_s,
            "goodput_mbit_s": self.goodputs(),
            "pings": self.delays(),
        }

    def files(self) -> dict[str, bytes]:
        """Formats the files of the test beside those of a link or of a simulated run."""
        content = json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"
        return {RRUL: content.encode(), RRUL_FLENT: self.flent.file()}

    @cached_property
    def flent(self) -> FlentData:
        """Returns the measurements under the names of Flent's test `rrul`."""
        steps = round(total_s(self.length_s) / STEP_S)
        times = [round(step * STEP_S, 6) for step in range(1, steps + 1)]
        flows: dict[str, dict[str, list[float | None]]] = {d: {} for d in DIRECTIONS}
        for (direction, dscp), part in self.flows.group_by(
            "direction", "dscp", maintain_order=True
        ):
            flows[str(direction)][str(dscp)] = _rates(times, part)
        answered = self.pings.drop_nulls("rtt_ms").with_columns(
            (pl.col("sent_s") + pl.col("rtt_ms") / 1e3).alias("time_s"),
            pl.col("rtt_ms").alias("value"),
        )
        pings = {name: answered.filter(pl.col("ping") == name) for name in PINGS}
        return FlentData(
            "rrul",
            self.title,
            self.note,
            times,
            {d: {dscp: of[dscp] for dscp in DSCPS if dscp in of} for d, of in flows.items()},
            {name: part for name, part in pings.items() if not part.is_empty()},
            length_s=self.length_s,
        )


def _delays(name: str, pings: pl.DataFrame, in_idle: pl.Expr, in_load: pl.Expr) -> dict[str, Any]:
    rtt = pl.col("rtt_ms")
    idle = pings.filter(in_idle).select(rtt.median()).item()
    difference = rtt.diff().over("ping", order_by="sent_s").abs()
    (load,) = (
        pings.filter(in_load)
        .select(
            rtt.median().alias("load_p50_ms"),
            rtt.quantile(0.95, "linear").alias("load_p95_ms"),
            (rtt.median() - idle).alias("increase_ms"),
            pl.len().alias("sent"),
            pl.when(pl.len() > 0).then(rtt.null_count() / pl.len()).alias("lost_ratio"),
            difference.mean().alias("jitter_ms"),
            pl.col("up_ms").quantile(0.95, "linear").alias("up_p95_ms"),
            pl.col("down_ms").quantile(0.95, "linear").alias("down_p95_ms"),
        )
        .to_dicts()
    )
    return {"ping": name, "idle_p50_ms": idle, **load}


def _arrived(flow: pl.DataFrame) -> Callable[[float], float | None]:
    """Returns the bits of a flow up to a time; they are `None` before it and after it."""
    at = flow["time_s"].to_list()
    bits = list(itertools.accumulate(flow["bits"].to_list()))

    def arrived(time_s: float) -> float | None:
        # Between the rows by interpolation.
        after = bisect_right(at, time_s)
        if after in (0, len(at)):
            return bits[-1] if at and time_s == at[-1] else None
        share = (time_s - at[after - 1]) / (at[after] - at[after - 1])
        return float(bits[after - 1] + share * (bits[after] - bits[after - 1]))

    return arrived


def _rates(times: list[float], flow: pl.DataFrame) -> list[float | None]:
    """Goodput in Mbit/s between successive times; `None` before and after the flow."""
    points = list(map(_arrived(flow), (0.0, *times)))
    return [
        None if a is None or b is None else (b - a) / STEP_S / 1e6
        for a, b in itertools.pairwise(points)
    ]


def simulate(
    settings: Settings, length_s: int, on_progress: OnProgress | None = None
) -> tuple[Run, Rrul]:
    """Simulates the test.

    Raises:
        InputError: A setting is wrong.
    """
    try:
        run = run_scenario(scenario(settings, length_s), progress=on_progress or False)
    except _core.ScenarioError as error:
        raise InputError(settings.explain(error)) from error
    return run, of_run(run, length_s, settings.queues)


def of_run(run: Run, length_s: int, queues: str) -> Rrul:
    """Collects the measurements of a run of the test's scenario, behind these queues."""
    group = pl.col("group").cast(pl.String)
    series = run.series.with_columns(group).filter(pl.col("group").is_in(list(DIRECTIONS)))
    arrived = (pl.col("delivered").diff() * 8).over("flow_id", order_by="time_s").fill_null(0)
    stop_s = run.flows.select("flow_id", end_s=pl.lit(LEAD_S + length_s, pl.Float64))
    flows = (
        series.sort("flow_id", "time_s")
        .with_columns(bits=arrived)
        .pipe(until_end, "bits", stop_s)
        .join(_names(run, DSCPS), on="flow_id", maintain_order="left")
        .select(pl.col("group").alias("direction"), pl.col("name").alias("dscp"), "time_s", "bits")
    )
    # The first request of a connection waits for its handshake.
    requests = run.requests.with_columns(group).filter(
        pl.col("start_s") > pl.col("start_s").min().over("flow_id")
    )
    pings = (
        requests.join(_names(run, PINGS), on="flow_id")
        .sort("start_s")
        .select(
            pl.col("name").alias("ping"),
            pl.col("start_s").alias("sent_s"),
            (pl.col("response_s") * 1e3).alias("rtt_ms"),
            pl.lit(None, pl.Float64).alias("up_ms"),
            pl.lit(None, pl.Float64).alias("down_ms"),
        )
    )
    note = f"cwnd {run.manifest.cwnd_version}, simulated: pings are requests on open connections"
    title = f"RRUL, simulated, {queues}"
    return Rrul(flows, pings, length_s, title, note, shows_losses=False)


def _names(run: Run, names: Collection[str]) -> pl.DataFrame:
    """Gives the flows of each group the names in turn: columns `flow_id` and `name`."""
    number = (pl.col("flow_id").rank("dense").over("group").cast(pl.Int64) - 1) % len(names)
    name = number.replace_strict(dict(enumerate(names)), return_dtype=pl.String)
    return run.flows.select("flow_id", name=name)
