"""Figures of the BECN paper as it draws them, with its numbers and those of ns-2 beside ours.

Circles are numbers in the paper's text. Crosses are recorded runs of ns-2.35 (`ns2.csv`; those of
long flows by `benches/peers/ns2-becn.tcl`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.figures import Line, Panel, Picture, Rule, line_style
from cwnd.studies.papers.becn.measures import BOTTLENECK, gains, leads, numbers
from cwnd.study import ONE_PANEL, across, at, curve, first_seed, labels, marks, paper, row_ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd.figures import Mark
    from cwnd.results import Run
    from cwnd.study import Point

_QUANTITIES = {
    "goodput": "Mean goodput of a flow (Mbit/s)",
    "loss": "Loss (%)",
    "utilisation": "Utilisation (%)",
    "queue": "Mean queue (kB)",
    "quenches": "Quenches in packets back (%)",
    "time": "Mean time of an object (s)",
    "web_loss": "Loss of web connections (%)",
    "lead": "Goodput, more than plain (%)",
}
#: Colour and markers of numbers from the paper's text and from ns-2.
_GREY = "#4D4D4D"
_CIRCLE: dict[str, Any] = {"joined": False, "marker": "o", "hollow": True, "size": 9.0}
_CROSS: dict[str, Any] = {"joined": False, "marker": "x", "hollow": True, "size": 6.0}
#: Thresholds of RED, kB (§ V-A).
_THRESHOLDS_KB = (15, 45)


def fig02(run: Run) -> Picture:
    """Goodput of ECN or BECN flows and of as many plain flows beside them, and the lead in %."""
    ahead: list[Line] = []
    for scheme in labels(run, "scheme"):
        index = _SCHEMES[scheme]
        points = [leads(run, {"scheme": scheme, "flows": n}) for n in labels(run, "flows")]
        ahead.append(_means(labels(run, "flows"), points, index, None))
        ahead += _circles(stated("lead", {"scheme": scheme}), index)
        ahead += _crosses(run, "lead", {"scheme": scheme}, index)
    return _pair(_panel(_beside(run, "goodput"), "goodput"), _panel(ahead, "lead"))


def fig03(run: Run) -> Picture:
    """Loss of ECN or BECN flows, and of as many plain flows beside them."""
    return Picture([_panel(_beside(run, "loss"), "loss")], *ONE_PANEL)


def fig04(run: Run) -> Picture:
    """Goodput of flows of one kind."""
    return _by_flows(run, "goodput", {"delay": "40 ms"})


def fig05(run: Run) -> Picture:
    """Loss of flows of one kind."""
    return _by_flows(run, "loss", {"delay": "40 ms"})


def fig06(run: Run) -> Picture:
    """Utilisation of the bottleneck with flows of one kind."""
    return _by_flows(run, "utilisation", {"delay": "40 ms"})


def fig07(run: Run) -> Picture:
    """Mean queue with flows of one kind."""
    return _by_flows(run, "queue", {"delay": "40 ms"})


def fig08(run: Run) -> Picture:
    """Queue over time with 15 ECN or BECN flows."""
    return _queues(run, "15 flows, 40 ms", labels(run, "scheme"))


def fig09(run: Run) -> Picture:
    """Mean time of web objects beside bulk flows, and how much shorter it is with BECN."""
    less = _over(run, "time", {}, ["BECN"], over="ECN", sign=-1)
    return _pair(_panel(_curves(run, "time", {}), "time"), _relative(less, "Time, less than ECN"))


def fig10(run: Run) -> Picture:
    """Loss of web connections, and of all packets, with the paper's numbers at both."""
    panels = []
    for what in ("web_loss", "loss"):
        drawn = _curves(run, what, {})
        if what == "loss":
            for scheme in labels(run, "scheme"):
                said = stated("web_loss", {"scheme": scheme}, figure="fig09")
                drawn += _circles(said, _SCHEMES[scheme])
        panels.append(_panel(drawn, what))
    panels[1].y_label = "Loss of all packets (%)"
    return _pair(*panels)


