"""The figures of the BMCC paper as it draws them, with its models and numbers beside ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cwnd.models import bmcc as model
from cwnd.papers.bmcc.dynamics import SPANS_S, Case, fairness_rates, noticed, rounds, shares
from cwnd.papers.bmcc.measures import values
from cwnd.papers.bmcc.numbers import BOTTLENECK, at, windows
from cwnd.plots import style
from cwnd.reproduce import labels
from cwnd.results import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.reproduce import Point
    from cwnd.results import Run

#: The colour of each scheme, the same in all figures.
_SCHEMES = {
    name: index
    for index, name in enumerate(["BMCC", "VCP", "XCP", "RCP", "SACK", "BMCC, not paced", "MLCP"])
}
_QUANTITIES = {
    "utilisation": "Utilisation (%)",
    "queue": "Mean queue (% of the buffer)",
    "loss": "Loss (%)",
}
#: Factors of units of rates and times on the axes: Mbit/s, ms.
_UNITS = {"kbit/s": 1e-3, "Mbit/s": 1.0, "Gbit/s": 1e3, "ms": 1.0, "s": 1e3}


def fig01(run: Run) -> Figure:
    """The throughput of two flows, of which the second comes 50 s later."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 2, sharey=True)
    for pacing, panel in zip(labels(run, "pacing"), panels, strict=True):
        rows = _first_seed(shares(run, {"pacing": pacing}))
        for index, (group, rtt) in enumerate((("first", "150 ms"), ("second", "200 ms"))):
            mine = rows.filter(pl.col("group") == group).sort("time_s")
            panel.plot(mine["time_s"], mine["mbit_s"], **style.line(index), lw=1, label=rtt)
        link = float(run.links["rate_bit_s"][0]) / 1e6
        label = "within 50 % of the fair share"
        panel.axhspan(link / 4, 3 * link / 4, color="0.9", lw=0, label=label)
        panel.set_title(pacing)
        panel.set_xlabel("Time (s)")
    panels[0].set_ylabel("Throughput (Mbit/s)")
    style.legend(figure, list(panels))
    return figure


def fig02(run: Run) -> Figure:
    """The load factor at the bottleneck, and what the flows take it for."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 2, sharey=True)
    for span, panel in zip(((0, 150), (50, 70)), panels, strict=True):
        within = pl.col("time_s").is_between(*span)
        link = at(run, run.link_series, {"pacing": "paced"}).filter(
            within & (pl.col("link").cast(pl.String) == BOTTLENECK)
        )
        link = _first_seed(link).sort("time_s")
        panel.plot(link["time_s"], link["load_factor"], color="0.2", lw=1, label="load factor")
        rows = _first_seed(at(run, run.series, {"pacing": "paced"}).filter(within))
        for index, flow in enumerate(rows["flow_id"].unique().sort()):
            mine = rows.filter(pl.col("flow_id") == flow).sort("time_s")
            told = mine["load_factor_seen"]
            name = f"estimate of flow {index + 1}"
            panel.plot(mine["time_s"], told, **style.line(index), lw=0.8, label=name)
        panel.set_xlabel("Time (s)")
        panel.set_xlim(*span)
    panels[0].set_ylabel("Load factor")
    style.legend(figure, list(panels))
    return figure


def fig03(run: Run) -> Figure:
    """The fairness rate of two flows, by the interval over which rates are means."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 2, sharey=True)
    for rate, panel in zip(("1 Mbit/s", "10 Mbit/s"), panels, strict=True):
        for scheme in ("BMCC", "BMCC, not paced", "SACK"):
            columns = [fairness_rates(run, {"case": f"{scheme}, {rate}"}, s) for s in SPANS_S]
            _means(panel, SPANS_S, columns, _SCHEMES[scheme], scheme)
        panel.set_xscale("log")
        panel.set_title(rate)
        panel.set_xlabel("Averaging interval (s)")
    panels[0].set_ylabel("Fairness rate")
    style.legend(figure, list(panels))
    return figure


def fig04(run: Run) -> Figure:
    """Decreases until a late flow has its share."""
    return _convergence(run, "m", "Decreases")


def fig05(run: Run) -> Figure:
    """Round trips from one decrease to the next."""
    return _convergence(run, "d_e", "Round trips from decrease\nto decrease")


def fig06(run: Run) -> Figure:
    """Round trips until a late flow has its share."""
    return _convergence(run, "r", "Round trips")


