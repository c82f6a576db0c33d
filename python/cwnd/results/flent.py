"""A run as data of Flent: goodput of downloads and uploads, and response times as pings.

The document is that of version 4 of `.flent.gz`. Its test is `rrul_be_nflows`: any number of flows
each way, all best effort, since no queue here reads DSCP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.results.data import Data

_TEST = "rrul_be_nflows"
_VERSION = 4
#: Time of the start of a run, which has no date.
_EPOCH = "1970-01-01T00:00:00.000000Z"
_GOODPUT, _PING = "Mbits/s", "ms"


def flent_document(run: Data, index: int) -> dict[str, Any]:
    """Builds the document of a run, given by its index in `runs`.

    Downloads are the flows in the direction of the scenario's first group, uploads the others.
    Groups with requests are pings; a point is the mean of the responses since the last one.

    Raises:
        InputError: The run has no time series of flows.
    """
    run_id = run.runs["run_id"][index]
    resolved = _core.read_toml(run.resolved[index], name="resolved")
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
    series: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = {}
    every: list[list[float | None]] = []
    counts = {}
    for way, groups in _ways(resolved["flow"]).items():
        mine = flows.filter(pl.col("group").is_in(groups))
        found = [_at(times, part) for _, part in mine.group_by("flow_id", maintain_order=True)]
        series |= {f"TCP {way} BE::{n}": values for n, values in enumerate(found, 1)}
        series[f"TCP {way} avg"] = _over(found, mean=True)
        series[f"TCP {way} sum"] = _over(found)
        every += found
        counts[f"{way}_streams"] = str(len(found))
    series["TCP totals"] = _over(every)
    answered = requests.drop_nulls("response_s").select(
        "flow_id",
        (pl.col("start_s") + pl.col("response_s")).alias("time_s"),
        (pl.col("response_s") * 1e3).alias("value"),
    )
    found = []
    for number, (_, part) in enumerate(answered.group_by("flow_id", maintain_order=True), 1):
        name = f"Ping (ms) UDP BE{number}"
        part = part.sort("time_s")  # noqa: PLW2901
        raw[name] = [{"t": t, "val": ms} for t, ms in part.select("time_s", "value").iter_rows()]
        found.append(_at(times, part))
        series[name] = found[-1]
    series["Ping (ms) avg"] = _over(found, mean=True)
    units = {name: _PING if name.startswith("Ping") else _GOODPUT for name in series}
    step = times[1] - times[0] if len(times) > 1 else times[0]
    return {
        "version": _VERSION,
        "metadata": {
            "NAME": _TEST,
            "TITLE": f"{run.name} {run_id}",
            "TIME": _EPOCH,
            "T0": _EPOCH,
            "HOST": "cwnd",
            "HOSTS": ["cwnd"],
            "LOCAL_HOST": "cwnd",
            "LENGTH": times[-1],
            "TOTAL_LENGTH": times[-1],
            "STEP_SIZE": step,
            "IP_VERSION": 4,
            "TEST_PARAMETERS": counts,
            "NOTE": f"cwnd {run.manifest.cwnd_version}: pings are requests on open connections",
            "SERIES_META": {name: {"UNITS": unit} for name, unit in units.items()},
        },
        "x_values": times.to_list(),
        "results": series,
        "raw_values": raw,
    }


def _ways(flow: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Names of the groups of each direction."""
    ends = {name: (of.get("from"), of.get("to"), of.get("direction")) for name, of in flow.items()}
    first = next(iter(ends.values()))
    return {
        "download": [name for name, end in ends.items() if end == first],
        "upload": [name for name, end in ends.items() if end != first],
    }


def _at(times: pl.Series, values: pl.DataFrame) -> list[float | None]:
    """Means of the values since the time before, at each time; `None` without values."""
    points = pl.DataFrame({"at_s": times})
    found = values.sort("time_s").join_asof(
        points, left_on="time_s", right_on="at_s", strategy="forward", coalesce=False
    )
    means = found.group_by("at_s").agg(pl.col("value").mean())
    return points.join(means, on="at_s", how="left", maintain_order="left")["value"].to_list()


def _over(series: list[list[float | None]], *, mean: bool = False) -> list[float | None]:
    """Sums of several series, or means; `None` where all have no value."""
    found: list[float | None] = []
    for at in zip(*series, strict=True):
        values = [value for value in at if value is not None]
        total = sum(values) / (len(values) if mean else 1) if values else None
        found.append(total)
    return found
