"""`cwnd compare`: what differs in the question and in the answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cwnd
from cwnd.errors import InputError
from cwnd.results.comparing import compare

if TYPE_CHECKING:
    from conftest import Cli


def test_a_result_does_not_differ_from_itself(sweep: cwnd.Run):
    found = compare(sweep, sweep)
    assert found.identical
    assert found.changes == []
    assert len({tuple(each.point.items()) for each in found.differences}) == 6
    for each in found.differences:
        assert each.paired
        assert each.difference.mean == 0
        assert not each.clear


def test_a_doubled_rate_doubles_the_goodput_clearly(scenarios: Path, sweep: cwnd.Run):
    faster = cwnd.run(scenarios / "sweep.toml", set={"dumbbell.rate": "20 Mbit/s"})

    found = compare(sweep, faster, ["goodput_bit_s"])

    assert ("dumbbell.rate.initial", "10 Mbit/s", "20 Mbit/s") in [
        (each.path, each.before, each.after) for each in found.changes
    ]
    assert not found.identical
    assert all(each.paired and each.clear for each in found.differences)
    for each in found.differences:
        assert each.difference.mean == pytest.approx(each.after.mean - each.before.mean)
        assert 1.3 < each.after.mean / each.before.mean < 2.2


def test_other_seeds_are_compared_by_welch(scenarios: Path, sweep: cwnd.Run):
    found = compare(sweep, cwnd.run(scenarios / "sweep.toml", seed=100), ["goodput_bit_s"])
    assert found.changes == []
    assert not any(each.paired for each in found.differences)


def test_points_that_one_lacks_are_named(scenarios: Path, sweep: cwnd.Run):
    path = "sweep.axis.rtt.values"
    fewer = cwnd.run(scenarios / "sweep.toml", set={path: ["10 ms", "80 ms"]})

    found = compare(sweep, fewer, ["goodput_bit_s"])

    assert [each["rtt"] for each in found.only_before] == ["20 ms", "40 ms"] * 2
    assert [each["rtt"] for each in found.only_after] == ["80 ms"] * 2
    assert len(found.differences) == 2


def test_results_with_other_axes_are_not_compared(short: cwnd.Run, sweep: cwnd.Run):
    with pytest.raises(InputError, match="same axes"):
        compare(short, sweep)


def test_cwnd_compare_shows_settings_and_differences(cli: Cli):
    assert cli("run", "sweep.toml", "-o", "a", "--no-plots").code == 0
    slower = ("--set", "dumbbell.rate=5 Mbit/s")
    assert cli("run", "sweep.toml", "-o", "b", "--no-plots", *slower).code == 0

    answer = cli("compare", "a", "b", "--metric", "goodput")

    assert answer.code == 0, answer.err
    assert "dumbbell.rate.initial" in answer.out
    assert "5 Mbit/s" in answer.out
    rows = [line for line in answer.out.splitlines() if "Goodput" in line]
    assert len(rows) == 6
    assert all("*" in row and "-" in row for row in rows)

    document = cli("compare", "a", "b", "--json").json
    assert {each["metric"] for each in document["differences"]} >= {"goodput_bit_s", "marks"}
    assert all("clear" in each for each in document["differences"])
