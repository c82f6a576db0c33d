"""Conditions of `cwnd compare`: regressions, open questions, and results without a value."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import Cli

import cwnd
import cwnd.link
from cwnd.cli.link import link
from cwnd.errors import InputError
from cwnd.results import Condition, Run, metrics
from cwnd.results.comparing import compare

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = {1: 90.0, 2: 100.0, 3: 110.0}


def condition(text: str) -> Condition:
    return Condition.parse(text, lambda name: metrics.metric(name).column)


def outcome(text: str, before: dict[int, float], after: dict[int, float]) -> str:
    return condition(text).judge({}, "*", before, after).outcome


def scaled(factor: float) -> dict[int, float]:
    return {seed: factor * value for seed, value in SEEDS.items()}


def with_column(run: Run, table: str, column: str, value: pl.Expr) -> Run:
    return replace(run, **{table: getattr(run, table).with_columns(value.alias(column))})


@pytest.mark.parametrize(
    ("factor", "expected"), [(0.9, "regression"), (0.96, "kept"), (1.0, "kept"), (1.2, "kept")]
)
def test_the_bound_is_relative_to_each_seed(factor: float, expected: str):
    assert outcome("goodput < -5 %", SEEDS, scaled(factor)) == expected


def test_an_interval_over_the_bound_decides_nothing():
    noisy = {1: 90.0, 2: 80.0, 3: 110.0}
    assert outcome("goodput < -5 %", SEEDS, noisy) == "undecided"
    verdict = condition("goodput < -5 %").judge({}, "*", SEEDS, noisy)
    # Mean change −20 / 300; deviations of 0.95 × before from after have a t-interval of their own.
    assert verdict.change == pytest.approx(-20 / 300)
    assert verdict.half_width is not None
    assert verdict.change + verdict.half_width > -0.05 > verdict.change - verdict.half_width


def test_other_seeds_are_compared_by_welch_and_paired_ones_are_sharper():
    other = {seed + 10: value for seed, value in scaled(0.9).items()}
    assert outcome("goodput < -5 %", SEEDS, other) == "undecided"
    assert outcome("goodput < -5 %", SEEDS, scaled(0.9)) == "regression"


def test_bounds_are_in_the_units_of_the_metric():
    delays = {1: 5000.0, 2: 6000.0}
    later = {seed: value + 3000 for seed, value in delays.items()}
    assert outcome("qdelay_p95 > +2 ms", delays, later) == "regression"
    assert outcome("qdelay_p95_us > +4000 us", delays, later) == "kept"
    assert outcome("drop_ratio > +0.5 pp", {1: 0.01, 2: 0.02}, {1: 0.02, 2: 0.03}) == "regression"
    assert outcome("goodput < −1 Mbit/s", {1: 5e6, 2: 6e6}, {1: 4.5e6, 2: 5.5e6}) == "kept"
    assert outcome("rto_count > 0", {1: 3, 2: 4}, {1: 4, 2: 5}) == "regression"


def test_a_rise_from_zero_is_beyond_every_relative_bound():
    verdict = condition("drops > +10 %").judge({}, "*", {1: 0, 2: 0}, {1: 4, 2: 4})
    assert (verdict.outcome, verdict.change, verdict.text()) == ("regression", None, "from zero")
    assert outcome("drops > +10 %", {1: 0, 2: 0}, {1: 0, 2: 0}) == "kept"


def test_one_seed_decides_by_its_value():
    verdict = condition("goodput < -5 %").judge({}, "*", {1: 100.0}, {1: 94.0})
    assert (verdict.outcome, verdict.half_width) == ("regression", None)
    assert verdict.text() == "-6 %"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("goodput = 5 %", "is no condition; write `goodput < -5 %`"),
        ("goodput < 5 %", "needs its sign, as in `goodput < -5 %`"),
        ("drops > 5", "needs its sign, as in `drops > +5`"),
        ("godput < -5 %", "`godput` is not a metric; did you mean `goodput_bit_s`?"),
        ("goodput < -5", "goodput_bit_s needs a unit; write `%` for a relative change"),
        ("goodput < -5 ms", "goodput_bit_s needs a unit"),
        ("drop_ratio > +5", "or `pp` for percentage points"),
        ("drops > +5 ms", "drops has no unit"),
        ("goodput < -101 %", "nothing falls by more than 100 %"),
    ],
)
def test_errors_say_what_to_write(text: str, message: str):
    with pytest.raises(InputError) as refused:
        condition(text)
    assert message in str(refused.value)


def test_conditions_hold_at_each_point_and_for_each_group(half: Run):
    less = with_column(half, "flows", "delivered_bytes", pl.col("delivered_bytes") // 2)
    found = compare(half, less, ["goodput_bit_s"], conditions=[condition("goodput < -5 %")])
    assert [(each.group, each.outcome) for each in found.verdicts] == [
        (group, "regression") for _ in range(2) for group in ("*", "cubic", "abe")
    ]
    of_link = compare(half, less, ["goodput_bit_s"], conditions=[condition("qdelay_p95 > +1 ms")])
    assert [(each.group, each.outcome) for each in of_link.verdicts] == [("*", "kept")] * 2


def test_a_value_that_is_gone_fails_and_one_that_never_was_is_an_error(sweep: Run):
    first = pl.when(pl.col("seed") > pl.col("seed").min()).then("rtt_p50_us")
    some = with_column(sweep, "flows", "rtt_p50_us", first)
    wanted = [condition("rtt_p50 > +10 %")]
    verdicts = compare(sweep, some, ["goodput_bit_s"], conditions=wanted).verdicts
    assert {each.outcome for each in verdicts} == {"missing"}
    with pytest.raises(InputError, match="the first result has no value of fct_s"):
        compare(sweep, some, ["goodput_bit_s"], conditions=[condition("fct_s > +10 %")])


def test_the_exit_code_is_that_of_the_conditions(saved: Cli):
    saved("run", "sweep.toml", "--no-plots", "-o", "slow", "--set", "dumbbell.rate=5 Mbit/s")
    answer = saved("compare", "sweep", "slow", "--fail-if", "goodput < -5 %")
    assert answer.code == 1
    assert answer.out.count("regression: goodput < -5 % at arm NewReno") == 6
    assert saved("compare", "sweep", "slow", "--fail-if", "goodput < -90 %").code == 0
    assert saved("compare", "sweep", "slow", "--fail-if", "goodput < 90 %").code == 2
    found = saved("compare", "sweep", "sweep", "--fail-if", "goodput < -5 %", "--json")
    assert (found.code, found.json["failed"]) == (0, False)
    assert [each["outcome"] for each in found.json["verdicts"]] == ["kept"] * 6
    assert found.json["verdicts"][0]["condition"] == "goodput < -5 %"


def test_strict_fails_where_points_are_gone_or_runs_are_not_valid(
    saved: Cli, sweep: Run, monkeypatch: pytest.MonkeyPatch
):
    part = 'sweep.axis.rtt.values=["10 ms", "20 ms"]'
    saved("run", "sweep.toml", "--no-plots", "-o", "part", "--set", part)
    compared = ("compare", "sweep", "part", "--fail-if", "goodput < -5 %")
    assert saved(*compared).code == 0
    answer = saved(*compared, "--strict")
    assert answer.code == 1
    assert "invalid: part lacks arm NewReno, rtt 40 ms" in answer.out
    world = {"name": "linux", "invalid_runs": 1, "flaws": ["packets left late"]}
    flaws = replace(sweep, manifest=replace(sweep.manifest, world=world)).flaws
    assert flaws == ["1 of 18 runs are not valid: packets left late"]
    monkeypatch.setattr(Run, "flaws", flaws)
    assert saved("compare", "sweep", "sweep").code == 0
    assert saved("compare", "sweep", "sweep", "--strict").code == 1
    again = ("run", "sweep.toml", "--no-plots", "-o", "sweep")
    assert (saved(*again).code, saved(*again, "--strict").code) == (0, 1)


def test_strict_keeps_the_code_of_a_command_behind_a_link(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def ended(code: int, flaws: list[str]) -> None:
        summary = {"valid": not flaws, "flaws": flaws}
        found = SimpleNamespace(code=code, summary=summary)

        def run(*_: object, on_outcome: Callable[[object], None], **__: object) -> SimpleNamespace:
            on_outcome(found)
            return found

        monkeypatch.setattr(cwnd.link, "run", run)

    late = ["2 packets left late"]
    for code, flaws, expected in ((0, [], 0), (0, late, 1), (5, late, 5)):
        ended(code, flaws)
        assert link("true", strict=True, quiet=True) == expected
        assert link("true", quiet=True) == code
    assert "invalid: 2 packets left late" in capsys.readouterr().err