def fig11(run: Run) -> Picture:
    """Goodput of flows of one kind over the long path, and how much more it is than ECN's."""
    of = {"delay": "250 ms"}
    more = _over(run, "goodput", of, ["plain", "BECN"], over="ECN", sign=1)
    goodput = _panel(_curves(run, "goodput", of), "goodput")
    return _pair(goodput, _relative(more, "Goodput, more than ECN"))


def fig12(run: Run) -> Picture:
    """Loss of flows of one kind over the long path."""
    return _by_flows(run, "loss", {"delay": "250 ms"})


def fig13(run: Run) -> Picture:
    """Utilisation with flows of one kind over the long path."""
    return _by_flows(run, "utilisation", {"delay": "250 ms"})


def fig14(run: Run) -> Picture:
    """Mean queue with flows of one kind over the long path."""
    return _by_flows(run, "queue", {"delay": "250 ms"})


def fig15(run: Run) -> Picture:
    """Queue over time with 45 ECN flows over the long path."""
    return _queues(run, "45 flows, 250 ms", ["ECN"])


def fig16(run: Run) -> Picture:
    """Queue over time with 45 BECN flows over the long path."""
    return _queues(run, "45 flows, 250 ms", ["BECN"])


def fig17(run: Run) -> Picture:
    """Mean time of web objects over the long path, and how much shorter it is with BECN."""
    less = _over(run, "time", {}, ["BECN"], over="ECN", sign=-1)
    return _pair(_panel(_curves(run, "time", {}), "time"), _relative(less, "Time, less than ECN"))


def fig18(run: Run) -> Picture:
    """Loss of web connections over the long path, and how much less it is with BECN."""
    loss = _panel(_curves(run, "web_loss", {}), "web_loss")
    less = _over(run, "web_loss", {}, ["BECN"], over="ECN", sign=-1)
    return _pair(loss, _relative(less, "Loss, less than ECN"))


def fig19(run: Run) -> Picture:
    """Share of source quenches in the packets on the reverse path, on both paths."""
    drawn: list[Line] = []
    for index, delay in enumerate(labels(run, "delay")):
        of = {"delay": delay, "scheme": "BECN"}
        drawn.append(_curve(run, "quenches", of, index, label=delay))
        drawn += _circles(stated("quenches", of), index)
    return Picture([_panel(drawn, "quenches")], *ONE_PANEL)


def readings(run: Run) -> Picture:
    """Results of other readings of the paper: leads over plain flows, losses and quenches."""
    names = labels(run, "reading")
    columns = [
        ("lead", ("ECN beside plain", "BECN beside plain"), {"flows": "40"}),
        ("loss", ("plain", "ECN", "BECN"), {"delay": "40 ms", "flows": "45"}),
        ("quenches", ("BECN",), {"delay": "40 ms", "flows": "45"}),
    ]
    panels = []
    for what, mixes, of in columns:
        drawn: list[Mark] = []
        for mix in mixes:
            scheme = mix.partition(" ")[0]
            places = [{"reading": reading, "mix": mix} for reading in names]
            seeds = [leads(run, at) if what == "lead" else numbers(run, what, at) for at in places]
            drawn.append(across(seeds, _SCHEMES[scheme], scheme))
            drawn += [
                Rule(x=value, colour=line_style.colour(_SCHEMES[scheme]))
                for _, value in stated(what, {"scheme": scheme, **of})
            ]
        panel = Panel(drawn, x_label=_QUANTITIES[what], x_limits=(0, None))
        panel.y_ticks = row_ticks(names)
        panels.append(panel)
    return Picture(panels, 2.6, columns=3, shared_x="none")


