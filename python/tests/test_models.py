"""The closed forms against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from cwnd import models


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
