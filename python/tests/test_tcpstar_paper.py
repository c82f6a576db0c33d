"""The TCP*(n) paper: what its measures come to, and that each of its figures is drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import svgs

import cwnd
from cwnd import study
from cwnd.figures import Figure
from cwnd.studies.papers.tcpstar import inference
from cwnd.studies.papers.tcpstar.figures import FIGURES
from cwnd.studies.papers.tcpstar.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def arriving(*groups: str) -> dict[str, object]:
    """Overrides of a scenario whose groups arrive: short runs."""
    return {"run.duration": "20 s", **{f"flow.{group}.stop": "4 s" for group in groups}}


#: Each scenario, small enough for a test.
SMALL: Mapping[str, Mapping[str, object]] = {
    "fig01": {},
    "syn": {
        "run.duration": "40 s",
        "sweep.axis.p.values": ["20 Mbit/s"],
        "sweep.axis.p.labels": ["0.5"],
    },
    **dict.fromkeys(("fig02", "fig04", "fig05", "fig06a"), arriving("web")),
    "fig03": {**arriving("web"), "flow.web.stop": "2 s"},
    "fig06b": arriving("web", "crowd"),
    "fig08": {"run.duration": "5 s"},
    "fig09": arriving("both", "first", "second"),
    "fig11a": {"run.duration": "10 s", "flow.http.stop": "4 s"},
    **dict.fromkeys(("fig12", "steps"), arriving("old", "new")),
    "theorem": {"run.duration": "60 s", "run.warmup": "20 s"},
    "inference": {
        "sweep.axis.queue.values": [{"kind": "fifo", "limit": "10 packets"}],
        "sweep.axis.queue.labels": ["FIFO"],
    },
}


@pytest.fixture(scope="module")
def runs() -> dict[str, cwnd.Run]:
    paper = study.paper("tcpstar")
    found = {
        name: cwnd.run(paper.scenario(name), set={"sweep.repeat": 1, **small})
        for name, small in SMALL.items()
    }
    whole = paper.experiment("theorem_whole")
    short = ["run.duration=60 s", "run.warmup=20 s", "sweep.repeat=1"]
    found["theorem_whole"] = cwnd.run(paper.scenario("theorem"), set=[*whole.set, *short])
    # The other graph has more flows and the same groups.
    return {**found, "fig11b": found["fig11a"]}


def test_every_figure_is_drawn(runs: dict[str, cwnd.Run]) -> None:
    paper = study.paper("tcpstar")
    for name, draw in FIGURES.items():
        inputs = (each.rpartition("_")[0] or each for each in paper.figure(name).runs)
        whole = name == "theorem"
        asked = paper.figure(name).runs if whole else inputs
        picture = draw(*(runs[each] for each in asked))
        assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == [], name
        for panel, drawn in zip(picture.panels, svgs.read(picture), strict=True):
            assert panel.x_label
            assert drawn.markers or drawn.paths, name


def test_loads_are_drawn_in_their_order(runs: dict[str, cwnd.Run]) -> None:
    for name, panel in (("steps", -1), ("loads", 0)):
        inputs = study.paper("tcpstar").figure(name).runs
        picture = FIGURES[name](*(runs[each.rpartition("_")[0] or each] for each in inputs))
        marked = [line.x for line in picture.panels[panel].lines if line.marker and not line.hollow]
        assert marked
        assert all(x == [1.0, 1.1, 1.25, 1.5] for x in marked)


def result(axes: Mapping[str, list[str]], **tables: pl.DataFrame) -> Any:
    """A result with these axes and tables, as far as measures read it."""
    found = [SimpleNamespace(name=name, column=name, labels=each) for name, each in axes.items()]
    runs = pl.DataFrame({"run_id": ["0", "1"], "duration_s": [100.0, 100.0]})
    return SimpleNamespace(
        name="made up",
        axes=found,
        axis_columns=list(axes),
        samples={name: table.lazy() for name, table in tables.items()},
        **{"runs": runs, **tables},
    )


def answered(times: Mapping[tuple[str, str], tuple[list[float | None], ...]]) -> Any:
    """A result with response times, by label of `n` and of `trace`; a list for each seed."""
    rows = [
        {
            "run_id": str(seed),
            "seed": seed,
            "n": n,
            "trace": trace,
            "group": "web",
            "start_s": 40.0,
            "response_s": time,
        }
        for (n, trace), seeds in times.items()
        for seed, each in enumerate(seeds)
        for time in each
    ]
    axes = {"n": ["TCP", "TCP*(∞)"], "trace": sorted({trace for _, trace in times})}
    return result(axes, requests=pl.DataFrame(rows))


#: Backoff doubles all times in the first seed; in the second one it only shortens the middle.
TIMES = answered(
    {
        ("TCP", "I"): ([2.0, 4.0, 6.0], [1.0, 4.0, 8.0]),
        ("TCP*(∞)", "I"): ([1.0, 2.0, 3.0], [1.0, 6.0, 8.0]),
        ("TCP", "II"): ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]),
        ("TCP*(∞)", "II"): ([2.0, 2.0, 2.0], [1.2, 1.2, 1.2]),
    }
)
BOTH: dict[str, Any] = {
    "of": {"trace": "I", "n": "TCP*(∞)"},
    "over": {"trace": "I", "n": "TCP"},
}
ANY: dict[str, Any] = {"of": {"n": "TCP*(∞)"}, "over": {"n": "TCP"}}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("response_ratio", {"what": "mean", **BOTH}, [0.5, 15 / 13]),
        ("response_ratio", {"what": "p50", **BOTH}, [0.5, 1.5]),
        ("response_ratio", {"what": "max", **BOTH}, [0.5, 1.0]),
        ("response_gain", {"what": "mean", **BOTH}, [50.0, -200 / 13]),
        ("response_growth", {"what": "mean", **BOTH}, [-50.0, 200 / 13]),
        # The median: the mean of 0.5 and 1.5 is above that of the ends, 0.5 and 1.
        ("worst_quantile", BOTH, [0.5, 1.5]),
        # With both traces: the second one has no faster median in the mean.
        ("worst_quantile", {"along": "trace", **ANY}, [0.5, 1.5]),
        ("least_gain", {"what": "mean", "along": "trace", **ANY}, [50.0, -200 / 13]),
        ("least_gain", {"what": "max", "along": "trace", **ANY}, [0.0, 40.0]),
        ("tail_beyond_mean", BOTH, [0.0, 7.96 / 7.92 - 15 / 13]),
        ("answered_gain", {"within_s": 5, "group": "web", **BOTH}, [100 / 3, -100 / 3]),
    ],
)
def test_response_times_are_compared_seed_by_seed(
    name: str, arguments: dict[str, Any], expected: list[float]
) -> None:
    found = MEASURES[name]({"made up": TIMES}, "made up", **arguments)
    assert found == pytest.approx(expected, rel=2e-3)


def test_a_stack_is_compared_with_the_best_other_one() -> None:
    times = answered({("TCP", trace): ([x], [x]) for trace, x in (("a", 4.0), ("b", 5.0))})
    gains = MEASURES["gain_over_others"](
        {"": times}, "", "mean", of={"trace": "a", "n": "TCP"}, along="trace"
    )
    assert gains == pytest.approx([20.0, 20.0])


def test_a_request_without_an_answer_counts_until_the_end_of_the_run() -> None:
    times = answered({("TCP", "I"): ([None], [6.0]), ("TCP*(∞)", "I"): ([30.0], [3.0])})
    assert MEASURES["response_ratio"]({"": times}, "", "max", **BOTH) == [0.5, 0.5]


def test_dead_packets_are_a_share_of_those_that_arrive_upstream() -> None:
    links = pl.DataFrame(
        {
            "seed": [1, 1, 2],
            "drops": ["a", "b", "a"],
            "link": ["first", "first", "first"],
            "dead_pkts": [5, 50, 7],
            "arrived_pkts": [1000, 1000, 1000],
        }
    )
    found = MEASURES["dead_share_of_first"](
        {"": result({"drops": ["a", "b"]}, links=links)}, "", of={"drops": "a"}
    )
    assert found == [0.005, 0.007]


def test_users_who_all_wait_k_rounds_take_longer_than_eq_3() -> None:
    """With 150 users r is 30 s; all of 20 packets of 1198 B in 40 s are a third more."""
    goodput = [20 * 1198 * 8 / 40.0] * 150 + [20 * 1198 * 8 / 44.0] * 200
    flows = pl.DataFrame(
        {"seed": [1] * 350, "flows": ["150"] * 150 + ["200"] * 200, "goodput_bit_s": goodput}
    )
    links = pl.DataFrame({"link": ["bottleneck"], "rate_bit_s": [1e6]})
    run = result({"flows": ["150", "200"]}, flows=flows, links=links)
    assert MEASURES["whole_backoff"]({"": run}, "", users=150) == pytest.approx([100 / 3])
    assert MEASURES["whole_backoff"]({"": run}, "", users=200) == pytest.approx([10.0])
    assert MEASURES["whole_backoff"]({"": run}, "") == pytest.approx([100 / 3])


#: Silences and expiries of two connections.
SILENCES = pl.DataFrame(
    {
        "run_id": ["0"] * 4,
        "seed": [1] * 4,
        "queue": ["FIFO"] * 4,
        "server_port": [1, 1, 1, 2],
        "began_s": [1.0, 5.0, 9.0, 1.0],
        "ended_s": [4.0, 6.0, 9.5, 2.0],
        # The third ends with a hole that is filled, and is no gap.
        "rule": [1, 1, 0, 1],
        "timeouts": [1, 0, 1, 1],
    }
)
EXPIRIES = pl.DataFrame(
    {
        "run_id": ["0"] * 5,
        "seed": [1] * 5,
        "queue": ["FIFO"] * 5,
        # Two in the first silence, one in the third; of two others no silence was found.
        "server_port": [1, 1, 1, 2, 2],
        "expired_s": [2.0, 3.5, 9.2, 0.5, 7.0],
    }
)


def test_a_timer_counts_in_the_silence_in_which_it_expired() -> None:
    rows = inference.matched(SILENCES, EXPIRIES).sort("server_port", "ended_s")
    assert rows["expired"].to_list() == [2, None, 1, None]


@pytest.mark.parametrize(
    ("by", "recall", "precision"),
    [
        # Two of five expiries are in gaps; of three gaps one has a timeout.
        ("rule", 2 / 5, 1 / 3),
        # Of the first silence one of two is found, of the third the one; the last one is false.
        ("evidence", 2 / 5, 2 / 3),
    ],
)
def test_a_false_timeout_does_not_offset_a_missed_one(
    monkeypatch: pytest.MonkeyPatch, by: str, recall: float, precision: float
) -> None:
    found = {"silences": SILENCES, "expiries": EXPIRIES}
    monkeypatch.setattr(inference, "_found", lambda _: found)
    run = {"": result({"queue": ["FIFO"]})}
    of = {"queue": "FIFO"}
    assert MEASURES["recall"](run, "", of, by=by) == pytest.approx([recall])
    assert MEASURES["precision"](run, "", of, by=by) == pytest.approx([precision])


def test_connections_are_right_if_they_say_what_their_servers_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connections = pl.DataFrame(
        {
            "seed": [1] * 4,
            "queue": ["FIFO"] * 4,
            "rto_nth_2": [1, 0, 2, 0],
            "rule_consecutive": [2, 2, 3, 1],
            "consecutive": [2, 1, 1, 1],
            "backoff": ["doubled", "none", "constant", "unclear"],
        }
    )
    monkeypatch.setattr(inference, "_found", lambda _: {"connections": connections})
    run, of = {"": result({"queue": ["FIFO"]})}, {"queue": "FIFO"}
    consecutive: Callable[..., list[float]] = MEASURES["consecutive"]
    assert consecutive(run, "", of) == [0.75]
    assert consecutive(run, "", of, by="evidence") == [0.75]
    assert MEASURES["growth"](run, "", of, stated=["doubled"]) == [0.5]
    assert MEASURES["growth"](run, "", of, stated=["doubled", "constant"]) == [1.0]


def test_all_expiries_of_timers_show_in_the_samples(runs: dict[str, cwnd.Run]) -> None:
    run = runs["inference"]
    found = inference._found(run)["expiries"]
    assert found.height == run.flows["rto_count"].sum() > 100