def fig07(run: Run) -> Figure:
    """The window of one flow on an idle link, with the fluid models of § IV-B."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, scheme in enumerate(labels(run, "scheme")):
        rows = _first_seed(windows(run, {"scheme": scheme}))
        panel.plot(rows["time_s"], rows["cwnd"], **style.line(index), lw=1, label=scheme)
    times = np.linspace(0.2, 10, 200)
    laws = {
        "eq. 11 and 12": [model.start_up_window(t / _RTT_S, _BDP, eta=1.0) for t in times],
        "model of VCP": [model.vcp_start_up_window(t / _RTT_S, _BDP) for t in times],
    }
    for (name, law), dashes in zip(laws.items(), (":", "-."), strict=True):
        panel.plot(times, law, color="0.5", lw=0.8, ls=dashes, label=name)
    panel.plot(
        [10], [475], ls="none", marker="o", ms=9, mfc="none", color="0.3", label="paper, VCP"
    )
    panel.set_yscale("log")
    panel.set_xlim(0, 12)
    panel.set_ylim(bottom=1)
    panel.set_xlabel("Time (s)")
    panel.set_ylabel("cwnd (packets)")
    style.legend(figure, [panel], columns=3)
    return figure


#: Of Fig. 7.
_RTT_S, _BDP = 0.2, 50_000


def fig08(run: Run) -> Figure:
    """Overload that is not noticed in t_p, and packets until it is, by the packets of a flow."""
    return _overload(run, "bdp", lambda x: (10, 10 * x), "Mean BDP of a flow (packets)")


def fig09(run: Run) -> Figure:
    """The same by the number of flows that share 1,000 packets."""
    return _overload(run, "flows", lambda x: (int(x), 1000.0), "Flows")


def fig10(run: Run, sack: Run) -> Figure:
    """Utilisation, queue and loss by the link's rate."""
    return _three(run, "rate", "Rate (Mbit/s)", (sack, "{}, 80 ms"))


def fig11(run: Run, sack: Run) -> Figure:
    """Utilisation, queue and loss by the round trip."""
    return _three(run, "rtt", "Round trip (ms)", (sack, "155 Mbit/s, {}"))


def fig12(run: Run) -> Figure:
    """Utilisation, queue and loss by the number of flows."""
    return _three(run, "flows", "Flows")


def fig13(run: Run) -> Figure:
    """Utilisation, queue and loss by the load of files."""
    return _three(run, "load", "Load of files", log=False)


def fig14a(run: Run) -> Figure:
    """Mean times of files over 10 Mbit/s, in relation to the shortest."""
    return _times(run)


def fig14b(run: Run) -> Figure:
    """Mean times of files over 100 Mbit/s, in relation to the shortest."""
    return _times(run)


def fig15(run: Run) -> Figure:
    """Jain's index of flows whose round trips differ."""
    figure = style.figure(2.6, 4.5)
    panel = figure.subplots()
    deltas = labels(run, "delta")
    for scheme in labels(run, "scheme"):
        columns = [values(run, "jain", {"scheme": scheme, "delta": d}) for d in deltas]
        _means(panel, [float(d) for d in deltas], columns, _SCHEMES[scheme], scheme)
    panel.axhline(0.9, color="0.4", lw=0.8, ls="--")
    panel.set_ylim(0, 1.05)
    panel.set_xlabel("δ (ms)")
    panel.set_ylabel("Jain's index")
    style.legend(figure, [panel], columns=5)
    return figure


def sack(run: Run) -> Figure:
    """SACK over RED with ECN: utilisation and loss by link."""
    figure = style.figure(3.2)
    panels = figure.subplots(1, 2, sharey=True)
    links = labels(run, "link")
    for what, panel in zip(("utilisation", "loss"), panels, strict=True):
        columns = [values(run, what, {"link": link}) for link in links]
        estimates = [_estimate(column) for column in columns]
        panel.errorbar(
            [each.mean for each in estimates],
            range(len(links)),
            xerr=_whiskers(estimates),
            ls="none",
            marker="o",
            ms=3,
            color=style.colour(_SCHEMES["SACK"]),
        )
        panel.set_xlabel(_QUANTITIES[what])
        panel.set_xlim(left=0)
    panels[0].set_yticks(range(len(links)), labels=links)
    panels[0].invert_yaxis()
    return figure


