"""Figures of programs that have no other test."""

from __future__ import annotations

import pytest
from conftest import ROOT


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
