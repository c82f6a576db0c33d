"""Explicit feedback beyond its papers: BMCC, MLCP, VCP, XCP, RCP, beside DCTCP and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.studies.questions.cellular.measures import LINKS
from cwnd.study import head, line, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.results import Run

#: The paper's results for BMCC (§ VII a to c): utilisation, queue, loss.
OF_RATES = "≥ 90 %, < 20 % of the BDP, negligible"
OF_ROUND_TRIPS = "≥ 80 %, ≤ 25 % of the BDP, negligible"
OF_FLOWS = "≥ 90 %, < 10 % of the BDP"
PAPER = {
    **dict.fromkeys(("1 Mbit/s", "10 Mbit/s", "155 Mbit/s"), OF_RATES),
    **dict.fromkeys(("2 ms", "500 ms", "2 s"), OF_ROUND_TRIPS),
    **dict.fromkeys(("100 flows", "1000 flows"), OF_FLOWS),
}
#: Queueing delay below which two digits are shown, ms.
TEN_MS = 10
#: Loss in per cent below which none is shown.
LEAST_LOSS = 0.005
SCHEMES = {"bmcc": "BMCC", "bmcc unpaced": "without pacing", "vcp": "VCP", "mlcp": "MLCP"}
#: Rate of the link of `lossy.toml`.
LOSSY_MBIT_S = 50
#: Group of `bottlenecks.toml` → the links that its flows cross, and their number.
CROSSES = {
    "long": (("a-b", "b-c", "c-d"), 2),
    "first": (("a-b",), 1),
    "second": (("b-c",), 1),
    "third": (("c-d",), 1),
}
#: Rates of the links, Mbit/s; that of the third is swept.
RATES = {"a-b": 20.0, "b-c": 10.0}


def max_min(
    crosses: Mapping[str, tuple[Sequence[str], int]], rates: Mapping[str, float]
) -> dict[str, float]:
    """Max-min fair rates, by progressive filling (Bertsekas & Gallager, Data Networks, § 6.5.2).

    Args:
        crosses: Links of each group's flows, and how many flows there are.
        rates: Of the links, in any unit.

    Returns:
        The rate of one flow of each group, in the same unit.
    """
    fair: dict[str, float] = {}
    while len(fair) < len(crosses):
        shares = {}
        for link, rate in rates.items():
            users = {g: n for g, (links, n) in crosses.items() if link in links}
            open_flows = sum(n for g, n in users.items() if g not in fair)
            if open_flows:
                taken = sum(n * fair[g] for g, n in users.items() if g in fair)
                shares[link] = (rate - taken) / open_flows
        # The narrowest link settles its flows; the others share what these leave.
        narrowest = min(shares, key=lambda link: shares[link])
        settled = (g for g, (links, _) in crosses.items() if narrowest in links and g not in fair)
        fair |= dict.fromkeys(list(settled), shares[narrowest])
    return fair


def bottleneck(run: Run) -> pl.DataFrame:
    """Measures of the bottleneck in each run: `used`, `queue_ms`, `p99_ms` and `lost`."""
    return run.links.filter(pl.col("link").cast(pl.String) == "bottleneck").select(
        "run_id",
        used="utilisation",
        queue_ms=pl.col("qdelay_mean_us") / 1e3,
        p99_ms=pl.col("qdelay_p99_us") / 1e3,
        lost="drop_ratio",
    )


_MEASURES = ("mbit_s", "jain", "used", "queue_ms", "p99_ms", "lost")


def means(*runs: Run) -> pl.DataFrame:
    """Means over seeds of the goodput of each group, and of the bottleneck.

    Returns:
        A row for each point of the sweep and each `group`: `mbit_s` on the wire of all of its
        flows, `jain` of the goodput of all, and of the link `bottleneck`, if there is one,
        `used`, `queue_ms`, its 99th percentile and `lost`.
    """
    found = pl.concat([_groups(run) for run in runs])
    keys = [c for c in found.columns if c not in _MEASURES]
    return found.group_by(keys, maintain_order=True).agg(pl.col(_MEASURES).mean())


def _groups(run: Run) -> pl.DataFrame:
    """Measures of each group in each run, with the axes of the sweep; see `means`."""
    axes = [pl.col(axis.column).cast(pl.String).alias(axis.name) for axis in run.axes]
    flows = run.flows.group_by("run_id", pl.col("group").cast(pl.String)).agg(
        mbit_s=pl.col("throughput_bit_s").sum() / 1e6
    )
    goodput = pl.col("goodput_bit_s")
    fairness = run.flows.group_by("run_id").agg(
        jain=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum())
    )
    joined = run.runs.select("run_id", *axes)
    for more in (flows, fairness, bottleneck(run)):
        joined = joined.join(more, on="run_id", how="left", maintain_order="left")
    return joined.drop("run_id")


def links(run: Run) -> list[str]:
    """Utilisation, mean queueing delay and loss by the rate and the RTT of a link."""

    def cell(row: Mapping[str, Any]) -> str:
        queue = f"{row['queue_ms']:.2g}" if row["queue_ms"] < TEN_MS else f"{row['queue_ms']:.0f}"
        lost = row["lost"] * 100
        loss = "0" if lost < LEAST_LOSS else f"{lost:.1g} %"
        return f"{row['used'] * 100:.0f} %, {queue} ms, {loss}"

    found = means(run).with_columns(pl.col("scheme").replace(SCHEMES))
    first, separator, *rows = _grid(found, "setting", "scheme", cell)
    names = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    paper = ["the paper, of BMCC", "---", *(PAPER[name] for name in names)]
    return [f"{row} {of} |" for row, of in zip([first, separator, *rows], paper, strict=True)]


def bottlenecks(run: Run) -> list[str]:
    """Throughput of a flow of each group, Mbit/s, beside its max-min share."""
    found = means(run)
    schemes = found["scheme"].unique(maintain_order=True).to_list()
    lines = head(["third link", "flow of", "max-min", *schemes])
    for third in found["third"].unique(maintain_order=True).to_list():
        fair = max_min(CROSSES, {**RATES, "c-d": float(third.split()[0])})
        for group, (_, count) in CROSSES.items():
            here = found.filter(pl.col("third") == third, pl.col("group") == group)
            got = dict(zip(here["scheme"], here["mbit_s"] / count, strict=True))
            cells = [f"{got[s]:.2f}" for s in schemes]
            lines.append(line([third, group, f"{fair[group]:.2f}", *cells]))
    return lines


def beside(run: Run) -> list[str]:
    """Throughputs of two flows of BMCC beside two others, and the queue."""
    lines = head(["queue", "beside", "BMCC, Mbit/s", "the others, Mbit/s", "mean queue", "lost"])
    for (queue, other), part in means(run).group_by("queue", "other", maintain_order=True):
        got = dict(zip(part["group"], part["mbit_s"], strict=True))
        row = part.row(0, named=True)
        cells = [str(queue), str(other), f"{got['guided']:.1f}", f"{got['other']:.1f}"]
        lines.append(line([*cells, f"{row['queue_ms']:.2g} ms", f"{100 * row['lost']:.2g} %"]))
    return lines


def lossy(run: Run) -> list[str]:
    """Utilisation of the link by one flow, by scheme and loss."""
    return _grid(
        means(run), "scheme", "loss", lambda row: f"{100 * row['mbit_s'] / LOSSY_MBIT_S:.0f} %"
    )


def changing(*runs: Run) -> list[str]:
    """Use, mean queueing delay, its 99th percentile and loss."""
    return _grid(
        means(*runs),
        "scheme",
        "rate",
        lambda row: (
            f"{100 * row['used']:.0f} %, {row['queue_ms']:.0f} ms, {row['p99_ms']:.0f} ms, "
            f"{100 * row['lost']:.2g} %"
        ),
    )


def fast(run: Run) -> list[str]:
    """Utilisation, mean queueing delay and loss of fast links."""
    return _grid(
        means(run),
        "scheme",
        "path",
        lambda row: (
            f"{100 * row['used']:.0f} %, {1e3 * row['queue_ms']:.2g} µs, {100 * row['lost']:.2g} %"
        ),
    )


def wrong(run: Run) -> list[str]:
    """Use, mean queueing delay, loss and Jain's index, by the wrong assumption."""
    return _grid(
        means(run),
        "wrong",
        "scheme",
        lambda row: (
            f"{100 * row['used']:.0f} %, {row['queue_ms']:.2g} ms, "
            f"{100 * row['lost']:.2g} %, {row['jain']:.2f}"
        ),
        corner="wrong",
    )