def table1(run: Run) -> Figure:
    """Table I: the share of ACKs that carry the estimate."""
    figure = style.figure(1.6, 4.5)
    panel = figure.subplots()
    names: list[str] = []
    paper = {"BMCC": 12.9, "non-redundant": 1.3}
    for scheme in labels(run, "scheme"):
        for pacing in labels(run, "pacing"):
            each = _estimate(values(run, "told", {"scheme": scheme, "pacing": pacing}))
            panel.barh(
                len(names),
                each.mean,
                xerr=_whiskers([each]),
                height=0.6,
                color=style.colour(0 if pacing == "paced" else 5),
                ecolor="0.2",
                label=pacing,
            )
            panel.plot(
                [paper[scheme]],
                [len(names)],
                ls="none",
                marker="o",
                ms=8,
                mfc="none",
                color="0.3",
                label="paper",
            )
            names.append(f"{scheme}, {pacing}")
    panel.set_yticks(range(len(names)), labels=names)
    panel.invert_yaxis()
    panel.set_xlabel("ACKs with the estimate (%)")
    style.legend(figure, [panel])
    return figure


#: Every figure, by the name of its scenario.
FIGURES: Mapping[str, Callable[..., Figure]] = {
    function.__name__: function
    for function in (
        *(fig01, fig02, fig03, fig04, fig05, fig06, fig07, fig08, fig09, fig10),
        *(fig11, fig12, fig13, fig14a, fig14b, fig15, sack, table1),
    )
}

#: Which part of a share may still lack, in Fig. 4 (a) to 6 (a); the others have the second.
_LACKING = (0.3, 0.2, 0.1)


def _convergence(run: Run, what: str, name: str) -> Figure:
    """By β with two flows, and by flows for each BDP: models as lines, simulations as marks."""
    figure = style.figure(2.8)
    left, right = figure.subplots(1, 2)
    cases = {label: Case.of(label) for label in labels(run, "case")}
    fixed = {label: case for label, case in cases.items() if not case.varies}
    kinds = _LACKING if what != "d_e" else (0.2,)
    for index, lacking in enumerate(kinds):
        line = [(each.decrease.most, each.model(what, lacking)) for each in fixed.values()]
        left.plot(*zip(*sorted(line), strict=True), **style.line(index))
        marks = [
            (each.decrease.most, _measured(run, label, what, lacking))
            for label, each in fixed.items()
        ]
        _means(
            left,
            *_columns(marks),
            index,
            f"{100 - 100 * lacking:g} %" if len(kinds) > 1 else None,
            line=False,
        )
    left.set_xlabel("β")
    packets = dict.fromkeys(case.packets for case in cases.values() if case.varies)
    for order, k in enumerate(packets):
        index = order + len(_LACKING)
        of_k = {label: case for label, case in cases.items() if case.varies and case.packets == k}
        right.plot(
            [c.flows for c in of_k.values()],
            [c.model(what, 0.2) for c in of_k.values()],
            **style.line(index),
        )
        marks = [(c.flows, _measured(run, label, what, 0.2)) for label, c in of_k.items()]
        _means(right, *_columns(marks), index, f"k = {k}", line=False)
    right.set_xlabel("Flows")
    right.set_xscale("log")
    for panel in (left, right):
        panel.set_ylabel(name)
        panel.set_ylim(bottom=0)
    if what != "m":
        right.set_ylim(auto=True)
        right.set_yscale("log")
    style.legend(figure, [left, right], columns=6)
    return figure


def _measured(run: Run, label: str, what: str, lacking: float) -> list[float]:
    return rounds(run, label, lacking)[what].drop_nulls().to_list()


def _columns(marks: Sequence[tuple[float, list[float]]]) -> tuple[list[float], list[list[float]]]:
    """Those of which anything was measured."""
    kept = [(x, values) for x, values in marks if values]
    return [x for x, _ in kept], [values for _, values in kept]