FIGURES: Mapping[str, Callable[[Run], Picture]] = {
    function.__name__: function
    for function in (
        *(fig02, fig03, fig04, fig05, fig06, fig07, fig08, fig09, fig10, fig11),
        *(fig12, fig13, fig14, fig15, fig16, fig17, fig18, fig19, readings),
    )
}

#: Figures whose checks state the numbers of a scenario.
_FIGURES = {"becn-flows": "fig04", "becn-web": "fig09", "becn-web-far": "fig17"}
#: Colour of each kind of flows, the same in all figures.
_SCHEMES = {"plain": 0, "ECN": 1, "BECN": 2}


def _by_flows(run: Run, what: str, of: Point) -> Picture:
    """Draws a number for each kind of flows, by the number of flows."""
    return Picture([_panel(_curves(run, what, of), what)], *ONE_PANEL)


def _curves(run: Run, what: str, of: Point) -> list[Line]:
    """Curves of a number for each kind of flows, with circles and crosses."""
    drawn: list[Line] = []
    for scheme in labels(run, "scheme"):
        here = {**of, "scheme": scheme}
        drawn.append(_curve(run, what, here, _SCHEMES[scheme], label=scheme))
        drawn += _circles(stated(what, here, figure=_FIGURES.get(run.name)), _SCHEMES[scheme])
        drawn += _crosses(run, what, here, _SCHEMES[scheme])
    return drawn


def _over(
    run: Run, what: str, of: Point, schemes: Sequence[str], *, over: str, sign: int
) -> list[Line]:
    """Curves of how much more (sign 1) or less (-1) a number is than that of a scheme, in %."""
    drawn: list[Line] = []
    counts = labels(run, "flows")
    for scheme in schemes:
        points = []
        for n in counts:
            after, before = (
                numbers(run, what, {**of, "scheme": each, "flows": n}) for each in (scheme, over)
            )
            points.append([sign * gain for gain in gains(after, before)])
        drawn.append(_means(counts, points, _SCHEMES[scheme], None))
        here = {**of, "scheme": scheme}
        said = stated(what, here, figure=_FIGURES.get(run.name), over=over)
        drawn += _circles(said, _SCHEMES[scheme])
    return drawn


def _beside(run: Run, what: str) -> list[Line]:
    """Curves of a number of tested flows and of the plain flows beside them."""
    drawn: list[Line] = []
    for scheme in labels(run, "scheme"):
        of = {"scheme": scheme}
        index = _SCHEMES[scheme]
        # Plain flows beside these have colours of their own.
        plain = index + len(_SCHEMES)
        drawn.append(_curve(run, what, of, index, label=scheme, group="tested"))
        drawn.append(_curve(run, what, of, plain, label=f"plain beside {scheme}", group="plain"))
        for group, colour in (("tested", index), ("plain", plain)):
            drawn += _circles(stated(what, of, group), colour)
            drawn += _crosses(run, what, of, colour, group)
    return drawn


def _queues(run: Run, setting: str, schemes: Sequence[str]) -> Picture:
    warm = pl.col("time_s") >= run.runs["warmup_s"].max()
    rows = at(run, first_seed(run.link_series), {"setting": setting}, link=BOTTLENECK).filter(warm)
    panels = []
    for scheme in schemes:
        mine = rows.filter(pl.col("scheme").cast(pl.String) == scheme).sort("time_s")
        queue = curve(mine["time_s"], mine["qlen_bytes"] / 1e3, _SCHEMES[scheme], width=0.5)
        queue.dashes = ()
        panels.append(
            Panel(
                [queue, *(Rule(y=kilobytes) for kilobytes in _THRESHOLDS_KB)],
                title=f"{scheme}, {setting}",
                x_label="Time (s)",
                x_tight=True,
                y_limits=(0, None),
            )
        )
    panels[0].y_label = "Queue (kB)"
    return Picture(panels, 2.4, line_style.WIDTH if len(schemes) > 1 else 4.5, columns=len(panels))


