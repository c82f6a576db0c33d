"""Numbers and dynamics of links, windows and files, for measures and figures of the BMCC paper."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from cwnd.models import bmcc as model
from cwnd.study import at

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    `queue` is relative to the BDP of the long-lived flows' mean round trip. `buffer_used` is the
    queue relative to the paper's buffer: the BDP, or two packets for each flow of both directions
    if that is more (§ VII). `loss` is relative to all packets that arrived. `lost` counts dropped
    packets over the whole run.
    """
    flows = at(run, run.flows, of).filter(_group() != "web")
    if flows.is_empty():
        flows = at(run, run.flows, of)
    paths = flows.group_by("run_id").agg(
        rtt_us=pl.col("rtt_base_us").mean(),
        n=pl.len(),
    )
    bdp = pl.col("rate_bit_s") * pl.col("rtt_us") / 1e6 / _BITS
    buffer = pl.max_horizontal(bdp, pl.col("n") * _PACKETS_OF_FLOW * PACKET_B)
    rows = at(run, run.links, of, link=BOTTLENECK)
    return (
        rows.join(paths, on="run_id")
        .select(
            "seed",
            utilisation=100 * pl.col("utilisation"),
            queue=100 * pl.col("qlen_mean_bytes") / bdp,
            buffer_used=100 * pl.col("qlen_mean_bytes") / buffer,
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


#: t_p (§ II-D.1), and the round trip of `fig04`, s.
INTERVAL_S = 0.2
#: Ratio of successive samples of the window below which it was decreased.
_FALL = 0.97
#: Averaging intervals of Fig. 3, s.
SPANS_S = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True)
class Case:
    """A case of `fig04`: packets in the round trip, number of flows, and β."""

    packets: int
    flows: int
    decrease: model.Decrease

    @staticmethod
    def of(label: str) -> Case:
        """Parses a label such as `1000 packets, 2 flows, 0.875 to 0.65`."""
        packets, flows, betas = label.split(", ")
        most, _, least = betas.partition(" to ")
        decrease = model.Decrease(float(most), float(least or most))
        return Case(int(packets.split()[0]), int(flows.split()[0]), decrease)

    @property
    def varies(self) -> bool:
        """`True` if β depends on the load, as in BMCC."""
        return self.decrease.least < self.decrease.most

    def model(self, what: str, lacking: float) -> float:
        """Value of `m`, `d_e` or `r` by eq. 8 and 9; m in decreases, the others in round trips."""
        if what == "d_e":
            return model.epoch_rtts(self.flows, self.packets, decrease=self.decrease)
        if what == "m":
            return model.epochs_to_fairness(
                self.flows, self.packets, lacking, decrease=self.decrease
            )
        return model.fairness_rtts(self.flows, self.packets, lacking, decrease=self.decrease)


def rounds(run: Run, label: str, lacking: float) -> pl.DataFrame:
    """Measured `m`, `d_e` and `r` of a case of `fig04`, from windows of the flows, by `seed`.

    The period starts when the late flow's deficit is one share B = k/N, as in eq. 8, and ends when
    the deficit is the fraction `lacking` of B. It has m decreases in r round trips; both are null
    if the run ends earlier. d_e is the mean time between decreases after the late flow's start, in
    round trips; null with fewer than three.
    """
    case = Case.of(label)
    share = case.packets / case.flows
    found = []
    for (seed,), part in windows(run, {"case": label}).group_by("seed", maintain_order=True):
        table = (
            (
                part.group_by("time_s", "group")
                .agg(pl.col("cwnd").mean())
                .pivot(on="group", index="time_s", values="cwnd")
            )
            .drop_nulls()
            .sort("time_s")
        )
        gap = (table["long"] - table["late"]).to_numpy()
        times, long = table["time_s"].to_numpy(), table["long"].to_numpy()
        falls = times[1:][long[1:] < _FALL * long[:-1]]
        # Falls at most two samples apart are one decrease.
        falls = falls[np.diff(falls, prepend=-1.0) > 2.5 * INTERVAL_S]
        begin, end = _first(times, gap <= share), _first(times, gap <= lacking * share)
        between = (
            float(np.diff(falls).mean()) / INTERVAL_S
            if len(falls) > 2  # noqa: PLR2004
            else None
        )
        row: dict[str, object] = {"seed": seed, "m": None, "d_e": between, "r": None}
        if begin is not None and end is not None:
            row["m"] = float(((falls > begin) & (falls <= end)).sum())
            row["r"] = (end - begin) / INTERVAL_S
        found.append(row)
    return pl.DataFrame(
        found, schema={"seed": pl.UInt64, "m": pl.Float64, "d_e": pl.Float64, "r": pl.Float64}
    )


def _first(times: np.ndarray, holds: np.ndarray) -> float | None:
    found = np.flatnonzero(holds)
    return float(times[found[0]]) if len(found) else None


def overload_detection(run: Run, of: Point) -> pl.DataFrame:
    """P(R > d) as `unseen`, E[R] as `packets`, and number of `onsets`, by `seed` (§ V-A).

    An onset is an interval with a load factor in [1, u) after one below 1. The first packet that
    can convey it returns one round trip later. R counts the flow's packets that arrive from then
    until the sender's estimate reaches 1, at most d = B/N + 1 of them (proof of Lemma 1), where B
    is the BDP of the mean round trip. `late` is the share of flows that notice nothing within t_p,
    as the captions of Fig. 8 and 9 have it. Onsets at u and above are left out, as in the paper.
    """
    links = at(run, run.link_series, of, link=BOTTLENECK)
    # Selecting columns saves memory, as most samples are not needed here.
    columns = [*run.key_columns, "flow_id", "time_s", "load_factor_seen", "delivered"]
    series = at(run, run.samples["series"].select(columns).collect(), of).sort("time_s")
    warmup = float(run.runs["warmup_s"][0])
    flows = at(run, run.flows, of)
    rtts = flows.select("seed", "flow_id", rtt_s=pl.col("rtt_base_us") / 1e6)
    rate_bit_s = float(at(run, run.links, of, link=BOTTLENECK)["rate_bit_s"][0])
    found = []
    for (seed,), link in links.sort("time_s").group_by("seed", maintain_order=True):
        load = link["load_factor"].fill_null(0.0).to_numpy()
        onsets = _onsets(link["time_s"].to_numpy(), load, warmup)
        of_seed = rtts.filter(pl.col("seed") == seed)["rtt_s"]
        most = int(rate_bit_s * float(of_seed.sum()) / of_seed.len() ** 2 / _BITS / PACKET_B) + 1
        each = [
            one
            for (flow,), part in series.filter(pl.col("seed") == seed).group_by("flow_id")
            for one in _answers(part, onsets, _rtt(rtts, seed, flow), most)
        ]
        found.append(
            {
                "seed": seed,
                "unseen": mean(one.unseen for one in each) if each else None,
                "late": mean(one.late for one in each) if each else None,
                "packets": mean(one.packets for one in each) if each else None,
                "onsets": len(onsets),
            }
        )
    return pl.DataFrame(found).sort("seed")


def _rtt(rtts: pl.DataFrame, seed: object, flow: object) -> float:
    mine = rtts.filter((pl.col("seed") == seed) & (pl.col("flow_id") == flow))
    return float(mine["rtt_s"][0])


@dataclass(frozen=True)
class _Answer:
    """A flow's answer to an onset."""

    #: `True` if the estimate did not reach 1 within d packets, and within t_p.
    unseen: bool
    late: bool
    #: Packets until it did, at most d.
    packets: float


def _answers(part: pl.DataFrame, onsets: list[float], rtt_s: float, most: int) -> Iterator[_Answer]:
    """Yields the answer of a flow to each onset that is decided, with `most` for d."""
    times, load = part["time_s"].to_numpy(), part["load_factor_seen"].to_numpy()
    arrived = part["delivered"].to_numpy() / _PAYLOAD_B
    # What has arrived when a sample's newest ACK left the receiver.
    told = arrived[np.maximum(np.searchsorted(times, times - rtt_s / 2), 0)]
    for onset in onsets:
        first = int(np.searchsorted(times, onset + rtt_s))
        # Onsets near the end of the run are undecided, as are those before which the estimate was 1
        # or more.
        if first == 0 or first >= len(times) or load[first - 1] >= 1:
            continue
        within = np.flatnonzero(told[first:] - told[first] <= most) + first
        by_time = np.flatnonzero(times[first:] < onset + rtt_s + INTERVAL_S) + first
        if within[-1] == len(times) - 1 or by_time[-1] == len(times) - 1:
            continue
        over = within[load[within] >= 1]
        packets = float(told[over[0]] - told[first]) if len(over) else float(most)
        yield _Answer(not len(over), not (load[by_time] >= 1).any(), packets)


#: Payload of a packet in bytes: packets of 1000 B with headers of 40 B (§ VII).
_PAYLOAD_B = 960


def _onsets(times: np.ndarray, load: np.ndarray, warmup: float) -> list[float]:
    """End times of intervals after the warm-up with a load factor in [1, u) after one below 1."""
    changed = np.flatnonzero(np.diff(load) != 0) + 1
    return [
        float(times[i])
        for i in changed
        if load[i - 1] < 1 <= load[i] < model.OVERLOAD and times[i] > warmup
    ]


def fairness_rates(run: Run, of: Point, span_s: float) -> list[float]:
    """fr(τ, s) of § III c for each seed: mean of the faster flow's rate over the slower one's.

    The windows of `span_s` start at each sample after the warm-up. A flow without an arrival in a
    window counts with one packet.
    """
    rows = at(run, run.series, of).filter(_group() == "there")
    warmup = run.runs["warmup_s"].max()
    found = []
    for _, part in rows.group_by("seed", maintain_order=True):
        table = (
            part.filter(pl.col("time_s") >= warmup)
            .select("time_s", "flow_id", pl.col("delivered").cast(pl.Float64))
            .pivot(on="flow_id", index="time_s", values="delivered")
            .sort("time_s")
        )
        step = round(span_s / (table["time_s"][1] - table["time_s"][0]))
        sent = table.drop("time_s").to_numpy()
        each = np.maximum(sent[step:] - sent[:-step], _PAYLOAD_B)
        found.append(float((each.max(axis=1) / each.min(axis=1)).mean()))
    return found


def shares(run: Run, of: Point, span_s: float = 1.0) -> pl.DataFrame:
    """Mean rate of each group's flows over time: `seed`, `group`, `time_s`, `mbit_s`.

    Each mean is over `span_s` before a sample.
    """
    rows = at(run, run.series, of).with_columns(pl.col("group").cast(pl.String))
    step = round(span_s / _step(rows))
    bits = pl.col("delivered").cast(pl.Int64).diff(step).over("seed", "flow_id") * 8
    return (
        rows.sort("seed", "flow_id", "time_s")
        .with_columns(mbit_s=bits / span_s / 1e6)
        .drop_nulls("mbit_s")
        .group_by("seed", "group", "time_s", maintain_order=True)
        .agg(pl.col("mbit_s").mean())
    )


def _step(rows: pl.DataFrame) -> float:
    times = rows["time_s"].unique().sort()
    return float(times[1] - times[0])
