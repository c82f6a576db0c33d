"""Means over seeds with their confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Level of the confidence intervals in tables and plots.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds: `mean ± half_width` covers the true mean at the level of confidence."""

    n: int
    mean: float
    #: Standard deviation of the sample; `None` below two values.
    sd: float | None
    #: Half the width of the confidence interval; `None` below two values.
    half_width: float | None

    @classmethod
    def of(cls, values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
        """Estimates a mean from independent values; `None` if there are none."""
        n = len(values)
        if n == 0:
            return None
        mean = fmean(values)
        if n == 1:
            return cls(n, mean, None, None)
        sd = stdev(values)
        return cls(n, mean, sd, t_quantile((1 + confidence) / 2, n - 1) * sd / math.sqrt(n))

    @classmethod
    def of_interval(
        cls, n: int, mean: float, half_width: float | None, confidence: float = CONFIDENCE
    ) -> Estimate:
        """Reconstructs the estimate with a given interval, such as one read from a table."""
        if n == 1 or half_width is None:
            return cls(n, mean, None, None)
        sd = half_width * math.sqrt(n) / t_quantile((1 + confidence) / 2, n - 1)
        return cls(n, mean, sd, half_width)


def interval_ends(
    estimates: Iterable[Estimate], scale: float = 1.0
) -> tuple[list[float], list[float]]:
    """Lower and upper ends of intervals, times `scale`; the mean where there is no interval."""
    pairs = [(scale * each.mean, scale * (each.half_width or 0.0)) for each in estimates]
    return [mean - half for mean, half in pairs], [mean + half for mean, half in pairs]


def paired_difference(
    before: Sequence[float], after: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate | None:
    """Estimates after − before over the same seeds: common variation of a seed cancels."""
    return Estimate.of([b - a for a, b in zip(before, after, strict=True)], confidence)


def change_of(
    before: Mapping[int, float], after: Mapping[int, float], *, paired: bool | None = None
) -> tuple[Estimate, bool]:
    """Estimates after − before from values by seed, some on each side, and says if it is paired.

    By default values are paired if both sides have the same seeds.
    """
    paired = before.keys() == after.keys() if paired is None else paired
    if paired:
        found = paired_difference(list(before.values()), [after[seed] for seed in before])
    else:
        found = welch_difference(list(before.values()), list(after.values()))
    assert found is not None
    return found, paired


def welch_difference(
    before: Sequence[float], after: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate | None:
    """Estimates after − before from independent samples whose variances may differ (Welch 1947).

    The degrees of freedom are rounded down, which widens the interval.
    """
    a, b = Estimate.of(before), Estimate.of(after)
    return None if a is None or b is None else welch(a, b, confidence)


def welch(a: Estimate, b: Estimate, confidence: float = CONFIDENCE) -> Estimate:
    """Estimates b − a like `welch_difference`, from sizes, means and deviations of the samples."""
    mean, n = b.mean - a.mean, min(a.n, b.n)
    if a.sd is None or b.sd is None:
        return Estimate(n, mean, None, None)
    va, vb = a.sd**2 / a.n, b.sd**2 / b.n
    if va + vb == 0:
        return Estimate(n, mean, 0.0, 0.0)
    # Scaling by the larger variance keeps squares of tiny variances from underflow.
    largest = max(va, vb)
    ra, rb = va / largest, vb / largest
    freedom = (ra + rb) ** 2 / (ra**2 / (a.n - 1) + rb**2 / (b.n - 1))
    error = math.sqrt(va + vb)
    half_width = t_quantile((1 + confidence) / 2, max(1, math.floor(freedom))) * error
    return Estimate(n, mean, error * math.sqrt(n), half_width)


@lru_cache(maxsize=256)
def t_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t distribution, for p in [0.5, 1) and whole degrees of freedom.

    Raises:
        ValueError: An argument is outside these ranges.
    """
    if not 0.5 <= p < 1 or freedom < 1:  # noqa: PLR2004 - the median
        raise ValueError(f"no t quantile for p = {p}, {freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < p:
        low, high = high, high * 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if _t_cdf(middle, freedom) < p:
            low = middle
        else:
            high = middle


def _t_cdf(t: float, freedom: int) -> float:
    """P(T ≤ t) for t ≥ 0 in closed form: Abramowitz & Stegun 26.7.3 (odd), 26.7.4 (even)."""
    theta = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = freedom % 2 == 1
    term = cosine if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    area = (theta + sine * total) * 2 / math.pi if odd else sine * total
    return 0.5 + area / 2
