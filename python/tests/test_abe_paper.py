"""Measures of the ABE paper on hand-made runs, and the paper's numbers in its figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import stdev
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest

import cwnd
from cwnd import study
from cwnd.figures import Line
from cwnd.studies.papers.abe import figures, measures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd import Run
    from cwnd.figures import Picture


@dataclass
class Axis:
    name: str
    labels: list[str]

    @property
    def column(self) -> str:
        return self.name


@dataclass
class Made:
    """A run of hand-made tables, each row with the labels of its run."""

    rows: Mapping[str, list[dict[str, Any]]]
    axes: list[Axis]
    name: str = "made"
    key_columns: tuple[str, ...] = ("seed",)
    axis_columns: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.axis_columns = [axis.name for axis in self.axes]
        self.key_columns = ("seed", *self.axis_columns)

    def __getattr__(self, table: str) -> pl.DataFrame:
        return pl.DataFrame(self.rows[table])

    def per_run(self) -> pl.DataFrame:
        return pl.DataFrame(self.rows["runs"])


def made(axes: Mapping[str, list[str]], **rows: list[dict[str, Any]]) -> dict[str, Run]:
    return {"f": cast("Run", Made(rows, [Axis(name, texts) for name, texts in axes.items()]))}


def run_ids(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds the id of a run, one for each seed and β_ecn."""
    return [{"run_id": f"{row['seed']}-{row['beta_ecn']}", **row} for row in rows]


BETAS = {"beta_ecn": ["0.5", "0.9"]}
#: Seed, β_ecn, median wait and median RTT of the sender, in µs.
WAITS = [(1, "0.5", 1000, 104000), (1, "0.9", 3000, 105000)]
WAITS += [(2, "0.5", 4000, 103000), (2, "0.9", 2000, 102000)]


@pytest.fixture
def delays() -> dict[str, Run]:
    keys = [{"seed": seed, "beta_ecn": beta} for seed, beta, *_ in WAITS]
    # 5 ms on the wire for a packet, 0.5 ms for its ACK: shares of 10 s over numbers of packets.
    links = [
        {**key, "link": link, "utilisation": used, "delivered_total_pkts": packets}
        for key in keys
        for link, used, packets in (("bottleneck", 0.5, 1000), ("reverse", 0.05, 1000))
    ]
    return made(
        BETAS,
        runs=run_ids(
            [{**key, "qdelay_p50_us": wait} for key, (*_, wait, _) in zip(keys, WAITS, strict=True)]
        ),
        links=run_ids(links),
        qdelay=run_ids([{**keys[0], "link": "bottleneck", "qdelay_us": 2000.0, "packets": 3}]),
        flows=run_ids(
            [
                {**key, "start_s": 1.0, "duration_s": 9.0, "rtt_p50_us": rtt, "rtt_base_us": 1e5}
                for key, (*_, rtt) in zip(keys, WAITS, strict=True)
            ]
        ),
    )


def test_a_delay_is_the_rtt_less_the_path_and_1_ms(delays: dict[str, Run]) -> None:
    rows = measures.estimated_delays(delays["f"])
    assert rows["delay_ms"].to_list() == pytest.approx([2 + 5.5 - 1])
    assert rows["packets"].to_list() == [3]
    found = measures.most_estimated(delays, "f", {}, "beta_ecn")
    assert found == pytest.approx([3 + 4.5, 4 + 4.5])
    found = measures.least_estimated(delays, "f", {}, "beta_ecn")
    assert found == pytest.approx([1 + 4.5, 2 + 4.5])


def test_the_sender_sees_its_own_rtt(delays: dict[str, Run]) -> None:
    assert measures.most_by_sender(delays, "f", {}, "beta_ecn") == pytest.approx([4, 2])
    assert measures.least_by_sender(delays, "f", {}, "beta_ecn") == pytest.approx([3, 1])


def test_an_early_gain_is_beyond_that_of_the_end() -> None:
    delivered = {"0.5": (100, 400), "0.9": (150, 500)}
    series = [
        {"seed": 1, "beta_ecn": beta, "time_s": time, "delivered": value}
        for beta, values in delivered.items()
        for time, value in zip((3.0, 9.0), values, strict=True)
    ]
    of, over = {"beta_ecn": "0.9"}, {"beta_ecn": "0.5"}
    runs = made(BETAS, series=series)
    assert measures.early_gain(runs, "f", of, over, 3.5) == pytest.approx([50 - 25])
    assert measures.early_gain(runs, "f", of, over, 9.0) == pytest.approx([0])


@pytest.fixture
def times() -> dict[str, Run]:
    """Times to fairness of two cases: 2 s with 0.5; 0.7 is faster in one, 0.9 in both."""
    rows = [
        {"seed": 1, "beta_ecn": beta, "case": case, "start_s": 0.0, "duration_s": time}
        for beta, both in (("0.5", (2, 2)), ("0.7", (1, 4)), ("0.9", (1.5, 1.8)))
        for case, time in zip("ab", both, strict=True)
    ]
    for row in rows:
        row["run_id"] = f"{row['beta_ecn']}-{row['case']}"
    axes = {"beta_ecn": ["0.5", "0.7", "0.9"], "case": ["a", "b"]}
    return made(axes, runs=rows, flows=rows)


def test_most_cases_are_faster_with_the_best_factor(times: dict[str, Run]) -> None:
    assert measures.most_faster(times, "f", {}, {"beta_ecn": "0.5"}, "beta_ecn") == [100]


