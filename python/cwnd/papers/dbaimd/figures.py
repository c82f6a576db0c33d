"""The figures of the delay-based AIMD thesis as it draws them, and those of what it leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.papers.dbaimd.chapter5 import (
    cheat,
    fig5_1,
    fig5_2,
    fig5_3,
    fig5_4,
    fig5_5,
    fig5_6,
    fig5_7,
    late,
)
from cwnd.papers.dbaimd.measures import (
    backoff_factors,
    factor,
    steps_down,
    window_ratio,
)
from cwnd.papers.dbaimd.panels import (
    bars,
    columns_of,
    delay_curves,
    error_axis,
    error_curves,
    estimate,
    means,
    queue_series,
    seconds,
    stacked,
    warm,
    window_curves,
    with_web,
)
from cwnd.papers.dbaimd.runs import (
    RIGHT_MS,
    THRESHOLD_MS,
    aligned,
    along_flows,
    bound_ms,
    errors,
    of_seeds,
    samples,
    sending_ms,
    share_of_windows,
    window_shares,
)
from cwnd.plots import style
from cwnd.reproduce import at, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.figure import Figure

    from cwnd.results import Run

#: Where bound 3.6 and 3.8 have their β: no backoff leaves more than δ.
_DELTA = 0.8


def fig2_5(run: Run) -> Figure:
    """Window, and queueing delay with the threshold, of one flow."""
    figure, (upper, lower) = stacked(2)
    rows = run.series.sort("time_s")
    upper.plot(rows["time_s"], rows["snd_cwnd_pkts"], **style.line(0))
    upper.set_ylabel("cwnd (packets)")
    queue = queue_series(run, {})
    lower.plot(queue["time_s"], queue["sojourn_us"] / 1e3, **style.line(0), label="simulation")
    lower.axhline(20, color="0.4", ls="--", label="τ$_0$")
    seconds(lower, 30, 120)
    lower.set_ylabel("Queueing delay (ms)")
    style.legend(figure, [lower])
    return figure


def fig3_3(run: Run) -> Figure:
    """What flow 1 and others see of the queue: correlations, and two flows over time."""
    figure = style.figure(2.6)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    _, part = next(of_seeds(warm(run, run.series)))
    first, *others = samples(part)
    found = [aligned(first, other) for other in others]
    left.plot(range(2, len(found) + 2), found, ls="none", marker="o", ms=3, color=style.colour(0))
    for level in (-0.25, 0.25):
        left.axhline(level, color="0.4", lw=0.8, ls="--")
    left.set_ylim(-1, 1)
    left.set_xlabel("Flow")
    left.set_ylabel("Correlation with flow 1, aligned")
    base = run.flows.select("seed", "flow_id", "rtt_base_us")
    delays = part.join(base, on=["seed", "flow_id"]).sort("time_s")
    for flow in range(2):
        mine = delays.filter(pl.col("flow_id") == flow)
        delay = (mine["rtt_seen_us"] - mine["rtt_base_us"]) / 1e3
        right.plot(mine["time_s"], delay, **style.line(flow), lw=0.8, label=f"flow {flow + 1}")
    seconds(right, 40, 60)
    right.set_ylabel("Measured queueing delay (ms)")
    style.legend(figure, [right])
    return figure


def fig3_4(run: Run) -> Figure:
    """The sum of the windows, and the windows of two flows."""
    figure, (upper, lower) = stacked(2)
    rows = run.series.filter(pl.col("seed") == run.series["seed"].min())
    sums = rows.group_by("time_s").agg(pl.col("snd_cwnd_pkts").sum()).sort("time_s")
    upper.plot(sums["time_s"], sums["snd_cwnd_pkts"], color=style.colour(0), lw=0.8)
    upper.set_ylabel("Sum of cwnds\n(packets)")
    upper.set_ylim(bottom=0)
    for flow in range(2):
        mine = rows.filter(pl.col("flow_id") == flow).sort("time_s")
        label = f"flow {flow + 1}"
        lower.plot(mine["time_s"], mine["snd_cwnd_pkts"], **style.line(flow), lw=0.8, label=label)
    lower.set_ylabel("cwnd (packets)")
    seconds(lower, 20, 80)
    style.legend(figure, [lower])
    return figure


def fig3_5(run: Run) -> Figure:
    """Peak and mean queueing delay by the number of flows, beside the bounds 3.6 to 3.8."""
    figure = style.figure(3.0)
    panels = figure.subplots(1, 2, sharey=True)
    for rtt, panel in zip(labels(run, "rtt"), panels, strict=True):
        counts = delay_curves(panel, run, {"rtt": rtt})
        panel.set_title(rtt)
        panel.plot(counts, [_eq_3_8(n) for n in counts], color="0.6", ls=":", label="eq. 3.8")
    pipe = 100 * 10e3 / 8 / 1500
    panels[0].axvline(pipe, color="0.6", lw=0.8)
    panels[0].text(pipe + 2, 380, "flows = BDP", fontsize=7)
    panels[0].plot(labels_of(run), [_eq_3_6(100)] * 2, color="0.6", ls="-.", label="eq. 3.6")
    panels[0].set_ylim(0, 420)
    panels[0].set_ylabel("Queueing delay (ms)")
    style.legend(figure, list(panels))
    return figure


def labels_of(run: Run) -> list[int]:
    """The least and the largest number of flows."""
    counts = [int(n) for n in labels(run, "flows")]
    return [min(counts), max(counts)]


def _eq_3_8(flows: float) -> float:
    """Eq. 3.8 as a delay: where the queue stays above q0 after a backoff."""
    return THRESHOLD_MS + (bound_ms(flows) - THRESHOLD_MS) / (1 - _DELTA)


def _eq_3_6(rtt_ms: float) -> float:
    """Eq. 3.6 as a delay, of flows of one RTT that back off together.

    Σ α T between two of their backoffs is what they grow by: from δ B baseRTT to B (baseRTT + τ0).
    """
    return THRESHOLD_MS + (THRESHOLD_MS + (1 - _DELTA) * rtt_ms) / (1 - _DELTA)


def fig3_6(run: Run) -> Figure:
    """The share of time of each window, by the number of flows."""
    figure = style.figure(2.8)
    panels = figure.subplots(1, 2, sharey=True)
    for rtt, panel in zip(labels(run, "rtt"), panels, strict=True):
        window_curves(panel, run, {"rtt": rtt})
        panel.set_title(rtt)
    panels[0].axvline(130, color="0.4", lw=0.8, ls="--", label="thesis: all at 1")
    panels[0].set_ylabel("Share of time (%)")
    style.legend(figure, list(panels), columns=7)
    return figure


def fig3_7(run: Run) -> Figure:
    """Peak and mean queueing delay with packets of 512 B, and the share of windows of one."""
    figure = style.figure(2.8)
    left, right = figure.subplots(1, 2)
    delay_curves(left, run, {}, packet_b=512)
    left.set_ylabel("Queueing delay (ms)")
    window_curves(right, run, {})
    right.axvline(390, color="0.4", lw=0.8, ls="--", label="thesis: all at 1")
    right.set_ylabel("Share of time (%)")
    style.legend(figure, [left, right], columns=7)
    return figure


def starts(run: Run) -> Figure:
    """What 130 flows come to, by when they begin."""
    return bars(run, "start", ("jain", "error", "mean"))


def spread(run: Run) -> Figure:
    """The peak beyond eq. 3.7, by the number of flows and how far their RTTs are apart."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, rtt in enumerate(labels(run, "rtt")):
        counts, peaks = along_flows(run, {"rtt": rtt}, "peak")
        points = [[p[i] - bound_ms(n) for p in peaks] for i, n in enumerate(counts)]
        means(panel, counts, points, index, rtt)
    panel.axhline(0, color="0.4", lw=0.8)
    panel.set_xlabel("Flows")
    panel.set_ylabel("Peak less eq. 3.7 (ms)")
    style.legend(figure, [panel])
    return figure


