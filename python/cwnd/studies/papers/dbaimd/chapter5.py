"""Figures of chapter 5 of the delay-based AIMD thesis: measurement of round-trip times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Line, Panel, Picture, Rule, line_style
from cwnd.studies.papers.dbaimd.panels import (
    FROM_ZERO,
    GOODPUT,
    RTT,
    TIME,
    WINDOW,
    flow_series,
    of_group,
    over_time,
    queue_series,
    side_by_side,
    stacked,
)
from cwnd.studies.papers.dbaimd.rtt_measures import share_of
from cwnd.studies.papers.dbaimd.runs import sending_ms
from cwnd.study import across, at, labels, marks, row_ticks, seeds_along

if TYPE_CHECKING:
    from cwnd.figures import Mark
    from cwnd.results import Run

#: Groups of flows of Fig. 5.2 to 5.4, and their round trips.
_GROUPS = {"far": "110 ms", "near": "20 ms"}


def fig5_1(run: Run) -> Picture:
    """Windows and rates of two CUBIC flows, one with a cheating receiver."""
    windows, rates = [], []
    cubic = labels(run, "cubic")[0]
    for rtt in labels(run, "rtt"):
        rows = flow_series(run, {"cubic": cubic, "rtt": rtt})
        window, rate = [], []
        for index, group in enumerate(("cheat", "honest")):
            bits, time = pl.col("delivered").cast(pl.Float64) * 8, pl.col("time_s")
            mine = of_group(rows, group).with_columns(rate=bits.diff(10) / time.diff(10) / 1e6)
            window.append(over_time(mine, "snd_cwnd_pkts", index, group))
            rate.append(over_time(mine, "rate", index))
        windows.append(Panel(window, rtt, x_limits=(20, 80)))
        rates.append(Panel(rate))
    windows[0].y_label, rates[0].y_label = WINDOW, "Bandwidth (Mbit/s)"
    panels = windows + rates
    return Picture(panels, 3.4, columns=len(windows), shared_y="row", x_label=TIME)


def cheat(run: Run, undo: Run) -> Picture:
    """Share of the flow with a cheating receiver, by CUBIC, and by the undo of reductions."""
    cubics = labels(run, "cubic")
    cases = [(each, cubic) for each in (run, undo) for cubic in cubics]
    drawn: list[Mark] = [Rule(x=50)]
    for index, rtt in enumerate(labels(run, "rtt")):
        shares = (share_of({"": r}, "", "cheat", {"rtt": rtt, "cubic": c}) for r, c in cases)
        drawn.append(across(shares, index, rtt, 0.15 * index))
    panel = Panel(drawn, x_label="Share of the flow whose receiver cheats (%)", x_limits=(0, 100))
    panel.y_ticks = row_ticks([*cubics, *(f"{cubic}, undo" for cubic in cubics)])
    return Picture([panel], 2.8, 4.5)


def fig5_2(run: Run) -> Picture:
    """RTTs and windows with all corrections of chapter 5, and the timer's smoothed RTT."""
    return _ack_noise(run, "newest, no lone ACKs", timer=True)


def fig5_3(run: Run) -> Picture:
    """RTTs and windows with the oldest segment timed, as before Linux 2.6.24."""
    picture = _ack_noise(run, "oldest segment")
    # 90 ms beyond the path of 110 ms.
    picture.panels[0].marks = [*picture.panels[0].marks, Rule(y=200)]
    return picture


def fig5_4(run: Run) -> Picture:
    """Backoffs, noise and goodput of each flow, by the source of its RTT samples."""
    rows = run.flows.with_columns(
        noise=(pl.col("qdelay_seen_us") - pl.col("qdelay_true_us")) / 1e3,
        backoffs=pl.col("cwnd_reductions_delay") / pl.col("duration_s") * 60,
        goodput=pl.col("goodput_bit_s") / 1e6,
    )
    names = labels(run, "seen")
    panels = []
    for what, text in (
        ("noise", "Seen beyond the queue (ms)"),
        ("backoffs", "Backoffs for delay a minute"),
        ("goodput", GOODPUT),
    ):
        drawn = []
        for index, (group, rtt) in enumerate(_GROUPS.items()):
            seen = (of_group(at(run, rows, {"seen": name}), group) for name in names)
            drawn.append(across((mine[what] for mine in seen), index, rtt))
        panels.append(Panel(drawn, x_label=text, y_ticks=row_ticks(names)))
    return Picture(panels, 2.4, columns=3, shared_x="none")


