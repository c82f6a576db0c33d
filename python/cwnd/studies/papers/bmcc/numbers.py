"""Numbers of links, windows and files, for measures and figures of the BMCC paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import at

if TYPE_CHECKING:
    from cwnd.results import Run
    from cwnd.study import Point

BOTTLENECK = "bottleneck"
#: Size of a packet on the wire in bytes (§ VII).
PACKET_B = 1000
_BITS = 8
#: Minimum buffer in packets per flow, which applies if the BDP is smaller (§ VII).
_PACKETS_OF_FLOW = 2
#: Ratio of received paper-sized packets to sent segments from which segments are larger ones.
_OTHER_PACKETS = 1.2


def of_links(run: Run, of: Point) -> pl.DataFrame:
    """`utilisation`, mean `queue` and `loss` at the bottleneck in per cent, and `lost`, by `seed`.

    The queue is relative to the paper's buffer: the BDP of the long-lived flows' mean round trip,
    or two packets of each flow of the first group if that is more (§ VII). `loss` is relative to
    all packets that arrived. `lost` counts dropped packets over the whole run.
    """
    flows = at(run, run.flows, of).filter(_group() != "web")
    if flows.is_empty():
        flows = at(run, run.flows, of)
    paths = flows.group_by("run_id").agg(
        rtt_us=pl.col("rtt_base_us").mean(),
        n=(_group() == _group().first()).sum(),
    )
    bdp = pl.col("rate_bit_s") * pl.col("rtt_us") / 1e6 / _BITS
    buffer = pl.max_horizontal(bdp, pl.col("n") * _PACKETS_OF_FLOW * PACKET_B)
    rows = at(run, run.links, of, link=BOTTLENECK)
    return (
        rows.join(paths, on="run_id")
        .select(
            "seed",
            utilisation=100 * pl.col("utilisation"),
            queue=100 * pl.col("qlen_mean_bytes") / buffer,
            loss=100 * pl.col("drop_ratio"),
            lost=pl.col("dropped_total_pkts").cast(pl.Float64),
        )
        .sort("seed")
    )


def of_flows(run: Run, of: Point) -> pl.DataFrame:
    """Jain's index of the forward flows' goodputs, `jain`, and mean `time` of files, s, by `seed`.

    `time` covers the files of the group `web` that started after the warm-up and were done before
    the end of the run; it is null without such files.
    """
    rows = at(run, run.flows, of)
    goodput = pl.col("goodput_bit_s")
    shares = (
        rows.filter(_group() == "there")
        .group_by("seed")
        .agg(jain=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum()))
    )
    warmup = run.runs["warmup_s"].max()
    times = (
        rows.filter((_group() == "web") & (pl.col("start_s") >= warmup))
        .group_by("seed")
        .agg(time=pl.col("fct_s").mean())
    )
    both = rows.select("seed").unique().join(shares, on="seed", how="left")
    return both.join(times, on="seed", how="left").sort("seed")


def of_acks(run: Run, of: Point) -> pl.DataFrame:
    """Share of ACKs that carry the estimate, `told`, in %, of both directions and the whole run.

    With packets of the paper's size each segment that arrives counts as an ACK (`ack_every = 1`).
    With others, ACKs are the packets that arrived at links minus the segments sent.
    """
    rows = at(run, run.flows, of)
    bytes_ = pl.col("throughput_bit_s") * pl.col("duration_s") / _BITS
    flows = rows.group_by("seed").agg(
        arrived=(bytes_ / PACKET_B).sum(), segments=pl.col("segments_sent").sum()
    )
    links = at(run, run.links, of).group_by("seed").agg(packets=pl.col("arrived_pkts").sum())
    own = pl.col("arrived") < _OTHER_PACKETS * pl.col("segments")
    acks = pl.when(own).then(pl.col("arrived")).otherwise(pl.col("packets") - pl.col("segments"))
    carrying = at(run, run.runs, of).select("seed", carrying="activity_load_acks_heard")
    return (
        flows.join(links, on="seed")
        .join(carrying, on="seed")
        .select("seed", told=100 * pl.col("carrying") / acks)
        .sort("seed")
    )


def windows(run: Run, of: Point) -> pl.DataFrame:
    """Windows over time in packets: `seed`, `group`, `flow_id`, `time_s`, `cwnd`, sorted."""
    rows = at(run, run.series, of)
    return rows.select(
        "seed", _group().alias("group"), "flow_id", "time_s", cwnd="snd_cwnd_pkts"
    ).sort("seed", "flow_id", "time_s")


def _group() -> pl.Expr:
    return pl.col("group").cast(pl.String)
