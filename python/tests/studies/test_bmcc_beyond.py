"""BMCC beyond its paper: counters of damaged options, and max-min shares."""

from __future__ import annotations

import pytest
from conftest import ROOT

import cwnd
from cwnd.studies.questions.bmcc_beyond import measures as script

OPTIONS = ROOT / "python/cwnd/studies/questions/bmcc_beyond/options.toml"


def test_a_run_tells_how_many_options_were_removed_and_damaged():
    def done(**keys: float) -> list[int]:
        overrides = {"sweep": {}, "run.duration": "30 s", "run.warmup": "1 s"}
        link = {f"dumbbell.{key}": value for key, value in keys.items()}
        found = cwnd.run(OPTIONS, set=overrides | link)
        of = found.activity
        return [of.get(f"options_{what}", 0) for what in ("removed", "damaged")]

    assert done() == [0, 0]
    removed, damaged = done(option_loss=0.25, option_damage=0.5)
    # Of what is not removed half is damaged.
    assert damaged == pytest.approx(1.5 * removed, rel=0.1)
    assert removed > 1000


def test_max_min_shares_are_those_of_progressive_filling():
    # The narrowest link settles its flows; what they leave is shared by the others (Bertsekas &
    # Gallager, Data Networks, § 6.5.2).
    wide = script.max_min(script.CROSSES, {**script.RATES, "c-d": 30.0})
    assert wide == pytest.approx(
        {"long": 10 / 3, "first": 20 - 20 / 3, "second": 10 / 3, "third": 30 - 20 / 3}
    )
    narrow = script.max_min(script.CROSSES, {**script.RATES, "c-d": 8.0})
    assert narrow == pytest.approx(
        {"long": 8 / 3, "first": 20 - 16 / 3, "second": 10 - 16 / 3, "third": 8 / 3}
    )