def fig3_8(run: Run) -> Figure:
    """Goodput and fairness beside Reno, all flows of 100 ms, and each of 128 flows."""
    return _beside_reno(run, "100 ms")


def fig3_9(run: Run) -> Figure:
    """The same, of 20 to 200 ms."""
    return _beside_reno(run, "20 to 200 ms")


def _beside_reno(run: Run, rtt: str) -> Figure:
    figure = style.figure(2.8)
    panels = figure.subplots(1, 3)
    for index, scheme in enumerate(labels(run, "scheme")):
        of = {"rtt": rtt, "scheme": scheme}
        for what, panel in zip(("goodput", "jain"), panels, strict=False):
            counts, values = along_flows(run, of, what)
            means(panel, counts, columns_of(values), index, scheme)
        most = {**of, "flows": str(max(int(n) for n in labels(run, "flows")))}
        rows = at(run, run.flows, most)
        rates = rows.filter(pl.col("seed") == rows["seed"].min())["goodput_bit_s"].sort()
        panels[2].plot(range(1, len(rates) + 1), rates / 1e3, **style.line(index))
    panels[0].set_ylabel("Goodput (Mbit/s)")
    panels[0].set_ylim(0, 10)
    panels[1].set_ylabel("Jain index")
    panels[1].set_ylim(0, 1.05)
    panels[2].set_ylabel("Goodput of a flow (kbit/s)")
    panels[2].set_ylim(bottom=0)
    panels[2].set_xlabel("Flow of 128, slowest first")
    for panel in panels[:2]:
        panel.set_xlabel("Flows")
    style.legend(figure, list(panels))
    return figure