def million(run: Run) -> list[str]:
    """Numbers of transfers, their response times, and the link."""
    times = ("mean", "p50", "p90", "p99")
    lines = head(["", "transfers", *(f"{t}, ms" for t in times), "use", "mean queue, ms", "lost"])
    numbers = run.runs.select("run_id", "scheme", "requests")
    found = numbers.join(run.summary(), on="scheme").join(bottleneck(run), on="run_id")
    for row in found.sort("run_id").iter_rows(named=True):
        took = [f"{1e3 * row[f'response_{t}_s']:.0f}" for t in times]
        use, lost = (f"{100 * row[of]:.2g} %" for of in ("used", "lost"))
        cells = [f"{row['requests']:,}", *took, use, f"{row['queue_ms']:.2g}", lost]
        lines.append(line([row["scheme"], *cells]))
    return lines


def _grid(
    found: pl.DataFrame,
    rows: str,
    columns: str,
    cell: Callable[[dict[str, Any]], str],
    corner: str = "",
) -> list[str]:
    """A line for each label of one axis, a column for each of another."""
    labels = found[columns].unique(maintain_order=True).to_list()
    lines = []
    for (label,), part in found.group_by(rows, maintain_order=True):
        cells = {row[columns]: cell(row) for row in part.iter_rows(named=True)}
        lines.append([str(label), *(cells[each] for each in labels)])
    return table([corner, *labels], lines)


TABLES = {
    "links": links,
    "bottlenecks": bottlenecks,
    "lossy": lossy,
    "beside": beside,
    "changing": changing,
    "wrong": wrong,
    "believed": wrong,
    "options": wrong,
    "fast": fast,
    "million": million,
}
OVERRIDES = {
    "trace": lambda: {
        "sweep.axis.rate.values": [LINKS["fast"].rate()],
        "sweep.axis.rate.labels": ["a cellular trace"],
    }
}
