"""Tables and figure of response times with TCP*(n): real servers and clients beside the simulator.

The tables leave out arms and bursts that Linux has not run. The simulator's runs are those of the
seeds that Linux ran.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from cwnd.figures import Line, Panel, Picture, line_style

#: n of each arm; TCP*(6) is TCP*(∞).
STARS = {"TCP": 0, "TCP*(1)": 1, "TCP*(3)": 3, "TCP*(∞)": 6}
#: Worlds in the order of the table of bursts.
RATIOS = ("Linux", "as Linux can", "simulator")
DASHES = dict(zip(RATIOS, line_style.DASHES, strict=False))
#: Quantiles of the table.
QUANTILES = (0.5, 0.9, 0.99, 0.999)


def cases(runs: pl.DataFrame, claim: str) -> list[str]:
    """Names of the settings of a claim."""
    return runs.filter(claim=claim)["case"].unique(maintain_order=True).to_list()


def _mean(runs: pl.DataFrame, column: str, **of: object) -> float | None:
    found = runs.filter(**of)[column].mean()
    return found if isinstance(found, float) else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def traces(runs: pl.DataFrame) -> list[str]:
    """Quantiles of response times with recorded sizes: simulator → Linux."""
    rows = [
        "| trace | arm | runs | answers a run | median, s | 90 % | 99 % | 99.9 % | dropped |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases(runs, "T3"):
        for star, n in STARS.items():
            of = runs.filter(case=case, n=n, world="Linux")
            if of.is_empty():
                continue
            cells = []
            for q in QUANTILES:
                both = (
                    _mean(runs, f"p{100 * q:g}_s", case=case, n=n, world=world)
                    for world in ("simulator", "Linux")
                )
                cells.append(" → ".join(map(_shown, both)))
            dropped, delivered = (int(of[name].sum()) for name in ("drops", "delivered_pkts"))
            rows.append(
                f"| {'I' * int(case[-1])} | {star} | {of.height} |"
                f" {_mean(of, 'answered'):.0f} |"
                f" {' | '.join(cells)} | {100 * dropped / (dropped + delivered):.0f} % |"
            )
    return rows


def bursts(runs: pl.DataFrame) -> list[str]:
    """99th percentiles where connections come in bursts, and their ratios."""
    rows = [
        "| on and off for | TCP | TCP\\*(∞) | Linux: TCP ÷ TCP\\*(∞) | as Linux can | simulator |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for case in cases(runs, "T5"):
        ratios, shown = [], []
        for world in RATIOS:
            pair = [
                _mean(runs, "p99_s", case=case, n=n, world=world) for n in (0, STARS["TCP*(∞)"])
            ]
            shown.append(pair)
            ratios.append(pair[0] / pair[1] if pair[0] and pair[1] else None)
        if shown[0][0] is None:
            continue
        period = float(case.removeprefix("period-"))
        cells = [f"{period:g} s", *(f"{_shown(value)} s" for value in shown[0])]
        rows.append(f"| {' | '.join([*cells, *map(_shown, ratios)])} |")
    return rows


def web(curves: pl.DataFrame, runs: pl.DataFrame) -> Picture:
    """Response times of the traces, and the 99th percentile where connections come in bursts."""
    curves = finite(curves)
    panels = []
    for case in cases(runs, "T3"):
        lines = []
        for index, (star, n) in enumerate(STARS.items()):
            for world, label in (("Linux", star), ("simulator", None)):
                of = curves.filter(case=case, n=n, world=world)
                line = Line(of["s"].to_list(), of["share"].to_list(), line_style.colour(index))
                line.dashes, line.label = DASHES[world], label
                lines.append(line)
        panel = Panel(lines, x_log=True, y_log=True, y_label="share that waits longer")
        panel.x_label = f"response time, s (Trace {'I' * int(case[-1])})"
        panels.append(panel)
    panels.append(_bursts(runs))
    return Picture(panels, 5.4, columns=2, shared_x="none", shared_y="none")


def finite(curves: pl.DataFrame) -> pl.DataFrame:
    """Points of all curves with a finite time: this `share` of responses takes longer than `s`."""
    where = ("case", "n", "world")
    points = curves.unpivot(index=where, variable_name="share", value_name="s")
    return points.cast({"share": pl.Float64}).filter(pl.col("s").is_finite())


def _bursts(runs: pl.DataFrame) -> Panel:
    """The 99th percentile where connections come in bursts; dashes are those of the traces."""
    periods = [float(case.removeprefix("period-")) for case in cases(runs, "T5")]
    lines = []
    for index, world in enumerate(RATIOS):
        how: dict[str, Any] = {"dashes": DASHES[world], "marker": line_style.marker(index)}
        lines.append(Line([], [], "#777777", label=world, **how))
        # TCP has no such bounds.
        for star in ("TCP*(∞)",) if world == "as Linux can" else ("TCP", "TCP*(∞)"):
            of = runs.filter(claim="T5", n=STARS[star], world=world)
            found = dict(of.group_by("case").agg(pl.col("p99_s").mean()).iter_rows())
            values = [found.get(case) for case in cases(runs, "T5")]
            lines.append(Line(periods, values, line_style.colour(list(STARS).index(star)), **how))
    panel = Panel(lines, x_log=True, y_limits=(0, None), y_label="99th percentile, s")
    panel.x_label = "on and off for so many seconds (Trace I)"
    return panel


TABLES = {"traces": traces, "bursts": bursts}
FIGURES = {"web": web}
