"""Error of a value that marks encode: closed forms against random draws, and the page."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cwnd import models
from cwnd.studies.questions.marking import measures as script


def _drawn(scheme: script.Scheme, value: float, packets: int, times: int = 4000) -> float:
    """Mean square error of the last estimate."""
    rng = np.random.default_rng(7)
    last = [scheme(np.full(packets, value), rng)[-1] for _ in range(times)]
    return float(np.mean((np.array(last) - value) ** 2))


@pytest.mark.parametrize("value", [0.2, 0.7])
@pytest.mark.parametrize("packets", [10, 60])
def test_closed_forms_are_what_lots_give(value: float, packets: int):
    def near(expected: float) -> object:
        return pytest.approx(expected, rel=0.12)

    assert _drawn(script.adpm, value, packets) == near(models.adpm_mse(1 - value, packets))
    assert _drawn(script.ram(packets), value, packets) == near(models.ram_mse(value, packets))
    rem = models.rem_mse(value, packets, script.PHI)
    assert _drawn(script.rem(packets), value, packets) == near(rem)


@pytest.mark.parametrize("bits", [4, 8])
def test_static_marking_errs_as_its_closed_form_says_over_all_values(bits: int):
    rng = np.random.default_rng(3)
    scheme, packets = script.static(bits), 12
    values = rng.random(6000)
    last = np.array([scheme(np.full(packets, value), rng)[-1] for value in values])
    error = float(np.mean((last - values) ** 2))
    assert error == pytest.approx(models.static_mse(packets, bits), rel=0.08)


def test_adpm_errs_by_two_over_n_squared_and_denser_thresholds_by_less():
    assert models.adpm_mse(0.5, 1000) == pytest.approx(2e-6, rel=0.01)
    assert models.adpm_mse(0.2, 1000, density=2.5) == pytest.approx(2e-6 / 6.25, rel=0.01)
    # None came: it is as far away as at first.
    assert models.adpm_mse(0.3, 0) == pytest.approx(0.09)


def test_numbers_without_meaning_are_refused():
    for call in (
        lambda: models.adpm_mse(0.5, 10, density=3),
        lambda: models.adpm_mse(-0.1, 10),
        lambda: models.ram_mse(1.5, 10),
        lambda: models.ram_mse(0.5, 0),
        lambda: models.rem_mse(0.5, 10, phi=1),
        lambda: models.static_mse(10, 0),
    ):
        with pytest.raises(ValueError, match=r"\d"):
            call()
    assert models.rem_mse(0.0, 10) == 0.0


def test_what_the_page_says_of_the_schemes_holds():
    after = {
        packets: dict(zip(script.NAMES, script.stays(packets), strict=True))
        for packets in (100, 10_000)
    }
    assert after[100]["RAM"] / after[100]["ADPM"] == pytest.approx(9, rel=0.05)
    assert after[10_000]["RAM"] / after[10_000]["ADPM"] == pytest.approx(800, rel=0.1)
    assert after[100]["static, 8 bits"] < after[100]["ADPM"] < after[100]["static, 4 bits"]
    assert math.log10(after[10_000]["REM"] / after[10_000]["ADPM"]) > 3
