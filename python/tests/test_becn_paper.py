"""The BECN paper: its measures, figures, and the paper's numbers in them."""

from collections.abc import Mapping
from math import inf
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import svgs

import cwnd
from cwnd import study
from cwnd.figures import Figure, line_style
from cwnd.results import Estimate
from cwnd.running import override_list
from cwnd.studies.papers.becn.figures import FIGURES, stated
from cwnd.studies.papers.becn.measures import (
    above_max_th,
    apart,
    gains,
    lead_beyond,
    leads,
    less,
    numbers,
)
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
    "fig02_orders": {"sweep.axis.flows.values": [[4, 4]]},
    "fig09_orders": {"sweep.axis.flows.values": [10], "flow.web.start": "1 s"},
    "rest_always": {},
    "rest_always_web": {"flow.web.start": "1 s"},
}


@pytest.fixture(scope="module")
def runs() -> dict[str, cwnd.Run]:
    paper = study.paper("becn")
    common = {"run.duration": "20 s", "run.warmup": "5 s", "sweep.repeat": 2}
    found = {}
    for name, small in SMALL.items():
        experiment = paper.experiment(name)
        changes = [*experiment.set, *override_list({**common, **small})]
        found[name] = cwnd.run(paper.folder / experiment.scenario, set=changes)
    return found


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
            kept = [axis.labels[0] for axis in runs[figure].axes if axis.name == "flows"]
            for name in ("of", "over"):
                if "flows" in arguments.get(name, {}):
                    arguments[name] = {**arguments[name], "flows": kept[0]}
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


def hand_made(**tables: Any) -> Any:
    """Builds a run of hand-made tables, with an axis `scheme` and one of `flows`."""
    axes = [
        SimpleNamespace(name="scheme", column="scheme", labels=["plain", "ECN", "BECN"]),
        SimpleNamespace(name="flows", column="flows", labels=["10", "20"]),
    ]
    resolved = ["[flow.bulk]\nendpoint = { mss = '960 B', header = '40 B' }"]
    return SimpleNamespace(name="hand-made", axes=axes, resolved=resolved, **tables)


def goodputs(**by_scheme: list[float]) -> Any:
    """Builds a run with a flow of each goodput in Mbit/s: 10 flows, then 20, seed by seed."""
    rows = [
        {"scheme": scheme, "flows": n, "seed": seed, "goodput_bit_s": value * 1e6}
        for scheme, values in by_scheme.items()
        for (n, seed), value in zip(
            [("10", 1), ("10", 2), ("20", 1), ("20", 2)], values, strict=True
        )
    ]
    fixed = {"throughput_bit_s": 8e3, "duration_s": 1.0, "segments_sent": 1, "group": "tested"}
    return hand_made(flows=pl.DataFrame([{**row, **fixed} for row in rows]))


def test_web_loss_is_that_of_packets_that_are_not_of_bulk_flows() -> None:
    # Bulk flows send 100 packets, of which 90 arrive; the web's are 50 more, of which 5 are lost.
    flows = pl.DataFrame(
        {
            "group": ["bulk", "bulk", "web"],
            "scheme": ["ECN"] * 3,
            "seed": [1, 1, 1],
            "segments_sent": [40, 60, 50],
            "throughput_bit_s": [35 * 8e3, 55 * 8e3, 45 * 8e3],
            "duration_s": [1.0] * 3,
        }
    )
    links = pl.DataFrame(
        {
            "link": ["bottleneck", "back"],
            "scheme": ["ECN"] * 2,
            "seed": [1, 1],
            "arrived_pkts": [150, 70],
            "dropped_pkts": [15, 0],
        }
    )
    run = hand_made(flows=flows, links=links)
    assert numbers(run, "web_loss", {"scheme": "ECN"}) == pytest.approx([10.0])


