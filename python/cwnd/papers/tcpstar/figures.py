"""The figures of the TCP*(n) paper as it draws them, and those of what it states without one."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from cwnd.models import backoff_multipliers, dead_share, rejected_connections
from cwnd.papers.tcpstar.inference import inference
from cwnd.papers.tcpstar.responses import (
    aggregate_response_s,
    at,
    labels,
    rejections,
    responses,
    statistic,
    timeouts_of,
)
from cwnd.plots import style
from cwnd.results import Estimate, counts_of_times, distribution, survival

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.reproduce import Point
    from cwnd.results import Run

#: Rounds that Fig. 1 shows.
_ROUNDS = 7
#: Points of a curve of a model.
_MODEL_POINTS = 100


def fig01(run: Run) -> Figure:
    """The timeout by backoff round, for each n: Fig. 1 (lines) and simulation (marks)."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    rounds = range(1, _ROUNDS + 1)
    for index, n in enumerate(labels(run, "n")):
        name = {"0": "TCP", "6": "TCP*(∞)"}.get(n, f"TCP*({n})")
        panel.plot(rounds, backoff_multipliers(float(n), _ROUNDS), **style.line(index), label=name)
        for packet, marker in (("data", "o"), ("SYN", "x")):
            seen = timeouts_of(run, _ROUNDS)[packet, n]
            panel.plot(rounds, seen, ls="none", marker=marker, ms=4, color=style.colour(index))
    panel.set_yscale("log", base=2)
    panel.set_yticks([1, 2, 4, 8, 16, 32, 64], labels=["1", "2", "4", "8", "16", "32", "64"])
    panel.set_xlabel("Backoff round (circles: data, crosses: SYN)")
    panel.set_ylabel("Timeout (RTO)")
    style.legend(figure, [panel], columns=4)
    return figure


def syn(run: Run) -> Figure:
    """Connections none of whose SYNs got through, by loss: pᵏ and simulation (marks).

    Queues at which all connections began have no marks.
    """
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    p = [0.05 + 0.5 * i / _MODEL_POINTS for i in range(_MODEL_POINTS + 1)]
    for dashes, syns in enumerate(labels(run, "syns")):
        model = [100 * rejected_connections(x, int(syns)) for x in p]
        panel.plot(p, model, color="0.5", ls=style.DASHES[dashes], label=f"p$^{syns}$")
    index = 0
    for queue in labels(run, "queue"):
        for syns in labels(run, "syns"):
            points = [point for point in _rejections(run, queue, syns) if point[1] > 0]
            if not points:
                continue
            xs, means, widths = zip(*points, strict=True)
            look = style.points(index) | {"linestyle": "none"}
            panel.errorbar(xs, means, yerr=widths, **look, label=f"{queue}, {syns} SYNs")
            index += 1
    panel.set_yscale("log")
    panel.set_ylim(bottom=0.001)
    panel.set_xlabel("Share of all packets that the queue drops, p")
    panel.set_ylabel("Connections given up (%)")
    style.legend(figure, [panel], columns=2)
    return figure


def _rejections(run: Run, queue: str, syns: str) -> list[tuple[float, float, float]]:
    """The loss, the share given up in per cent, and half its confidence interval."""
    found = []
    for p in labels(run, "p"):
        rows = rejections(run, {"queue": queue, "syns": syns, "p": p})
        estimate = Estimate.of([100 * float(x) for x in rows["rejected"]])
        assert estimate is not None
        dropped = sum(rows["dropped"]) / rows.height
        found.append((dropped, estimate.mean, estimate.half_width or 0.0))
    return found


