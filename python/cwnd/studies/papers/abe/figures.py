"""Figures of the ABE paper with the paper's axes and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Line, Panel, Picture, Rule, line_style
from cwnd.models import utilisation
from cwnd.studies.papers.abe.measures import estimated_delays
from cwnd.study import ONE_PANEL, curve, labels, marks, seeds_along, time_ratios

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.figures import Mark
    from cwnd.results import Run

#: Points of a curve of the model.
_MODEL_POINTS = 200

#: Gains in the paper's text, in per cent, by queue, RTT and β_ecn (§ IV-B).
_GAINS_NEWRENO = {("CoDel", "400 ms"): {"0.8": 24.0}, ("PIE", "400 ms"): {"0.8": 23.0}}
_GAINS_CUBIC = {
    ("CoDel", "400 ms"): {"0.85": 15.0, "0.95": 25.0},
    ("PIE", "400 ms"): {"0.85": 10.0, "0.95": 15.0},
}
#: Increases of the median and the 90th percentile of the delay in the paper's text, in ms.
_DELAYS_NEWRENO = {
    ("CoDel", "100 ms"): {"0.85": (1.0, 2.0), "0.95": (3.0, 2.0)},
    ("PIE", "100 ms"): {"0.85": (15.0, 3.0), "0.95": (20.0, 5.0)},
}
_DELAYS_CUBIC = {
    (queue, "100 ms"): {"0.85": (2.5, 1.0), "0.95": (5.0, 1.0)} for queue in ("CoDel", "PIE")
}
_QUANTILES = (0.5, 0.9)
#: Range of the mean ratio from β_ecn 0.7 to 0.85, and the ratio at 0.9, in the paper's text.
_RATIOS = ((0.7, 1.25), (0.85, 1.25), (0.7, 2.0), (0.85, 2.0), (0.9, 2.5))


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
    return _improvement(run, "0.5", _GAINS_NEWRENO)


def fig05(run: Run) -> Picture:
    """Distribution of the estimated queueing delay of NewReno."""
    return _delays(run, "0.5", _DELAYS_NEWRENO)


def fig06(run: Run) -> Picture:
    """Cumulative gain of CUBIC in received bytes over β_ecn = 0.7, by time."""
    return _improvement(run, "0.7", _GAINS_CUBIC)


def fig07(run: Run) -> Picture:
    """Distribution of the estimated queueing delay of CUBIC."""
    return _delays(run, "0.7", _DELAYS_CUBIC)


def fig08(run: Run) -> Picture:
    """Throughput of one NewReno flow over CoDel by RTT and β_ecn."""
    return _throughput(run, "beta_ecn", "β_ecn = ")


def fig09(run: Run) -> Picture:
    """Distribution of ρ, the ratio of convergence times, for CUBIC."""
    return _ratios(run, "0.7")


def fig10(run: Run) -> Picture:
    """Distribution of ρ, the ratio of convergence times, for NewReno."""
    return _ratios(run, "0.5")


def flows(cubic: Run, newreno: Run) -> Picture:
    """Median of ρ over RTTs and seeds by the number of flows, for both controllers and queues."""
    panels = []
    betas = list(dict.fromkeys([*labels(newreno, "beta_ecn"), *labels(cubic, "beta_ecn")]))
    for name, run, base in (("CUBIC", cubic, "0.7"), ("NewReno", newreno, "0.5")):
        counts = labels(run, "rate")
        for queue in labels(run, "queue"):
            drawn: list[Mark] = [Rule(y=1, colour="#808080", width=0.6, dashes=())]
            for beta in labels(run, "beta_ecn"):
                if beta == base:
                    continue
                medians: list[Any] = [
                    time_ratios(
                        run, {"queue": queue, "rate": count, "beta_ecn": beta}, {"beta_ecn": base}
                    )["ratio"].median()
                    for count in counts
                ]
                index = betas.index(beta)
                how = {"marker": line_style.marker(index), "label": f"β_ecn = {beta}"}
                drawn.append(curve(range(len(counts)), medians, index, **how))
            ticks = [(float(i), label) for i, label in enumerate(counts)]
            panels.append(Panel(drawn, title=f"{name}, {queue}", ticks=ticks, y_log=True))
    for panel in panels[::2]:
        panel.y_label = "Median of ρ"
    return Picture(panels, 4.2, columns=2, shared_y="row")


def fig11(run: Run, mixes: Run) -> Picture:
    """Goodput of flows with ECN ÷ that of flows without, over CoDel."""
    return _group_ratios(run, mixes)


def fig12(run: Run, mixes: Run) -> Picture:
    """Goodput of flows with ECN ÷ that of flows without, over PIE."""
    return _group_ratios(run, mixes)


#: Functions of the figures, by name.
FIGURES: Mapping[str, Callable[..., Picture]] = {
    function.__name__: function
    for function in (
        *(fig01, fig02, fig03, fig04, fig05, fig06),
        *(fig07, fig08, fig09, fig10, fig11, fig12, flows),
    )
}


def _circles(points: Sequence[tuple[float, float]], colour: str) -> list[Line]:
    """Circles at the paper's numbers."""
    x, y = ([point[i] for point in points] for i in (0, 1))
    return [Line(x, y, colour, joined=False, marker="o", hollow=True, size=7)] if points else []


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


