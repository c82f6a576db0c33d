"""The figures of the BECN paper as it draws them, with its numbers and those of ns-2 beside ours.

Circles are what the paper's text says, crosses recorded runs of ns-2.35 (`ns2.csv`: NewReno and
RED in the paper's setting, with limited transmit; web traffic with timeouts from 0.2 s).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.papers.becn.flows import BOTTLENECK, labels, leads, numbers
from cwnd.plots import style
from cwnd.reproduce import paper
from cwnd.results import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cwnd.reproduce import Point
    from cwnd.results import Run

_QUANTITIES = {
    "goodput": "Mean goodput of a flow (Mbit/s)",
    "loss": "Loss (%)",
    "utilisation": "Utilisation (%)",
    "queue": "Mean queue (kB)",
    "quenches": "Quenches in packets back (%)",
    "time": "Mean time of an object (s)",
    "lead": "Goodput, more than plain (%)",
}
#: The thresholds of RED, kB (§ V-A).
_THRESHOLDS_KB = (15, 45)


def fig02(run: Run) -> Figure:
    """Goodput of ECN or BECN flows and of as many plain ones beside them, and by how much more."""
    figure = style.figure(2.8)
    goodput, ahead = figure.subplots(1, 2)
    _beside(goodput, run, "goodput")
    for scheme in labels(run, "scheme"):
        index = _SCHEMES[scheme]
        points = [leads(run, {"scheme": scheme, "flows": n}) for n in labels(run, "flows")]
        _means(ahead, labels(run, "flows"), points, index, None)
        _circles(ahead, stated("lead", {"scheme": scheme}), index)
    _axes(ahead, "lead")
    style.legend(figure, [goodput, ahead], columns=5)
    return figure


def fig03(run: Run) -> Figure:
    """Loss of ECN or BECN flows, and of as many plain ones beside them."""
    figure, panel = _one_panel()
    _beside(panel, run, "loss")
    style.legend(figure, [panel], columns=3)
    return figure


def fig04(run: Run) -> Figure:
    """Goodput of flows of one kind."""
    return _by_flows(run, "goodput", {"delay": "40 ms"})


def fig05(run: Run) -> Figure:
    """Loss of flows of one kind."""
    return _by_flows(run, "loss", {"delay": "40 ms"})


def fig06(run: Run) -> Figure:
    """Utilisation of the bottleneck with flows of one kind."""
    return _by_flows(run, "utilisation", {"delay": "40 ms"})


def fig07(run: Run) -> Figure:
    """The mean queue with flows of one kind."""
    return _by_flows(run, "queue", {"delay": "40 ms"})


def fig08(run: Run) -> Figure:
    """The queue over time with 15 ECN or BECN flows."""
    return _queues(run, "15 flows, 40 ms", labels(run, "scheme"))


def fig09(run: Run) -> Figure:
    """How long web objects take beside bulk flows."""
    return _by_flows(run, "time", {})


def fig10(run: Run) -> Figure:
    """Loss of web traffic and bulk flows together."""
    return _by_flows(run, "loss", {}, {"ECN": (35, 5.09), "BECN": (35, 3.76)})


def fig11(run: Run) -> Figure:
    """Goodput of flows of one kind over the long path."""
    return _by_flows(run, "goodput", {"delay": "250 ms"})


def fig12(run: Run) -> Figure:
    """Loss of flows of one kind over the long path."""
    return _by_flows(run, "loss", {"delay": "250 ms"})


def fig13(run: Run) -> Figure:
    """Utilisation with flows of one kind over the long path."""
    return _by_flows(run, "utilisation", {"delay": "250 ms"})


def fig14(run: Run) -> Figure:
    """The mean queue with flows of one kind over the long path."""
    return _by_flows(run, "queue", {"delay": "250 ms"})


def fig15(run: Run) -> Figure:
    """The queue over time with 45 ECN flows over the long path."""
    return _queues(run, "45 flows, 250 ms", ["ECN"])


def fig16(run: Run) -> Figure:
    """The queue over time with 45 BECN flows over the long path."""
    return _queues(run, "45 flows, 250 ms", ["BECN"])


def fig17(run: Run) -> Figure:
    """How long web objects take beside bulk flows over the long path."""
    return _by_flows(run, "time", {})


def fig18(run: Run) -> Figure:
    """Loss of web traffic and bulk flows together over the long path."""
    return _by_flows(run, "loss", {})


def fig19(run: Run) -> Figure:
    """Source quenches in the packets on the way back, on both paths."""
    figure, panel = _one_panel()
    for index, delay in enumerate(labels(run, "delay")):
        of = {"delay": delay, "scheme": "BECN"}
        _curve(panel, run, "quenches", of, index, label=delay)
        _circles(panel, stated("quenches", of), index)
    _axes(panel, "quenches")
    style.legend(figure, [panel], columns=5)
    return figure


def readings(run: Run) -> Figure:
    """What other readings of the paper come to: leads over plain flows, losses and quenches."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 3, sharey=True, width_ratios=(1, 0.8, 1))
    names = labels(run, "reading")
    columns = [
        ("lead", ("ECN beside plain", "BECN beside plain"), {"flows": "40"}),
        ("loss", ("plain", "ECN", "BECN"), {"delay": "40 ms", "flows": "45"}),
        ("quenches", ("BECN",), {"delay": "40 ms", "flows": "45"}),
    ]
    for panel, (what, mixes, of) in zip(panels, columns, strict=True):
        for mix in mixes:
            scheme = mix.partition(" ")[0]
            colour = style.colour(_SCHEMES[scheme])
            for row, reading in enumerate(names):
                at = {"reading": reading, "mix": mix}
                values = leads(run, at) if what == "lead" else numbers(run, what, at)
                mean = _estimate(values)
                label = scheme if row == 0 else None
                panel.errorbar(
                    mean.mean, row, xerr=mean.half_width, fmt="o", ms=3, color=colour, label=label
                )
            for _, value in stated(what, {"scheme": scheme, **of}):
                panel.axvline(value, color=colour, lw=0.8, ls="--")
        panel.set_xlabel(_QUANTITIES[what])
        panel.set_xlim(left=0)
    panels[0].set_yticks(range(len(names)), labels=names)
    panels[0].invert_yaxis()
    style.legend(figure, list(panels))
    return figure


