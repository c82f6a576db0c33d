"""Repeats part of the measurements of the page about BMCC, VCP and MLCP beyond their papers."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

import cwnd
import guided_beyond as script
import page_tables

if TYPE_CHECKING:
    from collections.abc import Iterable


def of_page(name: str) -> list[str]:
    return page_tables.written(script.PAGE, f"scripts/guided_beyond.py: {name}")


def part(name: str, axis: str, chosen: Iterable[int]) -> dict[str, object]:
    """The sweep with these points of an axis alone."""
    text = (script.SCENARIOS / f"{name}.toml").read_text(encoding="utf-8")
    all_of = tomllib.loads(text)["sweep"]["axis"][axis]
    keys = [key for key in ("values", "labels") if key in all_of]
    return {f"sweep.axis.{axis}.{key}": [all_of[key][i] for i in chosen] for key in keys}


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("lossy", part("lossy", "scheme", [0, 2])),
        ("beside", part("beside", "queue", [0]) | part("beside", "other", [0, 3, 6])),
        ("changing", part("changing", "scheme", [0, 1, 4])),
        ("wrong", part("wrong", "wrong", [1, 4])),
        ("believed", part("believed", "wrong", [2, 4])),
        ("million", part("million", "scheme", [4])),
        ("options", part("options", "wrong", [2, 5])),
        ("fast", part("fast", "scheme", [2, 3])),
    ],
)
def test_rows_of_the_page_are_what_the_scenarios_give(name: str, overrides: dict[str, object]):
    head, line, *rows = script.TABLES[name](script.measure(name, overrides))
    written = of_page(name)
    assert written[:2] == [head, line]
    assert rows
    assert set(rows) <= set(written)


def test_a_run_tells_how_many_options_were_removed_and_damaged():
    def done(**keys: float) -> list[int]:
        overrides = {"sweep": {}, "run.duration": "30 s", "run.warmup": "1 s"}
        link = {f"dumbbell.{key}": value for key, value in keys.items()}
        found = cwnd.run(script.SCENARIOS / "options.toml", set=overrides | link)
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


def test_rcp_has_max_min_shares_and_who_hears_of_the_worst_link_less_on_long_ways():
    _, _, *rows = (line.strip("| ").split(" | ") for line in of_page("bottlenecks"))
    for third, group, fair, *got in rows:
        bmcc, mlcp, vcp, _, rcp = (float(g) / float(fair) for g in got)
        assert rcp == pytest.approx(1, abs=0.05), (third, group)
        if group == "long":
            assert max(bmcc, mlcp, vcp) < 0.95