def fig3_10(run: Run) -> Figure:
    """Delays with delayed ACKs and chunks, windows, and goodput."""
    figure = style.figure(2.8)
    left, middle, right = figure.subplots(1, 3)
    of = {"stack": labels(run, "stack")[0]}
    delay_curves(left, run, of)
    left.set_ylabel("Queueing delay (ms)")
    for index, (stack, least) in enumerate(zip(labels(run, "stack"), (2, 1), strict=True)):
        counts, goodput = along_flows(run, {"stack": stack}, "goodput")
        means(right, counts, columns_of(goodput), index, stack)
        shares = window_shares(run, {"stack": stack})
        points = [share_of_windows(shares, f"{n}", least) for n in counts]
        means(middle, counts, points, index, stack)
    middle.axvline(90, color=style.colour(0), lw=0.8, ls="--")
    middle.axvline(130, color=style.colour(1), lw=0.8, ls="--")
    middle.set_ylabel("Windows at their least (%)")
    middle.set_xlabel("Flows (dashed: thesis)")
    right.set_ylabel("Goodput (Mbit/s)")
    right.set_ylim(0, 10)
    right.set_xlabel("Flows")
    style.legend(figure, [left, middle], columns=3)
    return figure


def fig4_1(run: Run) -> Figure:
    """The error of minRTT over time for each δ."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, delta in enumerate(labels(run, "delta")):
        _, part = next(of_seeds(errors(run, {"delta": delta})))
        panel.step(
            part["time_s"], part["error"], where="post", **style.line(index), label=f"δ = {delta}"
        )
    seconds(panel, 40, 180)
    error_axis(panel)
    style.legend(figure, [panel])
    return figure


def recursion(run: Run) -> Figure:
    """The error after each backoff, and the most that the recursion of § 4.3.1 allows."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, delta in enumerate(labels(run, "delta")):
        of = {"delta": delta}
        base = at(run, run.flows, of)["rtt_base_us"][0] / 1e3 + sending_ms(run, of)
        _, part = next(of_seeds(errors(run, of)))
        steps = steps_down(part["error"].to_list())
        seen = [steps[0][0], *(after for _, after in steps)]
        most = [seen[0]]
        while most[-1] > 0:
            most.append(max(0.0, float(delta) * most[-1] - (1 - float(delta)) * base))
        panel.plot(range(len(most)), most, **style.line(index))
        look: dict[str, Any] = {
            "ls": "none",
            "marker": style.MARKERS[index],
            "color": style.colour(index),
        }
        panel.plot(range(len(seen)), seen, **look, label=f"δ = {delta}")
    panel.set_xlabel("Backoff (lines: recursion of § 4.3.1)")
    error_axis(panel)
    style.legend(figure, [panel])
    return figure


