"""Figure 1 of the TCP*(n) paper: what simulations do is what it shows."""

from __future__ import annotations

from conftest import ROOT

import timeouts as script
from cwnd import models


def test_senders_wait_as_figure_1_says():
    found = script.rounds()
    assert list(found) == [0, 1, 2, 3, 4, 5, 6]
    for n, multiples in found.items():
        assert multiples == models.backoff_multipliers(n)
    assert found[0] == [1, 2, 4, 8, 16, 32, 64]
    assert found[6] == [1] * 7


def test_the_page_has_its_figure():
    page = (ROOT / "docs/explanation/timeouts.md").read_text("utf-8")
    assert "(../images/timeouts/backoff.png)" in page
    for kind in ("png", "svg"):
        assert (ROOT / f"docs/images/timeouts/backoff.{kind}").stat().st_size > 1000
