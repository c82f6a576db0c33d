"""The figures of the ABE paper, drawn as the paper draws them: same axes, same curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.models import utilisation
from cwnd.plots import style
from cwnd.reproduce import time_ratios
from cwnd.results import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.results import Run

#: Points of a curve of the model.
_MODEL_POINTS = 200


def fig01(run: Run) -> Figure:
    """Throughput of one NewReno flow by buffer and β: model (lines) and simulation (marks)."""
    rate = float(run.links["rate_bit_s"].drop_nulls()[0])
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    rows = run.per_run()
    largest = float(rows["buffer_BDP"].max() or 1.0)  # type: ignore[arg-type]
    for index, beta in enumerate(_labels(run, "beta")):
        mine = rows.filter(pl.col("beta") == beta)
        b = [largest * i / _MODEL_POINTS for i in range(_MODEL_POINTS + 1)]
        model = [utilisation(float(beta), x) * rate / 1e6 for x in b]
        panel.plot(b, model, **style.line(index), label=f"β = {beta}")
        _means(panel, mine, "buffer_BDP", "utilisation", rate / 1e6, index=index, linestyle="none")
    panel.set_xlabel("Buffer b (bandwidth-delay products)")
    panel.set_ylabel("Throughput (Mbit/s)")
    style.legend(figure, [panel])
    return figure


def fig02(run: Run) -> Figure:
    """Throughput of one CUBIC flow by RTT over CoDel and PIE, with and without ECN."""
    return _throughput(run, "queue", "")


def fig03(run: Run) -> Figure:
    """The window after slow start, for two RTTs and two β_ecn; the first seed."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    first = run.series["seed"].min()
    rate = run.links.filter(pl.col("link") == "bottleneck")["rate_bit_s"][0]
    for colour, rtt in enumerate(_labels(run, "rtt")):
        for dashes, beta in enumerate(_labels(run, "beta_ecn")):
            mine = run.series.filter(
                (pl.col("seed") == first) & (pl.col("rtt") == rtt) & (pl.col("beta_ecn") == beta)
            )
            look = {"color": style.colour(colour), "linestyle": style.DASHES[dashes]}
            label = f"{rtt}, β$_{{ecn}}$ = {beta}"
            panel.plot(mine["time_s"], mine["snd_cwnd_pkts"], **look, label=label)
        flow = run.flows.filter(pl.col("rtt") == rtt)
        wire = flow["throughput_bit_s"][0] * flow["duration_s"][0] / 8 / flow["segments_sent"][0]
        bdp = rate * flow["rtt_base_us"][0] / 8e6 / wire
        panel.axhline(bdp, color=style.colour(colour), lw=0.6, ls=":")
    panel.margins(x=0)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("Time (s); dotted: bandwidth-delay products")
    panel.set_ylabel("Window (packets)")
    style.legend(figure, [panel], columns=2)
    return figure


def fig04(run: Run) -> Figure:
    """What NewReno receives more than with β_ecn = 0.5, up to each moment."""
    return _improvement(run, "0.5")


def fig05(run: Run) -> Figure:
    """Distribution of the queueing delay of NewReno."""
    return _delays(run)


def fig06(run: Run) -> Figure:
    """What CUBIC receives more than with β_ecn = 0.7, up to each moment."""
    return _improvement(run, "0.7")


def fig07(run: Run) -> Figure:
    """Distribution of the queueing delay of CUBIC."""
    return _delays(run)


def fig08(run: Run) -> Figure:
    """Throughput of one NewReno flow over CoDel by RTT and β_ecn."""
    return _throughput(run, "beta_ecn", "β$_{ecn}$ = ")


def fig09(run: Run) -> Figure:
    """Distribution of ρ, the ratio of convergence times, for CUBIC."""
    return _ratios(run, "0.7")


def fig10(run: Run) -> Figure:
    """Distribution of ρ, the ratio of convergence times, for NewReno."""
    return _ratios(run, "0.5")


def fig11(run: Run) -> Figure:
    """Throughput of flows with ECN ÷ of flows without, over CoDel."""
    return _group_ratios(run)


def fig12(run: Run) -> Figure:
    """Throughput of flows with ECN ÷ of flows without, over PIE."""
    return _group_ratios(run)


#: Every figure, by the name of its scenario.
FIGURES: Mapping[str, Callable[[Run], Figure]] = {
    function.__name__: function
    for function in (
        *(fig01, fig02, fig03, fig04, fig05, fig06),
        *(fig07, fig08, fig09, fig10, fig11, fig12),
    )
}


def _throughput(run: Run, lines: str, prefix: str) -> Figure:
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    # The labels: the runs themselves have RTTs around them.
    rtt_ms = pl.col("rtt").str.strip_suffix(" ms").cast(pl.Float64)
    rows = run.per_run().with_columns(rtt_ms.alias("rtt_ms"))
    for index, label in enumerate(_labels(run, lines)):
        mine = rows.filter(pl.col(lines) == label)
        _means(
            panel, mine, "rtt_ms", "throughput_bit_s", 1e-6, index=index, label=f"{prefix}{label}"
        )
    panel.set_xlabel("RTT$_{path}$ (ms)")
    panel.set_ylabel("Throughput (Mbit/s)")
    panel.set_ylim(bottom=0)
    style.legend(figure, [panel])
    return figure


