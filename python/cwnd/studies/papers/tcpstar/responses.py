"""Response times and individual timeouts, for measures and figures of the TCP*(n) paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.models import response_with_backoff, response_without_backoff
from cwnd.study import at, column, labels

if TYPE_CHECKING:
    from cwnd.results import Run
    from cwnd.study import Point

#: Quantiles at which distributions are compared, from the first tenth to the slowest in a thousand.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

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
        timeouts = [_TIMEOUT_S] * users
        capacity = rate / 8 / _WIRE_B
        arguments = (_TRANSFER, _TIMEOUT_S, timeouts, capacity)
        found.append(
            {
                "seed": seed,
                "flows": users,
                "response_s": users * _TRANSFER * _PAYLOAD_B * 8 / bits,
                "bound_s": response_without_backoff(*arguments),
                "backoff_s": response_with_backoff(*arguments),
            }
        )
    return pl.DataFrame(found)


def responses(run: Run, of: Point, group: str | None = None) -> pl.DataFrame:
    """Response times of the requests at a point: a row each, with `seed`, `group`, `response_s`.

    They are from the first SYN to the last byte. For a request without an answer, because the run
    ended or its connection was given up, it is the time until then, a lower bound.
    """
    rows = at(run, run.requests, of, group=group).with_columns(pl.col("group").cast(pl.String))
    end = run.runs.select("run_id", ended="duration_s")
    waited = pl.col("ended") - pl.col("start_s")
    return rows.join(end, on="run_id").with_columns(
        pl.coalesce(pl.col("response_s"), waited).alias("response_s")
    )


def statistic(what: str) -> pl.Expr:
    """Expression of a statistic of response times: `mean`, `max`, or a quantile such as `p99.9`."""
    time = pl.col("response_s")
    if what == "mean":
        return time.mean()
    if what == "max":
        return time.max()
    return time.quantile(float(what.removeprefix("p")) / 100, "linear")