def _improvement(
    run: Run, base: str, stated: Mapping[tuple[str, str], Mapping[str, float]]
) -> Picture:
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
    picture = _grid(run, gain, draw, ("Time (s)", label), skip=base)
    end = float(gain["time_s"].max() or 0.0)  # type: ignore[arg-type]
    _state(run, picture, {at: {b: [(end, y)] for b, y in of.items()} for at, of in stated.items()})
    return picture


def _delays(
    run: Run, base: str, stated: Mapping[tuple[str, str], Mapping[str, tuple[float, float]]]
) -> Picture:
    counted = (
        estimated_delays(run)
        .group_by("queue", "rtt", "beta_ecn", pl.col("delay_ms").round(3))
        .agg(pl.col("packets").sum())
        .sort("delay_ms")
    )

    def draw(mine: pl.DataFrame, index: int, label: str) -> Line:
        share = mine["packets"].cum_sum() / mine["packets"].sum()
        return curve(mine["delay_ms"], share, index, steps=True, label=label)

    names = ("RTT − path − 1 ms (ms)", "Share of packets")
    picture = _grid(run, counted, draw, names)
    points = {}
    for (queue, rtt), more in stated.items():
        here = counted.filter(queue=queue, rtt=rtt, beta_ecn=base)
        if here.height:
            share = here["packets"].cum_sum() / here["packets"].sum()
            ours = [here["delay_ms"].filter(share >= quantile)[0] for quantile in _QUANTILES]
            points[queue, rtt] = {
                beta: [(a + b, q) for a, b, q in zip(ours, added, _QUANTILES, strict=True)]
                for beta, added in more.items()
            }
    _state(run, picture, points)
    for panel in picture.panels:
        panel.x_limits, panel.y_limits = (0, 40), (0, 1)
    return picture


def _state(
    run: Run,
    picture: Picture,
    stated: Mapping[tuple[str, str], Mapping[str, Sequence[tuple[float, float]]]],
) -> None:
    """Adds the paper's numbers to the panels of `_grid`, by queue and RTT, and by β_ecn."""
    places = [(queue, rtt) for queue in labels(run, "queue") for rtt in labels(run, "rtt")]
    betas = labels(run, "beta_ecn")
    for place, panel in zip(places, picture.panels, strict=True):
        for beta, points in stated.get(place, {}).items():
            if beta in betas:
                colour = line_style.colour(betas.index(beta))
                panel.marks = [*panel.marks, *_circles(points, colour)]


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
        drawn += _circles([(1.0, 0.5)], "#000000")
        x_label = f"ρ, time to fairness ÷ that with β_ecn = {base}"
        panels.append(Panel(drawn, title=queue, x_label=x_label, x_log=True, y_limits=(0, 1)))
    panels[0].y_label = "Share of the cases"
    return Picture(panels, 2.8, columns=len(panels))


def _ratios_of_groups(run: Run) -> pl.DataFrame:
    """Mean goodput of a flow with ECN ÷ that of one without, of each run."""
    return (
        run.flows.with_columns(pl.col("group").cast(pl.String))
        .group_by("run_id", "rtt", "beta_ecn_value", "group")
        .agg(pl.col("goodput_bit_s").mean())
        .pivot(on="group", index=["run_id", "rtt", "beta_ecn_value"], values="goodput_bit_s")
        .with_columns((pl.col("ecn") / pl.col("plain")).alias("ratio"))
    )


def _group_ratios(run: Run, mixes: Run) -> Picture:
    per_group = _ratios_of_groups(run)
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
    whole = (("10 and 10, all RTTs", per_group, ()), ("10 in all, all RTTs", None, (4.0, 2.0)))
    for label, rows, dashes in whole:
        found = _ratios_of_groups(mixes) if rows is None else rows
        means = found.group_by("beta_ecn_value").agg(pl.col("ratio").mean()).sort("beta_ecn_value")
        points = (means["beta_ecn_value"].to_list(), means["ratio"].to_list())
        drawn.append(Line(*points, "#000000", width=1.8, dashes=dashes, label=label))
    drawn += _circles(_RATIOS, "#000000")
    panel = Panel(
        drawn,
        x_label="β_ecn of the flows with ECN",
        y_label="Throughput ratio",
        y_limits=(0, None),
    )
    return Picture([panel], *ONE_PANEL)