def fig4_2(run: Run) -> Figure:
    """The errors of 16 Reno flows with adaptive backoff, of the seed that takes the median time."""
    figure = style.figure(2.6, 4.5)
    panel = figure.subplots()
    parts = [part for _, part in of_seeds(errors(run, {}))]
    parts.sort(key=_last_wrong)
    error_curves(panel, parts[len(parts) // 2])
    style.legend(figure, [panel])
    return figure


def _last_wrong(part: pl.DataFrame) -> float:
    return float(part.filter(pl.col("error") > RIGHT_MS)["time_s"].max() or 0.0)  # type: ignore[arg-type]


def fig4_3(run: Run) -> Figure:
    """The errors on paths of several bandwidth-delay products."""
    paths = labels(run, "path")
    figure = style.figure(4.2)
    panels = figure.subplots(2, (len(paths) + 1) // 2, sharex=True, sharey=True).flat
    for path, panel in zip(paths, panels, strict=True):
        _, part = next(of_seeds(errors(run, {"path": path})))
        error_curves(panel, part)
        panel.set_title(path)
    return figure


def fig4_4(run: Run) -> Figure:
    """The worst error of minRTT, and the windows, by the number of flows."""
    figure = style.figure(2.8)
    left, right = figure.subplots(1, 2)
    for index, start in enumerate(labels(run, "start")):
        counts, worst = along_flows(run, {"start": start}, "error")
        means(left, counts, columns_of(worst), index, f"starts within {start}")
    left.axvline(60, color="0.4", lw=0.8, ls="--")
    left.set_ylabel("Worst error of minRTT (ms)")
    left.set_xlabel("Flows (dashed: the thesis' error begins to rise)")
    window_curves(right, run, {"start": labels(run, "start")[0]})
    for x, y, index in ((60, 60, 0), (60, 35, 1), (100, 90, 0)):
        right.plot([x], [y], "o", ms=9, fillstyle="none", color=style.colour(index))
    right.set_ylabel("Share of time (%)")
    right.set_xlabel("Flows (circles: thesis)")
    style.legend(figure, [left, right], columns=4)
    return figure


def fig4_5(run: Run) -> Figure:
    """The backoff factor by baseRTT: eq. 4.1, and what backoffs left (marks)."""
    figure = style.figure(2.6, 4.5)
    panel = figure.subplots()
    bases = range(5, 205, 5)
    for index, queue in enumerate(labels(run, "queue")):
        delay = float(queue.removesuffix(" ms"))
        panel.plot(
            bases,
            [factor(b, delay) for b in bases],
            **style.line(index),
            label=f"queueing delay {queue}",
        )
        rtts = labels(run, "rtt")
        seen = [backoff_factors(run, {"queue": queue, "rtt": rtt}) for rtt in rtts]
        look: dict[str, Any] = {
            "ls": "none",
            "marker": style.MARKERS[index],
            "color": style.colour(index),
        }
        panel.plot([float(rtt) for rtt in rtts], seen, **look)
    panel.set_xlabel("baseRTT (ms)")
    panel.set_ylabel("Backoff factor β")
    panel.set_ylim(0, 1)
    style.legend(figure, [panel])
    return figure


def fair(run: Run) -> Figure:
    """Mean window of far flows ÷ near flows, by the increase and by what flows back off for."""
    figure = style.figure(2.2, 4.5)
    panel = figure.subplots()
    for index, increase in enumerate(labels(run, "increase")):
        for row, signal in enumerate(labels(run, "signal")):
            found = estimate(window_ratio({"": run}, "", {"signal": signal, "increase": increase}))
            panel.errorbar(
                found.mean,
                row + 0.1 * index,
                xerr=found.half_width,
                fmt=style.MARKERS[index],
                color=style.colour(index),
                label=f"α = {increase}" if row == 0 else None,
            )
    panel.axvline(1, color="0.4", lw=0.8, ls="--")
    panel.set_yticks(range(len(labels(run, "signal"))), labels=labels(run, "signal"))
    panel.set_ylim(-0.5, 1.6)
    panel.set_xlabel("Mean window, 150–200 ms ÷ 20–40 ms")
    style.legend(figure, [panel])
    return figure


def fig4_6(run: Run) -> Figure:
    """The errors of 10 flows over 1 Mbit/s, without web users and with."""
    return with_web(run)


def fig4_7(run: Run) -> Figure:
    """The same of 12 flows."""
    return with_web(run)


def fig4_8(run: Run) -> Figure:
    """The same of 32 flows over 10 Mbit/s."""
    return with_web(run)


def fig4_9(run: Run) -> Figure:
    """The errors of 256 flows over 50 Mbit/s; none below 2 ms, as in the thesis."""
    figure = style.figure(2.6, 4.5)
    panel = figure.subplots()
    _, part = next(of_seeds(errors(run, {})))
    part = part.filter(pl.col("error") >= RIGHT_MS)
    panel.plot(part["time_s"], part["error"], ".", ms=2, color=style.colour(0))
    seconds(panel, 0, 400)
    error_axis(panel)
    panel.set_xlabel("Time (s); a flow more each second until 256 s")
    return figure


#: Every figure, by the name of its scenario or of the figure whose runs it has.
FIGURES: Mapping[str, Callable[[Run], Figure]] = {
    function.__name__: function
    for function in (
        *(fig2_5, fig3_3, fig3_4, fig3_5, fig3_6, fig3_7, fig3_8, fig3_9, fig3_10, starts),
        *(spread, fig4_1, recursion, fig4_2, fig4_3, fig4_4, fig4_5, fair, fig4_6, fig4_7),
        *(fig4_8, fig4_9, fig5_1, cheat, fig5_2, fig5_3, fig5_4, fig5_5, fig5_6, fig5_7, late),
    )
}
