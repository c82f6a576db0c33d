"""Figures of the ABE paper with the paper's axes and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Line, Panel, Picture, Rule, line_style
from cwnd.models import utilisation
from cwnd.study import ONE_PANEL, curve, labels, marks, seeds_along, time_ratios

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd.figures import Mark
    from cwnd.results import Run

#: Points of a curve of the model.
_MODEL_POINTS = 200


def fig01(run: Run) -> Picture:
    """Throughput of one NewReno flow by buffer and β: model (lines) and simulation (marks)."""
    rate = float(run.links["rate_bit_s"].drop_nulls()[0])
    rows = run.per_run()
    largest = float(rows["buffer_BDP"].max() or 1.0)  # type: ignore[arg-type]
    b = [largest * i / _MODEL_POINTS for i in range(_MODEL_POINTS + 1)]
    lines = []
    for index, beta in enumerate(labels(run, "beta")):
        mine = rows.filter(pl.col("beta") == beta)
        model = [utilisation(float(beta), x) * rate / 1e6 for x in b]
        lines.append(curve(b, model, index, label=f"β = {beta}"))
        seeds = seeds_along(mine, "buffer_BDP", "utilisation", rate / 1e6)
        lines.append(marks(seeds, index, joined=False))
    x_label = "Buffer b (bandwidth-delay products)"
    return Picture([Panel(lines, x_label=x_label, y_label="Throughput (Mbit/s)")], *ONE_PANEL)


def fig02(run: Run) -> Picture:
    """Throughput of one CUBIC flow by RTT over CoDel and PIE, with and without ECN."""
    return _throughput(run, "queue", "")


def fig03(run: Run) -> Picture:
    """The window after slow start, for two RTTs and two β_ecn; the first seed."""
    first = run.series["seed"].min()
    rate = run.links.filter(pl.col("link") == "bottleneck")["rate_bit_s"][0]
    drawn: list[Mark] = []
    for colour, rtt in enumerate(labels(run, "rtt")):
        for dashes, beta in enumerate(labels(run, "beta_ecn")):
            mine = run.series.filter(
                (pl.col("seed") == first) & (pl.col("rtt") == rtt) & (pl.col("beta_ecn") == beta)
            )
            how = {"dashes": line_style.dashes(dashes), "label": f"{rtt}, β_ecn = {beta}"}
            drawn.append(curve(mine["time_s"], mine["snd_cwnd_pkts"], colour, **how))
        flow = run.flows.filter(pl.col("rtt") == rtt)
        wire = flow["throughput_bit_s"][0] * flow["duration_s"][0] / 8 / flow["segments_sent"][0]
        bdp = rate * flow["rtt_base_us"][0] / 8e6 / wire
        drawn.append(
            Rule(y=bdp, colour=line_style.colour(colour), width=0.6, dashes=line_style.DASHES[2])
        )
    panel = Panel(
        drawn,
        x_label="Time (s); dotted: bandwidth-delay products",
        y_label="Window (packets)",
        x_tight=True,
        y_limits=(0, None),
    )
    return Picture([panel], *ONE_PANEL)


def fig04(run: Run) -> Picture:
    """Cumulative gain of NewReno in received bytes over β_ecn = 0.5, by time."""
    return _improvement(run, "0.5")


def fig05(run: Run) -> Picture:
    """Distribution of the queueing delay of NewReno."""
    return _delays(run)


def fig06(run: Run) -> Picture:
    """Cumulative gain of CUBIC in received bytes over β_ecn = 0.7, by time."""
    return _improvement(run, "0.7")


def fig07(run: Run) -> Picture:
    """Distribution of the queueing delay of CUBIC."""
    return _delays(run)


def fig08(run: Run) -> Picture:
    """Throughput of one NewReno flow over CoDel by RTT and β_ecn."""
    return _throughput(run, "beta_ecn", "β_ecn = ")


def fig09(run: Run) -> Picture:
    """Distribution of ρ, the ratio of convergence times, for CUBIC."""
    return _ratios(run, "0.7")


def fig10(run: Run) -> Picture:
    """Distribution of ρ, the ratio of convergence times, for NewReno."""
    return _ratios(run, "0.5")


def fig11(run: Run) -> Picture:
    """Goodput of flows with ECN ÷ that of flows without, over CoDel."""
    return _group_ratios(run)


def fig12(run: Run) -> Picture:
    """Goodput of flows with ECN ÷ that of flows without, over PIE."""
    return _group_ratios(run)


#: Functions of the figures, by the name of the scenario.
FIGURES: Mapping[str, Callable[[Run], Picture]] = {
    function.__name__: function
    for function in (
        *(fig01, fig02, fig03, fig04, fig05, fig06),
        *(fig07, fig08, fig09, fig10, fig11, fig12),
    )
}


def _throughput(run: Run, lines: str, prefix: str) -> Picture:
    # The x axis has the labels' RTTs; the runs' own RTTs are distributed around them.
    rtt_ms = pl.col("rtt").str.strip_suffix(" ms").cast(pl.Float64)
    rows = run.per_run().with_columns(rtt_ms.alias("rtt_ms"))
    drawn = []
    for index, label in enumerate(labels(run, lines)):
        mine = rows.filter(pl.col(lines) == label)
        seeds = seeds_along(mine, "rtt_ms", "throughput_bit_s", 1e-6)
        drawn.append(marks(seeds, index, f"{prefix}{label}"))
    panel = Panel(drawn, x_label="RTT_path (ms)", y_label="Throughput (Mbit/s)", y_limits=(0, None))
    return Picture([panel], *ONE_PANEL)


def _improvement(run: Run, base: str) -> Picture:
    received = (
        run.series.group_by("queue", "rtt", "beta_ecn", "time_s")
        .agg(pl.col("delivered").mean())
        .sort("time_s")
    )
    none = (
        received.filter(pl.col("beta_ecn") == base).drop("beta_ecn").rename({"delivered": "base"})
    )
    gain = (
        received.join(none, on=["queue", "rtt", "time_s"], maintain_order="left")
        .filter(pl.col("base") > 0)
        .with_columns((100 * (pl.col("delivered") / pl.col("base") - 1)).alias("gain"))
    )

    def draw(mine: pl.DataFrame, index: int, label: str) -> Line:
        return curve(mine["time_s"], mine["gain"], index, label=label)

    label = f"Received more than\nwith β_ecn = {base} (%)"
    return _grid(run, gain, draw, ("Time (s)", label), skip=base)


def _delays(run: Run) -> Picture:
    counted = (
        run.qdelay.filter(pl.col("link") == "bottleneck")
        .group_by("queue", "rtt", "beta_ecn", "qdelay_us")
        .agg(pl.col("packets").sum())
        .sort("qdelay_us")
    )

    def draw(mine: pl.DataFrame, index: int, label: str) -> Line:
        share = mine["packets"].cum_sum() / mine["packets"].sum()
        return curve(mine["qdelay_us"] / 1e3, share, index, steps=True, label=label)

    picture = _grid(run, counted, draw, ("Queueing delay (ms)", "Share of packets"))
    for panel in picture.panels:
        panel.x_limits, panel.y_limits = (0, 40), (0, 1)
    return picture


def _grid(
    run: Run,
    rows: pl.DataFrame,
    draw: Callable[[pl.DataFrame, int, str], Line],
    names: tuple[str, str],
    skip: str | None = None,
) -> Picture:
    """Builds a panel for each queue and RTT, with a line for each β_ecn except `skip`."""
    queues, rtts, betas = (labels(run, name) for name in ("queue", "rtt", "beta_ecn"))
    panels = []
    for queue in queues:
        for rtt in rtts:
            here = rows.filter((pl.col("queue") == queue) & (pl.col("rtt") == rtt))
            lines = [
                draw(here.filter(pl.col("beta_ecn") == beta), index, f"β_ecn = {beta}")
                for index, beta in enumerate(betas)
                if beta != skip
            ]
            panel = Panel(lines, title=f"{queue}, {rtt}")
            panel.x_label = names[0] if queue == queues[-1] else ""
            panel.y_label = names[1] if rtt == rtts[0] else ""
            panels.append(panel)
    return Picture(panels, 1.0 + 1.6 * len(queues), columns=len(rtts), shared_y="row")


def _ratios(run: Run, base: str) -> Picture:
    panels = []
    even = [
        Rule(x=x, y=y, colour="#808080", width=0.6, dashes=()) for x, y in ((1, None), (None, 0.5))
    ]
    for queue in labels(run, "queue"):
        drawn: list[Mark] = [*even]
        for index, beta in enumerate(labels(run, "beta_ecn")):
            if beta == base:
                continue
            point = {"queue": queue, "beta_ecn": beta}
            ratios = time_ratios(run, point, {"beta_ecn": base})["ratio"].sort()
            share = [(i + 1) / len(ratios) for i in range(len(ratios))]
            drawn.append(curve(ratios, share, index, steps=True, label=f"β_ecn = {beta}"))
        x_label = f"ρ, time to fairness ÷ that with β_ecn = {base}"
        panels.append(Panel(drawn, title=queue, x_label=x_label, x_log=True, y_limits=(0, 1)))
    panels[0].y_label = "Share of the cases"
    return Picture(panels, 2.8, columns=len(panels))


def _group_ratios(run: Run) -> Picture:
    per_group = (
        run.flows.with_columns(pl.col("group").cast(pl.String))
        .group_by("run_id", "rtt", "beta_ecn_value", "group")
        .agg(pl.col("goodput_bit_s").mean())
        .pivot(on="group", index=["run_id", "rtt", "beta_ecn_value"], values="goodput_bit_s")
        .with_columns((pl.col("ecn") / pl.col("plain")).alias("ratio"))
    )
    drawn: list[Mark] = [Rule(y=1, colour="#808080", width=0.6, dashes=())]
    for index, rtt in enumerate(labels(run, "rtt")):
        by_beta = (
            per_group.filter(pl.col("rtt") == rtt)
            .group_by("beta_ecn_value")
            .agg(
                pl.col("ratio").mean().alias("mean"),
                pl.col("ratio").std().alias("sd"),
                pl.col("ratio").median().alias("median"),
            )
            .sort("beta_ecn_value")
        )
        x = by_beta["beta_ecn_value"]
        ends = tuple((by_beta["mean"] + sign * by_beta["sd"]).to_list() for sign in (-1, 1))
        drawn.append(curve(x, by_beta["mean"], index, label=rtt, interval=ends))
        drawn.append(curve(x, by_beta["median"], index, joined=False, marker="o"))
    panel = Panel(
        drawn,
        x_label="β_ecn of the flows with ECN",
        y_label="Throughput ratio\n(means, dots: medians, bars: SD)",
        y_limits=(0, None),
    )
    return Picture([panel], *ONE_PANEL)