FIGURES: Mapping[str, Callable[[Run], Figure]] = {
    function.__name__: function
    for function in (
        *(fig02, fig03, fig04, fig05, fig06, fig07, fig08, fig09, fig10, fig11),
        *(fig12, fig13, fig14, fig15, fig16, fig17, fig18, fig19, readings),
    )
}

#: The colour of each kind of flows, the same in all figures.
_SCHEMES = {"plain": 0, "ECN": 1, "BECN": 2}


def _by_flows(
    run: Run, what: str, of: Point, text: Mapping[str, tuple[float, float]] | None = None
) -> Figure:
    """A number for each kind of flows, by how many there are.

    `text` has numbers of the paper's text that no claim asks for: flows and value.
    """
    figure, panel = _one_panel()
    for scheme in labels(run, "scheme"):
        at = {**of, "scheme": scheme}
        _curve(panel, run, what, at, _SCHEMES[scheme], label=scheme)
        said = [text[scheme]] if text is not None else stated(what, at)
        _circles(panel, said, _SCHEMES[scheme])
        _crosses(panel, run.name, what, at, _SCHEMES[scheme])
    _axes(panel, what)
    style.legend(figure, [panel], columns=5)
    return figure


def _beside(panel: Axes, run: Run, what: str) -> None:
    """A number of tested flows and of the plain ones beside them."""
    for scheme in labels(run, "scheme"):
        of = {"scheme": scheme}
        index = _SCHEMES[scheme]
        _curve(panel, run, what, of, index, label=scheme, group="tested")
        # The plain flows beside these.
        plain = index + len(_SCHEMES)
        _curve(panel, run, what, of, plain, label=f"plain beside {scheme}", group="plain")
        _circles(panel, stated(what, of, "tested"), index)
        _circles(panel, stated(what, of, "plain"), plain)
    _axes(panel, what)


