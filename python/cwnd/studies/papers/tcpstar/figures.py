"""Figures of the TCP*(n) paper, and of statements for which it has none."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Panel, Picture, line_style
from cwnd.models import backoff_multipliers, dead_share, rejected_connections
from cwnd.results import counts_of_times, distribution, survival
from cwnd.studies.papers.tcpstar.inference import inference
from cwnd.studies.papers.tcpstar.responses import (
    QUANTILES,
    aggregate_response_s,
    closed_forms,
    ratios,
    rejections,
    responses,
    statistic,
    timeouts_of,
    worst,
)
from cwnd.study import ONE_PANEL, at, column, curve, labels, marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cwnd.figures import Line
    from cwnd.results import Run
    from cwnd.study import Point

#: Number of rounds in Fig. 1.
_ROUNDS = 7
#: Marks of the paper's numbers.
_CIRCLE: dict[str, Any] = {
    "colour": "#000000",
    "joined": False,
    "marker": "o",
    "hollow": True,
    "size": 9.0,
}
#: Superscript digits of exponents.
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Points of a curve of a model.
_MODEL_POINTS = 100


def fig01(run: Run) -> Picture:
    """Timeout by backoff round, for each n: Fig. 1 (lines) and simulation (marks)."""
    rounds = range(1, _ROUNDS + 1)
    drawn = []
    for index, n in enumerate(labels(run, "n")):
        name = {"0": "TCP", "6": "TCP*(∞)"}.get(n, f"TCP*({n})")
        drawn.append(curve(rounds, backoff_multipliers(float(n), _ROUNDS), index, label=name))
        for packet, marker in (("data", "o"), ("SYN", "x")):
            seen = timeouts_of(run, _ROUNDS)[packet, n]
            how = {"marker": marker, "hollow": packet == "SYN"}
            drawn.append(curve(rounds, seen, index, joined=False, **how))
    panel = Panel(
        drawn,
        x_label="Backoff round (circles: data, crosses: SYN)",
        y_label="Timeout (RTO)",
        y_log=True,
        y_ticks=[(2.0**n, f"{2**n}") for n in range(7)],
    )
    return Picture([panel], *ONE_PANEL)


def syn(run: Run) -> Picture:
    """Share of connections whose SYNs were all lost, by loss: pᵏ (lines) and simulation (marks).

    Points at which all connections were established have no marks.
    """
    p = [0.05 + 0.5 * i / _MODEL_POINTS for i in range(_MODEL_POINTS + 1)]
    drawn = []
    for dashes, syns in enumerate(labels(run, "syns")):
        model = [100 * rejected_connections(x, int(syns)) for x in p]
        how = {"colour": "#808080", "label": f"p{syns.translate(_RAISED)}"}
        drawn.append(curve(p, model, dashes, **how))
    index = 0
    for queue in labels(run, "queue"):
        for syns in labels(run, "syns"):
            points = [point for point in _rejections(run, queue, syns) if any(point[1])]
            if points:
                drawn.append(marks(points, index, f"{queue}, {syns} SYNs", joined=False))
                index += 1
    # § 4.1: slightly above 10 %, and about 3 %.
    drawn.append(curve([0.5, 0.5], [10, 3], 0, label="paper", **_CIRCLE))
    panel = Panel(
        drawn,
        x_label="Share of all packets that the queue drops, p",
        y_label="Connections given up (%)",
        y_log=True,
        y_limits=(0.001, None),
    )
    return Picture([panel], *ONE_PANEL)


def _rejections(run: Run, queue: str, syns: str) -> list[tuple[float, list[float]]]:
    """Loss, and for each seed the share of connections given up in per cent."""
    found = []
    for p in labels(run, "p"):
        rows = rejections(run, {"queue": queue, "syns": syns, "p": p})
        dropped = sum(rows["dropped"]) / rows.height
        found.append((dropped, [100 * float(x) for x in rows["rejected"]]))
    return found


def fig08(run: Run) -> Picture:
    """Share of dead packets in the upstream link: eq. 7 (lines), and simulation (marks)."""
    both = [i / _MODEL_POINTS for i in range(_MODEL_POINTS + 1)]
    drawn = []
    for index, drops in enumerate(labels(run, "drops")):
        p1, p2 = (float(part.strip(" %")) / 100 for part in drops.split(","))
        name = f"(p₁, p₂) = ({drops})"
        drawn.append(curve(both, [dead_share(x, p1, p2) for x in both], index, label=name))
        first = at(run, run.links, {"drops": drops}, link="first")
        shares = (
            (float(label), part["dead_pkts"] / part["arrived_pkts"])
            for label, part in _parts(first, column(run, "both"))
        )
        drawn.append(marks(shares, index, joined=False))
    drawn.append(curve([0.05], [0.002475], 0, label="paper", **_CIRCLE))
    panel = Panel(
        drawn,
        x_label="L₀/(L₀ + L₁), load that crosses both bottlenecks",
        y_label="Dead packets, α",
        y_limits=(0, None),
    )
    return Picture([panel], *ONE_PANEL)


def theorem(run: Run, whole: Run) -> Picture:
    """Mean response times of users in permanent backoff: eq. 3 and 6, and simulation (marks).

    In `whole` all users back off k times.
    """
    drawn = []
    for index, n in enumerate(labels(run, "n")):
        rows = aggregate_response_s(run, {"n": n}).sort("flows")
        if index == 0:
            users = range(50, 801)
            dashed = {"colour": "#999999", "dashes": line_style.DASHES[1], "label": "eq. 6"}
            bounds = [closed_forms(each, 100.0) for each in users]
            drawn.append(curve(users, [backoff for _, backoff in bounds], 0, **dashed))
            without = [bound for bound, _ in bounds]
            drawn.append(curve(users, without, 0, colour="#333333", label="eq. 3"))
        seeds = ((float(users), part["response_s"]) for users, part in _parts(rows, "flows"))
        drawn.append(marks(seeds, index, n, joined=False))
    rows = aggregate_response_s(whole, {}).sort("flows")
    seeds = ((float(users), part["response_s"]) for users, part in _parts(rows, "flows"))
    drawn.append(marks(seeds, len(drawn), "all back off k times", joined=False))
    panel = Panel(
        drawn,
        x_label="Users, each with a transfer of 20 packets",
        y_label="Mean response time (s)",
        x_limits=(0, None),
        y_limits=(0, None),
    )
    return Picture([panel], *ONE_PANEL)


def fig02(run: Run) -> Picture:
    """Response times over an overloaded link, for three distributions of sizes."""
    return _panels(run, "trace", [({"n": n}, None, n) for n in labels(run, "n")])


def fig03(run: Run) -> Picture:
    """Response times at 10 and 50 Mbit/s at equal load."""
    return _distributions(
        _ccdf(responses(run, {"rate": rate, "n": n}), index, f"{n}, {rate}")
        for index, (rate, n) in enumerate(product(labels(run, "rate"), labels(run, "n")))
    )


def fig04(run: Run) -> Picture:
    """Mean and 99th percentile of response times, by the length of the bursts of arrivals."""
    drawn: list[Line] = []
    for what, name in (("p99", "99th percentile"), ("mean", "mean")):
        for n in labels(run, "n"):
            period = column(run, "period")
            rows = responses(run, {"n": n}).group_by(period, "seed", maintain_order=True)
            values = rows.agg(statistic(what).alias("value")).sort(period, "seed")
            parts = ((float(x), part["value"]) for x, part in _parts(values, period))
            seeds = sorted(parts, key=lambda each: each[0])
            drawn.append(marks(seeds, len(drawn), f"{n}, {name}"))
    panel = Panel(
        drawn,
        x_label="Periods with arrivals, and without (s)",
        y_label="Response time (s)",
        x_log=True,
        y_log=True,
    )
    return Picture([panel], *ONE_PANEL)


def fig05(run: Run) -> Picture:
    """Response times of Tahoe, Reno and SACK with backoff and without, over RED and DropTail."""
    curves = [
        ({"recovery": recovery, "n": n}, None, n.replace("TCP", recovery))
        for recovery, n in product(labels(run, "recovery"), labels(run, "n"))
    ]
    return _panels(run, "queue", curves)


def fig06(udp: Run, tcp: Run) -> Picture:
    """Response times in flash crowds of UDP, and of TCP."""
    return _beside({"crowd of UDP": _stacks(udp, "web"), "crowd of TCP": _stacks(tcp, "web")})


def fig09(run: Run) -> Picture:
    """Response times over two bottlenecks: of flows over both, and over the first alone."""
    curves = [
        ({"n": n}, group, f"{n}, {name}")
        for group, name in (("both", "S0–C0"), ("first", "S1–C1"))
        for n in labels(run, "n")
    ]
    return _panels(run, "trace", curves)


def fig11(http: Run, p2p: Run) -> Picture:
    """Response times over a HOT-like graph with HTTP, and with p2p beside it."""
    lines = _stacks(http, "http")
    # § 5.3: the longest with TCP, and with TCP*(∞). The paper has no share for them.
    for index, longest in enumerate((200, 40)):
        how = {**_CIRCLE, "colour": line_style.colour(index)}
        lines.append(curve([longest], [_LEAST_SHARE], index, label=None, **how))
    return _beside({"HTTP": lines, "HTTP and p2p": _stacks(p2p, "http")})


def fig12(run: Run) -> Picture:
    """Response times with TCP and TCP*(∞) on one link, by the share of TCP*(∞)."""
    curves = [
        ({"share": share}, group, f"{name}, {share} % TCP*(∞)")
        for group, name in (("old", "TCP"), ("new", "TCP*(∞)"))
        for share in ("10", "50", "90")
    ]
    return _panels(run, "trace", curves)


def steps(run: Run, *others: Run) -> Picture:
    """Response times of the older stack beside the newer one, in one step and in two.

    `run` is at the load of the checks, `others` at those of `_OTHER_LOADS`.
    """
    drawn = []
    for index, stacks in enumerate(labels(run, "stacks")):
        older, _, newer = stacks.removesuffix(" alone").partition(", ")
        name = f"{older} beside {newer}" if newer else f"{older} alone"
        drawn.append(_ccdf(responses(run, {"stacks": stacks}, "old"), index, name))
    lines = []
    for stacks, alone, paper in _STEPS:
        index = labels(run, "stacks").index(stacks)
        points: list[tuple[float, Iterable[float]]] = []
        for load, each in sorted(
            zip((_LOAD, *_OTHER_LOADS), (run, *others), strict=True), key=_first
        ):
            of, over = {"stacks": stacks}, {"stacks": alone}
            points.append((load, ratios(each, of, over, "old", ["mean"])["mean"]))
        lines.append(marks(points, index, stacks.replace(", ", " beside ")))
        how = {**_CIRCLE, "colour": line_style.colour(index)}
        lines.append(curve([_LOAD], [paper], 0, **how))
    loads = Panel(
        lines,
        x_label="Load",
        y_label="Mean ÷ mean among its own",
        y_limits=(0, None),
    )
    panels = [_panel(drawn, y_label=_SHARE), loads]
    return Picture(panels, 2.8, columns=2, shared_x="none", shared_y="none")


#: Load of the checks, and those of other readings.
_LOAD, _OTHER_LOADS = 1.25, (1.0, 1.1, 1.5)
#: Mixes of `steps`, what each is compared with, and the paper's ratio.
_STEPS = (
    ("TCP, TCP*(∞)", "TCP alone", 2.0),
    ("TCP, TCP*(3)", "TCP alone", 1.2),
    ("TCP*(3), TCP*(∞)", "TCP*(3) alone", 1.4),
)
#: Panels of `loads`: the experiment, the title, the point, and the group.
_PANELS: tuple[tuple[int, str, dict[str, str], str | None], ...] = (
    (0, "T3: Trace I", {"trace": "Trace I"}, None),
    (0, "T3: Trace II", {"trace": "Trace II"}, None),
    (0, "T3: Trace III", {"trace": "Trace III"}, None),
    (1, "T4: 10 Mbit/s", {"rate": "10 Mbit/s"}, None),
    (2, "T5: bursts of 2 s", {"period": "2"}, None),
    (3, "T6: Sack, DropTail", {"queue": "DropTail", "recovery": "Sack"}, None),
    (4, "T9: S0–C0, Trace I", {"trace": "Trace I"}, "both"),
    (4, "T9: S1–C1, Trace I", {"trace": "Trace I"}, "first"),
    (4, "T9: S0–C0, Trace II", {"trace": "Trace II"}, "both"),
)


def loads(*runs: Run) -> Picture:
    """Ratios of response times, TCP*(∞) ÷ TCP, by load.

    `runs` are those of each experiment at the load of the checks and then at `_OTHER_LOADS`.
    """
    at_loads = (_LOAD, *_OTHER_LOADS)
    panels = []
    for experiment, title, point, group in _PANELS:
        first = experiment * len(at_loads)
        found = [
            (load, ratios(run, {**point, "n": "TCP*(∞)"}, {**point, "n": "TCP"}, group, _SHOWN))
            for load, run in zip(at_loads, runs[first : first + len(at_loads)], strict=True)
        ]
        found.sort(key=_first)
        lines = [curve([1, 1.5], [1, 1], 0, colour="#999999", dashes=line_style.DASHES[1])]
        lines.append(
            marks(
                [(x, worst({q: each[q] for q in QUANTILES})[1]) for x, each in found],
                3,
                "largest of all quantiles",
            )
        )
        for index, (what, name) in enumerate((("mean", "mean"), ("p99", "99th percentile"))):
            lines.append(marks([(x, each[what]) for x, each in found], index, name))
        panels.append(Panel(lines, title=title, x_label="Load", y_log=True))
    return Picture(panels, 6.5, columns=3, y_label="Response time, TCP*(∞) ÷ TCP")


#: Functions of the figures, by the name of the scenario.
FIGURES: Mapping[str, Callable[..., Picture]] = {
    function.__name__: function
    for function in (
        *(fig01, syn, fig02, fig03, fig04, fig05, fig06, fig08, fig09, fig11, fig12),
        *(steps, loads, theorem, inference),
    )
}


def _stacks(run: Run, group: str) -> list[Line]:
    """Distribution for each stack, of one group."""
    return [
        _ccdf(responses(run, {"n": n}, group), index, n) for index, n in enumerate(labels(run, "n"))
    ]


def _distributions(lines: Iterable[Line]) -> Picture:
    """Describes a panel of distributions of response times."""
    return Picture([_panel(lines, y_label="Share of requests that take longer")], *ONE_PANEL)


def _beside(lines: Mapping[str, list[Line]]) -> Picture:
    """Describes panels of distributions, by their titles."""
    panels = [_panel(each, title=title) for title, each in lines.items()]
    panels[0].y_label = _SHARE
    return Picture(panels, 2.8, columns=len(panels))


def _panels(run: Run, axis: str, curves: Sequence[tuple[Point, str | None, str]]) -> Picture:
    """Describes a panel for each label of an axis, with distributions for points and groups."""
    panels = []
    for value in labels(run, axis):
        lines = (
            _ccdf(responses(run, {axis: value, **of}, group), index, name)
            for index, (of, group, name) in enumerate(curves)
        )
        panels.append(_panel(lines, title=value))
    panels[0].y_label = _SHARE
    return Picture(panels, 2.8, columns=len(panels))


def _panel(lines: Iterable[Line], *, title: str = "", y_label: str = "") -> Panel:
    return Panel(
        list(lines),
        title=title,
        x_label="Response time (s)",
        y_label=y_label,
        x_log=True,
        y_log=True,
        y_limits=(_LEAST_SHARE, 1),
    )


def _first(pair: tuple[float, Any]) -> float:
    return pair[0]


#: Label of distributions, and the smallest share that is drawn.
_SHARE, _LEAST_SHARE = "Share of requests\nthat take longer", 1e-4
#: Statistics of the figure `loads`.
_SHOWN = (*QUANTILES, "mean")
#: Value for a share of zero, far below the logarithmic axis.
_NONE = 1e-9
#: Response times at which distributions are drawn, s.
_TIMES_S = [10 ** (exponent / 40) for exponent in range(-80, 105)]


def _ccdf(rows: pl.DataFrame, index: int, label: str) -> Line:
    """Share of requests that take longer: the mean over seeds, and its 95 % interval."""
    seeds = [
        survival(counts_of_times(part["response_s"]), [])
        for _, part in rows.group_by("seed", maintain_order=True)
    ]
    shares = distribution(seeds, _TIMES_S)
    both = list(zip(shares.means, shares.half_widths or [0.0] * len(_TIMES_S), strict=True))
    band = [mean - width for mean, width in both], [mean + width for mean, width in both]
    # A positive floor makes a curve that reaches zero leave through the end of the axis.
    means = [max(mean, _NONE) for mean in shares.means]
    return curve(_TIMES_S, means, index, label=label, band=band)


def _parts(rows: pl.DataFrame, name: str) -> Iterable[tuple[str, pl.DataFrame]]:
    key = pl.col(name).cast(pl.String)
    for (label,), part in rows.group_by(key, maintain_order=True):
        yield str(label), part