def _improvement(run: Run, base: str) -> Figure:
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

    def draw(panel: Axes, mine: pl.DataFrame, index: int, label: str) -> None:
        panel.plot(mine["time_s"], mine["gain"], **style.line(index), label=label)

    figure, grid = _grid(run, gain, draw, skip=base)
    for panel in grid[-1]:
        panel.set_xlabel("Time (s)")
    for row in grid:
        row[0].set_ylabel(f"Received more than\nwith β$_{{ecn}}$ = {base} (%)")
    return figure


def _delays(run: Run) -> Figure:
    counted = (
        run.qdelay.filter(pl.col("link") == "bottleneck")
        .group_by("queue", "rtt", "beta_ecn", "qdelay_us")
        .agg(pl.col("packets").sum())
        .sort("qdelay_us")
    )

    def draw(panel: Axes, mine: pl.DataFrame, index: int, label: str) -> None:
        share = mine["packets"].cum_sum() / mine["packets"].sum()
        panel.step(mine["qdelay_us"] / 1e3, share, where="post", **style.line(index), label=label)

    figure, grid = _grid(run, counted, draw)
    for panel in grid[-1]:
        panel.set_xlabel("Queueing delay (ms)")
    for row in grid:
        row[0].set_ylabel("Share of packets")
        for panel in row:
            panel.set_xlim(0, 40)
            panel.set_ylim(0, 1)
    return figure


def _grid(
    run: Run,
    rows: pl.DataFrame,
    draw: Callable[[Axes, pl.DataFrame, int, str], None],
    skip: str | None = None,
) -> tuple[Figure, Sequence[Sequence[Axes]]]:
    queues, rtts, betas = (_labels(run, name) for name in ("queue", "rtt", "beta_ecn"))
    figure = style.figure(1.0 + 1.6 * len(queues))
    grid = figure.subplots(len(queues), len(rtts), sharex=True, sharey="row", squeeze=False)
    for queue, row in zip(queues, grid, strict=True):
        for rtt, panel in zip(rtts, row, strict=True):
            panel.set_title(f"{queue}, {rtt}")
            for index, beta in enumerate(betas):
                if beta == skip:
                    continue
                mine = rows.filter(
                    (pl.col("queue") == queue)
                    & (pl.col("rtt") == rtt)
                    & (pl.col("beta_ecn") == beta)
                )
                draw(panel, mine, index, f"β$_{{ecn}}$ = {beta}")
    style.legend(figure, list(grid.flat))
    return figure, [list(row) for row in grid]


def _ratios(run: Run, base: str) -> Figure:
    queues = _labels(run, "queue")
    figure = style.figure(2.8)
    grid = figure.subplots(1, len(queues), sharex=True, sharey=True, squeeze=False)[0]
    for queue, panel in zip(queues, grid, strict=True):
        for index, beta in enumerate(_labels(run, "beta_ecn")):
            if beta == base:
                continue
            point = {"queue": queue, "beta_ecn": beta}
            ratios = time_ratios(run, point, {"beta_ecn": base})["ratio"].sort()
            share = [(i + 1) / len(ratios) for i in range(len(ratios))]
            panel.step(
                ratios, share, where="post", **style.line(index), label=f"β$_{{ecn}}$ = {beta}"
            )
        panel.axvline(1, color="0.5", lw=0.6)
        panel.axhline(0.5, color="0.5", lw=0.6)
        panel.set_xscale("log")
        panel.set_ylim(0, 1)
        panel.set_title(queue)
        panel.set_xlabel(f"ρ, time to fairness ÷ that with β$_{{ecn}}$ = {base}")
    grid[0].set_ylabel("Share of the cases")
    style.legend(figure, list(grid))
    return figure


def _group_ratios(run: Run) -> Figure:
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    per_group = (
        run.flows.with_columns(pl.col("group").cast(pl.String))
        .group_by("run_id", "rtt", "beta_ecn_value", "group")
        .agg(pl.col("goodput_bit_s").mean())
        .pivot(on="group", index=["run_id", "rtt", "beta_ecn_value"], values="goodput_bit_s")
        .with_columns((pl.col("ecn") / pl.col("plain")).alias("ratio"))
    )
    for index, rtt in enumerate(_labels(run, "rtt")):
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
        panel.errorbar(x, by_beta["mean"], yerr=by_beta["sd"], **style.line(index), label=rtt)
        panel.plot(x, by_beta["median"], ls="none", marker="o", color=style.colour(index))
    panel.axhline(1, color="0.5", lw=0.6)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("β$_{ecn}$ of the flows with ECN")
    panel.set_ylabel("Throughput ratio\n(lines: means, dots: medians, bars: SD)")
    style.legend(figure, [panel])
    return figure


def _means(
    panel: Axes,
    rows: pl.DataFrame,
    x: str,
    y: str,
    scale: float,
    *,
    index: int,
    linestyle: str | None = None,
    label: str | None = None,
) -> None:
    points = []
    for (value,), part in rows.sort(x).group_by([x], maintain_order=True):
        estimate = Estimate.of([float(v) * scale for v in part[y]])
        assert estimate is not None
        points.append((value, estimate.mean, estimate.half_width or 0.0))
    xs, means, widths = zip(*points, strict=True)
    look = style.points(index) | ({} if linestyle is None else {"linestyle": linestyle})
    panel.errorbar(xs, means, yerr=widths, label=label, clip_on=False, **look)


def _labels(run: Run, axis: str) -> list[str]:
    return next(each.labels for each in run.axes if each.name == axis)
