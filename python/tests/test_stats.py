"""Confidence intervals against SciPy, which we did not write."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from cwnd.results.stats import Estimate, paired_difference, t_quantile, welch_difference

values = st.lists(
    st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False), min_size=2, max_size=30
)


@given(
    p=st.floats(min_value=0.5, max_value=0.9999), freedom=st.integers(min_value=1, max_value=2000)
)
def test_the_t_quantile_is_scipys(p: float, freedom: int):
    expected = scipy_stats.t.ppf(p, freedom)
    assert t_quantile(p, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_t_quantile_of_one_degree_of_freedom_is_cauchys():
    assert t_quantile(0.975, 1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-12)


@pytest.mark.parametrize(("p", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_there_is_no_quantile_outside_its_range(p: float, freedom: int):
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(p, freedom)


@given(values)
def test_an_estimate_is_scipys_interval(sample: list[float]):
    estimate = Estimate.of(sample)
    assert estimate is not None
    assert estimate.sd is not None
    assert estimate.half_width is not None
    error = scipy_stats.sem(sample)
    assert estimate.n == len(sample)
    assert estimate.mean == pytest.approx(math.fsum(sample) / len(sample), rel=1e-12, abs=1e-6)
    expected = scipy_stats.t.ppf(0.975, len(sample) - 1) * error
    assert estimate.half_width == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_one_value_has_a_mean_and_no_interval():
    assert Estimate.of([3.0]) == Estimate(1, 3.0, None, None)


def test_no_value_has_no_mean():
    assert Estimate.of([]) is None


def test_equal_values_have_an_interval_of_no_width():
    assert Estimate.of([2.5, 2.5, 2.5]) == Estimate(3, 2.5, 0.0, 0.0)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=20))
def test_pairs_of_equal_seeds_are_compared_as_differences(pairs: list[tuple[float, float]]):
    before, after = zip(*pairs, strict=True)
    found = paired_difference(before, after)
    assert found == Estimate.of([b - a for a, b in pairs])


def test_what_seeds_have_in_common_cancels():
    before = [10.0, 20.0, 30.0, 40.0]
    after = [11.1, 20.9, 31.0, 41.0]
    paired, apart = paired_difference(before, after), welch_difference(before, after)
    assert paired is not None
    assert apart is not None
    assert paired.mean == pytest.approx(apart.mean)
    expected = scipy_stats.ttest_rel(after, before).confidence_interval()
    assert paired.half_width == pytest.approx((expected.high - expected.low) / 2)
    assert paired.half_width < apart.half_width / 100


spread = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30).filter(
    lambda sample: len(set(sample)) > 1
)


@given(spread, spread)
def test_welchs_interval_is_scipys_or_a_little_wider(before: list[int], after: list[int]):
    found = welch_difference(before, after)
    assert found is not None
    assert found.half_width is not None
    expected = scipy_stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    width = (expected.high - expected.low) / 2
    # Degrees of freedom are rounded down: between one and two this matters most (12.7 to 4.3).
    assert found.half_width >= width * (1 - 1e-6)
    assert found.half_width <= width * 3
