"""Marks and texts of the figure that compares worlds."""

from __future__ import annotations

from pathlib import Path

import boxes
import pytest
import svgs

from cwnd.figures import Figure, line_style
from cwnd.results.stats import Estimate
from cwnd.study.agreement import Agreement, Row
from cwnd.study.agreement import figure as agreement


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
        assert boxes.complaints(*svgs.texts(Figure(drawn).svg())) == []