def test_a_median_of_all_factors_leaves_the_default_out(times: dict[str, Run]) -> None:
    found = measures.median_of_all(times, "f", {}, {"beta_ecn": "0.5"}, "beta_ecn")
    assert found == pytest.approx([(0.75 + 0.9) / 2])
    found = measures.median_of_all(times, "f", {"case": "b"}, {"beta_ecn": "0.5"}, "beta_ecn")
    assert found == pytest.approx([(0.9 + 2) / 2])


def shares(ratios: Mapping[tuple[int, str], float]) -> Run:
    flows = [
        {"seed": seed, "beta_ecn": beta, "group": group, "goodput_bit_s": value}
        for (seed, beta), ratio in ratios.items()
        for group, value in (("ecn", ratio), ("plain", 1.0))
    ]
    return made({"beta_ecn": ["0.7", "0.9"]}, flows=run_ids(flows))["f"]


def test_ratios_are_compared_with_error_bars() -> None:
    codel = {(1, "0.7"): 1.0, (2, "0.7"): 2.0, (1, "0.9"): 3.0, (2, "0.9"): 6.0}
    pie = {key: value / 2 for key, value in codel.items()}
    runs = {"fig11": shares(codel), "fig12": shares(pie)}
    of, groups = {"beta_ecn": "0.9"}, {"group": "ecn", "to": "plain"}
    base: dict[str, Any] = {"from": {"beta_ecn": "0.7"}}
    bar = stdev([1, 2])
    found = measures.ratio_beyond_bar(runs, "fig11", of, **groups, **base)
    assert found == pytest.approx([3 - 1 - bar, 6 - 2 - bar])
    found = measures.all_ratios(runs, "fig11", "fig12", of, **groups)
    assert found == pytest.approx([(3 + 1.5) / 2, (6 + 3) / 2])
    bars = (bar + stdev([3, 6])) / 2
    found = measures.queue_gap_beyond_bar(runs, "fig11", "fig12", "beta_ecn", **groups)
    assert found == pytest.approx([2 - 1 - bars, 4 - 2 - bars])


def circles(picture: Picture) -> list[list[tuple[float, float]]]:
    """The paper's numbers in each panel."""
    return [
        [
            (x, cast("float", y))
            for mark in panel.marks
            if isinstance(mark, Line) and mark.hollow
            for x, y in zip(mark.x, mark.y, strict=True)
        ]
        for panel in picture.panels
    ]


def drawn(figure: str, **overrides: object) -> Picture:
    """Draws a figure of reduced runs."""
    paper = study.paper("abe")
    keys = {name.replace("__", "."): value for name, value in overrides.items()}
    runs = []
    for name in paper.figure(figure).runs:
        experiment = paper.experiment(name)
        kept = [text for text in experiment.set if text.split("=", 1)[0] not in keys]
        changed = [f"{key}={value}" for key, value in keys.items()]
        runs.append(cwnd.run(paper.folder / experiment.scenario, set=[*kept, *changed]))
    return figures.FIGURES[figure](*runs)


def test_figures_have_the_papers_gains() -> None:
    picture = drawn("fig06", run__duration='"3 s"', sweep__repeat=1)
    end = 2.0  # the last sample of 3 s
    assert circles(picture) == [[], [], [(end, 15), (end, 25)], [], [], [(end, 10), (end, 15)]]


def test_figures_have_the_papers_delays_over_ours() -> None:
    picture = drawn("fig05", run__duration='"3 s"', sweep__repeat=1)
    found = circles(picture)
    assert [len(points) for points in found] == [4, 0, 0, 4, 0, 0]
    for points, (after, before) in ((found[0], ((1, 2), (3, 2))), (found[3], ((15, 3), (20, 5)))):
        (a, b), (c, d) = ([x for x, _ in part] for part in (points[:2], points[2:]))
        assert [y for _, y in points] == [0.5, 0.9, 0.5, 0.9]
        assert (c - a, d - b) == pytest.approx((before[0] - after[0], before[1] - after[1]))
        # The first line is that of the factor to which the paper adds.
        line = cast("Line", picture.panels[0 if points is found[0] else 3].marks[0])
        below = [y for x, y in zip(line.x, line.y, strict=True) if x < a - after[0] - 1e-6]
        assert all(cast("float", y) < 0.5 for y in below)


def test_figures_of_ratios_have_the_papers_range() -> None:
    picture = drawn("fig11", run__duration='"35 s"', sweep__repeat=1)
    (points,) = circles(picture)
    assert sorted(points) == [(0.7, 1.25), (0.7, 2), (0.85, 1.25), (0.85, 2), (0.9, 2.5)]


def test_flows_are_drawn_with_a_factor_in_one_colour() -> None:
    picture = drawn(
        "flows",
        run__duration='"300 s"',
        sweep__repeat=1,
        sweep__axis__rtt__values='["20 ms"]',
    )
    assert [panel.title for panel in picture.panels] == [
        f"{name}, {queue}" for name in ("CUBIC", "NewReno") for queue in ("CoDel", "PIE")
    ]
    colours: dict[str, set[str]] = {}
    for panel in picture.panels:
        assert [text for _, text in panel.ticks or []] == ["2 flows", "4 flows", "10 flows"]
        for mark in panel.marks:
            if isinstance(mark, Line):
                assert len(mark.y) == 3
                colours.setdefault(str(mark.label), set()).add(mark.colour)
    assert {label: len(found) for label, found in colours.items()} == {
        "β_ecn = 0.7": 1,
        "β_ecn = 0.8": 1,
        "β_ecn = 0.9": 1,
    }