def fig08(run: Run) -> Figure:
    """The share of the upstream link that dead packets take: eq. 7, and simulation (marks)."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    both = [i / _MODEL_POINTS for i in range(_MODEL_POINTS + 1)]
    for index, drops in enumerate(labels(run, "drops")):
        p1, p2 = (float(part.strip(" %")) / 100 for part in drops.split(","))
        name = f"$(p_1, p_2)$ = ({drops})"
        panel.plot(both, [dead_share(x, p1, p2) for x in both], **style.line(index), label=name)
        rows = at(run, run.links, {"drops": drops})
        first = rows.filter(pl.col("link").cast(pl.String) == "first")
        _marks(
            panel,
            (
                (float(label), part["dead_pkts"] / part["arrived_pkts"])
                for label, part in _parts(first, "both")
            ),
            index,
        )
    panel.set_xlabel("L$_0$/(L$_0$ + L$_1$), load that crosses both bottlenecks")
    panel.set_ylabel("Dead packets, α")
    panel.set_ylim(bottom=0)
    style.legend(figure, [panel], columns=1)
    return figure


def theorem(run: Run) -> Figure:
    """Mean response times of users who are all in backoff: eq. 3 and 6, and simulation (marks)."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, n in enumerate(labels(run, "n")):
        rows = aggregate_response_s(run, {"n": n}).sort("flows")
        if index == 0:
            bounds = rows.unique("flows").sort("flows")
            panel.plot(bounds["flows"], bounds["backoff_s"], color="0.6", ls="--", label="eq. 6")
            panel.plot(bounds["flows"], bounds["bound_s"], color="0.2", label="eq. 3")
        marks = ((float(users), part["response_s"]) for users, part in _parts(rows, "flows", ""))
        _marks(panel, marks, index, label=n)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("Users, each with a transfer of 20 packets")
    panel.set_ylabel("Mean response time (s)")
    style.legend(figure, [panel], columns=3)
    return figure


def fig02(run: Run) -> Figure:
    """Response times over an overloaded link, for three distributions of sizes."""
    return _panels(run, "trace", [({"n": n}, None, n) for n in labels(run, "n")])


def fig03(run: Run) -> Figure:
    """Response times at 10 and 50 Mbit/s at equal load."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, (rate, n) in enumerate(product(labels(run, "rate"), labels(run, "n"))):
        _ccdf(panel, responses(run, {"rate": rate, "n": n}), index, f"{n}, {rate}")
    _log_axes(panel)
    panel.set_ylabel("Share of requests that take longer")
    style.legend(figure, [panel], columns=2)
    return figure


def fig04(run: Run) -> Figure:
    """Mean and 99th percentile of response times, by the length of the bursts of arrivals."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    index = 0
    for what, name in (("p99", "99th percentile"), ("mean", "mean")):
        for n in labels(run, "n"):
            rows = responses(run, {"n": n}).group_by("axis:period", "seed", maintain_order=True)
            values = rows.agg(statistic(what).alias("value")).sort("axis:period", "seed")
            marks = ((float(x), part["value"]) for x, part in _parts(values, "period"))
            _marks(panel, sorted(marks, key=lambda mark: mark[0]), index, f"{n}, {name}", line=True)
            index += 1
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("Periods with arrivals, and without (s)")
    panel.set_ylabel("Response time (s)")
    style.legend(figure, [panel], columns=2)
    return figure


def fig05(run: Run) -> Figure:
    """Response times of Tahoe, Reno and SACK with backoff and without, over RED and DropTail."""
    curves = [
        ({"recovery": recovery, "n": n}, None, n.replace("TCP", recovery))
        for recovery, n in product(labels(run, "recovery"), labels(run, "n"))
    ]
    return _panels(run, "queue", curves)


def fig06a(run: Run) -> Figure:
    """Response times in flash crowds of UDP."""
    return _stacks(run, "web")


def fig06b(run: Run) -> Figure:
    """Response times in flash crowds of TCP."""
    return _stacks(run, "web")


def fig09(run: Run) -> Figure:
    """Response times over two bottlenecks: of those who cross both, and the first alone."""
    curves = [
        ({"n": n}, group, f"{n}, {name}")
        for group, name in (("both", "S0–C0"), ("first", "S1–C1"))
        for n in labels(run, "n")
    ]
    return _panels(run, "trace", curves)


def fig11a(run: Run) -> Figure:
    """Response times over a HOT-like graph with HTTP."""
    return _stacks(run, "http")


def fig11b(run: Run) -> Figure:
    """Response times over a HOT-like graph with HTTP and p2p."""
    return _stacks(run, "http")


def fig12(run: Run) -> Figure:
    """Response times where TCP and TCP*(∞) share a link, by the share of TCP*(∞)."""
    curves = [
        ({"share": share}, group, f"{name}, {share} % TCP*(∞)")
        for group, name in (("old", "TCP"), ("new", "TCP*(∞)"))
        for share in ("10", "50", "90")
    ]
    return _panels(run, "trace", curves)


