"""The closed forms of the TCP*(n) paper: its own numbers, and what its theorem says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cwnd import models


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
