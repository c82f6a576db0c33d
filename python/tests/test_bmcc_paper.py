"""The BMCC paper: what its measures come to, and that each of its figures is drawn."""

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import polars as pl
import pytest
import svgs

import cwnd
from cwnd import study
from cwnd.figures import Figure, line_style
from cwnd.models import bmcc as model
from cwnd.studies.papers.bmcc.dynamics import (
    Case,
    _answers,
    of_acks,
    of_flows,
    of_links,
    overload_detection,
    rounds,
)
from cwnd.studies.papers.bmcc.figures import FIGURES
from cwnd.studies.papers.bmcc.measures import MEASURES, values
from cwnd.study import at, labels, registry
from cwnd.study.claims import Check, Reading
from cwnd.study.measures import measure

SHORT = {"run.duration": "8 s", "run.warmup": "4 s"}


def axis(name: str, *values: object, names: tuple[str, ...] = ()) -> dict[str, object]:
    """An axis with these values only, which are called so."""
    kept: dict[str, object] = {f"sweep.axis.{name}.values": list(values)}
    return kept | ({f"sweep.axis.{name}.labels": list(names)} if names else {})


#: Each scenario, small enough for a test.
SMALL: Mapping[str, Mapping[str, object]] = {
    "fig01": {"run.duration": "12 s", "flow.second.start": "3 s"},
    "fig03": {"run.duration": "130 s"},
    "fig04": axis(
        "case",
        ["40 Mbit/s", 29, 0.875, 0.65, "60 s"],
        ["40 Mbit/s", 59, 0.875, 0.65, "50 s"],
        names=("1000 packets, 30 flows, 0.875 to 0.65", "1000 packets, 60 flows, 0.875 to 0.65"),
    ),
    "fig07": {"run.duration": "11 s", "dumbbell.rate": "100 Mbit/s", "run.sample": "50 ms"},
    "fig08": {
        "run.duration": "25 s",
        "run.warmup": "5 s",
        **axis(
            "bdp",
            "12.5 Mbit/s",
            "25 Mbit/s",
            names=("25", "50"),
        ),
    },
    "fig09": {
        "run.duration": "25 s",
        "run.warmup": "5 s",
        **axis("flows", ["50 Mbit/s", 10, "160 ms"], names=("10",)),
    },
    "fig10": SHORT | axis("rate", ["10 Mbit/s", "1 BDP", "1 BDP"], names=("10 Mbit/s",)),
    "fig11": SHORT
    | {"dumbbell.rate": "10 Mbit/s"}
    | axis("rtt", ["20 ms", "1 BDP", "1 BDP"], names=("20 ms",)),
    "fig12": SHORT
    | {"dumbbell.rate": "10 Mbit/s"}
    | axis("flows", [10, "1 BDP", "1 BDP"], names=("10",)),
    "fig13": SHORT | {"dumbbell.rate": "10 Mbit/s"} | axis("load", 0.5),
    **dict.fromkeys(
        ("fig14a", "fig14_beside"),
        SHORT | {"flow.web.stop": "6 s"} | axis("size", "pareto(1.4, 30 kB)", names=("30 kB",)),
    ),
    "fig14b": SHORT
    | {"dumbbell.rate": "10 Mbit/s", "flow.web.stop": "6 s"}
    | axis("size", "pareto(1.4, 30 kB)", names=("30 kB",)),
    "fig15": SHORT
    | {"dumbbell.rate": "10 Mbit/s"}
    | axis("delta", ["4 ms", "78 ms"], names=("1",)),
    "sack": SHORT
    | axis(
        "link",
        ["10 Mbit/s", "80 ms", "red", "red"],
        ["10 Mbit/s", "20 ms", "red", "red"],
        names=("10 Mbit/s, 80 ms", "155 Mbit/s, 20 ms"),
    ),
    "table1": {"run.duration": "5 s", "dumbbell.rate": "10 Mbit/s"},
}


@pytest.fixture(scope="module")
def runs() -> dict[str, cwnd.Run]:
    paper = study.paper("bmcc")
    return {
        figure: cwnd.run(paper.scenario(figure), set={"sweep.repeat": 2, **small})
        for figure, small in SMALL.items()
    }


def test_every_scenario_is_run_here() -> None:
    files = {file.stem for file in study.paper("bmcc").folder.glob("*.toml")}
    assert files - {"study"} == set(SMALL)