def steps(run: Run) -> Figure:
    """Response times of the older stack beside the newer one, in one step and in two."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, stacks in enumerate(labels(run, "stacks")):
        older, _, newer = stacks.removesuffix(" alone").partition(", ")
        name = f"{older} beside {newer}" if newer else f"{older} alone"
        _ccdf(panel, responses(run, {"stacks": stacks}, "old"), index, name)
    _log_axes(panel)
    panel.set_ylabel("Share of requests that take longer")
    style.legend(figure, [panel], columns=2)
    return figure


#: Every figure, by the name of its scenario.
FIGURES: Mapping[str, Callable[[Run], Figure]] = {
    function.__name__: function
    for function in (
        *(fig01, syn, fig02, fig03, fig04, fig05),
        *(fig06a, fig06b, fig08, fig09, fig11a, fig11b, fig12, steps, theorem, inference),
    )
}


def _stacks(run: Run, group: str) -> Figure:
    """A distribution for each stack, of one group."""
    figure = style.figure(2.8, 4.5)
    panel = figure.subplots()
    for index, n in enumerate(labels(run, "n")):
        _ccdf(panel, responses(run, {"n": n}, group), index, n)
    _log_axes(panel)
    panel.set_ylabel("Share of requests that take longer")
    style.legend(figure, [panel], columns=2)
    return figure


def _panels(run: Run, axis: str, curves: Sequence[tuple[Point, str | None, str]]) -> Figure:
    """A panel for each label of an axis, with a distribution for each point and group."""
    values = labels(run, axis)
    figure = style.figure(2.8)
    grid = figure.subplots(1, len(values), sharex=True, sharey=True, squeeze=False)[0]
    for value, panel in zip(values, grid, strict=True):
        for index, (of, group, name) in enumerate(curves):
            _ccdf(panel, responses(run, {axis: value, **of}, group), index, name)
        _log_axes(panel)
        panel.set_title(value)
    grid[0].set_ylabel("Share of requests\nthat take longer")
    # Four curves are two rows of two, not three and one.
    style.legend(figure, list(grid), columns=2 if len(curves) == 4 else 3)  # noqa: PLR2004
    return figure


def _log_axes(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(1e-4, 1)
    panel.set_xlabel("Response time (s)")


#: Where distributions are drawn, s.
_TIMES_S = [10 ** (exponent / 40) for exponent in range(-80, 105)]


def _ccdf(panel: Axes, rows: pl.DataFrame, index: int, label: str) -> None:
    """The share of requests that take longer: the mean over seeds, and its 95 % interval."""
    seeds = [
        survival(counts_of_times(part["response_s"]), [])
        for _, part in rows.group_by("seed", maintain_order=True)
    ]
    shares = distribution(seeds, _TIMES_S)
    means, widths = shares.means, shares.half_widths or [0.0] * len(_TIMES_S)
    panel.plot(_TIMES_S, means, **style.line(index), label=label)
    low = [mean - width for mean, width in zip(means, widths, strict=True)]
    high = [mean + width for mean, width in zip(means, widths, strict=True)]
    panel.fill_between(_TIMES_S, low, high, color=style.colour(index), alpha=0.2, lw=0)


def _parts(
    rows: pl.DataFrame, axis: str, prefix: str = "axis:"
) -> Iterable[tuple[str, pl.DataFrame]]:
    key = pl.col(f"{prefix}{axis}").cast(pl.String)
    for (label,), part in rows.group_by(key, maintain_order=True):
        yield str(label), part


def _marks(
    panel: Axes,
    points: Iterable[tuple[float, pl.Series]],
    index: int,
    label: str | None = None,
    *,
    line: bool = False,
) -> None:
    """Means over the seeds with their 95 % intervals."""
    xs, means, widths = [], [], []
    for x, values in points:
        estimate = Estimate.of([float(v) for v in values])
        assert estimate is not None
        xs.append(x)
        means.append(estimate.mean)
        widths.append(estimate.half_width or 0.0)
    look = style.points(index) | ({} if line else {"linestyle": "none"})
    # On log axes an interval may reach below the panel.
    panel.errorbar(xs, means, yerr=widths, label=label, clip_on=line, **look)