def _curve(run: Run, what: str, of: Point, index: int, **more: str) -> Line:
    """Builds the curve of a number by the number of flows; `more` has `label` and `group`."""
    counts = labels(run, "flows")
    points = [numbers(run, what, {**of, "flows": n}, more.get("group")) for n in counts]
    return _means(counts, points, index, more["label"])


def _means(xs: Sequence[str], points: Sequence[list[float]], index: int, label: str | None) -> Line:
    return marks(zip(map(float, xs), points, strict=True), index, label)


def _circles(points: Sequence[tuple[float, float]], index: int) -> list[Line]:
    """Numbers of the paper's text, as large open marks."""
    return _others(points, index, Line([], [], _GREY, label="paper", **_CIRCLE))


def _crosses(run: Run, what: str, of: Point, index: int, group: str | None = None) -> list[Line]:
    """Numbers of recorded runs of ns-2, as crosses; with limited transmit if the run has it."""
    rows = _ns2()
    if what not in rows.columns:
        return []
    limited = pl.col("limited_transmit")
    rows = rows.filter(
        pl.col("scenario") == run.name,
        pl.col("scheme") == of["scheme"],
        pl.col("group") == (group or "tested"),
        pl.col("delay") == of.get("delay", "40 ms"),
        limited.is_null() | (limited == _limited_transmit(run)),
    )
    points = [(float(n), value) for n, value in rows.drop_nulls(what).select("flows", what).rows()]
    return _others(points, index, Line([], [], _GREY, label="ns-2.35", **_CROSS))


def _limited_transmit(run: Run) -> bool:
    scenario = _core.read_toml(run.resolved[0], name="the scenario of a run")
    return any(flow["endpoint"]["limited_transmit"] for flow in scenario["flow"].values())


def _others(points: Sequence[tuple[float, float]], index: int, key: Line) -> list[Line]:
    """Builds marks without a line, with a legend entry in no scheme's colour."""
    if not points:
        return []
    xs, ys = zip(*points, strict=True)
    return [key, replace(key, x=xs, y=ys, colour=line_style.colour(index), label=None)]


def stated(
    what: str,
    of: Point,
    group: str | None = None,
    *,
    figure: str | None = None,
    over: str | None = None,
) -> list[tuple[float, float]]:
    """Numbers of flows, and the paper's numbers for them, from the claims beside this file.

    Args:
        what: Name of the number.
        of: Point of the sweep; without `flows` all numbers of flows.
        group: Group of flows.
        figure: Figure whose runs have the number; any if not given.
        over: For a relative number: scheme that it is compared with.
    """
    found = []
    study = paper("becn")
    for claim in study.claims:
        for check in claim.checks:
            if check.measure not in ({"more", "less"} if over else {"number", "lead"}):
                continue
            arguments, here = check.arguments, check.arguments["of"]
            if (
                arguments.get("what", check.measure) == what
                and "flows" in here
                and here == {"flows": here["flows"], **of}
                and arguments.get("group") == group
                and arguments.get("over", {}).get("scheme") == over
                and figure in (None, study.runs_of(claim.figure_of(check)))
                and isinstance(check.paper, int | float)
            ):
                found.append((float(here["flows"]), check.paper))
    return list(dict.fromkeys(found))


@cache
def _ns2() -> pl.DataFrame:
    """Recorded runs of ns-2.35 in the same settings."""
    return pl.read_csv(Path(__file__).parent / "ns2.csv")


def _pair(*panels: Panel) -> Picture:
    return Picture(list(panels), 2.8, columns=2, shared_x="none", shared_y="none")


def _relative(drawn: Sequence[Mark], what: str) -> Panel:
    return Panel(drawn, x_label="Flows", y_label=f"{what} (%)")


def _panel(drawn: Sequence[Mark], what: str) -> Panel:
    limits = (None, None) if what in {"utilisation", "lead"} else (0, None)
    return Panel(drawn, x_label="Flows", y_label=_QUANTITIES[what], y_limits=limits)
