"""The page on TCP without backoff: its numbers are those of its scenarios, and say what it says."""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from conftest import ROOT

import no_backoff as script

STALE = "is stale; run make docs"
BARE, STAMPED = script.TIMESTAMPS


@pytest.fixture(scope="module")
def results():
    return script.read()


#: The line of `gaps` that stands still for 2 s every 30 s.
_PAUSES = {
    "initial": "10 Mbit/s",
    "steps": [
        {"at": f"{at} s", "rate": rate}
        for start in (30, 60, 90)
        for at, rate in ((start, "1 bit/s"), (start + 2, "10 Mbit/s"))
    ],
}

#: Points that are run again, cheap ones: map, x and y as value and label.
AGAIN = [
    ("queue", ({"kind": "fifo", "limit": "10 BDP"}, "10"), (1.0, "1")),
    ("gaps", (_PAUSES, "2"), (100, "100")),
    ("loss", (0.2, "20"), (50, "50")),
    ("users", (100, "100"), ("200 ms", "200 ms")),
]


@pytest.mark.parametrize(("name", "x", "y"), AGAIN, ids=[row[0] for row in AGAIN])
def test_a_point_run_again_gives_the_same_numbers(results, name, x, y):
    each = script.MAPS[name]
    overrides = {}
    for (axis, _), (value, label) in ((each.x, x), (each.y, y)):
        overrides[f"sweep.axis.{axis}.values"] = [value]
        overrides[f"sweep.axis.{axis}.labels"] = [label]
    found = each.measure(overrides)
    assert found.height == 2
    for row in found.iter_rows(named=True):
        before = script.at(results, name, x[1], y[1], row["timestamps"])
        assert row == before, f"docs/no-backoff/results.csv {STALE}"


def test_the_numbers_are_of_every_point_of_the_scenarios(results):
    assert dict(results.group_by("map").len().iter_rows()) == {
        "queue": 2 * 5 * 5,
        "timers": 2 * 5 * 5,
        "gaps": 2 * 4 * 4,
        "loss": 2 * 6 * 4,
        "users": 2 * 4 * 3,
        "repair-queue": 2 * 5 * 3,
        "repair-gaps": 2 * 5 * 4,
        "repair-loss": 2 * 5 * 4,
    }


def test_the_page_is_made_of_the_numbers(results):
    page = script.page(results)
    assert "{{" not in page
    assert (ROOT / "docs/no-backoff.md").read_text() == page, f"docs/no-backoff.md {STALE}"


def test_the_figures_are_made_of_the_numbers(results):
    for name, each in script.MAPS.items():
        picture = script.figure(results, each)
        assert (picture.x_label, picture.y_label) == (each.x[1], each.y[1])
        of_panels = itertools.product(script.TIMESTAMPS, ((script.GAIN, 1), (script.P99, -1)))
        for panel, (timestamps, (quantity, sign)) in zip(picture.panels, of_panels, strict=True):
            (image,) = panel.marks
            for (j, y), (i, x) in itertools.product(panel.y_ticks, panel.ticks):
                value = script.at(results, name, x, y, timestamps)[quantity]
                assert image.rows[j][i] == sign * value
                shown, unit = image.texts[j][i], 10.0 ** -script.QUANTITIES[quantity][1]
                assert float(shown.replace("−", "-")) == pytest.approx(value, abs=0.51 * unit)
        for kind in ("png", "svg"):
            assert (ROOT / f"docs/images/no-backoff/{name}.{kind}").exists()


def test_it_loses_where_path_and_buffer_take_longer_than_the_first_timeout(results):
    timers = results.filter((pl.col("map") == "timers") & (pl.col("timestamps") == BARE))
    for row in timers.iter_rows(named=True):
        first = {"100 ms": 0.1, "300 ms": 0.3, "1 s": 1.0, "3 s": 3.0}[row["y"].split(", ")[1]]
        # RTTs of 80 to 120 ms, a full buffer of multiples of 100 ms.
        longest = 0.12 + 0.1 * float(row["x"])
        change, width = row[script.GAIN], row[f"{script.GAIN}_ci"]
        assert (change + width < -3) == (longest > first), row
        assert (change - width > 0) == (longest < first), row


def test_timestamps_end_most_of_it(results):
    def costs(timestamps: str) -> float:
        rows = results.filter(
            (pl.col("map") == "queue")
            & (pl.col("timestamps") == timestamps)
            & (pl.col(script.GAIN) + pl.col(f"{script.GAIN}_ci") < 0)
        )
        return rows[script.GAIN].sum()

    assert costs(BARE) < 3 * costs(STAMPED) < 0


def test_pauses_cost_little_and_random_loss_makes_it_win(results):
    gaps = results.filter(pl.col("map") == "gaps")
    assert gaps[script.GAIN].min() > -5
    assert gaps["spurious_tcp"].median() > 80
    lossy = results.filter((pl.col("map") == "loss") & pl.col("x").is_in(["30"]))
    assert (lossy[script.GAIN] - lossy[f"{script.GAIN}_ci"] > 0).all()
    slight = results.filter(
        (pl.col("map") == "loss")
        & pl.col("x").is_in(["1", "2", "5"])
        & (pl.col("timestamps") == BARE)
    )
    assert (slight[script.GAIN] + slight[f"{script.GAIN}_ci"] < 0).all()


def test_what_stacks_have_takes_most_of_the_cost_and_of_the_gain(results):
    def change(name: str, x: str, y: str) -> float:
        return script.at(results, name, x, y, BARE)[script.GAIN]

    # Without any of it the points are those of the maps before.
    for name, y, others in (("queue", "10", "1.2"), ("gaps", "10", "50"), ("loss", "20", "50")):
        assert change(f"repair-{name}", "RFC 6298", y) == change(name, y, others)
    # F-RTO ends most of what pauses cost, and little where the first packets wait.
    assert change("repair-gaps", "F-RTO", "10") > change("repair-gaps", "RFC 6298", "10") / 3
    assert change("repair-queue", "F-RTO", "10") < 0.8 * change("repair-queue", "RFC 6298", "10")
    assert change("repair-queue", "RACK-TLP", "10") > change("repair-queue", "RFC 6298", "10") / 4
    assert change("repair-loss", "RACK-TLP", "20") < change("repair-loss", "RFC 6298", "20") / 4


def test_many_users_alone_are_no_problem(results):
    many = results.filter((pl.col("map") == "users") & (pl.col("x") == "10000"))
    assert (many[script.GAIN] - many[f"{script.GAIN}_ci"] > 0).all()
