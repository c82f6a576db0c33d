"""Traces of cellular links."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp

import pytest

from cwnd.studies.questions.cellular.traces import LINKS


def test_a_trace_is_a_poisson_process_whose_rate_stays_within_its_bounds():
    still = replace(LINKS["fast"], sigma=0.0)
    passes = still.trace(60)
    # 30,000 are expected, and √30,000 more or less.
    assert len(passes) == pytest.approx(30_000, abs=4 * 30_000**0.5)
    assert passes == sorted(passes)
    # Gaps are exponential, of 2 ms in the mean: three milliseconds or more, from anywhere in one.
    long = sum(after - before >= 3 for before, after in pairwise(passes)) / len(passes)
    assert long == pytest.approx(2 * exp(-1.5) * (exp(0.5) - 1), abs=4 * (0.29 / 30_000) ** 0.5)
    moved = replace(still, sigma=1e6).trace(60)
    most = max(sum(at // 1000 == second for at in moved) for second in range(60))
    assert most < 1000 + 4 * 1000**0.5