def _overload(run: Run, axis: str, of: Callable[[float], tuple[int, float]], name: str) -> Figure:
    figure = style.figure(2.6)
    left, right = figure.subplots(1, 2)
    xs = [float(label) for label in labels(run, axis)]
    expected: list[tuple[float, float]] = []
    for x in xs:
        flows, bdp = of(x)
        growth, packets = model.overload_growth(flows, bdp), int(bdp / flows) + 1
        expected.append(
            (
                model.overload_unseen(packets, growth),
                model.packets_to_overload(packets, growth),
            )
        )
    for part, panel in enumerate((left, right)):
        panel.plot(xs, [each[part] for each in expected], color="0.4", ls="--", label="model")
    for index, pacing in enumerate(labels(run, "pacing")):
        rows = [noticed(run, {axis: label, "pacing": pacing}) for label in labels(run, axis)]
        for column, panel in (("unseen", left), ("packets", right)):
            marks = [(x, r[column].drop_nulls().to_list()) for x, r in zip(xs, rows, strict=True)]
            _means(panel, *_columns(marks), index, pacing)
    left.set_ylabel("P(R > d)")
    right.set_ylabel("E[R] (packets)")
    right.set_yscale("log")
    for panel in (left, right):
        panel.set_xscale("log")
        panel.set_xticks(xs, labels=labels(run, axis))
        panel.minorticks_off()
        panel.set_xlabel(name)
    left.set_ylim(bottom=0)
    style.legend(figure, [left, right])
    return figure


def _three(
    run: Run, axis: str, name: str, apart: tuple[Run, str] | None = None, *, log: bool = True
) -> Figure:
    """Utilisation, queue and loss; SACK's may be another result, whose labels hold ours."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 3)
    found = labels(run, axis)
    curves: list[tuple[str, Run, list[Point]]] = [
        (scheme, run, [{"scheme": scheme, axis: label} for label in found])
        for scheme in labels(run, "scheme")
    ]
    if apart is not None:
        other, text = apart
        curves.append(("SACK", other, [{"link": text.format(label)} for label in found]))
    for what, panel in zip(_QUANTITIES, panels, strict=True):
        for scheme, of, points in curves:
            columns = [values(of, what, point) for point in points]
            _means(panel, [_value(label) for label in found], columns, _SCHEMES[scheme], scheme)
        if log:
            panel.set_xscale("log")
        panel.set_xlabel(name)
        panel.set_ylabel(_QUANTITIES[what])
        # Intervals of few seeds may be wide.
        panel.set_ylim(0, 105 if what == "utilisation" else None)
    style.legend(figure, list(panels), columns=6)
    return figure


def _times(run: Run) -> Figure:
    figure = style.figure(2.6, 4.5)
    panel = figure.subplots()
    sizes, schemes = labels(run, "size"), labels(run, "scheme")
    means = {
        (scheme, size): _estimate(values(run, "time", {"scheme": scheme, "size": size})).mean
        for scheme in schemes
        for size in sizes
    }
    width = 0.8 / len(schemes)
    for order, scheme in enumerate(schemes):
        heights = [means[scheme, size] / min(means[s, size] for s in schemes) for size in sizes]
        places = [i + (order - (len(schemes) - 1) / 2) * width for i in range(len(sizes))]
        panel.bar(places, heights, width, color=style.colour(_SCHEMES[scheme]), label=scheme)
    panel.set_xticks(range(len(sizes)), labels=sizes)
    panel.set_xlabel("Mean size of files")
    panel.set_ylabel("Mean time ÷ the shortest")
    style.legend(figure, [panel], columns=5)
    return figure


def _value(label: str) -> float:
    """The number on the axis of a label such as `155 Mbit/s`, `80 ms` or `100`."""
    number, _, unit = label.partition(" ")
    return float(number) * _UNITS.get(unit, 1.0)


def _first_seed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("seed") == pl.col("seed").min())


def _means(
    panel: Axes,
    xs: Sequence[float],
    columns: Sequence[Sequence[float]],
    index: int,
    label: str | None,
    *,
    line: bool = True,
) -> None:
    """Means over seeds with their 95 % intervals."""
    estimates = [_estimate(column) for column in columns]
    look: dict[str, Any] = style.points(index) | {"markersize": 3.5, "linewidth": 1.0}
    panel.errorbar(
        list(xs),
        [each.mean for each in estimates],
        yerr=_whiskers(estimates),
        label=label,
        **(look if line else look | {"linestyle": "none"}),
    )


def _whiskers(estimates: Sequence[Estimate]) -> list[float]:
    """Half widths of the intervals; NaN, which is not drawn, where one seed has a number."""
    return [math.nan if each.half_width is None else each.half_width for each in estimates]


def _estimate(column: Sequence[float]) -> Estimate:
    found = Estimate.of(column)
    assert found is not None
    return found
