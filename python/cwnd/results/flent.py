"""Results as data of Flent: goodput of downloads and uploads, and pings.

The document is that of version 4 of `.flent.gz`. A run's test is `rrul_be_nflows`: any number of
flows each way, all best effort, since no queue here reads DSCP. Its pings are response times.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from cwnd import _core
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.results.data import Data

#: Values at each time; `None` where there is none.
Values: TypeAlias = "list[float | None]"

_VERSION = 4
#: Time of the start of a run, which has no date.
_EPOCH = "1970-01-01T00:00:00.000000Z"
_GOODPUT, _PING = "Mbits/s", "ms"


@dataclass(frozen=True)
class FlentData:
    """Measurements for a file of Flent."""

    #: Flent's name of the test, which chooses its figures.
    test: str
    title: str
    note: str
    #: Times of the points in seconds, at equal distances.
    times: list[float]
    #: Goodput in Mbit/s at each time, by direction (download, upload) and Flent's name of the flow.
    flows: Mapping[str, Mapping[str, Values]]
    #: Pings by name: columns `time_s` of the answer and `value` in ms.
    pings: Mapping[str, pl.DataFrame]
    #: Time under load in seconds; the whole time if not given.
    length_s: float | None = None
    #: Parameters of the test.
    parameters: Mapping[str, str] = field(default_factory=dict)

    def file(self) -> bytes:
        """Returns the file; equal data give equal bytes, as it has no time of writing."""
        return gzip.compress(json.dumps(self.document()).encode(), mtime=0)

    def document(self) -> dict[str, Any]:
        """Returns the content of the file; a point of a ping is the mean since the last one."""
        times = self.times
        series: dict[str, Values] = {}
        for direction, flows in self.flows.items():
            series |= {f"TCP {direction} {name}": values for name, values in flows.items()}
            if flows:
                series[f"TCP {direction} avg"] = _over(list(flows.values()), mean=True)
                series[f"TCP {direction} sum"] = _over(list(flows.values()))
        every = [values for flows in self.flows.values() for values in flows.values()]
        if every:
            series["TCP totals"] = _over(every)
        raw: dict[str, list[dict[str, float]]] = {}
        points = []
        for ping, answers in self.pings.items():
            name = f"Ping (ms) {ping}"
            rows = answers.select("time_s", "value").sort("time_s")
            raw[name] = [{"t": t, "val": ms} for t, ms in rows.iter_rows()]
            series[name] = _means(pl.Series(times), rows)
            points.append(series[name])
        if points:
            series["Ping (ms) avg"] = _over(points, mean=True)
        units = {name: _PING if name.startswith("Ping") else _GOODPUT for name in series}
        return {
            "version": _VERSION,
            "metadata": {
                "NAME": self.test,
                "TITLE": self.title,
                "TIME": _EPOCH,
                "T0": _EPOCH,
                "HOST": "cwnd",
                "HOSTS": ["cwnd"],
                "LOCAL_HOST": "cwnd",
                "LENGTH": times[-1] if self.length_s is None else self.length_s,
                "TOTAL_LENGTH": times[-1],
                "STEP_SIZE": times[1] - times[0] if len(times) > 1 else times[0],
                "IP_VERSION": 4,
                "TEST_PARAMETERS": dict(self.parameters),
                "NOTE": self.note,
                "SERIES_META": {name: {"UNITS": unit} for name, unit in units.items()},
            },
            "x_values": times,
            "results": series,
            "raw_values": raw,
        }


def flent_data(run: Data, index: int) -> FlentData:
    """Collects the data of a run, given by its index in `runs`.

    Downloads are the flows in the direction of the scenario's first group, uploads the others.
    Groups with requests are pings.

    Raises:
        InputError: The run has no time series of flows.
    """
    run_id = run.runs["run_id"][index]
    groups_of = _core.read_toml(run.resolved[index], name="resolved")["flow"]
    group = pl.col("group").cast(pl.String)
    requests = run.samples_of("requests", [run_id]).with_columns(group).collect()
    pings = requests["group"].unique().to_list()
    sampled = run.samples_of("series", [run_id]).with_columns(group)
    times = sampled.select("time_s").unique().sort("time_s").collect()["time_s"][1:]
    flows = (
        sampled.filter(~pl.col("group").is_in(pings))
        .select(
            *("time_s", "flow_id", "group"),
            (pl.col("delivered").diff() * 8e-6 / pl.col("time_s").diff())
            .over("flow_id", order_by="time_s")
            .alias("value"),
        )
        .collect()
    )
    if times.is_empty():
        raise InputError(
            f"{run.name}: run {run_id} has no time series of flows, which `[run] sample` asks for"
        )
    flows = until_end(
        flows, "value", _ends(run.flows.filter(pl.col("run_id") == run_id), groups_of)
    )
    directions: dict[str, dict[str, Values]] = {}
    for direction, groups in _directions(groups_of).items():
        mine = flows.filter(pl.col("group").is_in(groups))
        found = [_means(times, part) for _, part in mine.group_by("flow_id", maintain_order=True)]
        directions[direction] = {f"BE::{n}": values for n, values in enumerate(found, 1)}
    answered = requests.drop_nulls("response_s").select(
        "flow_id",
        (pl.col("start_s") + pl.col("response_s")).alias("time_s"),
        (pl.col("response_s") * 1e3).alias("value"),
    )
    clients = answered.group_by("flow_id", maintain_order=True)
    return FlentData(
        "rrul_be_nflows",
        f"{run.name} {run_id}",
        f"cwnd {run.manifest.cwnd_version}: pings are requests on open connections",
        times.to_list(),
        directions,
        {f"UDP BE{number}": part for number, (_, part) in enumerate(clients, 1)},
        parameters={f"{name}_streams": str(len(of)) for name, of in directions.items()},
    )


def until_end(flows: pl.DataFrame, value: str, end_s: pl.DataFrame) -> pl.DataFrame:
    """Leaves out rows after the end of their flow and after its last `value` above zero.

    `end_s` has the columns `flow_id` and `end_s`; flows without a row do not end.
    """
    last_s = pl.col("time_s").filter(pl.col(value) > 0).max().over("flow_id")
    is_open = pl.col("time_s") <= pl.max_horizontal("end_s", last_s)
    known = flows.join(end_s, on="flow_id", how="left", maintain_order="left")
    return known.filter(pl.col("end_s").is_null() | is_open).drop("end_s")


def _ends(flows: pl.DataFrame, groups: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Times from which flows send nothing new, by `flow_id`; complete transfers have their data."""
    stops = {
        name: _core.read_quantity("time", group["stop"])
        for name, group in groups.items()
        if group.get("stop", "none") != "none"
    }
    stop = (
        pl.col("group").cast(pl.String).replace_strict(stops, default=None, return_dtype=pl.Float64)
    )
    complete = pl.when(pl.col("fct_s").is_not_null()).then(0.0)
    return flows.select("flow_id", end_s=pl.min_horizontal(stop, complete)).drop_nulls()


def _directions(flow: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names of the groups of each direction."""
    ends = {name: (of.get("from"), of.get("to"), of.get("direction")) for name, of in flow.items()}
    first = next(iter(ends.values()))
    return {
        "download": [name for name, end in ends.items() if end == first],
        "upload": [name for name, end in ends.items() if end != first],
    }


def _means(times: pl.Series, values: pl.DataFrame) -> Values:
    """Means of the values since the time before, at each time; `None` without values."""
    points = pl.DataFrame({"at_s": times})
    found = values.sort("time_s").join_asof(
        points, left_on="time_s", right_on="at_s", strategy="forward", coalesce=False
    )
    averages = found.group_by("at_s").agg(pl.col("value").mean())
    return points.join(averages, on="at_s", how="left", maintain_order="left")["value"].to_list()


def _over(series: list[Values], *, mean: bool = False) -> Values:
    """Sums of several series, or means; `None` where all have no value."""
    found: Values = []
    for at in zip(*series, strict=True):
        values = [value for value in at if value is not None]
        total = sum(values) / (len(values) if mean else 1) if values else None
        found.append(total)
    return found
