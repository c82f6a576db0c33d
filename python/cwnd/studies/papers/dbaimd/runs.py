"""Numbers of runs and series, for measures and figures of the delay-based AIMD thesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import at, labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cwnd.results import Run
    from cwnd.study import Point

BOTTLENECK = "bottleneck"
#: τ0 in ms (appendix A), rate of the link in most figures, and size of a packet with headers.
THRESHOLD_MS, RATE_MBIT_S, PACKET_B = 50.0, 10.0, 1500.0
#: Error in ms up to which an estimate of baseRTT is right: Fig. 4.9 leaves smaller errors out.
RIGHT_MS = 2.0
#: Bits of a data packet and of its ACK of 52 B, whose serialisation baseRTT excludes.
_SENDING_BITS = 8 * (PACKET_B + 52)


def sending_ms(run: Run, of: Point) -> float:
    """Serialisation time of a data packet and its ACK at the fastest link, ms; not in baseRTT."""
    return float(
        _SENDING_BITS / at(run, run.links, of)["rate_bit_s"].max() * 1e3  # type: ignore[operator]
    )


def of_runs(run: Run, of: Point) -> pl.DataFrame:
    """Delays in ms (`peak`, `mean`, `error`), `goodput` in Mbit/s, `utilisation` in %, by `seed`.

    `jain` is an index up to 1; `dropped` and `timeouts` are counts. `error` is the largest minRTT
    less baseRTT and serialisation at the end. Columns of flows cover the bulk flows.
    """
    links = at(run, run.links, of, link=BOTTLENECK)
    flows = at(run, run.flows, of).filter(pl.col("size_bytes").is_null())
    goodput = pl.col("goodput_bit_s")
    of_flows = flows.group_by("seed").agg(
        goodput=goodput.sum() / 1e6,
        jain=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum()),
        error=((pl.col("min_rtt_us") - pl.col("rtt_base_us")) / 1e3).max() - sending_ms(run, of),
        timeouts=pl.col("rto_count").sum(),
    )
    return (
        links.select(
            "seed",
            peak=pl.col("qdelay_max_us") / 1e3,
            mean=pl.col("qdelay_mean_us") / 1e3,
            dropped=pl.col("dropped_total_pkts").cast(pl.Float64),
            utilisation=100 * pl.col("utilisation"),
        )
        .join(of_flows, on="seed")
        .sort("seed")
    )


def along_flows(run: Run, of: Point, what: str) -> tuple[list[int], list[list[float]]]:
    """Numbers of flows, and a column of `of_runs` by the number of flows for each seed."""
    counts = [int(label) for label in labels(run, "flows")]
    columns = [of_runs(run, {**of, "flows": str(n)})[what].to_list() for n in counts]
    return counts, [list(row) for row in zip(*columns, strict=True)]


def bound_ms(flows: float, packet_b: float = PACKET_B) -> float:
    """Eq. 3.7 as a delay in ms: q0 + Σ max(α, 1) packets, for flows that back off below q0."""
    return THRESHOLD_MS + flows * packet_b * 8 / (RATE_MBIT_S * 1e3)


#: δ, the largest fraction of a window after a backoff: the β of bounds 3.6 and 3.8.
DELTA = 0.8


def eq_3_6_ms(rtt_ms: float) -> float:
    """Eq. 3.6 as a delay in ms, for flows of a mean RTT that back off together.

    Between two of their backoffs they grow by Σ α T: from δ B baseRTT to B (baseRTT + τ0).
    """
    return THRESHOLD_MS + (THRESHOLD_MS + (1 - DELTA) * rtt_ms) / (1 - DELTA)


def least_delays(run: Run, of: Point) -> tuple[list[int], list[list[float]]]:
    """Numbers of flows, and the shortest sampled delay by the number of flows for each seed, ms."""
    counts = labels(run, "flows")
    columns = []
    for n in counts:
        rows = at(run, run.link_series, {**of, "flows": n}, link=BOTTLENECK)
        rows = rows.filter(pl.col("time_s") >= run.runs["warmup_s"].max())
        least = rows.group_by("seed").agg(pl.col("sojourn_us").min()).sort("seed")
        columns.append((least["sojourn_us"] / 1e3).to_list())
    return [int(n) for n in counts], [list(row) for row in zip(*columns, strict=True)]


def window_shares(run: Run, of: Point) -> pl.DataFrame:
    """Share of time of each window after the warm-up: `flows`, `seed`, `cwnd`, `share` in %.

    Windows are in whole packets, as Linux counts them; `flows` is the label of that axis.
    """
    rows = at(run, run.series, of).filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    flows = next(axis.column for axis in run.axes if axis.name == "flows")
    counts = rows.group_by(flows, "seed", cwnd=pl.col("snd_cwnd_pkts").floor().cast(pl.Int64)).len()
    return counts.select(
        "seed",
        "cwnd",
        flows=pl.col(flows).cast(pl.String),
        share=100 * pl.col("len") / pl.col("len").sum().over(flows, "seed"),
    )


def share_of_windows(shares: pl.DataFrame, flows: str, most: int) -> list[float]:
    """Share of time of windows of at most `most` packets, in per cent, for each seed."""
    here = shares.filter(pl.col("flows") == flows)
    small = pl.col("share").filter(pl.col("cwnd") <= most).sum()
    return here.group_by("seed").agg(small).sort("seed")["share"].to_list()


def crossing(counts: Sequence[int], values: Sequence[float], level: float) -> float:
    """Number of flows at which a number finally reaches a level, interpolated linearly.

    The result is the largest number of flows if it never does.
    """
    below = [i for i, value in enumerate(values) if value < level]
    if not below:
        return float(counts[0])
    last = below[-1]
    if last == len(counts) - 1:
        return float(counts[-1])
    low, high = values[last], values[last + 1]
    return counts[last] + (counts[last + 1] - counts[last]) * (level - low) / (high - low)


def errors(run: Run, of: Point, group: str | None = None) -> pl.DataFrame:
    """Errors of minRTT over time: `seed`, `flow_id`, `start_s`, `time_s`, `error` in ms.

    The serialisation time of a packet and its ACK, which estimates include, is subtracted.
    """
    rows = at(run, run.series, of, group=group).drop_nulls("min_rtt_us")
    base = at(run, run.flows, of).select("seed", "flow_id", "rtt_base_us", "start_s")
    error = (pl.col("min_rtt_us") - pl.col("rtt_base_us")) / 1e3 - sending_ms(run, of)
    return (
        rows.select("seed", "flow_id", "time_s", "min_rtt_us")
        .join(base, on=["seed", "flow_id"])
        .select("seed", "flow_id", "start_s", "time_s", error=error)
        .sort("seed", "flow_id", "time_s")
    )


def of_seeds(rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yields the rows of each seed, in order."""
    for (seed,), part in rows.sort("seed", maintain_order=True).group_by(
        "seed", maintain_order=True
    ):
        yield int(seed), part


#: Longest shift in seconds of one flow's measurements against another's: round trips of 20 to 200
#: ms differ by less.
LONGEST_SHIFT_S = 0.2


def correlations(rows: pl.DataFrame, longest_s: float = LONGEST_SHIFT_S) -> list[float]:
    """Correlations over time of what flow 1 and each other flow measured last.

    Each other flow is shifted by up to `longest_s` to where the magnitude of the correlation is
    largest (footnote 3).
    """
    wide = (
        rows.pivot(on="flow_id", index="time_s", values="rtt_seen_us").drop_nulls().sort("time_s")
    )
    steps = round(longest_s / wide.select(pl.col("time_s").diff().median()).item())
    first, *others = (name for name in wide.columns if name != "time_s")
    shifts = range(-steps, steps + 1)
    found = []
    for other in others:
        each = wide.select(pl.corr(first, pl.col(other).shift(n)).alias(f"{n}") for n in shifts)
        found.append(float(max(each.row(0), key=abs)))
    return found