def test_the_largest_difference_along_an_axis_has_either_sign() -> None:
    run = goodputs(plain=[1.0, 1.0, 1.0, 1.0], ECN=[1.0, 1.25, 2.0, 1.0], BECN=[1.0, 1.0, 1.0, 0.8])
    schemes = ["plain", "ECN", "BECN"]
    found = apart({"a": run}, "a", "goodput", {}, schemes=schemes, along="flows")
    # Seed 1: half of ECN's goodput; seed 2: a quarter more than BECN's.
    assert found == pytest.approx([50.0, 25.0])


def test_less_is_the_negative_excess() -> None:
    run = goodputs(ECN=[2.0, 4.0, 1.0, 1.0], BECN=[1.0, 5.0, 1.0, 1.0])
    of, over = ({"scheme": scheme, "flows": "10"} for scheme in ("BECN", "ECN"))
    assert less({"a": run}, "a", "goodput", of, over) == pytest.approx([50.0, -25.0])


def test_a_lead_beyond_another_is_their_difference(runs: dict[str, cwnd.Run]) -> None:
    of, over = ({"scheme": scheme, "flows": "8"} for scheme in ("ECN", "BECN"))
    high, low = leads(runs["fig02"], of), leads(runs["fig02"], over)
    found = lead_beyond(runs, "fig02", of, over)
    assert found == pytest.approx([high[0] - low[0], high[1] - low[1]])


def test_time_above_the_threshold_is_that_of_the_queue_or_of_its_average() -> None:
    queue, probability = [50_000, 45_000, 46_000, 10_000, 45_001], [1.0, 0.1, 0.05, 0.0, 0.2]
    series = pl.DataFrame(
        {
            "link": ["bottleneck"] * 5,
            "scheme": ["ECN"] * 5,
            "seed": [1] * 5,
            "time_s": [1.0, 2.0, 3.0, 4.0, 5.0],
            "qlen_bytes": queue,
            "aqm_prob": probability,
        }
    )
    run = hand_made(link_series=series, runs=pl.DataFrame({"warmup_s": [2.0]}))
    of = {"scheme": "ECN"}
    assert above_max_th({"a": run}, "a", "queue", of) == [50.0]
    assert above_max_th({"a": run}, "a", "average", of) == [25.0]


def test_circles_are_what_the_claims_state() -> None:
    of = {"delay": "40 ms", "scheme": "plain"}
    assert stated("loss", of) == [(45, 4.6)]
    assert stated("utilisation", of) == [(10, 97.44), (45, 99.7)]
    assert stated("lead", {"scheme": "ECN"}) == [(40, 31.5)]
    assert stated("lead", {"scheme": "ECN", "flows": "8"}) == []
    assert stated("loss", {"scheme": "BECN"}, "tested") == [(40, 0.07)]
    assert stated("time", {"scheme": "BECN"}) == []
    assert stated("time", {"scheme": "BECN"}, figure="fig09", over="ECN") == [(10, 8.1)]
    assert stated("time", {"scheme": "BECN"}, figure="fig17", over="ECN") == [(25, 6.4)]
    assert stated("web_loss", {"scheme": "ECN"}, figure="fig09") == [(35, 5.09)]
    of = {"delay": "250 ms", "scheme": "plain"}
    assert stated("goodput", of, figure="fig04", over="ECN") == [(45, 6.6)]


def test_crosses_are_recorded_runs_with_the_limited_transmit_of_the_run(
    runs: dict[str, cwnd.Run],
) -> None:
    (panel,) = svgs.read(FIGURES["fig14"](runs["fig04"]))
    recorded = pl.read_csv(study.paper("becn").folder / "ns2.csv")
    here = recorded.filter(
        (pl.col("scenario") == "becn-flows")
        & (pl.col("delay") == "250 ms")
        & (pl.col("scheme") == "plain")
        & (pl.col("flows") == 45)
    )
    (wanted,) = here["queue"]
    found = [panel.at(place) for place in panel.markers[line_style.colour(0)]]
    assert pytest.approx((45, wanted), rel=5e-3) in found
