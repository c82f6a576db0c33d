"""What measures and figures of the BECN paper share: numbers of flows, bottleneck and objects."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.reproduce import at

if TYPE_CHECKING:
    from cwnd.reproduce import Point
    from cwnd.results import Run

#: The bottleneck, and the way back that ACKs and source quenches take: here, and in the scenarios
#: of Linux.
BOTTLENECK, BACK = "bottleneck", ("back", "reverse")


def numbers(run: Run, what: str, of: Point, group: str | None = None) -> list[float]:
    """A number of the flows, the bottleneck or the objects, by what its column is called below.

    `goodput` is of flows, and so is `loss` where there is a `group`; for each seed.
    """
    if what == "time":
        rows = of_objects(run, of)
    elif what == "goodput" or group is not None:
        rows = of_flows(run, of, group)
    else:
        rows = of_bottleneck(run, of)
    return rows[what].to_list()


def leads(run: Run, of: Point) -> list[float]:
    """How much more goodput a tested flow has than a plain one beside it, in per cent."""
    tested, plain = (numbers(run, "goodput", of, group) for group in ("tested", "plain"))
    return gains(tested, plain)


def gains(after: list[float], before: list[float]) -> list[float]:
    """How much larger one number is than the other, in per cent, seed by seed.

    Of two that are zero none is the larger; over a zero alone, any number is without bound.
    """
    pairs = zip(after, before, strict=True)
    return [100 * (a / b - 1) if b else (inf if a else 0.0) for a, b in pairs]


def of_flows(run: Run, of: Point, group: str | None = None) -> pl.DataFrame:
    """By `seed`: the mean `goodput` of a flow, Mbit/s, and the `loss` of them all, %.

    Of a group, or of all flows. Lost is what was sent and did not arrive: all of it at the
    bottleneck (§ V-B 3).
    """
    rows = at(run, run.flows.with_columns(pl.col("group").cast(pl.String)), of)
    if group is not None:
        rows = rows.filter(pl.col("group") == group)
    arrived = pl.col("throughput_bit_s") * pl.col("duration_s") / 8 / _packet_bytes(run)
    return (
        rows.group_by("seed", maintain_order=True)
        .agg(
            goodput=pl.col("goodput_bit_s").mean() / 1e6,
            loss=100 * (1 - arrived.sum() / pl.col("segments_sent").sum()),
        )
        .sort("seed")
    )


def of_bottleneck(run: Run, of: Point) -> pl.DataFrame:
    """By `seed`: `loss`, `marks` and `utilisation`, %, the mean `queue`, kB, and `quenches`.

    Quenches are those that the bottleneck sends, in per cent of the packets on the way back, ACKs
    and quenches (§ VI-E).
    """
    links = at(run, run.links.with_columns(pl.col("link").cast(pl.String)), of)
    back = links.filter(pl.col("link").is_in(BACK)).select("seed", back="arrived_total_pkts")
    bottleneck = links.filter(pl.col("link") == BOTTLENECK).join(back, on="seed")
    told = pl.col("quenches_total_pkts").fill_null(0)
    arrived = pl.col("arrived_pkts")
    return bottleneck.select(
        "seed",
        loss=100 * pl.col("dropped_pkts") / arrived,
        marks=100 * pl.col("marked_pkts") / arrived,
        utilisation=100 * pl.col("utilisation"),
        queue=pl.col("qlen_mean_bytes") / 1e3,
        # Quenches come in between the router and the hosts, and not over the way back.
        quenches=100 * told / (pl.col("back") + told),
    ).sort("seed")


def of_objects(run: Run, of: Point) -> pl.DataFrame:
    """By `seed`: the mean `time` of an object, s, from its request to its last ACK (§ V-B 2).

    Of those whose last ACK came before the run was over.
    """
    rows = at(run, run.requests, of)
    return rows.group_by("seed").agg(pl.col("acked_s").mean().alias("time")).sort("seed")


def _packet_bytes(run: Run) -> int:
    """A packet of data, of which all flows have the same: 1000 B in the paper (§ V-A)."""
    scenario = _core.read_toml(run.resolved[0], name="the scenario of a run")
    sizes = {
        sum(int(_core.read_quantity("bytes", flow["endpoint"][part])) for part in ("mss", "header"))
        for flow in scenario["flow"].values()
    }
    (size,) = sizes
    return size
