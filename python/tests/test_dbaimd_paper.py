"""The delay-based AIMD thesis: values of its measures, and points that its figures must show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import correlation, fmean
from typing import TypeAlias

import polars as pl
import pytest
import svgs

import cwnd
from cwnd import Run, study
from cwnd.figures import Figure, line_style
from cwnd.running import override_list
from cwnd.studies.papers.dbaimd import measures, rtt_measures
from cwnd.studies.papers.dbaimd.figures import FIGURES
from cwnd.studies.papers.dbaimd.runs import (
    bound_ms,
    correlations,
    crossing,
    eq_3_6_ms,
    errors,
    of_runs,
    window_shares,
)
from cwnd.study import Point, at, labels, registry
from cwnd.study.measures import measure
from cwnd.study.page import markdown

#: Panel, index of the colour, x and y.
Shown: TypeAlias = tuple[int, int, float, float]

#: Reference lines: panel, axis and place.
RULES: Mapping[str, Sequence[tuple[int, str, float]]] = {
    "fig2_5": [(1, "y", 20)],
    "fig3_3": [(0, "y", -0.25), (0, "y", 0.25)],
    "fig3_5": [(0, "x", 100e-3 * 10e6 / 8 / 1500)],
    "fig3_10": [(1, "x", 90), (1, "x", 130), (1, "y", 50)],
    "spread": [(0, "y", 0)],
    "fig4_4": [(0, "x", 60)],
    "fig4_9": [(0, "x", 200)],
    "fig5_3": [(0, "y", 200)],
    "fair": [(0, "x", 1)],
    "cheat": [(0, "x", 50)],
    "late": [(1, "y", 0.965)],
}


def _first(rows: pl.DataFrame, **of: object) -> pl.DataFrame:
    rows = rows.filter(pl.col("seed") == rows["seed"].min())
    for name, value in of.items():
        rows = rows.filter(pl.col(name).cast(pl.String) == str(value))
    return rows


def _over_time(rows: pl.DataFrame, what: pl.Expr, panel: int, index: int) -> Iterator[Shown]:
    for time, value in rows.select("time_s", what.alias("value")).drop_nulls().iter_rows():
        yield panel, index, time, value


_WINDOW, _RTT_MS = pl.col("snd_cwnd_pkts"), pl.col("rtt_seen_us") / 1e3


def _by_flows(run: Run, of: Point, what: str, panel: int, index: int) -> Iterator[Shown]:
    for flows in labels(run, "flows"):
        yield panel, index, int(flows), fmean(of_runs(run, {**of, "flows": flows})[what])


def _windows(run: Run, of: Point, panel: int) -> Iterator[Shown]:
    """Shares of windows of one to four packets, and of those of more."""
    shares = window_shares(run, of)
    for flows in labels(run, "flows"):
        rows = shares.filter(pl.col("flows") == flows)
        seeds = rows["seed"].n_unique()
        for index in range(5):
            window = pl.col("cwnd") == index + 1 if index < 4 else pl.col("cwnd") > 4
            found = rows.filter(window | ((pl.col("cwnd") < 1) & (index == 0)))
            yield panel, index, int(flows), found["share"].sum() / seeds


def _rows(
    columns: Sequence[Sequence[float]], panel: int, index: int, shift: float = 0.0
) -> Iterator[Shown]:
    for row, values in enumerate(columns):
        yield panel, index, fmean(values), -row - shift


def _errors(rows: pl.DataFrame, panel: int) -> Iterator[Shown]:
    for index, (_, mine) in enumerate(rows.group_by("flow_id", maintain_order=True)):
        yield from _over_time(mine, pl.col("error"), panel, index)


def fig2_5(run: Run) -> Iterator[Shown]:
    yield from _over_time(run.series, _WINDOW, 0, 0)
    queue = _first(run.link_series, link="bottleneck")
    yield from _over_time(queue, pl.col("sojourn_us") / 1e3, 1, 0)


def _correlation(one: Sequence[float], other: Sequence[float], shift: int) -> float:
    """Correlation of `one` with what `other` had `shift` samples before."""
    if shift < 0:
        return _correlation(other, one, -shift)
    return correlation(one[shift:], other[: len(other) - shift])


def fig3_3(run: Run) -> Iterator[Shown]:
    rows = _first(run.series).filter(pl.col("time_s") >= 20)
    first, *others = (_first(rows, flow_id=flow)["rtt_seen_us"].to_list() for flow in range(8))
    for flow, other in enumerate(others, 2):
        # 200 ms are ten samples.
        yield 0, 0, flow, max((_correlation(first, other, n) for n in range(-10, 11)), key=abs)
    for flow in range(2):
        mine = _first(rows, flow_id=flow)
        base = _first(run.flows, flow_id=flow)["rtt_base_us"][0] / 1e3
        yield from _over_time(mine, _RTT_MS - base, 1, flow)


def fig3_4(run: Run) -> Iterator[Shown]:
    rows = _first(run.series)
    yield from _over_time(rows.group_by("time_s").agg(_WINDOW.sum()), _WINDOW, 0, 0)
    for flow in range(2):
        yield from _over_time(_first(rows, flow_id=flow), _WINDOW, 1, flow)


def fig3_5(run: Run) -> Iterator[Shown]:
    for panel, rtt in enumerate(labels(run, "rtt")):
        yield from _by_flows(run, {"rtt": rtt}, "peak", panel, 0)
        yield from _by_flows(run, {"rtt": rtt}, "mean", panel, 1)


def filtered(run: Run) -> Iterator[Shown]:
    return fig3_5(run)


def fig3_6(run: Run) -> Iterator[Shown]:
    for panel, rtt in enumerate(labels(run, "rtt")):
        yield from _windows(run, {"rtt": rtt}, panel)
    # The number of the thesis.
    yield 0, 0, 130, 100


def fig3_7(run: Run) -> Iterator[Shown]:
    yield from _by_flows(run, {}, "peak", 0, 0)
    yield from _by_flows(run, {}, "mean", 0, 1)
    yield from _windows(run, {}, 1)
    yield 1, 0, 390, 100


def starts(run: Run) -> Iterator[Shown]:
    for panel, what in enumerate(("jain", "error", "mean")):
        names = labels(run, "start")
        yield from _rows([of_runs(run, {"start": n})[what].to_list() for n in names], panel, 0)


def spread(run: Run) -> Iterator[Shown]:
    for index, rtt in enumerate(labels(run, "rtt")):
        for _, _, flows, peak in _by_flows(run, {"rtt": rtt}, "peak", 0, index):
            yield 0, index, flows, peak - bound_ms(flows)


def fig3_8(run: Run, rtt: str = "100 ms") -> Iterator[Shown]:
    for index, scheme in enumerate(labels(run, "scheme")):
        of = {"rtt": rtt, "scheme": scheme}
        yield from _by_flows(run, of, "goodput", 0, index)
        yield from _by_flows(run, of, "jain", 1, index)
        rates = _first(at(run, run.flows, of | {"flows": "128"}))["goodput_bit_s"]
        for place, rate in enumerate(sorted(rates), 1):
            yield 2, index, place, rate / 1e3


def fig3_9(run: Run) -> Iterator[Shown]:
    return fig3_8(run, "20 to 200 ms")


def fig3_10(run: Run) -> Iterator[Shown]:
    stacks = labels(run, "stack")
    for index, what in enumerate(("peak", "mean")):
        yield from _by_flows(run, {"stack": stacks[0]}, what, 0, index)
    for index, stack in enumerate(stacks):
        for flows in labels(run, "flows"):
            queue = at(run, run.link_series, {"stack": stack, "flows": flows}, link="bottleneck")
            parts = queue.filter(pl.col("time_s") >= 5).partition_by("seed")
            yield 1, index, int(flows), fmean(min(part["sojourn_us"]) / 1e3 for part in parts)
        yield from _by_flows(run, {"stack": stack}, "goodput", 2, index)


def fig4_1(run: Run) -> Iterator[Shown]:
    for index, delta in enumerate(labels(run, "delta")):
        rows = _first(errors(run, {"delta": delta}))
        yield from _over_time(rows, pl.col("error"), 0, index)


def recursion(run: Run) -> Iterator[Shown]:
    for index, delta in enumerate(labels(run, "delta")):
        rows = _first(errors(run, {"delta": delta}))
        for backoff, (_, after) in enumerate(measures.steps_down(rows["error"].to_list()), 1):
            yield 0, index, backoff, after


def fig4_2(run: Run) -> Iterator[Shown]:
    rows = errors(run, {})
    wrong = rows.filter(pl.col("error") > 2).group_by("seed").agg(pl.col("time_s").max())
    seed = wrong.sort("time_s")["seed"][len(wrong) // 2]
    yield from _errors(rows.filter(pl.col("seed") == seed), 0)


def fig4_3(run: Run) -> Iterator[Shown]:
    for panel, path in enumerate(labels(run, "path")):
        yield from _errors(_first(errors(run, {"path": path})), panel)


def fig4_4(run: Run, counted: Run) -> Iterator[Shown]:
    for index, start in enumerate(labels(run, "start")):
        yield from _by_flows(run, {"start": start}, "error", 0, index)
    for panel, each in enumerate((run, counted), 1):
        yield from _windows(each, {"start": labels(run, "start")[0]}, panel)
        # The numbers of the thesis.
        yield from ((panel, 0, 60, 60), (panel, 1, 60, 35), (panel, 0, 100, 90))


def fig4_5(run: Run) -> Iterator[Shown]:
    for index, queue in enumerate(("50 ms", "100 ms")):
        for base in (20, 100, 200):
            window = at(run, run.series, {"queue": queue, "rtt": str(base)})
            kept = window.filter(pl.col("time_s") >= 20)["snd_cwnd_pkts"].sort()
            yield 0, index, base, kept[0] / kept[-1]
            yield 0, index, base, 0.8 * base / (base + float(queue.removesuffix(" ms")))


def fair(run: Run) -> Iterator[Shown]:
    for index, alpha in enumerate(labels(run, "increase")):
        points = [{"signal": signal, "increase": alpha} for signal in ("delay", "loss, RED")]
        ratios = [measures.window_ratio({"": run}, "", point) for point in points]
        yield from _rows(ratios, 0, index, 0.1 * index)


def with_web(run: Run) -> Iterator[Shown]:
    alone = errors(run, {"web": "none"}, "long").group_by("seed").agg(pl.col("error").mean())
    seed = alone.sort("error", "seed")["seed"][-1]
    for panel, web in enumerate(("none", labels(run, "web")[0])):
        rows = errors(run, {"web": web}, "long").filter(pl.col("seed") == seed)
        yield from _errors(rows, panel)


def fig4_9(run: Run) -> Iterator[Shown]:
    rows = _first(errors(run, {})).filter(pl.col("error") >= 2)
    yield from _over_time(rows, pl.col("error"), 0, 0)


def fig5_1(run: Run) -> Iterator[Shown]:
    for column, rtt in enumerate(("timestamps", "internal timing")):
        for index, group in enumerate(("cheat", "honest")):
            rows = at(run, run.series, {"cubic": "Linux 2.6.22", "rtt": rtt})
            mine = _first(rows, group=group).sort("time_s")
            yield from _over_time(mine, _WINDOW, column, index)
            # A second has ten samples.
            bits = 8e-6 * mine["delivered"].cast(pl.Int64).diff(10)
            yield from _over_time(mine.with_columns(bits=bits), pl.col("bits"), 2 + column, index)


def cheat(run: Run, undo: Run) -> Iterator[Shown]:
    for index, rtt in enumerate(labels(run, "rtt")):
        points = [{"rtt": rtt, "cubic": cubic} for cubic in labels(run, "cubic")]
        shares = [
            rtt_measures.share_of({"": each}, "", "cheat", point)
            for each in (run, undo)
            for point in points
        ]
        yield from _rows(shares, 0, index, 0.15 * index)


def fig5_2(run: Run, of: str = "newest, no lone ACKs") -> Iterator[Shown]:
    for index, group in enumerate(("far", "near")):
        rows = _first(at(run, run.series, {"seen": of}), group=group)
        yield from _over_time(rows, _RTT_MS, 0, index)
        yield from _over_time(rows, _WINDOW, 1, index)
        if of.startswith("newest"):
            yield from _over_time(rows, pl.col("srtt_us") / 1e3, 0, 2 + index)


def fig5_3(run: Run) -> Iterator[Shown]:
    return fig5_2(run, "oldest segment")


def fig5_4(run: Run) -> Iterator[Shown]:
    noise = (pl.col("qdelay_seen_us") - pl.col("qdelay_true_us")) / 1e3
    backoffs = pl.col("cwnd_reductions_delay") * 60 / pl.col("duration_s")
    for panel, what in enumerate((noise, backoffs, pl.col("goodput_bit_s") / 1e6)):
        for index, group in enumerate(("far", "near")):
            mine = run.flows.filter(pl.col("group").cast(pl.String) == group)
            parts = [at(run, mine, {"seen": name}) for name in labels(run, "seen")]
            yield from _rows([p.select(x=what)["x"].to_list() for p in parts], panel, index)


def fig5_5(run: Run) -> Iterator[Shown]:
    for panel in range(2):
        rows = _first(at(run, run.series, {"chunks": "a third of the window"}))
        yield from _over_time(rows, _RTT_MS, panel, 0)


def fig5_6(run: Run) -> Iterator[Shown]:
    for panel, chunks in enumerate(("none", "5 ms, a third")):
        yield from _over_time(_first(at(run, run.series, {"chunks": chunks})), _RTT_MS, panel, 0)


def fig5_7(run: Run) -> Iterator[Shown]:
    for index, kernel in enumerate(("Linux 2.6.18", "Linux 2.6.24")):
        rows = _first(at(run, run.series, {"kernel": kernel}))
        yield from _over_time(rows, _WINDOW, 0, index)
        queue = _first(at(run, run.link_series, {"kernel": kernel}), link="bottleneck")
        yield from _over_time(queue, pl.col("qlen_pkts"), 1, index)
        yield from _over_time(rows, _RTT_MS, 2, index)


def late(run: Run) -> Iterator[Shown]:
    error = (pl.col("min_rtt_us") - pl.col("rtt_base_us")) / 1e3 - 1.2416
    for index, scheme in enumerate(labels(run, "scheme")):
        rows = at(run, run.flows, {"scheme": scheme, "flows": "10"})
        for flow in range(10):
            mine = rows.filter(pl.col("flow_id") == flow)
            yield 0, index, flow + 1, fmean(mine.select(error)["min_rtt_us"])
            yield 1, index, flow + 1, fmean(mine["goodput_bit_s"]) / 1e6


#: Points of each figure.
POINTS: Mapping[str, Callable[..., Iterator[Shown]]] = {
    function.__name__: function
    for function in (
        *(fig2_5, fig3_3, fig3_4, fig3_5, fig3_6, fig3_7, fig3_8, fig3_9, fig3_10, filtered),
        *(starts, spread, fig4_1, recursion, fig4_2, fig4_3, fig4_4, fig4_5, fair, fig4_9, fig5_1),
        *(cheat, fig5_2, fig5_3, fig5_4, fig5_5, fig5_6, fig5_7, late),
    )
} | dict.fromkeys(("fig4_6", "fig4_7", "fig4_8"), with_web)


#: Tolerance between a number and its mark, in points: a pixel of thinned lines, and rounding.
NEAR_PT = 0.5

#: Each scenario, small enough for a test.
SMALL: Mapping[str, Mapping[str, object]] = {
    "fig2_5": {"run.duration": "60 s", "run.warmup": "30 s"},
    "fig3_3": {"run.duration": "60 s", "run.warmup": "20 s", "flow.main.count": 8},
    "fig3_5": {"sweep.axis.flows.values": [1, 120, 130, 140]},
    "filtered": {"sweep.axis.flows.values": [1, 60]},
    "fig3_7": {"sweep.axis.flows.values": [1, 350, 375, 400]},
    "fig3_8": {"sweep.axis.flows.values": [1, 128]},
    "fig3_10": {"sweep.axis.flows.values": [1, 60, 200]},
    "starts": {},
    "spread": {"sweep.axis.flows.values": [5, 10]},
    "fig4_1": {"run.duration": "70 s"},
    "fig4_2": {"run.duration": "30 s", "run.sample": "500 ms"},
    "fig4_3": {"run.duration": "30 s"},
    "fig4_4": {
        "run.duration": "60 s",
        "run.warmup": "45 s",
        "sweep.axis.flows.values": [1, 60, 120],
    },
    "fig4_4_counted": {
        "run.duration": "60 s",
        "run.warmup": "45 s",
        "sweep.axis.flows.values": [1, 60, 120],
    },
    "fig4_5": {"run.duration": "60 s", "run.warmup": "20 s"},
    "fair": {},
    "fig4_6": {"run.duration": "40 s"},
    "fig4_7": {"run.duration": "40 s"},
    "fig4_8": {"run.duration": "40 s"},
    "fig4_9": {"run.duration": "40 s", "flow.main.spacing": "100 ms"},
    "fig4_9_counted": {"run.duration": "40 s", "flow.main.spacing": "100 ms"},
    "fig5_1": {"run.duration": "30 s"},
    "fig5_1_undo": {"run.duration": "30 s"},
    "fig5_2": {"run.duration": "50 s"},
    "fig5_5": {"run.duration": "25 s"},
    "fig5_7": {"run.duration": "30 s"},
    "late": {"flow.main.spacing": "1 s"},
}


@pytest.fixture(scope="module")
def runs() -> dict[str, cwnd.Run]:
    paper = study.paper("dbaimd")
    common: dict[str, object] = {"run.duration": "20 s"}
    found = {}
    for figure, small in SMALL.items():
        scenario = paper.scenario(figure)
        several = "[sweep]" in scenario.read_text(encoding="utf-8")
        warmup = {"run.warmup": "5 s"} if "warmup" in scenario.read_text(encoding="utf-8") else {}
        repeat = {"sweep.repeat": 2} if several else {}
        ours = override_list({**common, **warmup, **repeat, **small})
        found[figure] = cwnd.run(scenario, set=[*paper.experiment(figure).set, *ours])
    return found


def _runs_of(runs: Mapping[str, cwnd.Run], name: str) -> list[cwnd.Run]:
    """Runs that a figure shows."""
    return [runs[each] for each in study.paper("dbaimd").figure(name).runs]


def test_every_scenario_of_the_paper_is_tried_here() -> None:
    paper = study.paper("dbaimd")
    figures = {figure for claim in paper.claims for figure in claim.figures}
    others = {name for claim in paper.claims for name in claim.experiments()}
    assert {paper.runs_of(name) for name in figures | others} == set(SMALL)
    assert figures == set(FIGURES)
    assert all(paper.figures[name].caption for name in figures)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_shows_the_numbers_of_its_runs(runs: dict[str, cwnd.Run], name: str) -> None:
    shown = _runs_of(runs, name)
    picture = FIGURES[name](*shown)
    assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == []
    assert all(panel.x_label or picture.x_label for panel in picture.panels)
    panels = svgs.read(picture)
    drawn = set()
    for place, index, x, y in POINTS[name](*shown):
        panel, colour = panels[place], line_style.colour(index)
        if not (panel.x.scale.contains(x) and panel.y.scale.contains(y)):
            continue
        drawn.add((place, index))
        at = panel.x.of(x), panel.y.of(y)
        markers = (math.dist(at, marker) for marker in panel.markers.get(colour, []))
        assert min(panel.distance(colour, at), *markers, math.inf) < NEAR_PT, (place, index, x, y)
    assert {place for place, _ in drawn} == set(range(len(panels)))
    for place, side, value in RULES.get(name, []):
        axis, other = (panels[place].x, 0) if side == "x" else (panels[place].y, 1)
        strokes = chain(*panels[place].strokes.values())
        both = [(a[other], b[other]) for a, b in strokes if a[1 - other] != b[1 - other]]
        assert pytest.approx((axis.of(value),) * 2, abs=NEAR_PT) in both


def test_every_check_has_a_value_for_each_seed(runs: dict[str, cwnd.Run]) -> None:
    paper = study.paper("dbaimd")
    own = registry.functions(paper, "MEASURES")
    results = {name: runs[paper.runs_of(name)] for name in [*FIGURES, *runs]}
    for claim in paper.claims:
        for check in claim.checks:
            arguments = {"figure": claim.figures[0], **check.arguments}
            for reading in check.readings:
                assert len(measure(reading.measure, own)(results, **reading.arguments)) == 2
            values = measure(check.measure, own)(results, **arguments)
            one = paper.runs_of(str(arguments["figure"])) in {"fig2_5", "fig4_5"}
            assert len(values) == (1 if one else 2), check.what


def test_the_bound_of_the_queue_is_a_packet_a_flow_above_the_threshold() -> None:
    assert bound_ms(0) == 50
    assert bound_ms(1) - bound_ms(0) == pytest.approx(1.2)
    assert bound_ms(100, 512) == pytest.approx(50 + 100 * 0.4096)


def test_where_a_curve_reaches_a_level_for_good_is_found_by_lines() -> None:
    assert crossing([10, 20, 30], [0.0, 50.0, 100.0], 75.0) == 25
    assert crossing([10, 20, 30], [80.0, 50.0, 100.0], 75.0) == 25, "for good"
    assert crossing([10, 20, 30], [80.0, 80.0, 80.0], 75.0) == 10
    assert crossing([10, 20, 30], [0.0, 0.0, 0.0], 75.0) == 30


def _measured(flow: int, values: Sequence[float], delay: int = 0) -> pl.DataFrame:
    """Samples of a flow, 20 ms apart, of which the first comes `delay` samples late."""
    times = [0.02 * (n + delay) for n in range(len(values))]
    rows = {"flow_id": [flow] * len(values), "time_s": times, "rtt_seen_us": list(values)}
    return pl.DataFrame(rows).with_columns(pl.col("time_s").round(6))


def test_delays_are_correlated_by_time_where_they_fit_best() -> None:
    one = [float((7 * i * i) % 31) for i in range(200)]
    rows = [_measured(0, one), _measured(1, [-x for x in one], 4), _measured(2, one, 4)]
    assert correlations(pl.concat(rows), 0.2) == pytest.approx([-1, 1])
    # Four samples are 80 ms: shifts of less, and none, do not find it.
    assert all(abs(r) < 0.5 for r in correlations(pl.concat(rows), 0.06))
    assert all(abs(r) < 0.5 for r in correlations(pl.concat(rows), 0.0))


def test_the_median_of_correlations_is_of_magnitudes(runs: dict[str, cwnd.Run]) -> None:
    rows = runs["fig3_3"].series.filter(pl.col("time_s") >= 20)
    found = measures.median_correlation(runs, "fig3_3", longest_s=0.2)
    for seed, value in zip((1, 2), found, strict=True):
        all_r = sorted(map(abs, correlations(rows.filter(pl.col("seed") == seed), 0.2)))
        assert value == all_r[3]


def test_eq_3_6_is_the_growth_of_a_whole_cycle() -> None:
    # From 0.8 · 100 ms to 150 ms of the link's rate, over 1 − 0.8.
    assert eq_3_6_ms(100) == pytest.approx(50 + 70 / 0.2)


def test_the_rise_begins_where_the_shortest_queue_exceeds_the_threshold(
    runs: dict[str, cwnd.Run],
) -> None:
    run = runs["fig3_10"]
    of = {"stack": "neither"}
    found = measures.always_queued(runs, "fig3_10", of)
    for seed, flows in zip((1, 2), found, strict=True):
        least = []
        for n in ("1", "60", "200"):
            queue = at(run, run.link_series, {**of, "flows": n}, link="bottleneck")
            queue = queue.filter((pl.col("seed") == seed) & (pl.col("time_s") >= 5))
            least.append(min(queue["sojourn_us"]) / 1e3)
        assert least[1] < 50 < least[2]
        assert flows == pytest.approx(60 + 140 * (50 - least[1]) / (least[2] - least[1]))


def test_excess_over_eq_3_6_is_of_the_largest_peak(runs: dict[str, cwnd.Run]) -> None:
    of = {"rtt": "100 ms"}
    run = runs["filtered"]
    peaks = [of_runs(run, {**of, "flows": n})["peak"] for n in ("1", "60")]
    expected = [max(both) - 400 for both in zip(*peaks, strict=True)]
    assert measures.beyond_eq_3_6(runs, "filtered", 100, of) == pytest.approx(expected)
    assert measures.most_dropped(runs, "filtered") == [0, 0]


def test_estimates_fall_from_one_backoff_to_the_next() -> None:
    values = [1.0, 50.0, 50.0, 45.0, 40.0, 40.0, 0.0, 0.0]
    assert measures.steps_down(values) == [(50.0, 40.0), (40.0, 0.0)]


def test_errors_are_without_the_time_that_a_packet_takes_to_leave(
    runs: dict[str, cwnd.Run],
) -> None:
    of = {"delta": "0.8"}
    run = runs["fig4_1"]
    flows = at(run, run.flows, of).sort("seed")
    expected = (flows["min_rtt_us"] - flows["rtt_base_us"]) / 1e3 - 1.2416
    assert measures.error_at_end(runs, "fig4_1", of) == pytest.approx(expected.to_list())
    assert all(abs(error) < 0.01 for error in expected)
    assert all(error > 40 for error in measures.error_at_first(runs, "fig4_1", of))


def test_shares_of_two_flows_are_of_what_both_carry(runs: dict[str, cwnd.Run]) -> None:
    of = {"cubic": "Linux 2.6.22", "rtt": "timestamps"}
    both = [rtt_measures.share_of(runs, "fig5_1", group, of) for group in ("cheat", "honest")]
    assert [a + b for a, b in zip(*both, strict=True)] == pytest.approx([100, 100])


def test_the_page_calls_figures_as_the_thesis_does() -> None:
    paper = study.paper("dbaimd")
    claims = paper.chosen(["D6"])
    outcomes = {c.id: tuple(k.judge([]) for k in c.checks) for c in claims}
    found = study.Result(paper, outcomes, quick=True, figures=(), directory=paper.folder)
    page = markdown(found, "images")
    assert "![Fig. 3.8](images/fig3_8.png)" in page
    assert "![Fig. 3.9](images/fig3_9.png)" in page
