"""Figures of the BMCC paper as it draws them, with its models and numbers beside ours."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Bars, Line, Panel, Picture, Rule, Span, line_style
from cwnd.models import bmcc as model
from cwnd.studies.papers.bmcc.dynamics import (
    BOTTLENECK,
    SPANS_S,
    Case,
    fairness_rates,
    overload_detection,
    rounds,
    shares,
    windows,
)
from cwnd.studies.papers.bmcc.measures import values
from cwnd.study import ONE_PANEL, across, at, curve, first_seed, labels, marks, means, row_ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.figures import Mark
    from cwnd.results import Run
    from cwnd.study import Point

#: Colour of each scheme, the same in all figures.
_SCHEMES = {
    name: index
    for index, name in enumerate(["BMCC", "VCP", "XCP", "RCP", "SACK", "BMCC, not paced", "MLCP"])
}
_QUANTITIES = {
    "utilisation": "Utilisation (%)",
    "queue": "Mean queue (% of the BDP)",
    "loss": "Loss (%)",
}
#: Style of a number of the paper.
_CIRCLE: dict[str, Any] = {
    "colour": "#4D4D4D",
    "joined": False,
    "marker": "o",
    "hollow": True,
    "size": 8.5,
}
#: Factors from units of rates and times to those of axes: Mbit/s, ms.
_UNITS = {"kbit/s": 1e-3, "Mbit/s": 1.0, "Gbit/s": 1e3, "ms": 1.0, "s": 1e3}


def fig01(run: Run) -> Picture:
    """Throughput of two flows, of which the second starts 50 s later."""
    panels = []
    link = float(run.links["rate_bit_s"][0]) / 1e6
    fair = Span(y=(link / 4, 3 * link / 4), label="within 50 % of the fair share")
    for pacing in labels(run, "pacing"):
        rows = first_seed(shares(run, {"pacing": pacing}))
        drawn: list[Mark] = [fair]
        for index, (group, rtt) in enumerate((("first", "150 ms"), ("second", "200 ms"))):
            mine = rows.filter(pl.col("group") == group).sort("time_s")
            drawn.append(curve(mine["time_s"], mine["mbit_s"], index, width=1.0, label=rtt))
        panels.append(Panel(drawn, title=pacing, x_label="Time (s)"))
    panels[0].y_label = "Throughput (Mbit/s)"
    return Picture(panels, 2.6, columns=2)


def fig02(run: Run) -> Picture:
    """Load factor at the bottleneck, and the flows' estimates of it."""
    panels = []
    for span in ((0, 150), (50, 70)):
        within = pl.col("time_s").is_between(*span)
        link = at(run, run.link_series, {"pacing": "paced"}).filter(
            within & (pl.col("link").cast(pl.String) == BOTTLENECK)
        )
        link = first_seed(link).sort("time_s")
        how = {"colour": "#333333", "width": 1.0, "label": "load factor"}
        drawn = [curve(link["time_s"], link["load_factor"], 0, **how)]
        rows = first_seed(at(run, run.series, {"pacing": "paced"}).filter(within))
        for index, flow in enumerate(rows["flow_id"].unique().sort()):
            mine = rows.filter(pl.col("flow_id") == flow).sort("time_s")
            name = f"estimate of flow {index + 1}"
            load_factor = mine["load_factor_seen"]
            drawn.append(curve(mine["time_s"], load_factor, index, width=0.8, label=name))
        panels.append(Panel(drawn, x_label="Time (s)", x_limits=span))
    panels[0].y_label = "Load factor"
    return Picture(panels, 2.6, columns=2, shared_x="none")


#: Lower end of the axis of fairness rates; intervals that reach below 0 end there.
_LEAST_RATE = 0.1


def fig03(run: Run) -> Picture:
    """Fairness rate of two flows, by the averaging interval of rates."""
    panels = []
    for rate in ("1 Mbit/s", "10 Mbit/s"):
        drawn = []
        for scheme in ("BMCC", "BMCC, not paced", "SACK"):
            columns = [fairness_rates(run, {"case": f"{scheme}, {rate}"}, s) for s in SPANS_S]
            line = _means(SPANS_S, columns, _SCHEMES[scheme], scheme)
            if line.interval is not None:
                low, high = line.interval
                ends = [None if end is None else max(end, _LEAST_RATE) for end in low]
                line.interval = ends, high
            drawn.append(line)
        panels.append(
            Panel(
                drawn,
                title=rate,
                x_label="Averaging interval (s)",
                x_log=True,
                y_log=True,
                y_limits=(_LEAST_RATE, None),
            )
        )
    panels[0].y_label = "Fairness rate"
    return Picture(panels, 2.6, columns=2)


