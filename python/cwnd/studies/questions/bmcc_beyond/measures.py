"""Experiments that the papers of BMCC, VCP, XCP and RCP lack: tables of bmcc.md.

Several bottlenecks beside max-min shares, links that lose packets, senders that know nothing of
load, receivers that lie, routers that are wrong, datacentres, a million short transfers:
`docs/controllers/bmcc/*.toml` are run, two minutes of CPU time; `make docs` writes the tables
again, a test runs a part of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.optimize import linprog

import cellular
import cwnd
import page_tables
from guided_links import PAGE, bottleneck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SCENARIOS = PAGE.with_name("bmcc")

#: Group of `bottlenecks.toml` → the links that its flows cross, and their number.
CROSSES = {
    "long": (("a-b", "b-c", "c-d"), 2),
    "first": (("a-b",), 1),
    "second": (("b-c",), 1),
    "third": (("c-d",), 1),
}
#: Rates of the links, Mbit/s; that of the third is swept.
RATES = {"a-b": 20.0, "b-c": 10.0}
#: Two numbers are the same.
SAME = 1e-6


def max_min(
    crosses: Mapping[str, tuple[Sequence[str], int]], rates: Mapping[str, float]
) -> dict[str, float]:
    """Max-min fair rates, by linear programs that make the least as large as can be.

    Args:
        crosses: Links of each group's flows, and how many flows there are.
        rates: Of the links, in any unit.

    Returns:
        The rate of one flow of each group, in the same unit.
    """
    groups, links = list(crosses), list(rates)
    uses = np.array([[crosses[g][1] * (link in crosses[g][0]) for g in groups] for link in links])
    capacity = np.array([rates[link] for link in links])
    fixed: dict[str, float] = {}
    while len(fixed) < len(groups):
        least = _largest(uses, capacity, groups, fixed, None)
        # Whose rate cannot be above the least although all others have it, is settled.
        settled = {
            g
            for g in groups
            if g not in fixed and _largest(uses, capacity, groups, fixed, (g, least)) < least + SAME
        }
        fixed |= dict.fromkeys(settled, least)
    return {g: fixed[g] for g in groups}


def _largest(
    uses: np.ndarray,
    capacity: np.ndarray,
    groups: Sequence[str],
    fixed: Mapping[str, float],
    of: tuple[str, float] | None,
) -> float:
    """The largest least rate of those not fixed; or that of one, where all have a least."""
    n = len(groups)
    bounds = [
        (fixed[g], fixed[g]) if g in fixed else (of[1] - SAME / 10 if of else 0.0, None)
        for g in groups
    ]
    free = [i for i, g in enumerate(groups) if g not in fixed]
    aim = np.zeros(n + 1)
    aim[groups.index(of[0]) if of else n] = -1
    rows = [np.append(row, 0.0) for row in uses]
    limits = list(capacity)
    if of is None:
        for i in free:
            row = np.zeros(n + 1)
            row[i], row[n] = -1, 1
            rows.append(row)
            limits.append(0.0)
    solved = linprog(aim, A_ub=np.array(rows), b_ub=limits, bounds=[*bounds, (0, None)])
    return float(-solved.fun)


def _flows(scenario: str, overrides: Mapping[str, object] | None) -> pl.DataFrame:
    """Throughput of each group in each run, Mbit/s on the wire, with the axes of the sweep."""
    run = cwnd.run(SCENARIOS / f"{scenario}.toml", set=dict(overrides or {}))
    axes = [a for a in run.runs.columns if a in AXES]
    runs = run.runs.select("run_id", pl.col(axes).cast(pl.String))
    flows = run.flows.group_by("run_id", pl.col("group").cast(pl.String)).agg(
        mbit_s=pl.col("throughput_bit_s").sum() / 1e6
    )
    fairness = run.per_run().select("run_id", "jain")
    joined = runs.join(flows, on="run_id", maintain_order="left").join(
        fairness, on="run_id", how="left", maintain_order="left"
    )
    return joined.join(bottleneck(run), on="run_id", how="left", maintain_order="left").drop(
        "run_id"
    )


def _transfers(overrides: Mapping[str, object] | None) -> pl.DataFrame:
    """Completion times of transfers with each scheme, and measures of the bottleneck."""
    run = cwnd.run(SCENARIOS / "million.toml", set=dict(overrides or {}))
    numbers = run.runs.select("run_id", "scheme", "requests")
    joined = numbers.join(run.summary(), on="scheme").join(bottleneck(run), on="run_id")
    return joined.sort("run_id")


#: Axes of the scenarios' sweeps.
AXES = ("scheme", "third", "loss", "queue", "other", "path", "rate", "wrong")
MEASURES = ("mbit_s", "jain", "used", "queue_ms", "p99_ms", "lost")


def measure(scenario: str, overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """Means over seeds of what each group got, and of the bottleneck.

    Returns:
        A row for each point of the sweep and each `group`: `mbit_s` on the wire of all of its
        flows, `jain` of the goodput of all, and of the link `bottleneck`, if there is one,
        `used`, `queue_ms`, its 99th percentile and `lost`.
    """
    if scenario == "million":
        return _transfers(overrides)
    found = _flows(scenario, overrides)
    if scenario == "changing":
        trace = {"trace_ms": cellular.LINKS["fast"].trace(cellular.TRACE_S)}
        axis = {"sweep.axis.rate.values": [trace], "sweep.axis.rate.labels": ["a cellular trace"]}
        found = pl.concat([found, _flows(scenario, {**(overrides or {}), **axis})])
    keys = [c for c in found.columns if c not in MEASURES]
    return found.group_by(keys, maintain_order=True).agg(pl.col(MEASURES).mean())


def bottlenecks(found: pl.DataFrame) -> list[str]:
    """Throughput of a flow of each group, Mbit/s, beside its max-min share."""
    schemes = found["scheme"].unique(maintain_order=True).to_list()
    lines = page_tables.head(["third link", "flow of", "max-min", *schemes])
    for third in found["third"].unique(maintain_order=True).to_list():
        fair = max_min(CROSSES, {**RATES, "c-d": float(third.split()[0])})
        for group, (_, count) in CROSSES.items():
            here = found.filter(pl.col("third") == third, pl.col("group") == group)
            got = dict(zip(here["scheme"], here["mbit_s"] / count, strict=True))
            cells = [f"{got[s]:.2f}" for s in schemes]
            lines.append(page_tables.line([third, group, f"{fair[group]:.2f}", *cells]))
    return lines


#: The rate of the link.
LOSSY_MBIT_S = 50


def beside(found: pl.DataFrame) -> list[str]:
    """Throughputs of two flows of BMCC beside two others, and the queue."""
    lines = page_tables.head(
        ["queue", "beside", "BMCC, Mbit/s", "the others, Mbit/s", "mean queue", "lost"]
    )
    for (queue, other), part in found.group_by("queue", "other", maintain_order=True):
        got = dict(zip(part["group"], part["mbit_s"], strict=True))
        row = part.row(0, named=True)
        cells = [str(queue), str(other), f"{got['guided']:.1f}", f"{got['other']:.1f}"]
        lines.append(
            page_tables.line([*cells, f"{row['queue_ms']:.2g} ms", f"{100 * row['lost']:.2g} %"])
        )
    return lines


def _by_scheme(found: pl.DataFrame, axis: str, cell: Callable[[dict[str, Any]], str]) -> list[str]:
    """A line for each scheme, a column for each label of the axis."""
    labels = found[axis].unique(maintain_order=True).to_list()
    lines = page_tables.head(["", *labels])
    for (scheme,), part in found.group_by("scheme", maintain_order=True):
        cells = {row[axis]: cell(row) for row in part.iter_rows(named=True)}
        lines.append(page_tables.line([str(scheme), *(cells[label] for label in labels)]))
    return lines


def lossy(found: pl.DataFrame) -> list[str]:
    """Utilisation of the link by one flow, by scheme and loss."""
    return _by_scheme(found, "loss", lambda row: f"{100 * row['mbit_s'] / LOSSY_MBIT_S:.0f} %")


def changing(found: pl.DataFrame) -> list[str]:
    """Use, mean queueing delay, its 99th percentile and loss."""
    return _by_scheme(
        found,
        "rate",
        lambda row: (
            f"{100 * row['used']:.0f} %, {row['queue_ms']:.0f} ms, {row['p99_ms']:.0f} ms, "
            f"{100 * row['lost']:.2g} %"
        ),
    )


def fast(found: pl.DataFrame) -> list[str]:
    """Use, mean queueing delay and loss."""
    return _by_scheme(
        found,
        "path",
        lambda row: (
            f"{100 * row['used']:.0f} %, {1e3 * row['queue_ms']:.2g} µs, {100 * row['lost']:.2g} %"
        ),
    )


def wrong(found: pl.DataFrame) -> list[str]:
    """Use, mean queueing delay, loss and Jain's index, by what somebody is wrong about."""
    schemes = found["scheme"].unique(maintain_order=True).to_list()
    lines = page_tables.head(["wrong", *schemes])
    for (about,), part in found.group_by("wrong", maintain_order=True):
        cells = {row["scheme"]: row for row in part.iter_rows(named=True)}
        told = [
            f"{100 * cells[s]['used']:.0f} %, {cells[s]['queue_ms']:.2g} ms, "
            f"{100 * cells[s]['lost']:.2g} %, {cells[s]['jain']:.2f}"
            for s in schemes
        ]
        lines.append(page_tables.line([str(about), *told]))
    return lines


def million(found: pl.DataFrame) -> list[str]:
    """Numbers of transfers, what they took, and the link."""
    times = ("mean", "p50", "p90", "p99")
    lines = page_tables.head(
        ["", "transfers", *(f"{t}, ms" for t in times), "use", "mean queue, ms", "lost"]
    )
    for row in found.iter_rows(named=True):
        took = [f"{1e3 * row[f'response_{t}_s']:.0f}" for t in times]
        use, lost = (f"{100 * row[of]:.2g} %" for of in ("used", "lost"))
        cells = [f"{row['requests']:,}", *took, use, f"{row['queue_ms']:.2g}", lost]
        lines.append(page_tables.line([row["scheme"], *cells]))
    return lines


#: Scenario, and what makes a table of it.
TABLES = {
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


def main() -> None:
    """Writes the page's tables."""
    for name, table in TABLES.items():
        page_tables.write(PAGE, f"scripts/guided_beyond.py: {name}", table(measure(name)))


if __name__ == "__main__":
    main()
