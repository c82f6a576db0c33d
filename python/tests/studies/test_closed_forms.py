"""Closed forms: bounds that would catch a fault, and errors that vanish."""

from __future__ import annotations

import pytest
from conftest import ROOT

import cwnd
from cwnd.studies.questions.closed_forms.measures import COMPARISONS

FOLDER = ROOT / "python/cwnd/studies/questions/closed_forms"


@pytest.fixture(scope="module")
def points():
    runs = {"mathis": "mathis-periodic", "cubic": "cubic"}
    return {
        name: COMPARISONS[name].points([cwnd.run(FOLDER / f"{file}.toml")])
        for name, file in runs.items()
    }


def test_the_bound_of_each_model_would_catch_a_fault(points):
    # A window that grows by half a packet, as with every second ACK lost, is off by 1 − 1/√2.
    for found in points.values():
        rare = [p for p in found if p.judged and p.x <= 0.001]
        assert rare
        assert all(p.bound + (p.found.half_width or 0) / p.model < 0.29 for p in rare)
        assert all(p.holds for p in found)


def test_a_point_beyond_its_bound_is_named(points):
    run = cwnd.run(FOLDER / "mathis-periodic.toml", set={"flow.main.controller.beta": 0.7})
    caption, *broken = COMPARISONS["mathis"].caption(run)
    assert caption.startswith("*Lines: the model.")
    assert broken
    assert all(each.startswith("Beyond the bound: +") for each in broken)


def test_errors_of_the_square_root_vanish_with_the_loss(points):
    for name in ("periodic loss, ACK for every packet", "periodic loss, ACK for every second"):
        series = sorted((p for p in points["mathis"] if p.series == name), key=lambda p: p.x)
        errors = [abs(p.error) for p in series]
        assert errors == sorted(errors)
        assert errors[0] < 0.03


def test_cubic_settles_above_eq_5_without_fast_convergence_and_below_it_with(points):
    long_path = [p for p in points["cubic"] if p.x < 5e-4 and "100 ms" in p.series]
    assert {p.judged for p in long_path} == {True, False}
    for point in long_path:
        assert (point.error > 0) == point.judged, point