def fig04(run: Run) -> Picture:
    """Decreases until a late flow has its share."""
    return _convergence(run, "m", "Decreases")


def fig05(run: Run) -> Picture:
    """Round trips from one decrease to the next."""
    return _convergence(run, "d_e", "Round trips from decrease\nto decrease")


def fig06(run: Run) -> Picture:
    """Round trips until a late flow has its share."""
    return _convergence(run, "r", "Round trips")


def fig07(run: Run) -> Picture:
    """Window of one flow on an idle link, with the fluid models of § IV-B."""
    drawn = []
    for index, scheme in enumerate(labels(run, "scheme")):
        rows = first_seed(windows(run, {"scheme": scheme}))
        drawn.append(curve(rows["time_s"], rows["cwnd"], index, width=1.0, label=scheme))
    times = [0.2 + 9.8 * step / 199 for step in range(200)]
    laws = {
        "eq. 11 and 12": [model.start_up_window(t / _RTT_S, _BDP, eta=1.0) for t in times],
        "model of VCP": [model.vcp_start_up_window(t / _RTT_S, _BDP) for t in times],
    }
    for (name, law), dashes in zip(laws.items(), line_style.DASHES[2:], strict=True):
        how = {"colour": "#808080", "width": 0.8, "dashes": dashes, "label": name}
        drawn.append(curve(times, law, 0, **how))
    drawn.append(Line([6.5, 10], [50_000, 475], label="paper: BMCC, VCP", **_CIRCLE))
    panel = Panel(
        drawn,
        x_label="Time (s)",
        y_label="cwnd (packets)",
        y_log=True,
        x_limits=(0, 12),
        y_limits=(1, None),
    )
    return Picture([panel], *ONE_PANEL)


#: Round-trip time in seconds and BDP in packets of Fig. 7.
_RTT_S, _BDP = 0.2, 50_000


def fig08(run: Run) -> Picture:
    """Probability of missing overload for t_p, and packets until detection, by a flow's packets."""
    return _overload(run, "bdp", lambda x: (10, 10 * x), "Mean BDP of a flow (packets)")


def fig09(run: Run) -> Picture:
    """Probability of missing overload, and packets until detection, by flows on 1,000 packets."""
    return _overload(run, "flows", lambda x: (int(x), 1000.0), "Flows")


def fig10(run: Run, sack: Run) -> Picture:
    """Utilisation, queue and loss by the link's rate."""
    return _three(
        run, "rate", "Rate (Mbit/s)", {"utilisation": 90, "queue": 20}, (sack, "{}, 80 ms")
    )


def fig11(run: Run, sack: Run) -> Picture:
    """Utilisation, queue and loss by the round trip."""
    limits = {"utilisation": 80, "queue": 25}
    picture = _three(run, "rtt", "Round trip (ms)", limits, (sack, "155 Mbit/s, {}"))
    _add(picture.panels[2], Line([2000], [15], label="paper, RCP", **_CIRCLE))
    return picture


def fig12(run: Run) -> Picture:
    """Utilisation, queue and loss by the number of flows."""
    picture = _three(run, "flows", "Flows", {"utilisation": 90, "queue": 10})
    _add(picture.panels[2], Line([1000, 1000], [8, 20], label="paper: SACK, RCP", **_CIRCLE))
    return picture


def fig13(run: Run) -> Picture:
    """Utilisation, queue and loss by the load of files."""
    return _three(run, "load", "Load of files", {"utilisation": 90, "queue": 5}, log=False)


def fig14a(run: Run) -> Picture:
    """Mean times of files over 10 Mbit/s, relative to the shortest."""
    return _times(run, {"VCP": 3.5, "SACK": 2.0})


def fig14b(run: Run) -> Picture:
    """Mean times of files over 100 Mbit/s, relative to the shortest."""
    return _times(run, {"VCP": 2.7, "XCP": 2.4, "MLCP": 2.3})


def fig15(run: Run) -> Picture:
    """Jain's index of flows with different round trips."""
    deltas = labels(run, "delta")
    drawn: list[Mark] = [Rule(y=0.9)]
    for scheme in labels(run, "scheme"):
        columns = [values(run, "jain", {"scheme": scheme, "delta": d}) for d in deltas]
        drawn.append(_means([float(d) for d in deltas], columns, _SCHEMES[scheme], scheme))
    panel = Panel(drawn, x_label="δ (ms)", y_label="Jain's index", y_limits=(0, 1.05))
    return Picture([panel], 2.6, 4.5)


