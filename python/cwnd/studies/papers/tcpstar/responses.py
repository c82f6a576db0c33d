"""Response times and individual timeouts, for measures and figures of the TCP*(n) paper."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.models import response_with_backoff, response_without_backoff
from cwnd.study import at, column, labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cwnd.results import Run
    from cwnd.study import Point

#: Quantiles at which distributions are compared, from the first tenth to the slowest in a thousand.
QUANTILES = ("p10", "p25", "p50", "p75", "p90", "p95", "p98", "p99", "p99.5", "p99.9")

#: Parameters of the scenario `theorem`: segments of a transfer, bytes of one on the wire and of its
#: payload, and the timeout, s.
_TRANSFER, _WIRE_B, _PAYLOAD_B, _TIMEOUT_S = 20, 1250, 1198, 1.0

#: Start time in seconds after which connections of the scenario `syn` lack time for five SYNs.
_SYNS_UNTIL_S = 500.0


def timeouts_of(run: Run, rounds: int) -> dict[tuple[str, str], list[float]]:
    """Consecutive timeouts of each run of `fig01` in seconds, by kind of packet and n.

    Each is read when the one before has expired.
    """
    found = {}
    for packet in labels(run, "packet"):
        for n in labels(run, "n"):
            rows = at(run, run.series, {"packet": packet, "n": n}).sort("time_s")
            elapsed, seen = 0.0, []
            for _ in range(rounds):
                now = rows.filter(pl.col("time_s") > elapsed)["rto_us"][0] / 1e6
                seen.append(now)
                elapsed += now
            found[packet, n] = seen
    return found


def rejections(run: Run, of: Point) -> pl.DataFrame:
    """Share of connections of `syn` that were given up at their SYN, among those with enough time.

    Columns: `seed`, the share `rejected`, and the share `dropped` of all packets at the queue.
    """
    web = at(run, run.flows, of, group="web").filter(pl.col("start_s") < _SYNS_UNTIL_S)
    given_up = (pl.col("gave_up").cast(pl.String) == "syn").mean().alias("rejected")
    dropped = pl.col("dropped_total_pkts") / pl.col("arrived_total_pkts")
    link = at(run, run.links, of, link="bottleneck")
    shares = web.group_by("seed").agg(given_up)
    return shares.join(link.select("seed", dropped.alias("dropped")), on="seed").sort("seed")


def aggregate_response_s(run: Run, of: Point) -> pl.DataFrame:
    """Mean response times of a fixed number of users who transfer all the time, by Little's law.

    Columns: `seed`, `flows`, `response_s`, and in closed form `bound_s` (eq. 3) and `backoff_s`
    (eq. 6).
    """
    rows = at(run, run.flows, of)
    goodput = pl.col("goodput_bit_s").sum()
    rate = at(run, run.links, {}, link="bottleneck")["rate_bit_s"][0]
    found = []
    for (seed, flows), part in rows.group_by("seed", column(run, "flows"), maintain_order=True):
        users = int(str(flows))
        bits = part.select(goodput).item()
        bound, backoff = closed_forms(users, rate / 8 / _WIRE_B)
        found.append(
            {
                "seed": seed,
                "flows": users,
                "response_s": users * _TRANSFER * _PAYLOAD_B * 8 / bits,
                "bound_s": bound,
                "backoff_s": backoff,
            }
        )
    return pl.DataFrame(found)


def closed_forms(users: int, capacity_pkts_s: float) -> tuple[float, float]:
    """Response times of users in permanent backoff by eq. 3 and by eq. 6, s."""
    arguments = (_TRANSFER, _TIMEOUT_S, [_TIMEOUT_S] * users, capacity_pkts_s)
    return response_without_backoff(*arguments), response_with_backoff(*arguments)


def responses(run: Run, of: Point, group: str | None = None) -> pl.DataFrame:
    """Response times of the requests at a point: a row each, with `seed`, `response_s` and axes.

    They are from the first SYN to the last byte. For a request without an answer, because the run
    ended or its connection was given up, it is the time until then, a lower bound.
    """
    wanted = ["run_id", "seed", *run.axis_columns, "group", "start_s", "response_s"]
    # Only the rows at the point are read.
    requests: Any = run.samples["requests"].select(wanted)
    end = run.runs.lazy().select("run_id", ended="duration_s")
    waited = pl.col("ended") - pl.col("start_s")
    rows: Any = at(run, requests, of, group=group)
    found: pl.DataFrame = (
        rows.join(end, on="run_id")
        .with_columns(pl.coalesce(pl.col("response_s"), waited).alias("response_s"))
        .collect()
    )
    return found


def statistics(run: Run, of: Point, group: str | None, *what: str) -> pl.DataFrame:
    """Statistics of the response times at a point, a row for each seed and a column for each."""
    rows = responses(run, of, group).group_by("seed")
    return rows.agg(statistic(each).alias(each) for each in what).sort("seed")


def ratios(
    run: Run, of: Point, over: Point, group: str | None, what: Iterable[str]
) -> dict[str, list[float]]:
    """Ratios of statistics of response times at `of` to `over`: a value for each seed."""
    names = list(what)
    after, before = (statistics(run, point, group, *names) for point in (of, over))
    both = after.join(before, on="seed", suffix="/before", maintain_order="left")
    return {name: (both[name] / both[f"{name}/before"]).to_list() for name in names}


def worst(found: Mapping[str, list[float]]) -> tuple[str, list[float]]:
    """Name and values of the largest mean over seeds."""
    return max(found.items(), key=lambda each: fmean(each[1]))


def statistic(what: str) -> pl.Expr:
    """Expression of a statistic of response times: `mean`, `max`, or a quantile such as `p99.9`."""
    time = pl.col("response_s")
    if what == "mean":
        return time.mean()
    if what == "max":
        return time.max()
    return time.quantile(float(what.removeprefix("p")) / 100, "linear")