def _ack_noise(run: Run, seen: str, *, timer: bool = False) -> Picture:
    rows = flow_series(run, {"seen": seen})
    rtts, windows = [], []
    for index, (group, rtt) in enumerate(_GROUPS.items()):
        mine = of_group(rows, group)
        if timer:
            rtts.append(over_time(mine, "srtt", index + 2, f"{rtt}, timer's SRTT"))
        rtts.append(over_time(mine, "rtt", index, f"{rtt}, as seen"))
        windows.append(over_time(mine, "snd_cwnd_pkts", index))
    upper = Panel(rtts, y_label=RTT, y_limits=FROM_ZERO)
    return stacked([upper, Panel(windows, y_label=WINDOW)], 40, 70)


def fig5_5(run: Run) -> Picture:
    """RTTs of a flow whose segments leave in chunks, over 40 s, and over 2 s beside 50 ms."""
    panels = [_chunks(run, "a third of the window", end=end) for end in (60, 22)]
    rtts = flow_series(run, {"chunks": "a third of the window"})["rtt"]
    least = float(rtts.min())  # type: ignore[arg-type]
    panels[1].marks = [
        *panels[1].marks,
        Line(
            [21.9] * 2, [least, least + 50], line_style.colour(1), width=2, label="50 ms (thesis)"
        ),
    ]
    return Picture(panels, 2.6, columns=2, x_label=TIME, y_label=RTT, shared_x="none")


def fig5_6(run: Run) -> Picture:
    """RTTs without chunks, and with chunks that wait for 5 ms at most."""
    panels = [_chunks(run, chunks, f"chunks: {chunks}") for chunks in ("none", "5 ms, a third")]
    return Picture(panels, 2.6, columns=2, x_label=TIME, y_label=RTT)


def _chunks(run: Run, chunks: str, title: str = "", end: float = 60) -> Panel:
    rtts = over_time(flow_series(run, {"chunks": chunks}), "rtt", 0, width=0.6)
    return Panel([rtts], title, x_limits=(20, end))


def fig5_7(run: Run) -> Picture:
    """Window, queue and RTT of Reno, with chunks as in two kernels."""
    windows, queues, rtts = [], [], []
    for index, kernel in enumerate(labels(run, "kernel")):
        rows = flow_series(run, {"kernel": kernel})
        windows.append(over_time(rows, "snd_cwnd_pkts", index, kernel, width=0.6))
        queue = queue_series(run, {"kernel": kernel})
        queues.append(over_time(queue, "qlen_pkts", index, width=0.6))
        rtts.append(over_time(rows, "rtt", index, width=0.6))
    drawn = {WINDOW: windows, "Queue (packets)": queues, RTT: rtts}
    return stacked([Panel(lines, y_label=name) for name, lines in drawn.items()], 20, 60, 4.4)


def late(run: Run) -> Picture:
    """Errors of minRTT and goodputs of ten flows, in the order of their starts."""
    most = max(labels(run, "flows"), key=int)
    wrong: list[Mark] = []
    goodputs: list[Mark] = [Rule(y=9.65 / int(most))]
    for index, scheme in enumerate(labels(run, "scheme")):
        of = {"scheme": scheme, "flows": most}
        error = (pl.col("min_rtt_us") - pl.col("rtt_base_us")) / 1e3 - sending_ms(run, of)
        rows = at(run, run.flows, of).select(
            "flow_id", flow=pl.col("flow_id") + 1, error=error, goodput=pl.col("goodput_bit_s")
        )
        wrong.append(marks(seeds_along(rows, "flow", "error"), index, scheme))
        goodputs.append(marks(seeds_along(rows, "flow", "goodput", 1e-6), index, scheme))
    name = "Flow, in the order of their starts"
    return side_by_side(
        Panel(wrong, x_label=name, y_label="minRTT − baseRTT at the end (ms)"),
        Panel(goodputs, x_label=name, y_label=GOODPUT, y_limits=FROM_ZERO),
        height=2.6,
    )