def sack(run: Run) -> Picture:
    """SACK over RED with ECN: utilisation and loss by link."""
    links = labels(run, "link")
    panels = []
    for what in ("utilisation", "loss"):
        drawn = across((values(run, what, {"link": link}) for link in links), _SCHEMES["SACK"])
        panel = Panel([drawn], x_label=_QUANTITIES[what], x_limits=(0, None))
        panel.y_ticks = row_ticks(links)
        panels.append(panel)
    return Picture(panels, 3.2, columns=2, shared_x="none")


def table1(run: Run) -> Picture:
    """Table I: the share of ACKs that carry the estimate."""
    names: list[str] = []
    drawn: list[Mark] = []
    paper = {"BMCC": 12.9, "non-redundant": 1.3}
    for scheme in labels(run, "scheme"):
        for pacing in labels(run, "pacing"):
            mean, ends = means([values(run, "told", {"scheme": scheme, "pacing": pacing})])
            row, colour = -float(len(names)), line_style.colour(0 if pacing == "paced" else 5)
            drawn += [
                Bars([row], mean, colour, width=0.6, label=pacing, upright=False),
                Line(mean, [row], "#333333", joined=False, x_interval=ends),
                Line([paper[scheme]], [row], label="paper", **_CIRCLE),
            ]
            names.append(f"{scheme}, {pacing}")
    panel = Panel(drawn, x_label="ACKs with the estimate (%)")
    panel.y_ticks = row_ticks(names)
    return Picture([panel], 1.6, 4.5)


#: Functions of the figures, by the name of the scenario.
FIGURES: Mapping[str, Callable[..., Picture]] = {
    function.__name__: function
    for function in (
        *(fig01, fig02, fig03, fig04, fig05, fig06, fig07, fig08, fig09, fig10),
        *(fig11, fig12, fig13, fig14a, fig14b, fig15, sack, table1),
    )
}

#: Remaining deficits of a share in Fig. 4 (a) and 6 (a); the other panels use the second.
_LACKING = (0.3, 0.2, 0.1)


def _convergence(run: Run, what: str, name: str) -> Picture:
    """Describes panels by β with two flows, and by flows for each BDP: models and simulations."""
    left: list[Line] = []
    right: list[Line] = []
    cases = {label: Case.of(label) for label in labels(run, "case")}
    fixed = {label: case for label, case in cases.items() if not case.varies}
    kinds = _LACKING if what != "d_e" else (0.2,)
    for index, lacking in enumerate(kinds):
        line = sorted((c.decrease.most, c.model(what, lacking)) for c in fixed.values())
        left.append(curve([beta for beta, _ in line], [count for _, count in line], index))
        found = [
            (each.decrease.most, _measured(run, label, what, lacking))
            for label, each in fixed.items()
        ]
        name_of = f"{100 - 100 * lacking:g} %" if len(kinds) > 1 else None
        left.append(_means(*_columns(found), index, name_of, joined=False))
    packets = dict.fromkeys(case.packets for case in cases.values() if case.varies)
    for order, k in enumerate(packets):
        index = order + len(_LACKING)
        of_k = {label: case for label, case in cases.items() if case.varies and case.packets == k}
        flows = [case.flows for case in of_k.values()]
        right.append(curve(flows, [case.model(what, 0.2) for case in of_k.values()], index))
        found = [(c.flows, _measured(run, label, what, 0.2)) for label, c in of_k.items()]
        right.append(_means(*_columns(found), index, f"k = {k}", joined=False))
    panels = [
        Panel(left, x_label="β", y_label=name, y_limits=(0, None)),
        Panel(right, x_label="Flows", y_label=name, x_log=True, y_log=what != "m"),
    ]
    if what == "m":
        panels[1].y_limits = (0, None)
    return Picture(panels, 2.8, columns=2, shared_x="none", shared_y="none")


def _measured(run: Run, label: str, what: str, lacking: float) -> list[float]:
    return rounds(run, label, lacking)[what].drop_nulls().to_list()


def _columns(found: Sequence[tuple[float, list[float]]]) -> tuple[list[float], list[list[float]]]:
    """Splits points into x and values, without those that have no values."""
    kept = [(x, values) for x, values in found if values]
    return [x for x, _ in kept], [values for _, values in kept]


