"""The BECN paper: what its measures come to, and that each of its figures is drawn."""

from collections.abc import Mapping
from math import inf

import polars as pl
import pytest
import svgs

import cwnd
from cwnd import study
from cwnd.figures import Figure, line_style
from cwnd.results import Estimate
from cwnd.studies.papers.becn.figures import FIGURES, stated
from cwnd.studies.papers.becn.measures import gains, leads, numbers
from cwnd.study import registry
from cwnd.study.measures import measure

#: Each scenario, small enough for a test.
SMALL: Mapping[str, Mapping[str, object]] = {
    "fig02": {"sweep.axis.flows.values": [[4, 4]], "sweep.axis.flows.labels": ["8"]},
    "fig04": {"sweep.axis.flows.values": [15]},
    "fig08": {},
    "fig09": {"sweep.axis.flows.values": [10], "flow.web.start": "1 s"},
    "fig17": {"sweep.axis.flows.values": [25], "flow.web.start": "1 s"},
    "readings": {},
}


@pytest.fixture(scope="module")
def runs() -> dict[str, cwnd.Run]:
    paper = study.paper("becn")
    common = {"run.duration": "20 s", "run.warmup": "5 s", "sweep.repeat": 2}
    return {
        figure: cwnd.run(paper.scenario(figure), set={**common, **small})
        for figure, small in SMALL.items()
    }


def test_every_figure_is_drawn(runs: dict[str, cwnd.Run]) -> None:
    paper = study.paper("becn")
    for name, draw in FIGURES.items():
        picture = draw(runs[paper.runs_of(name)])
        assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == [], name
        for panel, drawn in zip(picture.panels, svgs.read(picture), strict=True):
            assert panel.x_label
            assert drawn.markers or drawn.paths, name


def test_marks_are_at_the_means_of_the_seeds(runs: dict[str, cwnd.Run]) -> None:
    picture = FIGURES["fig04"](runs["fig04"])
    (panel,) = svgs.read(picture)
    for index, scheme in enumerate(("plain", "ECN", "BECN")):
        of = {"scheme": scheme, "delay": "40 ms", "flows": "15"}
        estimate = Estimate.of(numbers(runs["fig04"], "goodput", of))
        assert estimate is not None
        assert estimate.half_width
        found = [panel.at(place) for place in panel.markers[line_style.colour(index)]]
        assert pytest.approx((15, estimate.mean), rel=2e-3) in found
        low, high = estimate.mean - estimate.half_width, estimate.mean + estimate.half_width
        ends = [
            (panel.y.number(lower), panel.y.number(upper))
            for _, lower, upper in panel.bars[line_style.colour(index)]
        ]
        assert pytest.approx((low, high), rel=5e-3) in ends


def test_readings_are_below_each_other_with_intervals_along_x(runs: dict[str, cwnd.Run]) -> None:
    run = runs["readings"]
    picture = FIGURES["readings"](run)
    names = next(axis.labels for axis in run.axes if axis.name == "reading")
    assert [name for _, name in sorted(picture.panels[0].y_ticks or [], reverse=True)] == names
    quenches = svgs.read(picture)[2]
    found = sorted(
        map(quenches.at, quenches.markers[line_style.colour(2)]), key=lambda each: -each[1]
    )
    means = [Estimate.of(numbers(run, "quenches", {"reading": r, "mix": "BECN"})) for r in names]
    wanted = [each.mean for each in means if each is not None]
    assert [x for x, _ in found] == pytest.approx(wanted, abs=0.05)
    # What the paper states is a line from the lower to the upper edge.
    ((_, value),) = stated("quenches", {"scheme": "BECN", "delay": "40 ms", "flows": "45"})
    upright = [(a, b) for a, b in quenches.strokes[line_style.colour(2)] if a[0] == b[0]]
    assert any(quenches.at(a)[0] == pytest.approx(value, rel=1e-2) for a, _ in upright)


