"""The figures of chapter 5 of the delay-based AIMD thesis: what a round-trip time measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.papers.dbaimd.panels import (
    estimate,
    grid,
    means,
    queue_series,
    seconds,
    stacked,
)
from cwnd.papers.dbaimd.runs import (
    sending_ms,
)
from cwnd.papers.dbaimd.seen import share_of
from cwnd.plots import style
from cwnd.reproduce import at, labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.results import Run


def fig5_1(run: Run) -> Figure:
    """Windows and shares of two CUBIC flows, of which one is cheated by its receiver."""
    figure, panels = grid(2, labels(run, "rtt"))
    cubic = labels(run, "cubic")[0]
    for column, rtt in enumerate(labels(run, "rtt")):
        rows = at(run, run.series, {"cubic": cubic, "rtt": rtt})
        rows = rows.filter(pl.col("seed") == rows["seed"].min()).sort("time_s")
        for index, group in enumerate(("cheat", "honest")):
            mine = rows.filter(pl.col("group").cast(pl.String) == group)
            look = {**style.line(index), "lw": 0.8}
            panels[0][column].plot(mine["time_s"], mine["snd_cwnd_pkts"], **look, label=group)
            rate = mine["delivered"].diff(10).cast(pl.Float64) * 8 / mine["time_s"].diff(10) / 1e6
            panels[1][column].plot(mine["time_s"], rate, **look)
        panels[0][column].set_title(rtt)
        seconds(panels[1][column], 20, 80)
    panels[0][0].set_ylabel("cwnd (packets)")
    panels[1][0].set_ylabel("Bandwidth (Mbit/s)")
    style.legend(figure, [panels[0][0]])
    return figure


def cheat(run: Run) -> Figure:
    """The share of the flow that is cheated, for each CUBIC."""
    figure = style.figure(2.2, 4.5)
    panel = figure.subplots()
    for index, rtt in enumerate(labels(run, "rtt")):
        for row, cubic in enumerate(labels(run, "cubic")):
            found = estimate(share_of({"": run}, "", "cheat", {"rtt": rtt, "cubic": cubic}))
            panel.errorbar(
                found.mean,
                row + 0.15 * index,
                xerr=found.half_width,
                fmt=style.MARKERS[index],
                color=style.colour(index),
                label=rtt if row == 0 else None,
            )
    panel.axvline(50, color="0.4", lw=0.8, ls="--")
    panel.set_yticks(range(len(labels(run, "cubic"))), labels=labels(run, "cubic"))
    panel.invert_yaxis()
    panel.set_xlim(0, 100)
    panel.set_xlabel("Share of the flow whose receiver cheats (%)")
    style.legend(figure, [panel])
    return figure


def fig5_2(run: Run) -> Figure:
    """RTTs and windows with all that chapter 5 mends; the timer's RTT beside, smoothed."""
    return _ack_noise(run, "newest, no lone ACKs", timer=True)


def fig5_3(run: Run) -> Figure:
    """The same with the oldest segment timed, as before Linux 2.6.24."""
    return _ack_noise(run, "oldest segment")


def fig5_4(run: Run) -> Figure:
    """Backoffs, noise and goodput of each flow, by what gives the round-trip time."""
    figure = style.figure(2.4)
    panels = figure.subplots(1, 3, sharey=True)
    rows = run.flows.with_columns(
        noise=(pl.col("qdelay_seen_us") - pl.col("qdelay_true_us")) / 1e3,
        backoffs=pl.col("cwnd_reductions_delay") / pl.col("duration_s") * 60,
        goodput=pl.col("goodput_bit_s") / 1e6,
    )
    names = labels(run, "seen")
    for panel, what, text in zip(
        panels,
        ("noise", "backoffs", "goodput"),
        ("Seen beyond the queue (ms)", "Backoffs for delay a minute", "Goodput (Mbit/s)"),
        strict=True,
    ):
        for index, (group, name) in enumerate((("far", "110 ms"), ("near", "20 ms"))):
            for row, seen in enumerate(names):
                mine = at(run, rows, {"seen": seen})
                mine = mine.filter(pl.col("group").cast(pl.String) == group)
                found = estimate(mine[what].to_list())
                panel.errorbar(
                    found.mean,
                    row,
                    xerr=found.half_width,
                    fmt=style.MARKERS[index],
                    ms=4,
                    color=style.colour(index),
                    label=name if row == 0 else None,
                )
        panel.set_xlabel(text)
    panels[0].set_yticks(range(len(names)), labels=names)
    panels[0].invert_yaxis()
    style.legend(figure, list(panels))
    return figure


