"""Numbers of flows, bottleneck and objects of the BECN paper, and measures of its claims by seed.

`what` is a column of a table below: `goodput` of flows, and their `loss` with a `group`; `time` of
web objects, and `web_loss` of their packets; `loss`, `marks`, `utilisation`, `queue` and `quenches`
of the bottleneck.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import polars as pl

from cwnd import _core
from cwnd.study import at, differences, labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd.results import Run
    from cwnd.study import Measure, Point, Results


#: Names of the bottleneck, and of the reverse link: here, and in the scenarios of Linux.
BOTTLENECK, BACK = "bottleneck", ("back", "reverse")
#: Upper threshold of RED in bytes, and the probability of a mark there (§ V-A).
_MAX_TH, _MAX_P = 45_000, 0.1


def numbers(run: Run, what: str, of: Point, group: str | None = None) -> list[float]:
    """Values of a column of the tables below, one for each seed.

    `goodput` is that of flows, and so is `loss` with a `group`.
    """
    if what == "time":
        rows = of_objects(run, of)
    elif what == "web_loss":
        rows = of_web(run, of)
    elif what == "goodput" or group is not None:
        rows = of_flows(run, of, group)
    else:
        rows = of_bottleneck(run, of)
    return rows[what].to_list()


def leads(run: Run, of: Point) -> list[float]:
    """Relative lead in goodput of a tested flow over a plain one beside it, %, by seed."""
    tested, plain = (numbers(run, "goodput", of, group) for group in ("tested", "plain"))
    return gains(tested, plain)


def gains(after: list[float], before: list[float]) -> list[float]:
    """Relative difference of numbers in per cent, seed by seed.

    It is zero for two zeros, and infinite for a positive number over zero.
    """
    pairs = zip(after, before, strict=True)
    return [100 * (a / b - 1) if b else (inf if a else 0.0) for a, b in pairs]


def of_flows(run: Run, of: Point, group: str | None = None) -> pl.DataFrame:
    """Mean `goodput` of a flow in Mbit/s, and `loss` of all flows in %, by `seed`.

    The flows are those of a group, or all. Lost packets were sent and did not arrive; all of them
    are lost at the bottleneck (§ V-B 3).
    """
    rows = at(run, run.flows, of, group=group)
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
    """`loss`, `marks` and `utilisation` in %, mean `queue` in kB, and `quenches` in %, by `seed`.

    `quenches` is the share of the bottleneck's quenches in the packets on the reverse path, ACKs
    and quenches (§ VI-E).
    """
    links = at(run, run.links.with_columns(pl.col("link").cast(pl.String)), of)
    back = links.filter(pl.col("link").is_in(BACK)).select("seed", back="arrived_total_pkts")
    bottleneck = links.filter(pl.col("link") == BOTTLENECK).join(back, on="seed")
    sent = pl.col("quenches_total_pkts").fill_null(0)
    arrived = pl.col("arrived_pkts")
    return bottleneck.select(
        "seed",
        loss=100 * pl.col("dropped_pkts") / arrived,
        marks=100 * pl.col("marked_pkts") / arrived,
        utilisation=100 * pl.col("utilisation"),
        queue=pl.col("qlen_mean_bytes") / 1e3,
        # Quenches are delivered between router and hosts, and do not cross the reverse link.
        quenches=100 * sent / (pl.col("back") + sent),
    ).sort("seed")


def of_objects(run: Run, of: Point) -> pl.DataFrame:
    """Mean `time` of an object from its request to its last ACK, s, by `seed` (§ V-B 2).

    It includes only objects whose last ACK came before the end of the run.
    """
    rows = at(run, run.requests, of)
    return rows.group_by("seed").agg(pl.col("acked_s").mean().alias("time")).sort("seed")


def of_web(run: Run, of: Point) -> pl.DataFrame:
    """`web_loss`, % of the web connections' packets that the bottleneck drops, by `seed`.

    These are the bottleneck's packets and drops without those of the bulk flows. Bulk packets under
    way when the warm-up ends count as arrived but not as sent, those at the end the other way
    round; on average over seeds both cancel.
    """
    bulk = at(run, run.flows, of, group="bulk")
    arrived = pl.col("throughput_bit_s") * pl.col("duration_s") / 8 / _packet_bytes(run)
    sent = pl.col("segments_sent").sum()
    bulk = bulk.group_by("seed").agg(sent=sent, lost=sent - arrived.sum())
    links = at(run, run.links, of, link=BOTTLENECK).join(bulk, on="seed")
    lost, sent = pl.col("dropped_pkts") - pl.col("lost"), pl.col("arrived_pkts") - pl.col("sent")
    return links.select("seed", web_loss=100 * lost / sent).sort("seed")


def _packet_bytes(run: Run) -> int:
    """Size of a data packet in bytes, equal for all flows: 1000 B in the paper (§ V-A)."""
    scenario = _core.read_toml(run.resolved[0], name="the scenario of a run")
    sizes = {
        sum(int(_core.read_quantity("bytes", flow["endpoint"][part])) for part in ("mss", "header"))
        for flow in scenario["flow"].values()
    }
    (size,) = sizes
    return size


def number(
    results: Results, figure: str, what: str, of: Point, group: str | None = None
) -> list[float]:
    """Values of a column, in its unit, one for each seed."""
    return numbers(results[figure], what, of, group)


def more(
    results: Results,
    figure: str,
    what: str,
    of: Point,
    over: Point,
    *,
    group: str | None = None,
) -> list[float]:
    """Relative excess of the number at `of` over that at `over`, in per cent."""
    run = results[figure]
    return gains(numbers(run, what, of, group), numbers(run, what, over, group))


def less(results: Results, figure: str, what: str, of: Point, over: Point) -> list[float]:
    """Relative deficit of the number at `of` to that at `over`, in per cent."""
    return [-gain for gain in more(results, figure, what, of, over)]


def lead(results: Results, figure: str, of: Point) -> list[float]:
    """Relative lead in goodput of a tested flow over a plain one beside it, in per cent."""
    return leads(results[figure], of)


def lead_beyond(results: Results, figure: str, of: Point, over: Point) -> list[float]:
    """Difference of that lead at `of` from that at `over`, in percentage points."""
    return differences(leads(results[figure], of), leads(results[figure], over))


def apart(
    results: Results, figure: str, what: str, of: Point, *, schemes: list[str], along: str
) -> list[float]:
    """Largest difference of a number between two schemes along an axis, in per cent, by seed.

    The first scheme is compared with each of the others.
    """
    run = results[figure]
    first, *others = schemes
    found = [
        gains(numbers(run, what, {**there, "scheme": first}), numbers(run, what, there | other))
        for there in ({**of, along: label} for label in labels(run, along))
        for other in ({"scheme": scheme} for scheme in others)
    ]
    return [max(map(abs, row)) for row in zip(*found, strict=True)]


def above_max_th(results: Results, figure: str, what: str, of: Point) -> list[float]:
    """Share of the time with a queue above RED's upper threshold, in per cent, by seed.

    `what` is the queue itself (`queue`), or its average, which decides drops (`average`): above
    the threshold every packet is dropped, so the probability is beyond `max_p`.
    """
    run = results[figure]
    above = {
        "queue": pl.col("qlen_bytes") > _MAX_TH,
        "average": pl.col("aqm_prob") > _MAX_P,
    }
    warm = pl.col("time_s") >= run.runs["warmup_s"].max()
    rows = at(run, run.link_series, of, link=BOTTLENECK).filter(warm)
    shares = rows.group_by("seed").agg(share=100 * above[what].mean()).sort("seed")
    return shares["share"].to_list()


MEASURES: Mapping[str, Measure] = {
    function.__name__: function
    for function in (number, more, less, lead, lead_beyond, apart, above_max_th)
}