def test_every_figure_is_drawn(runs: dict[str, cwnd.Run]) -> None:
    paper = study.paper("bmcc")
    for name, draw in FIGURES.items():
        picture = draw(*(runs[experiment] for experiment in paper.figure(name).runs))
        assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == [], name
        assert all(panel.marks and panel.x_label for panel in picture.panels), name


def test_bars_are_as_long_as_their_values(runs: dict[str, cwnd.Run]) -> None:
    run = runs["table1"]
    picture = FIGURES["table1"](run)
    (panel,) = svgs.read(picture)
    names = [name for _, name in picture.panels[0].y_ticks or []]
    bars = {
        name: panel.at((right, (top + bottom) / 2))[0]
        for boxes_of in (panel.rectangles.get(line_style.colour(index), []) for index in (0, 5))
        for left, top, right, bottom in boxes_of
        if abs(panel.at((left, top))[0]) < 0.01 and bottom > panel.y.start + panel.y.length
        for name in [names[round(-panel.at((left, (top + bottom) / 2))[1])]]
    }
    assert len(bars) == len(names)
    for name, length in bars.items():
        scheme, _, pacing = name.partition(", ")
        mean = fmean(values(run, "told", {"scheme": scheme, "pacing": pacing}))
        assert length == pytest.approx(mean, rel=5e-3)
    # Groups of bars stand beside each other, the shortest at one.
    (panel,) = svgs.read(FIGURES["fig14a"](runs["fig14a"]))
    tops = [
        panel.at((left, top))[1]
        for found in panel.rectangles.values()
        for left, top, _, bottom in found
        if abs(panel.at((left, bottom))[1]) < 0.01
    ]
    assert len(tops) == len(labels(runs["fig14a"], "scheme"))
    assert min(tops) == pytest.approx(1.0, abs=0.01)


