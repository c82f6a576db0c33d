"""BMCC's analysis against numbers of its paper, random draws and numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cwnd.models import bmcc


def _beta(load: np.ndarray) -> np.ndarray:
    """Eq. 6, and β_min above u."""
    return np.maximum(0.875 - 0.225 * (load - 1) / 0.2, 0.65)


@pytest.mark.parametrize(("flows", "bdp"), [(2, 1000), (50, 1000), (120, 1000), (400, 1000)])
def test_decreases_at_the_end_of_an_epoch_are_those_of_lots(flows: int, bdp: int):
    load = 1 + 2 * flows / bdp * (np.arange(1_000_000) + 0.5) / 1_000_000
    betas = _beta(load)
    assert bmcc.mean_beta(flows, bdp) == pytest.approx(float(betas.mean()), rel=1e-5)
    epochs = math.log(5) / float(-np.log(betas).mean())
    assert bmcc.epochs_to_fairness(flows, bdp, 0.2) == pytest.approx(epochs, rel=1e-5)


def test_epochs_are_those_of_the_papers_formulas():
    # § IV-A: k·(1 - β_max)/(N·α) + Δβ/(α·(u - 1)) = 1000·0.125/2 + 0.225/0.2.
    assert bmcc.epoch_rtts(2, 1000) == pytest.approx(62.5 + 1.125)
    constant = bmcc.Decrease(0.875, 0.875)
    # Eq. 8 with one β: log 5/log(1/0.875) = 12.05.
    assert bmcc.epochs_to_fairness(2, 1000, 0.2, constant) == pytest.approx(12.053, abs=1e-3)
    both = bmcc.epochs_to_fairness(9, 5000, 0.2) * bmcc.epoch_rtts(9, 5000)
    assert bmcc.fairness_rtts(9, 5000, 0.2) == pytest.approx(both)


def test_fairness_comes_sooner_with_more_flows_and_later_with_longer_paths():
    by_flows = [bmcc.epochs_to_fairness(n, 1000, 0.2) for n in (2, 30, 60, 120)]
    assert by_flows == sorted(by_flows, reverse=True)
    assert bmcc.fairness_rtts(2, 10_000, 0.2) > 9 * bmcc.fairness_rtts(2, 1000, 0.2)


@pytest.mark.parametrize("bdp_a_flow", [50, 100, 1000])
def test_lemma_1_a_round_trip_after_overload_four_flows_of_five_know(bdp_a_flow: int):
    growth = bmcc.overload_growth(10, 10 * bdp_a_flow)
    assert bmcc.overload_unseen(bdp_a_flow + 1, growth) <= 0.2


def test_what_a_flow_sees_of_overload_is_what_lots_give():
    rng = np.random.default_rng(5)
    growth, packets = bmcc.overload_growth(10, 1000), 60
    load = 1 + growth * rng.random(40_000)
    # Half of the thresholds lie in (1, 1.2).
    seen = rng.random((40_000, packets)) < (0.5 * (load - 1) / 0.2)[:, None]
    first = np.where(seen.any(axis=1), seen.argmax(axis=1) + 1, packets + 1)
    for d in (0, 1, 10, packets):
        assert bmcc.overload_unseen(d, growth) == pytest.approx((first > d).mean(), abs=0.01)
    mean = np.minimum(first, packets).mean()
    assert bmcc.packets_to_overload(packets, growth) == pytest.approx(mean, rel=0.02)


def test_packets_to_overload_grow_as_the_window_does():
    means = [
        bmcc.packets_to_overload(bdp, bmcc.overload_growth(10, 10 * bdp)) for bdp in (100, 1000)
    ]
    assert means[1] / means[0] == pytest.approx(10, rel=0.03)


def test_a_start_on_an_idle_link_is_what_its_equation_integrates_to():
    # 2 Gbit/s, 200 ms, 1000 B: 50,000 packets.
    bdp, window, step = 50_000.0, 1.0, 1e-4
    at = 0.0
    for until in (8.0, 10.0, 12.0):
        while at < until:
            load = window / bdp
            if load < 0.15:
                window *= (1 + 0.35 * 0.85 / 0.15) ** step
            elif load < 0.75:
                window += step * 0.35 * (bdp - window)
            else:
                window += step
            at += step
        assert bmcc.start_up_window(until, bdp) == pytest.approx(window, rel=2e-3)
    # Who stays in multiplicative increase comes close to all of it.
    assert 0.99 * bdp < bmcc.start_up_window(6.5 / 0.2, bdp, eta=1) < bdp


def test_vcp_starts_slowly():
    # Fig. 7 has about 475 packets after 10 s: 1.0625^50 is 20.7.
    assert bmcc.vcp_start_up_window(50, 50_000) == pytest.approx(20.7, abs=0.1)
    assert bmcc.vcp_start_up_window(1000, 100) == pytest.approx(80 + 1000 - 72.28, abs=0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bmcc.overload_growth(0, 100),
        lambda: bmcc.Decrease(0.5, 0.6),
        lambda: bmcc.epochs_to_fairness(2, 100, 1.0),
        lambda: bmcc.epoch_rtts(2, 100, alpha=0),
        lambda: bmcc.overload_unseen(5, 1.0),
        lambda: bmcc.start_up_window(1, 5),
        lambda: bmcc.vcp_start_up_window(1, 5, growth=1),
    ],
)
def test_numbers_without_meaning_are_refused(call):
    with pytest.raises(ValueError, match=r"\d"):
        call()