def _queues(run: Run, setting: str, schemes: Sequence[str]) -> Figure:
    figure = style.figure(2.4, style.WIDTH if len(schemes) > 1 else 4.5)
    panels = figure.subplots(1, len(schemes), sharex=True, sharey=True, squeeze=False)[0]
    warmup = run.runs["warmup_s"].max()
    rows = run.link_series.filter(
        (pl.col("link").cast(pl.String) == BOTTLENECK)
        & (pl.col("setting").cast(pl.String) == setting)
        & (pl.col("time_s") >= warmup)
    )
    for panel, scheme in zip(panels, schemes, strict=True):
        mine = rows.filter(pl.col("scheme").cast(pl.String) == scheme).sort("time_s")
        colour = style.colour(_SCHEMES[scheme])
        panel.plot(mine["time_s"], mine["qlen_bytes"] / 1e3, color=colour, lw=0.5)
        for threshold in _THRESHOLDS_KB:
            panel.axhline(threshold, color="0.4", lw=0.8, ls="--")
        panel.set_title(f"{scheme}, {setting}")
        panel.set_xlabel("Time (s); dashed: thresholds")
        panel.margins(x=0)
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("Queue (kB)")
    return figure


def _one_panel() -> tuple[Figure, Axes]:
    figure = style.figure(2.8, 4.5)
    return figure, figure.subplots()


def _curve(panel: Axes, run: Run, what: str, of: Point, index: int, **more: str) -> None:
    """A number by how many flows there are; `more` is the `label`, and the `group`."""
    counts = labels(run, "flows")
    points = [numbers(run, what, {**of, "flows": n}, more.get("group")) for n in counts]
    _means(panel, counts, points, index, more["label"])


def _means(
    panel: Axes, xs: Sequence[str], points: Sequence[list[float]], index: int, label: str | None
) -> None:
    """Means over seeds with their 95 % intervals."""
    estimates = [_estimate(values) for values in points]
    panel.errorbar(
        [float(x) for x in xs],
        [each.mean for each in estimates],
        yerr=[each.half_width or 0.0 for each in estimates],
        label=label,
        **style.points(index),
    )


def _estimate(values: Sequence[float]) -> Estimate:
    found = Estimate.of(values)
    assert found is not None
    return found


def _circles(panel: Axes, points: Sequence[tuple[float, float]], index: int) -> None:
    """What the paper's text says, as large open marks."""
    _marks(panel, points, index, "paper", marker="o", markersize=9, fillstyle="none")


def _crosses(panel: Axes, scenario: str, what: str, of: Point, index: int) -> None:
    """The same from recorded runs of ns-2."""
    rows = _ns2()
    if what not in rows.columns:
        return
    here = (pl.col("scenario") == scenario) & (pl.col("scheme") == of["scheme"])
    rows = rows.filter(here & (pl.col("delay") == of.get("delay", "40 ms"))).drop_nulls(what)
    points = [(float(n), value) for n, value in rows.select("flows", what).iter_rows()]
    _marks(panel, points, index, "ns-2.35", marker="x", markersize=6)


def _marks(
    panel: Axes, points: Sequence[tuple[float, float]], index: int, label: str, **look: Any
) -> None:
    """Marks without a line, which the legend names once and in no scheme's colour."""
    if not points:
        return
    _, names = panel.get_legend_handles_labels()
    if label not in names:
        panel.plot([], [], color="0.3", ls="none", label=label, **look)
    xs, ys = zip(*points, strict=True)
    panel.plot(xs, ys, color=style.colour(index), ls="none", **look)


def stated(what: str, of: Point, group: str | None = None) -> list[tuple[float, float]]:
    """Numbers of flows, and what the paper states for so many: the claims beside this file."""
    found = []
    for claim in paper("becn").claims:
        for check in claim.checks:
            same = check.arguments.get("what", check.measure) == what
            at = check.arguments["of"]
            ours = {name: label for name, label in at.items() if name != "flows"}
            wanted = {name: label for name, label in of.items() if name != "flows"}
            if (
                check.measure in {"number", "lead"}
                and same
                and ours == wanted
                and check.arguments.get("group") == group
                and of.get("flows", at["flows"]) == at["flows"]
                and check.paper is not None
            ):
                found.append((float(at["flows"]), check.paper))
    return found


@cache
def _ns2() -> pl.DataFrame:
    """ns-2.35 in the same settings; of flows with timeouts of at least 1 s, as here."""
    rows = pl.read_csv(Path(__file__).parent / "ns2.csv")
    longest = pl.col("rto_min_s") == pl.col("rto_min_s").max().over("scenario")
    return rows.filter(longest)


def _axes(panel: Axes, what: str) -> None:
    panel.set_xlabel("Flows")
    panel.set_ylabel(_QUANTITIES[what])
    if what not in {"utilisation", "lead"}:
        panel.set_ylim(bottom=0)
