"""Simulations within their bounds of the closed forms, and the page that shows them."""

from __future__ import annotations

import pytest
from conftest import ROOT

import closed_forms as script
from cwnd.results import interval_ends


@pytest.fixture(scope="module")
def results():
    return {comparison.name: comparison.run() for comparison in script.COMPARISONS}


@pytest.mark.parametrize("name", [comparison.name for comparison in script.COMPARISONS])
def test_every_point_lies_within_its_bound_of_the_model(results, name):
    points = results[name]
    broken = [
        f"{p.series} at {p.x:g}: {p.found.mean:.6g}, model {p.model:.6g}, {script.percent(p.error)}"
        for p in points
        if not p.holds
    ]
    assert not broken, broken
    assert sum(p.judged for p in points) >= 11


def test_the_bound_of_each_model_would_catch_a_fault(results):
    # A window that grows by half a packet, as with every second ACK lost, is off by 1 − 1/√2.
    for name in ("mathis", "padhye", "cubic"):
        rare = [p for p in results[name] if p.judged and p.x <= 0.001]
        assert rare
        assert all(p.bound + (p.found.half_width or 0) / p.model < 0.29 for p in rare)


def test_errors_of_the_square_root_vanish_with_the_loss(results):
    for name in ("periodic loss, ACK for every packet", "periodic loss, ACK for every second"):
        points = sorted((p for p in results["mathis"] if p.series == name), key=lambda p: p.x)
        errors = [abs(p.error) for p in points]
        assert errors == sorted(errors)
        assert errors[0] < 0.03


def test_cubic_settles_above_eq_5_without_fast_convergence_and_below_it_with(results):
    long_path = [p for p in results["cubic"] if p.x < 5e-4 and "100 ms" in p.series]
    assert {p.judged for p in long_path} == {True, False}
    for point in long_path:
        assert (point.error > 0) == point.judged, point


def test_the_page_is_what_the_simulations_give(results):
    found = script.page(results)
    assert "{{" not in found
    path = ROOT / "docs/closed-forms.md"
    assert path.read_text() == found, "docs/closed-forms.md is stale; run make docs"


def test_every_figure_shows_model_and_simulation(results):
    for comparison in script.COMPARISONS:
        points = results[comparison.name]
        (panel,) = script.draw(comparison, points).panels
        assert (panel.x_label, panel.y_label) == (comparison.xlabel, comparison.ylabel)
        series = list(dict.fromkeys(point.series for point in points))
        labels = [line.label for line in panel.lines if line.label]
        assert labels[:-1] == [*series, "model"]
        assert labels[-1].startswith("simulation")
        found = [line for line in panel.lines if line.interval]
        for line, name in zip(found, series, strict=True):
            own = sorted((p for p in points if p.series == name), key=lambda p: p.x)
            assert list(zip(line.x, line.y, strict=True)) == [(p.x, p.found.mean) for p in own]
            assert line.interval == interval_ends(p.found for p in own)
            models = [m for m in panel.lines if m.colour == line.colour and len(m.x) > script.STEPS]
            assert line.hollow == (not own[0].judged) == (not models)
            for model in models:
                for at in (0, -1):
                    there = (model.x[at], model.y[at])
                    assert there == pytest.approx((own[at].x, own[at].model))
        for kind in ("png", "svg"):
            assert (ROOT / "docs/images/closed-forms" / f"{comparison.name}.{kind}").exists()
