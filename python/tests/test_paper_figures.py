"""Figures of papers and of comparisons of worlds, read back: marks, models and texts."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
import svgs
from svgs import read

import cwnd
from cwnd import study
from cwnd.figures import Figure, line_style
from cwnd.models import backoff_multipliers, utilisation
from cwnd.results import Estimate
from cwnd.studies.papers.abe.figures import FIGURES as ABE
from cwnd.studies.papers.abe.measures import estimated_delays
from cwnd.studies.papers.tcpstar.figures import FIGURES as TCPSTAR
from cwnd.studies.papers.tcpstar.responses import responses, timeouts_of
from cwnd.study.agreement import Agreement, Row
from cwnd.study.agreement import figure as agreement

if TYPE_CHECKING:
    from cwnd.figures import Picture


#: Tolerance between a mark and its value, in points.
NEAR_PT = 0.15


def drawn(paper: str, figure: str, **overrides: object) -> tuple[cwnd.Run, Picture]:
    """A figure of a reduced run; its texts lie apart."""
    scenario = study.paper(paper).scenario(figure)
    run = cwnd.run(scenario, set={name.replace("__", "."): v for name, v in overrides.items()})
    picture = {"abe": ABE, "tcpstar": TCPSTAR}[paper][figure](run)
    assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == []
    return run, picture


def test_utilisation_is_drawn_beside_its_model():
    run, picture = drawn("abe", "fig01", run__duration="10 s", run__warmup="2 s", sweep__repeat=2)
    (panel,) = read(picture)
    rate = run.links["rate_bit_s"].drop_nulls()[0] / 1e6
    betas = next(axis.labels for axis in run.axes if axis.name == "beta")
    for index, beta in enumerate(betas):
        colour = line_style.colour(index)
        rows = run.per_run().filter(beta=beta)
        for size in rows["buffer_BDP"].unique():
            values = [value * rate for value in rows.filter(buffer_BDP=size)["utilisation"]]
            estimate = Estimate.of(values)
            assert estimate is not None
            place = panel.x.of(size), panel.y.of(estimate.mean)
            assert place in Near(panel.markers[colour])
            at = panel.x.of(size), panel.y.of(utilisation(float(beta), size) * rate)
            assert panel.distance(colour, at) < NEAR_PT
    assert sum(map(len, panel.markers.values())) == run.per_run()["buffer_BDP"].n_unique() * len(
        betas
    )


def test_windows_are_drawn_with_the_bandwidth_delay_products():
    run, picture = drawn("abe", "fig03", run__duration="10 s")
    (panel,) = read(picture)
    series = run.series.filter(run.series["seed"] == run.series["seed"].min())
    for index, rtt in enumerate(next(axis.labels for axis in run.axes if axis.name == "rtt")):
        colour = line_style.colour(index)
        for time, window in series.filter(rtt=rtt).select("time_s", "snd_cwnd_pkts").iter_rows():
            place = panel.x.of(time), panel.y.of(window)
            assert panel.distance(colour, place) < 0.5
        # From one edge of the panel to the other.
        ((left, right),) = panel.strokes[colour]
        assert left[1] == right[1]
        assert right[0] - left[0] == pytest.approx(panel.x.length)


def test_distributions_of_delays_end_at_all_packets():
    run, picture = drawn("abe", "fig05", run__duration="2 s", sweep__repeat=1)
    delays = estimated_delays(run)
    for described, panel in zip(picture.panels, read(picture), strict=True):
        queue, rtt = described.title.split(", ")
        for index, beta in enumerate(a for x in run.axes if x.name == "beta_ecn" for a in x.labels):
            mine = delays.filter(queue=queue, rtt=rtt, beta_ecn=beta)
            assert mine.height
            whole = mine["packets"].sum()
            half = mine.filter(mine["delay_ms"] <= 5)["packets"].sum() / whole
            place = panel.x.of(5), panel.y.of(half)
            assert panel.distance(line_style.colour(index), place) < 0.5, described.title


def test_timeouts_are_drawn_at_their_rounds():
    run, picture = drawn("tcpstar", "fig01")
    (panel,) = read(picture)
    for index, n in enumerate(next(axis.labels for axis in run.axes if axis.name == "n")):
        multipliers = backoff_multipliers(float(n), 7)
        seen = timeouts_of(run, 7)
        for at, multiplier in enumerate(multipliers, 1):
            place = panel.x.of(at), panel.y.of(multiplier)
            assert panel.distance(line_style.colour(index), place) < NEAR_PT
            for packet in ("data", "SYN"):
                place = panel.x.of(at), panel.y.of(seen[packet, n][at - 1])
                assert place in Near(panel.markers[line_style.colour(index)])
    assert [text for _, text in picture.panels[0].y_ticks or []] == [
        str(2**power) for power in range(7)
    ]


def test_response_times_fall_to_none_through_the_end_of_the_axis():
    short = {"run__duration": "20 s", "flow__web__stop": "10 s", "sweep__repeat": 2}
    run, picture = drawn("tcpstar", "fig03", **short)
    (panel,) = read(picture)
    colours = [line_style.colour(index) for index in range(4)]
    assert [line.label for line in picture.panels[0].lines] == [
        f"{n}, {rate}" for rate in ("10 Mbit/s", "50 Mbit/s") for n in ("TCP", "TCP*(∞)")
    ]
    rows = responses(run, {"rate": "10 Mbit/s", "n": "TCP"})
    shares = [
        float((part["response_s"].fill_null(math.inf) > 1).mean() or 0.0)
        for _, part in rows.group_by("seed")
    ]
    place = panel.x.of(1.0), panel.y.of(fmean(shares))
    assert panel.distance(colours[0], place) < 0.5
    for colour in colours:
        lowest = max(y for path in panel.paths[colour] for _, y in path)
        assert lowest > panel.y.start, "no curve ends above the axis"
        assert panel.bands[colour]


class Near(list[svgs.Place]):
    """Places of marks; one that is near is the same."""

    def __contains__(self, place: object) -> bool:
        return any(other == pytest.approx(place, abs=NEAR_PT) for other in self)


def test_marks_and_intervals_are_at_their_values(tmp_path: Path):
    """Both worlds with intervals, on the diagonal of equal values or beside it."""
    values = {"a": (9e6, 0.2e6, 8.5e6, 0.1e6), "b": (5e6, 0.1e6, 5e6, 0.3e6)}
    rows = [
        Row(
            {"rtt": "10 ms", "arm": arm},
            "*",
            "goodput_bit_s",
            Estimate(3, x, None, x_width),
            Estimate(3, y, None, y_width),
            Estimate(3, y, None, y_width),
            tolerance=0.1,
        )
        for arm, (x, x_width, y, y_width) in values.items()
    ]
    picture = agreement.figure(Agreement("a", rows, [], {}, tmp_path))
    (panel,) = svgs.read(picture)
    for index, (x, x_width, y, y_width) in enumerate(values.values()):
        colour = line_style.colour(index)
        ((across, up),) = panel.markers[colour]
        assert panel.at((across, up)) == pytest.approx((x / 1e6, y / 1e6), rel=1e-3)
        ends = {(panel.at(a), panel.at(b)) for a, b in panel.strokes[colour]}
        upright = next(each for each in ends if each[0][0] == pytest.approx(each[1][0]))
        level = next(each for each in ends if each[0][1] == pytest.approx(each[1][1]))
        wanted = sorted(y / 1e6 + sign * y_width / 1e6 for sign in (-1, 1))
        assert sorted(at for _, at in upright) == pytest.approx(wanted, rel=1e-3)
        wanted = sorted(x / 1e6 + sign * x_width / 1e6 for sign in (-1, 1))
        assert sorted(at for at, _ in level) == pytest.approx(wanted, rel=1e-3)
    # Its corners lie beyond the panel: at nothing, and above the largest value.
    found = svgs.elements(Figure(picture).svg())
    (wedge,) = (svgs.paths(node.get("d", ""), at) for kind, node, at in found if kind == "area")
    corners = [panel.at(place) for place in wedge[0]]
    assert sorted({round(y / x, 2) for x, y in corners if x > 1}) == [0.9, 1.1]


def test_the_figure_can_be_read_however_long_labels_are(tmp_path: Path):
    rows = [
        Row(
            {"rtts": f"uniform(10 ms, {n} ms), uniform(20 ms, {n} ms)", "arm": f"arm {arm} $x" * 6},
            group,
            "goodput_bit_s",
            same,
            same,
            same,
            tolerance=0.1,
        )
        for n in range(40, 46)
        for same in [Estimate(1, 9e6 + 1e4 * n, None, None)]
        for arm in range(3)
        for group in ("*", "long flows of the left")[: 1 + (n < 42)]
    ]
    for shown in ([], rows[:1], rows):
        drawn = agreement.figure(Agreement("a", shown, [], {}, tmp_path))
        assert svgs.complaints(*svgs.texts(Figure(drawn).svg())) == []
