"""Figures of programs that have no other test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import ROOT

from cwnd.figures import line_style

if TYPE_CHECKING:
    pass

import tcpstar_page


def test_growth_is_drawn_by_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import growth

    points = [growth.Point(1, 1000, 130.0, 10**6), growth.Point(100, 1000, 125.0, 10**7)]
    (panel,) = growth.draw({"flows": points, "hops": points[:1]}).panels
    assert [(line.label, line.x, line.y) for line in panel.lines] == [
        ("flows", [1, 100], [130.0, 125.0]),
        ("hops", [1], [130.0]),
    ]
    assert panel.x_log
    assert panel.y_log


def test_answers_of_real_servers_are_drawn_beside_those_of_the_simulator():
    *traces, bursts = tcpstar_page.picture().panels
    curves = pl.read_csv(tcpstar_page.FOLDER / "curves.csv")
    stars = list(tcpstar_page.STARS)
    for panel, case in zip(traces, tcpstar_page.traces(), strict=True):
        assert len(panel.lines) == 2 * len(stars)
        for line in panel.lines:
            n = tcpstar_page.STARS[stars[line_style.COLOURS.index(line.colour)]]
            world = "simulator" if line.dashes else "Linux"
            of = curves.filter(pl.col("s").is_finite(), case=case.name, n=n, world=world)
            assert (line.x, line.y) == (of["s"].to_list(), of["share"].to_list())
            assert len(line.x) > 10
    keys = {line.label: line for line in bursts.lines if line.label}
    assert list(keys) == list(tcpstar_page.RATIOS)
    runs = pl.read_csv(tcpstar_page.FOLDER / "runs.csv")
    for line in bursts.lines:
        (world,) = (name for name, key in keys.items() if key.dashes == line.dashes)
        for case, value in zip(tcpstar_page.bursts(), line.y, strict=bool(line.x)):
            n = tcpstar_page.STARS[stars[line_style.COLOURS.index(line.colour)]]
            of = runs.filter(claim="T5", n=n, world=world, case=case.name)
            assert value == of["p99_s"].mean()