def test_every_check_has_a_value_for_each_seed(runs: dict[str, cwnd.Run]) -> None:
    paper = study.paper("becn")
    own = registry.functions(paper, "MEASURES")
    for claim in paper.claims:
        for check in claim.checks:
            arguments = {"figure": claim.figures[0], **check.arguments}
            figure = paper.runs_of(str(arguments.pop("figure")))
            # Those numbers of flows that the small runs have.
            kept = runs[figure].axes[-1].labels[0]
            for name in ("of", "over"):
                if name in arguments:
                    arguments[name] = {**arguments[name], "flows": kept}
            values = measure(check.measure, own)(runs, figure=figure, **arguments)
            assert len(values) == 2


def test_the_lead_is_of_mean_goodput_over_the_plain_flows_beside(
    runs: dict[str, cwnd.Run],
) -> None:
    run = runs["fig02"]
    mine = run.flows.filter((pl.col("scheme") == "BECN") & (pl.col("seed") == 1))
    by_group = {
        str(group): part["goodput_bit_s"].to_list()
        for (group,), part in mine.group_by(pl.col("group").cast(pl.String))
    }
    assert [len(by_group[group]) for group in ("tested", "plain")] == [4, 4]
    expected = 100 * (sum(by_group["tested"]) / sum(by_group["plain"]) - 1)
    assert leads(run, {"scheme": "BECN", "flows": "8"})[0] == pytest.approx(expected)
    assert gains([3.0, 1.0], [2.0, 2.0]) == [50.0, -50.0]
    assert gains([0.0, 1.0], [0.0, 0.0]) == [0.0, inf]


def test_losses_of_flows_are_those_of_the_bottleneck(runs: dict[str, cwnd.Run]) -> None:
    of = {"delay": "40 ms", "scheme": "plain", "flows": "15"}
    by_link = numbers(runs["fig04"], "loss", of)
    by_flow = numbers(runs["fig04"], "loss", of, "main")
    # A packet may be sent before the warm-up is over and arrive after it.
    assert by_flow == pytest.approx(by_link, abs=0.3)
    assert all(loss > 0.1 for loss in by_link)


def test_quenches_are_a_share_of_themselves_and_the_acks(runs: dict[str, cwnd.Run]) -> None:
    run = runs["fig04"]
    of = {"delay": "40 ms", "scheme": "BECN", "flows": "15"}
    mine = run.links.filter(
        (pl.col("scheme") == "BECN") & (pl.col("delay") == "40 ms") & (pl.col("seed") == 1)
    )
    by_link = {str(row["link"]): row for row in mine.iter_rows(named=True)}
    told = by_link["bottleneck"]["quenches_total_pkts"]
    # They join the ACKs at the router: the link to the senders carries both.
    home = by_link["in.reverse"]["arrived_total_pkts"]
    assert numbers(run, "quenches", of)[0] == pytest.approx(100 * told / home, rel=0.02)
    assert numbers(run, "quenches", {**of, "scheme": "ECN"}) == [0.0, 0.0]


def test_an_object_is_timed_to_its_last_ack(runs: dict[str, cwnd.Run]) -> None:
    run = runs["fig09"]
    mine = run.requests.filter((pl.col("scheme") == "ECN") & (pl.col("seed") == 2))
    expected = mine["acked_s"].drop_nulls().mean()
    assert numbers(run, "time", {"scheme": "ECN", "flows": "10"})[1] == pytest.approx(expected)
    # A handshake, the request, the response and its ACK take more than two round trips.
    assert mine["acked_s"].min() > 2 * 0.088


def test_circles_are_what_the_claims_state() -> None:
    of = {"delay": "40 ms", "scheme": "plain"}
    assert stated("loss", of) == [(45, 4.6)]
    assert stated("utilisation", of) == [(10, 97.44), (45, 99.7)]
    assert stated("lead", {"scheme": "ECN"}) == [(40, 31.5)]
    assert stated("lead", {"scheme": "ECN", "flows": "8"}) == []
    assert stated("loss", {"scheme": "BECN"}, "tested") == [(40, 0.07)]
    assert stated("time", {"scheme": "BECN"}) == []
