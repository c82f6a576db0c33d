"""Figures of the delay-based AIMD thesis, and of questions that it leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Line, Note, Panel, Picture, Rule, line_style
from cwnd.studies.papers.dbaimd.chapter5 import (
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
from cwnd.studies.papers.dbaimd.measures import backoff_factors, factor, steps_down, window_ratio
from cwnd.studies.papers.dbaimd.panels import (
    DELAY,
    ERROR,
    FROM_ZERO,
    GOODPUT,
    GREY,
    TIME,
    WINDOW,
    by_flows,
    circle,
    delay_curves,
    error_panel,
    error_steps,
    flow_series,
    of_errors,
    over_time,
    queue_series,
    side_by_side,
    stacked,
    window_panel,
    with_web,
)
from cwnd.studies.papers.dbaimd.runs import (
    DELTA,
    RIGHT_MS,
    THRESHOLD_MS,
    along_flows,
    bound_ms,
    correlations,
    eq_3_6_ms,
    errors,
    least_delays,
    of_runs,
    of_seeds,
    sending_ms,
)
from cwnd.study import ONE_PANEL, across, at, curve, first_seed, labels, marks, row_ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.figures import Mark
    from cwnd.results import Run


def fig2_5(run: Run) -> Picture:
    """Window, and queueing delay with the threshold, of one flow."""
    queue = queue_series(run, {}).with_columns(delay=pl.col("sojourn_us") / 1e3)
    delay = over_time(queue, "delay", 0, "simulation", width=1.2)
    windows = over_time(flow_series(run, {}), "snd_cwnd_pkts", 0, width=1.2)
    panels = [
        Panel([windows], y_label=WINDOW),
        Panel([delay, Rule(y=20, width=1.2, label="τ₀")], y_label=DELAY),
    ]
    return stacked(panels, 30, 120)


def fig3_3(run: Run) -> Picture:
    """Correlations of queueing delays that flow 1 and others measure; two flows over time."""
    rows = flow_series(run, {}).filter(pl.col("time_s") >= run.runs["warmup_s"].max())
    found = correlations(rows)
    flows = range(2, len(found) + 2)
    with_first = Line(flows, found, line_style.colour(0), joined=False, marker="o", size=3)
    base = run.flows.select("seed", "flow_id", "rtt_base_us")
    seen = rows.join(base, on=["seed", "flow_id"]).with_columns(
        delay=(pl.col("rtt_seen_us") - pl.col("rtt_base_us")) / 1e3
    )
    return side_by_side(
        Panel(
            [with_first, Rule(y=-0.25), Rule(y=0.25)],
            x_label="Flow",
            y_label="Correlation with flow 1",
            y_limits=(-1, 1),
        ),
        Panel(
            _two_flows(seen, "delay"),
            x_label=TIME,
            y_label="Measured queueing delay (ms)",
            x_limits=(40, 60),
        ),
        height=2.6,
    )


def fig3_4(run: Run) -> Picture:
    """Sum of the windows, and the windows of two flows."""
    rows = flow_series(run, {})
    sums = rows.group_by("time_s", maintain_order=True).agg(pl.col("snd_cwnd_pkts").sum())
    total = over_time(sums, "snd_cwnd_pkts", 0)
    panels = [
        Panel([total], y_label="Sum of cwnds\n(packets)", y_limits=FROM_ZERO),
        Panel(_two_flows(rows, "snd_cwnd_pkts"), y_label=WINDOW),
    ]
    return stacked(panels, 20, 80)


def _two_flows(rows: pl.DataFrame, what: str) -> list[Line]:
    """Lines of a column of the first two flows over time."""
    return [
        over_time(rows.filter(pl.col("flow_id") == flow), what, flow, f"flow {flow + 1}")
        for flow in range(2)
    ]


def fig3_5(run: Run) -> Picture:
    """Peak and mean queueing delay by the number of flows, beside the bounds 3.6 to 3.8."""
    panels = []
    counts = [int(n) for n in labels(run, "flows")]
    for rtt in labels(run, "rtt"):
        eq_3_8 = [THRESHOLD_MS + (bound_ms(n) - THRESHOLD_MS) / (1 - DELTA) for n in counts]
        drawn = delay_curves(run, {"rtt": rtt})
        drawn.append(Line(counts, eq_3_8, GREY, dashes=line_style.DASHES[2], label="eq. 3.8"))
        panels.append(Panel(drawn, rtt, x_label="Flows", y_limits=(0, 420)))
    pipe = 100 * 10e3 / 8 / 1500
    panels[0].marks = [
        *panels[0].marks,
        Rule(x=pipe, colour=GREY, dashes=()),
        Note(pipe + 2, 380, "flows = BDP"),
        _eq_3_6(counts, 100),
    ]
    panels[0].y_label = DELAY
    return Picture(panels, 3.0, columns=2)


def _eq_3_6(counts: Sequence[int], rtt_ms: float) -> Line:
    ends = [min(counts), max(counts)]
    dashes = line_style.DASHES[3]
    return Line(ends, [eq_3_6_ms(rtt_ms)] * 2, GREY, dashes=dashes, label="eq. 3.6")


def filtered(run: Run) -> Picture:
    """Peak and mean delay of flows that heed a filtered delay (§ 3.3.4), beside both bounds."""
    panels = []
    for rtt, mean_ms in zip(labels(run, "rtt"), (100, 110), strict=True):
        drawn = delay_curves(run, {"rtt": rtt})
        drawn.append(_eq_3_6([int(n) for n in labels(run, "flows")], mean_ms))
        panels.append(Panel(drawn, rtt, x_label="Flows", y_limits=(0, 420)))
    panels[0].y_label = DELAY
    return Picture(panels, 3.0, columns=2)


def fig3_6(run: Run) -> Picture:
    """Share of time of each window, by the number of flows."""
    left, right = (window_panel(run, {"rtt": rtt}, title=rtt) for rtt in labels(run, "rtt"))
    left.marks = [*left.marks, circle(130, 100)]
    return Picture([left, right], 2.8, columns=2)


def fig3_7(run: Run) -> Picture:
    """Peak and mean queueing delay with packets of 512 B, and the share of windows of one."""
    delays = delay_curves(run, {}, packet_b=512)
    return side_by_side(
        Panel(delays, x_label="Flows", y_label=DELAY, y_limits=FROM_ZERO),
        window_panel(run, {}, circle(390, 100)),
    )


def starts(run: Run) -> Picture:
    """Fairness, errors of minRTT and delays of 130 flows, by the distribution of their starts."""
    names = labels(run, "start")
    numbers = [of_runs(run, {"start": name}) for name in names]
    quantities = {
        "jain": "Jain index",
        "error": "Worst error of minRTT (ms)",
        "mean": "Mean delay (ms)",
    }
    panels = [
        Panel(
            [across((rows[what] for rows in numbers), 0)],
            x_label=text,
            # minRTT of short packets is below baseRTT with a full one: the error may be negative.
            x_limits=(None if what == "error" else 0, None),
            y_ticks=row_ticks(names),
        )
        for what, text in quantities.items()
    ]
    return Picture(panels, 2.2, columns=3, shared_x="none")


def spread(run: Run) -> Picture:
    """Excess of the peak over eq. 3.7, by the number of flows and the spread of their RTTs."""
    drawn: list[Mark] = [Rule(y=0, dashes=())]
    for index, rtt in enumerate(labels(run, "rtt")):
        counts, peaks = along_flows(run, {"rtt": rtt}, "peak")
        beyond = ([p[i] - bound_ms(n) for p in peaks] for i, n in enumerate(counts))
        drawn.append(marks(zip(counts, beyond, strict=True), index, rtt))
    panel = Panel(drawn, x_label="Flows", y_label="Peak less eq. 3.7 (ms)")
    return Picture([panel], *ONE_PANEL)


def fig3_8(run: Run) -> Picture:
    """Goodput and fairness beside Reno, all flows of 100 ms, and each of 128 flows."""
    return _beside_reno(run, "100 ms")


def fig3_9(run: Run) -> Picture:
    """Goodput and fairness beside Reno with RTTs of 20 to 200 ms, and each of 128 flows."""
    return _beside_reno(run, "20 to 200 ms")


def _beside_reno(run: Run, rtt: str) -> Picture:
    goodputs, shares, each = [], [], []
    most = max(labels(run, "flows"), key=int)
    for index, scheme in enumerate(labels(run, "scheme")):
        of = {"rtt": rtt, "scheme": scheme}
        goodputs.append(by_flows(run, of, "goodput", index, scheme))
        shares.append(by_flows(run, of, "jain", index, scheme))
        rows = first_seed(at(run, run.flows, {**of, "flows": most}))
        rates = rows["goodput_bit_s"].sort() / 1e3
        each.append(curve(range(1, len(rates) + 1), rates, index))
    return side_by_side(
        Panel(goodputs, x_label="Flows", y_label=GOODPUT, y_limits=(0, 10)),
        Panel(shares, x_label="Flows", y_label="Jain index", y_limits=(0, 1.05)),
        Panel(
            each,
            x_label="Flow of 128, slowest first",
            y_label="Goodput of a flow (kbit/s)",
            y_limits=FROM_ZERO,
        ),
    )


def fig3_10(run: Run) -> Picture:
    """Delays with delayed ACKs and chunks, the shortest ones beside those without, and goodput."""
    least: list[Mark] = [Rule(y=THRESHOLD_MS), Rule(x=90, colour=line_style.colour(0))]
    least.append(Rule(x=130, colour=line_style.colour(1)))
    goodputs = []
    for index, stack in enumerate(labels(run, "stack")):
        goodputs.append(by_flows(run, {"stack": stack}, "goodput", index, stack))
        counts, shortest = least_delays(run, {"stack": stack})
        points = zip(counts, zip(*shortest, strict=True), strict=True)
        least.append(marks(points, index, stack))
    delays = delay_curves(run, {"stack": labels(run, "stack")[0]})
    return side_by_side(
        Panel(delays, x_label="Flows", y_label=DELAY, y_limits=FROM_ZERO),
        Panel(least, x_label="Flows", y_label="Shortest queueing delay (ms)", y_limits=FROM_ZERO),
        Panel(goodputs, x_label="Flows", y_label=GOODPUT, y_limits=(0, 10)),
    )


def fig4_1(run: Run) -> Picture:
    """Error of minRTT over time for each δ."""
    drawn = []
    for index, delta in enumerate(labels(run, "delta")):
        part = first_seed(errors(run, {"delta": delta}))
        drawn.append(error_steps(part, index, f"δ = {delta}", width=1.2))
    panel = Panel(drawn, x_limits=(40, 180), y_limits=FROM_ZERO)
    return of_errors([panel], 2.8, width=4.5)


def recursion(run: Run) -> Picture:
    """Error after each backoff, and the maximum by the recursion of § 4.3.1."""
    drawn = []
    for index, delta in enumerate(labels(run, "delta")):
        of = {"delta": delta}
        base = at(run, run.flows, of)["rtt_base_us"][0] / 1e3 + sending_ms(run, of)
        steps = steps_down(first_seed(errors(run, of))["error"].to_list())
        seen = [steps[0][0], *(after for _, after in steps)]
        most = [seen[0]]
        while most[-1] > 0:
            most.append(max(0.0, float(delta) * most[-1] - (1 - float(delta)) * base))
        how = {"marker": line_style.marker(index), "joined": False, "label": f"δ = {delta}"}
        drawn += [curve(range(len(most)), most, index), curve(range(len(seen)), seen, index, **how)]
    text = "Backoff (lines: recursion of § 4.3.1)"
    panel = Panel(drawn, x_label=text, y_label=ERROR, y_limits=FROM_ZERO)
    return Picture([panel], *ONE_PANEL)


def fig4_2(run: Run) -> Picture:
    """Errors of 16 Reno flows with adaptive backoff, of the seed with the median time."""
    parts = [part for _, part in of_seeds(errors(run, {}))]
    parts.sort(key=_last_wrong)
    return of_errors([error_panel(parts[len(parts) // 2])], width=4.5)


def _last_wrong(part: pl.DataFrame) -> float:
    return float(
        part.filter(pl.col("error") > RIGHT_MS)["time_s"].max()  # type: ignore[arg-type]
        or 0.0
    )


def fig4_3(run: Run) -> Picture:
    """Errors of minRTT on paths of several bandwidth-delay products."""
    paths = labels(run, "path")
    panels = [error_panel(first_seed(errors(run, {"path": path})), path) for path in paths]
    return of_errors(panels, 4.2, columns=3)


def fig4_4(run: Run, counted: Run) -> Picture:
    """Worst error of minRTT, and windows by the number of flows: by eq. 2.5, and by Linux 2.6."""
    begins = labels(run, "start")
    worst: list[Mark] = [Rule(x=60)]
    for index, start in enumerate(begins):
        worst.append(by_flows(run, {"start": start}, "error", index, f"starts within {start}"))
    circles = [circle(60, 60), circle(60, 35, 1), circle(100, 90)]
    of = {"start": begins[0]}
    windows = [
        window_panel(each, of, *circles, title=title)
        for each, title in ((run, "Growth by eq. 2.5"), (counted, "Growth as Linux 2.6 counts"))
    ]
    errors_panel = Panel(worst, x_label="Flows", y_label="Worst error of minRTT (ms)")
    return side_by_side(errors_panel, *windows)


def fig4_5(run: Run) -> Picture:
    """Backoff factor by baseRTT: eq. 4.1 (lines), and measured factors (marks)."""
    drawn = []
    bases, rtts = range(5, 205, 5), labels(run, "rtt")
    for index, queue in enumerate(labels(run, "queue")):
        law = [factor(base, float(queue.removesuffix(" ms"))) for base in bases]
        drawn.append(curve(bases, law, index, label=f"queueing delay {queue}"))
        seen = [backoff_factors(run, {"queue": queue, "rtt": rtt}) for rtt in rtts]
        how = {"marker": line_style.marker(index), "joined": False}
        drawn.append(curve(map(float, rtts), seen, index, **how))
    panel = Panel(drawn, x_label="baseRTT (ms)", y_label="Backoff factor β", y_limits=(0, 1))
    return Picture([panel], 2.6, 4.5)


def fair(run: Run) -> Picture:
    """Mean window of far flows ÷ near flows, by the increase and by the signal of backoffs."""
    signals = labels(run, "signal")
    drawn: list[Mark] = [Rule(x=1)]
    for index, alpha in enumerate(labels(run, "increase")):
        points = ({"signal": signal, "increase": alpha} for signal in signals)
        ratios = (window_ratio({"": run}, "", point) for point in points)
        drawn.append(across(ratios, index, f"α = {alpha}", 0.1 * index))
    panel = Panel(drawn, x_label="Mean window, 150–200 ms ÷ 20–40 ms", y_limits=(-1.6, 0.5))
    panel.y_ticks = row_ticks(signals)
    return Picture([panel], 2.2, 4.5)


def fig4_6(run: Run) -> Picture:
    """Errors of 10 flows over 1 Mbit/s, without web users and with."""
    return with_web(run)


def fig4_7(run: Run) -> Picture:
    """Errors of 12 flows over 1 Mbit/s, without web users and with."""
    return with_web(run)


def fig4_8(run: Run) -> Picture:
    """Errors of 32 flows over 10 Mbit/s, without web users and with."""
    return with_web(run)


def fig4_9(run: Run) -> Picture:
    """Errors of 256 flows over 50 Mbit/s, without those below 2 ms, as in the thesis."""
    part = first_seed(errors(run, {})).filter(pl.col("error") >= RIGHT_MS)
    points = over_time(part, "error", 0, joined=False, marker="o", size=1)
    panel = Panel([points, Rule(x=200)], x_limits=(0, 400), y_limits=FROM_ZERO)
    return of_errors([panel], width=4.5)


#: Functions of the figures, by the name of the scenario or of the figure with the same runs.
FIGURES: Mapping[str, Callable[..., Picture]] = {
    function.__name__: function
    for function in (
        *(fig2_5, fig3_3, fig3_4, fig3_5, fig3_6, fig3_7, fig3_8, fig3_9, fig3_10, filtered),
        *(starts, spread, fig4_1, recursion, fig4_2, fig4_3, fig4_4, fig4_5, fair, fig4_6, fig4_7),
        *(fig4_8, fig4_9, fig5_1, cheat, fig5_2, fig5_3, fig5_4, fig5_5, fig5_6, fig5_7, late),
    )
}