def _ack_noise(run: Run, seen: str, *, timer: bool = False) -> Figure:
    figure, (upper, lower) = stacked(2)
    rows = at(run, run.series, {"seen": seen})
    rows = rows.filter(pl.col("seed") == rows["seed"].min()).sort("time_s")
    for index, (group, name) in enumerate((("far", "110 ms"), ("near", "20 ms"))):
        mine = rows.filter(pl.col("group").cast(pl.String) == group)
        if timer:
            srtt = {**style.line(index + 2), "lw": 0.8}
            upper.plot(mine["time_s"], mine["srtt_us"] / 1e3, **srtt, label=f"{name}, timer's SRTT")
        look = {**style.line(index), "lw": 0.8}
        upper.plot(mine["time_s"], mine["rtt_seen_us"] / 1e3, **look, label=f"{name}, as seen")
        lower.plot(mine["time_s"], mine["snd_cwnd_pkts"], **look)
    upper.set_ylabel("RTT (ms)")
    upper.set_ylim(bottom=0)
    lower.set_ylabel("cwnd (packets)")
    seconds(lower, 40, 70)
    style.legend(figure, [upper])
    return figure


def fig5_5(run: Run) -> Figure:
    """RTTs of a flow whose segments leave in chunks, over 40 s and over 2 s."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1))
    for panel, end in zip(panels, (60, 22), strict=True):
        _chunks(panel, run, "a third of the window")
        seconds(panel, 20, end)
    panels[0].set_ylabel("RTT (ms)")
    return figure


def fig5_6(run: Run) -> Figure:
    """RTTs without chunks, and with chunks that wait for 5 ms at most."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 2, sharey=True)
    for panel, chunks in zip(panels, ("none", "5 ms, a third"), strict=True):
        _chunks(panel, run, chunks)
        seconds(panel, 20, 60)
        panel.set_title(f"chunks: {chunks}")
    panels[0].set_ylabel("RTT (ms)")
    return figure


def _chunks(panel: Axes, run: Run, chunks: str) -> None:
    rows = at(run, run.series, {"chunks": chunks})
    rows = rows.filter(pl.col("seed") == rows["seed"].min()).sort("time_s")
    panel.plot(rows["time_s"], rows["rtt_seen_us"] / 1e3, color=style.colour(0), lw=0.6)


def fig5_7(run: Run) -> Figure:
    """Window, queue and RTT of Reno, with chunks as two kernels make them."""
    figure, panels = stacked(3, 4.4)
    for index, kernel in enumerate(labels(run, "kernel")):
        rows = at(run, run.series, {"kernel": kernel})
        rows = rows.filter(pl.col("seed") == rows["seed"].min()).sort("time_s")
        queue = queue_series(run, {"kernel": kernel})
        look = {**style.line(index), "lw": 0.6}
        panels[0].plot(rows["time_s"], rows["snd_cwnd_pkts"], **look, label=kernel)
        panels[1].plot(queue["time_s"], queue["qlen_pkts"], **look)
        panels[2].plot(rows["time_s"], rows["rtt_seen_us"] / 1e3, **look)
    for panel, name in zip(panels, ("cwnd (packets)", "Queue (packets)", "RTT (ms)"), strict=True):
        panel.set_ylabel(name)
    seconds(panels[2], 20, 60)
    style.legend(figure, [panels[0]])
    return figure


def late(run: Run) -> Figure:
    """Errors of minRTT and goodputs of ten flows, by when they began."""
    figure = style.figure(2.6)
    left, right = figure.subplots(1, 2)
    most = max(labels(run, "flows"), key=int)
    for index, scheme in enumerate(labels(run, "scheme")):
        of = {"scheme": scheme, "flows": most}
        base = pl.col("rtt_base_us") / 1e3 + sending_ms(run, of)
        rows = at(run, run.flows, of).with_columns(
            error=pl.col("min_rtt_us") / 1e3 - base, goodput=pl.col("goodput_bit_s") / 1e6
        )
        flows = sorted(set(rows["flow_id"].to_list()))
        for panel, what in ((left, "error"), (right, "goodput")):
            points = [rows.filter(pl.col("flow_id") == n)[what].to_list() for n in flows]
            means(panel, [n + 1 for n in flows], points, index, scheme)
    right.axhline(9.65 / int(most), color="0.4", lw=0.8, ls="--")
    left.set_ylabel("minRTT − baseRTT at the end (ms)")
    right.set_ylabel("Goodput (Mbit/s)")
    right.set_ylim(bottom=0)
    for panel in (left, right):
        panel.set_xlabel("Flow, in the order of their starts")
    style.legend(figure, [left])
    return figure
