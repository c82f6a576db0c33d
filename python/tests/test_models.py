"""Closed forms against values worked out by hand, numbers of papers, draws and integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd import models
from cwnd.models import bmcc


def test_mathis_gives_122_packets_a_round_trip_at_one_loss_in_ten_thousand():
    assert models.mathis_window(1e-4) == pytest.approx(122.474, abs=1e-3)
    assert models.mathis_window(1e-4, models.MATHIS_RANDOM) == pytest.approx(131.0)
    # 1460 B every 100 ms, times √150 ≈ 12.247.
    assert models.mathis_rate(0.01, 0.1, 1460) == pytest.approx(14_600 * 12.24745, rel=1e-6)


def test_padhye_at_one_percent_step_by_step():
    # k = 1; E[W] = 1 + √(8·0.99/0.03 + 1) = 1 + √265 = 17.27882.
    window = models.padhye_window(0.01)
    assert window == pytest.approx(17.278821, abs=1e-6)
    # 1 − 0.99³ = 0.029701; 0.99^14.278821 = 0.866334; 0.99^17.278821 = 0.840600.
    share = 0.029701 * (1 + 0.970299 * (1 - 0.866334)) / (1 - 0.840600)
    assert models.padhye_timeout_share(0.01, window) == pytest.approx(share, rel=1e-4)
    # (99 + 17.278821 + Q/0.99) / (0.1·(8.639411 + 1) + Q·1·1.010204/0.99), f(0.01) = 1.010204.
    expected = (116.278821 + share / 0.99) / (0.9639411 + share * 1.010204 / 0.99)
    assert models.padhye_throughput(0.01, 0.1, 1.0) == pytest.approx(expected, rel=1e-4)


def test_padhye_without_timeouts_is_mathis_at_small_loss():
    for b in (1, 2):
        for p in (1e-6, 1e-8):
            found = models.padhye_throughput(p, 0.1, 0.0, b=b) * 0.1
            # √(3/(2bp)): eq. 20.
            assert found == pytest.approx(math.sqrt(1.5 / (b * p)), rel=3 * math.sqrt(p * b))


def test_padhye_is_bounded_by_the_receivers_window():
    # 20 packets a round trip, less what the rare losses cost.
    limited = models.padhye_throughput(1e-6, 0.1, 1.0, max_window=20)
    assert limited == pytest.approx(200, rel=1e-3)
    assert limited < 200


def test_a_window_of_three_always_times_out():
    assert models.padhye_timeout_share(0.1, 2.5) == 1.0


def test_a_halved_window_needs_a_buffer_of_one_bdp_and_leaves_three_quarters_without_any():
    assert models.smallest_full_buffer(0.5) == 1.0
    assert models.smallest_full_buffer(0.8) == pytest.approx(0.25)
    assert models.utilisation(0.5, 0.0) == 0.75
    # W = 1.5, βW = 0.75: (2.25 − 0.5625)/2 / (0.25 + 1.25/2) = 0.84375/0.875.
    assert models.utilisation(0.5, 0.5) == pytest.approx(0.84375 / 0.875)
    for beta in (0.3, 0.5, 0.7, 0.9):
        edge = models.smallest_full_buffer(beta)
        assert models.utilisation(beta, edge * 1.001) == 1.0
        assert 0.999 < models.utilisation(beta, edge * 0.999) < 1.0


def test_cubic_gives_the_windows_of_table_1_of_rfc_9438():
    # § 5.2, table 1: RTT 0.1 s; C = 0.04, 0.4 and 4; CUBIC's column is the larger of both.
    table = {1e-2: (12, 12, 12), 1e-3: (39, 39, 59), 1e-4: (122, 187, 333), 1e-5: (592, 1054, 1874)}
    for p, row in table.items():
        for c, window in zip((0.04, 0.4, 4.0), row, strict=True):
            assert models.response_window(p, 0.1, c) == pytest.approx(window, abs=1), (p, c)
    assert models.reno_friendly_window(1e-4, beta=0.5, alpha=1) == pytest.approx(122.474, abs=1e-3)


def test_a_queue_at_half_load_waits_half_a_service():
    assert models.md1_wait(0.5, 0.001) == pytest.approx(0.0005)
    assert models.md1_wait(0.9, 0.001) == pytest.approx(0.0045)
    assert models.md1_queue(0.9) == pytest.approx(4.05)
    assert models.md1_wait(0.0, 1.0) == 0.0


def test_a_link_that_all_share_takes_as_long_as_if_it_had_what_others_leave():
    # 1 Mbit over 10 Mbit/s, half of which others take: as over 5 Mbit/s.
    assert models.ps_response(1e6, 10e6, 0.5) == pytest.approx(0.2)
    assert models.ps_response(2e6, 10e6, 0.9) == pytest.approx(2.0)
    assert models.ps_transfers(0.75) == pytest.approx(3.0)
    # As many as in M/M/1: the mean of the geometric distribution (1 − ρ)·ρⁿ.
    rho = 0.8
    assert models.ps_transfers(rho) == pytest.approx(
        sum(n * (1 - rho) * rho**n for n in range(2000))
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: models.mathis_window(0.0),
        lambda: models.padhye_throughput(1.0, 0.1, 1.0),
        lambda: models.utilisation(1.0, 0.5),
        lambda: models.utilisation(0.5, -0.1),
        lambda: models.smallest_full_buffer(0.0),
        lambda: models.cubic_window(0.1, 0.1, beta=1.0),
        lambda: models.reno_friendly_window(1.5),
        lambda: models.md1_wait(1.0, 0.001),
        lambda: models.ps_response(1.0, 1.0, 1.0),
        lambda: models.ps_response(1.0, 0.0, 0.5),
    ],
)
def test_what_has_no_steady_state_is_refused(call):
    with pytest.raises(ValueError, match=r"not at|no saw-tooth|no steady|not 1"):
        call()


def test_the_multipliers_are_those_of_figure_1():
    assert models.backoff_multipliers(0) == [1, 2, 4, 8, 16, 32, 64]
    assert models.backoff_multipliers(1) == [1, 1, 2, 4, 8, 16, 32]
    assert models.backoff_multipliers(3) == [1, 1, 1, 1, 2, 4, 8]
    assert models.backoff_multipliers(5) == [1, 1, 1, 1, 1, 1, 2]
    assert models.backoff_multipliers(6) == [1] * 7


def test_at_seven_timeouts_in_a_row_nothing_doubles_any_more():
    assert models.backoff_multipliers(0, 10)[6:] == [64] * 4
    assert models.backoff_multipliers(2, 10)[6:] == [16] * 4
    assert models.backoff_multipliers(6, 20) == models.backoff_multipliers(math.inf, 20) == [1] * 20


def test_four_flows_at_twice_the_capacity_lose_half_and_wait_twice_their_timeout_a_packet():
    timeouts = [1.0, 1.0, 0.5, 0.5]
    # 1 + 1 + 2 + 2 = 6 packets a second over 3.
    assert models.timeout_loss(timeouts, 3.0) == pytest.approx(0.5)
    assert models.response_without_backoff(10, 1.0, timeouts, 3.0) == pytest.approx(20.0)
    assert models.backoff_rounds(timeouts, 3.0) == 1
    assert models.response_with_backoff(10, 1.0, timeouts, 3.0) == pytest.approx(20.0)
    # Over 2.9: log2(6 / 2.9) = 1.05, so that everybody waits four timeouts.
    assert models.backoff_rounds(timeouts, 2.9) == 2
    assert models.response_with_backoff(10, 1.0, timeouts, 2.9) == pytest.approx(40.0)
    # Eq. 3: 10 · 1 · 6 / 2.9.
    assert models.response_without_backoff(10, 1.0, timeouts, 2.9) == pytest.approx(60 / 2.9)


def test_where_all_packets_fit_nothing_is_lost_and_nobody_backs_off():
    assert models.timeout_loss([1.0, 1.0], 5.0) == 0
    assert models.backoff_rounds([1.0, 1.0], 5.0) == 0
    assert models.response_with_backoff(7, 1.0, [1.0, 1.0], 5.0) == 7.0


@given(
    st.lists(st.floats(0.01, 60), min_size=1, max_size=50),
    st.floats(0.01, 1e4),
    st.floats(1, 1e6),
)
def test_removing_the_backoff_never_makes_the_response_later(timeouts, capacity, size):
    """Theorem 2.1."""
    without = models.response_without_backoff(size, timeouts[0], timeouts, capacity)
    with_it = models.response_with_backoff(size, timeouts[0], timeouts, capacity)
    assert with_it >= without * (1 - 1e-12)
    # The next power of two is never more than twice as much.
    assert with_it <= 2 * without * (1 + 1e-12)


def test_one_flow_in_twenty_over_both_bottlenecks_wastes_a_quarter_of_a_percent():
    # § 5.1: "the fraction of such packets is very small, 0.002475".
    assert models.dead_share(0.05, 0.01, 0.05) == pytest.approx(0.002475, abs=1e-18)
    assert models.dead_share(1.0, 0.0, 0.05) == 0.05
    assert models.dead_share(0.0, 0.05, 0.05) == 0.0


def test_half_of_the_packets_lost_reject_one_connection_in_eight_or_in_thirty_two():
    # § 4.1: "slightly above 10 %" after three SYNs, "about 3 %" after five; at 10 % loss 0.001.
    assert models.rejected_connections(0.5, 3) == 0.125
    assert models.rejected_connections(0.5, 5) == 0.03125
    assert models.rejected_connections(0.1, 3) == pytest.approx(0.001)


@pytest.mark.parametrize(
    "call",
    [
        lambda: models.backoff_multipliers(-1),
        lambda: models.backoff_multipliers(1.5),
        lambda: models.backoff_multipliers(1, -1),
        lambda: models.timeout_loss([], 1.0),
        lambda: models.timeout_loss([1.0, 0.0], 1.0),
        lambda: models.timeout_loss([1.0], 0.0),
        lambda: models.response_with_backoff(0, 1.0, [1.0], 1.0),
        lambda: models.response_without_backoff(1, math.nan, [1.0], 1.0),
        lambda: models.dead_share(0.5, 1.5, 0.1),
        lambda: models.rejected_connections(-0.1, 3),
        lambda: models.rejected_connections(0.1, 0),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    with pytest.raises(ValueError, match=r"not|no "):
        call()


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