def _overload(run: Run, axis: str, of: Callable[[float], tuple[int, float]], name: str) -> Picture:
    xs = [float(label) for label in labels(run, axis)]
    expected: list[tuple[float, float]] = []
    for x in xs:
        flows, bdp = of(x)
        growth, packets = model.overload_growth(flows, bdp), int(bdp / flows) + 1
        unseen = model.overload_unseen(packets, growth)
        expected.append((unseen, model.packets_to_overload(packets, growth)))
    how = {"colour": "#666666", "dashes": line_style.DASHES[1], "label": "model"}
    drawn = [[curve(xs, [each[part] for each in expected], 0, **how)] for part in (0, 1)]
    for index, pacing in enumerate(labels(run, "pacing")):
        rows = [
            overload_detection(run, {axis: label, "pacing": pacing}) for label in labels(run, axis)
        ]
        for column, lines in zip(("unseen", "packets"), drawn, strict=True):
            found = [(x, r[column].drop_nulls().to_list()) for x, r in zip(xs, rows, strict=True)]
            lines.append(_means(*_columns(found), index, pacing))
    left, right = (
        Panel(lines, x_label=name, y_label=label, x_log=True)
        for lines, label in zip(drawn, ("P(R > d)", "E[R] (packets)"), strict=True)
    )
    _add(left, Rule(y=0.2))
    left.ticks = right.ticks = list(zip(xs, labels(run, axis), strict=True))
    left.y_limits, right.y_log = (0, None), True
    return Picture([left, right], 2.6, columns=2, shared_y="none")


def _three(
    run: Run,
    axis: str,
    name: str,
    bounds: Mapping[str, float],
    apart: tuple[Run, str] | None = None,
    *,
    log: bool = True,
) -> Picture:
    """Describes utilisation, queue and loss, with the paper's bounds of BMCC.

    SACK may come from a result with other labels.
    """
    found = labels(run, axis)
    curves: list[tuple[str, Run, list[Point]]] = [
        (scheme, run, [{"scheme": scheme, axis: label} for label in found])
        for scheme in labels(run, "scheme")
    ]
    if apart is not None:
        other, text = apart
        curves.append(("SACK", other, [{"link": text.format(label)} for label in found]))
    panels = []
    xs = [_value(label) for label in found]
    for what, quantity in _QUANTITIES.items():
        drawn: list[Mark] = [Rule(y=bounds[what])] if what in bounds else []
        drawn += [
            _means(xs, [values(of, what, point) for point in points], _SCHEMES[scheme], scheme)
            for scheme, of, points in curves
        ]
        # The limit is above 100 %, as intervals of few seeds may be wide.
        limits = (0, 105 if what == "utilisation" else None)
        panels.append(Panel(drawn, x_label=name, y_label=quantity, x_log=log, y_limits=limits))
    return Picture(panels, 2.6, columns=3, shared_y="none")


def _times(run: Run, paper: Mapping[str, float]) -> Picture:
    """Describes times of files; `paper` has the paper's of the smallest size, by scheme."""
    sizes, schemes = labels(run, "size"), labels(run, "scheme")
    times = {
        (scheme, size): fmean(values(run, "time", {"scheme": scheme, "size": size}))
        for scheme in schemes
        for size in sizes
    }
    width = 0.8 / len(schemes)
    drawn: list[Mark] = []
    for order, scheme in enumerate(schemes):
        heights = [times[scheme, size] / min(times[s, size] for s in schemes) for size in sizes]
        places = [i + (order - (len(schemes) - 1) / 2) * width for i in range(len(sizes))]
        colour = line_style.colour(_SCHEMES[scheme])
        drawn.append(Bars(places, heights, colour, width, label=scheme))
        if scheme in paper:
            drawn.append(Line(places[:1], [paper[scheme]], label="paper", **_CIRCLE))
    panel = Panel(drawn, x_label="Mean size of files", y_label="Mean time ÷ the shortest")
    panel.ticks, panel.x_grid = [(float(i), size) for i, size in enumerate(sizes)], False
    return Picture([panel], 2.6, 4.5)


def _add(panel: Panel, mark: Mark) -> None:
    panel.marks = [*panel.marks, mark]


def _value(label: str) -> float:
    """Position on the axis of a label such as `155 Mbit/s`, `80 ms` or `100`."""
    number, _, unit = label.partition(" ")
    return float(number) * _UNITS.get(unit, 1.0)


def _means(
    xs: Sequence[float],
    columns: Sequence[Sequence[float]],
    index: int,
    label: str | None,
    *,
    joined: bool = True,
) -> Line:
    """Builds a line of means over seeds with their 95 % intervals."""
    line = marks(zip(xs, columns, strict=True), index, label, joined=joined)
    line.size, line.width = 3.5, 1.0
    return line