def kept(run: cwnd.Run, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a measure, with labels that the small run has in place of those it lacks."""

    def of(axis: str, label: str) -> str:
        there = labels(run, axis)
        return label if label in there else there[0]

    found = dict(arguments)
    for name in ("of", "over"):
        point = found.get(name, {})
        if isinstance(point, str):
            found[name] = of("case", point)
        elif set(point) <= {each.name for each in run.axes}:
            found[name] = {axis: of(axis, label) for axis, label in point.items()}
    if "along" in found and "among" in found:
        there = labels(run, found["along"])
        found["among"] = [each for each in found["among"] if each in there] or there[:1]
    return {name: value for name, value in found.items() if name in arguments}


def test_every_check_has_a_value_for_each_seed(runs: dict[str, cwnd.Run]) -> None:
    paper = study.paper("bmcc")
    own = registry.functions(paper, "MEASURES")
    for claim in paper.claims:
        every: list[Check | Reading] = [*claim.checks]
        every += [reading for check in claim.checks for reading in check.readings]
        for each in every:
            arguments = {"figure": claim.figures[0], **each.arguments}
            named = paper.runs_of(str(arguments.pop("figure")))
            figure = paper.experiment(named).scenario.removesuffix(".toml")
            arguments = kept(runs[figure], arguments)
            if "beside" in arguments:
                arguments["over"] = {"link": "10 Mbit/s, 80 ms"}
            # Of shorter runs, over slower links.
            for name, less in (("packets", 100), ("after_s", 5), ("last_s", 5), ("time_s", 5)):
                if name in arguments:
                    arguments[name] = less
            found = measure(each.measure, own)(runs, figure=figure, **arguments)
            assert len(found) == 2, each
            assert all(value is not None for value in found), each


def test_the_share_of_acks_with_the_estimate_is_what_their_bytes_say(
    runs: dict[str, cwnd.Run],
) -> None:
    run = runs["fig01"]
    of = {"pacing": "not paced"}
    back = at(run, run.links, of).filter(pl.col("link").cast(pl.String) == "reverse")
    row = back.row(0, named=True)
    # ACKs have 40 B, and 4 more with the estimate.
    sent = row["utilisation"] * row["rate_bit_s"] / 8 * 12
    told = 100 * (sent / row["delivered_pkts"] - 40) / 4
    assert of_acks(run, of)["told"][0] == pytest.approx(told, rel=0.02)


def test_the_index_and_the_queue_are_of_the_forward_flows_and_the_bdp(
    runs: dict[str, cwnd.Run],
) -> None:
    run = runs["fig12"]
    of = {"scheme": "SACK", "flows": "10"}
    rates = (
        at(run, run.flows, of)
        .filter((pl.col("group").cast(pl.String) == "there") & (pl.col("seed") == 1))[
            "goodput_bit_s"
        ]
        .to_list()
    )
    assert len(rates) == 10
    jain = sum(rates) ** 2 / 10 / sum(rate**2 for rate in rates)
    assert of_flows(run, of)["jain"][0] == pytest.approx(jain)
    link = at(run, run.links, of).filter(
        (pl.col("link").cast(pl.String) == "bottleneck") & (pl.col("seed") == 1)
    )
    # 10 Mbit/s and 80 ms: the BDP is 100 kB, more than two packets for each of 15 flows.
    for column in ("queue", "buffer_used"):
        assert of_links(run, of)[column][0] == pytest.approx(link["qlen_mean_bytes"][0] / 1e3)


def test_a_buffer_has_two_packets_for_each_flow_of_both_ways() -> None:
    scenario = {"run.duration": "8 s", "run.warmup": "4 s", "sweep.repeat": 1}
    rate = axis("rate", ["1 Mbit/s", "20 packets", "20 packets"], names=("1 Mbit/s",))
    run = cwnd.run(study.paper("bmcc").scenario("fig10"), set={**scenario, **rate})
    row = of_links(run, {"scheme": "XCP", "rate": "1 Mbit/s"}).row(0, named=True)
    # The BDP is 10 kB, and ten flows have a buffer of 20 packets.
    assert row["queue"] == pytest.approx(2 * row["buffer_used"])


def test_an_overload_is_unseen_after_d_packets_or_after_an_interval() -> None:
    # A packet each 10 ms; the estimate tells of the onset at 1 s from 1.25 s on, 20 packets later.
    times = [i / 100 for i in range(200)]
    part = pl.DataFrame(
        {
            "time_s": times,
            "load_factor_seen": [1.05 if time >= 1.255 else 0.9 for time in times],
            "delivered": [960 * i for i in range(200)],
        }
    )
    for most, unseen, packets in ((10, True, 10.0), (30, False, 21.0)):
        (found,) = _answers(part, [1.0], 0.05, most)
        assert (found.unseen, found.late, found.packets) == (unseen, True, packets)
    # Onsets after which the run ends are undecided.
    assert list(_answers(part, [1.9], 0.05, 30)) == []


def test_a_difference_of_rounds_is_of_one_seed(runs: dict[str, cwnd.Run]) -> None:
    few, many = labels(runs["fig04"], "case")
    more = measure("rounds_more", MEASURES)
    found = more(runs, "fig04", "d_e", of=few, over=many, lacking=0.2)
    each = [rounds(runs["fig04"], case, 0.2)["d_e"].to_list() for case in (few, many)]
    assert found == [a - b for a, b in zip(*each, strict=True)]
    # A late flow that never is so far ahead has no value.
    assert more(runs, "fig04", "r", of=few, over=many, lacking=-9.0) == []


def test_a_case_is_what_its_label_says() -> None:
    case = Case.of("5000 packets, 30 flows, 0.875 to 0.65")
    assert (case.packets, case.flows, case.varies) == (5000, 30, True)
    assert case.model("r", 0.2) == pytest.approx(case.model("m", 0.2) * case.model("d_e", 0.2))
    same = Case.of("1000 packets, 2 flows, 0.9")
    assert same.decrease == model.Decrease(0.9, 0.9)
    # Eq. 8 with one β.
    assert same.model("m", 0.2) == pytest.approx(math.log(5) / math.log(1 / 0.9))


def test_rounds_are_counted_in_windows(runs: dict[str, cwnd.Run]) -> None:
    label = labels(runs["fig04"], "case")[0]
    found = rounds(runs["fig04"], label, 0.2)
    # As many decreases as fit the time between them, but for those at its ends.
    for row in found.iter_rows(named=True):
        assert row["m"] == pytest.approx(row["r"] / row["d_e"], abs=2.5)
    # A late flow that never is so far ahead.
    assert rounds(runs["fig04"], label, -9.0)["r"].to_list() == [None, None]


def test_overload_is_noticed_the_sooner_the_more_packets_tell_of_it(
    runs: dict[str, cwnd.Run],
) -> None:
    found = overload_detection(runs["fig08"], {"bdp": "25", "pacing": "not paced"})
    assert (found["onsets"] > 3).all()
    assert found["unseen"].is_between(0.02, 0.5).all()
    # At most what arrives in t_p: a window of 25 packets goes out more than once in 200 ms.
    assert found["packets"].is_between(2, 35).all()
