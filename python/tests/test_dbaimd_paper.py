"""The delay-based AIMD thesis: what its measures come to, and that each of its figures is drawn."""

import math
from collections.abc import Mapping
from itertools import chain

import boxes
import polars as pl
import pytest
import svgs
from dbaimd_points import POINTS, RULES

import cwnd
from cwnd import study
from cwnd.figures import Figure, line_style
from cwnd.studies.papers.dbaimd import measures, rtt_measures
from cwnd.studies.papers.dbaimd.figures import FIGURES
from cwnd.studies.papers.dbaimd.runs import aligned, bound_ms, crossing, samples
from cwnd.study import at, registry
from cwnd.study.measures import measure
from cwnd.study.page import markdown

#: Tolerance between a number and its mark, in points: a pixel of thinned lines, and rounding.
NEAR_PT = 0.5

#: Each scenario, small enough for a test.
SMALL: Mapping[str, Mapping[str, object]] = {
    "fig2_5": {"run.duration": "60 s", "run.warmup": "30 s"},
    "fig3_3": {"run.duration": "60 s", "run.warmup": "20 s", "flow.main.count": 8},
    "fig3_5": {"sweep.axis.flows.values": [1, 120, 130, 140]},
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
    "fig4_5": {"run.duration": "60 s", "run.warmup": "20 s"},
    "fair": {},
    "fig4_6": {"run.duration": "40 s"},
    "fig4_7": {"run.duration": "40 s"},
    "fig4_8": {"run.duration": "40 s"},
    "fig4_9": {"run.duration": "40 s", "flow.main.spacing": "100 ms"},
    "fig5_1": {"run.duration": "30 s"},
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
        found[figure] = cwnd.run(scenario, set={**common, **warmup, **repeat, **small})
    return found


def test_every_scenario_of_the_paper_is_tried_here() -> None:
    paper = study.paper("dbaimd")
    figures = {figure for claim in paper.claims for figure in claim.figures}
    assert {paper.runs_of(figure) for figure in figures} == set(SMALL)
    assert figures == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_shows_the_numbers_of_its_runs(runs: dict[str, cwnd.Run], name: str) -> None:
    run = runs[study.paper("dbaimd").runs_of(name)]
    picture = FIGURES[name](run)
    assert boxes.complaints(*svgs.texts(Figure(picture).svg())) == []
    assert all(panel.x_label or picture.x_label for panel in picture.panels)
    panels = svgs.read(picture)
    drawn = set()
    for place, index, x, y in POINTS[name](run):
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
    own, own_sides = (registry.functions(paper, kind) for kind in ("MEASURES", "SIDES"))
    results = {name: runs[paper.runs_of(name)] for name in FIGURES}
    for claim in paper.claims:
        for check in claim.checks:
            arguments = {"figure": claim.figures[0], **check.arguments}
            values = measure(check.measure, own, own_sides)(results, **arguments)
            one = paper.runs_of(str(arguments["figure"])) in {"fig2_5", "fig4_5"}
            assert len(values) == (1 if one else 2), check.what
            if check.kind == "order":
                sides = own_sides[check.measure]
                for above, below in sides(results, **arguments):
                    assert len(above) == len(below) == 2


def test_the_bound_of_the_queue_is_a_packet_a_flow_above_the_threshold() -> None:
    assert bound_ms(0) == 50
    assert bound_ms(1) - bound_ms(0) == pytest.approx(1.2)
    assert bound_ms(100, 512) == pytest.approx(50 + 100 * 0.4096)


def test_where_a_curve_reaches_a_level_for_good_is_found_by_lines() -> None:
    assert crossing([10, 20, 30], [0.0, 50.0, 100.0], 75.0) == 25
    assert crossing([10, 20, 30], [80.0, 50.0, 100.0], 75.0) == 25, "for good"
    assert crossing([10, 20, 30], [80.0, 80.0, 80.0], 75.0) == 10
    assert crossing([10, 20, 30], [0.0, 0.0, 0.0], 75.0) == 30


def test_samples_are_correlated_where_they_fit_best() -> None:
    one = [float((7 * i * i) % 31) for i in range(200)]
    assert aligned(one, one[3:]) == pytest.approx(1)
    assert aligned(one, [-x for x in one]) == pytest.approx(-1)
    rows = pl.DataFrame(
        {
            "flow_id": [0, 0, 0, 1],
            "time_s": [0.0, 1.0, 2.0, 0.0],
            "rtt_seen_us": [5.0, 5.0, 6.0, 7.0],
        }
    )
    assert samples(rows) == [[5.0, 6.0], [7.0]]


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
