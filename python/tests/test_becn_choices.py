"""The tables of the page on source quenches that a script makes: some rows are measured again."""

from __future__ import annotations

import pytest

import becn_choices as script
import cwnd


def test_rows_measured_again_are_those_of_the_page():
    page = script.PAGE.read_text(encoding="utf-8").splitlines()
    becn = [{"kind": "newreno", "preset": "becn"}, "becn", "quench"]
    chosen = {
        "sweep.axis.choice.values": [becn],
        "sweep.axis.choice.labels": ["BECN, preset `becn`"],
    }
    for table in (script.choices, script.beside):
        *head, row = table(chosen)
        assert row in page, "run scripts/becn_choices.py --page"
        if table is script.choices:
            assert head[0] in page


#: Rows of the page beyond the paper that are run again: table, what is left of the sweep.
BEYOND = [
    ("position", {"x": (["12.7 ms", "241.3 ms", "241.3 ms"], "0.05")}),
    ("quench_loss", {"lost": (0.5, "50 %")}),
    ("two_way", {"setting": ([10, 10, "40 ms", "40 ms"], "10 each way, 40 ms")}),
    ("before", {"before": ("9.5 Mbit/s", "9.5")}),
    ("gateways", {"flows": ([5, 5, 5, 5], "5 of each")}),
]


@pytest.mark.parametrize(("name", "kept"), BEYOND, ids=[row[0] for row in BEYOND])
def test_rows_beyond_the_paper_are_those_of_its_page(name, kept):
    table, path = script.TABLES[name]
    page = path.read_text(encoding="utf-8")
    overrides = {}
    for axis, (value, label) in kept.items():
        overrides[f"sweep.axis.{axis}.values"] = [value]
        overrides[f"sweep.axis.{axis}.labels"] = [label]
    _, _, *rows = table(overrides)
    for row in rows:
        first, *cells = row.strip("| ").split(" | ")
        assert f"| {first} | {cells[0]} |" in page, "run scripts/becn_choices.py --page"
        assert name == "two_way" or row in page


def test_a_point_of_the_map_is_that_of_the_page():
    chosen = {
        "sweep.axis.rtt.values": [["248 ms", "248 ms"]],
        "sweep.axis.rtt.labels": ["500"],
        "sweep.axis.rate.values": [["10 Mbit/s", 10]],
        "sweep.axis.rate.labels": ["10"],
    }
    _, _, row = script.rates(chosen)
    page = script.BEYOND.read_text(encoding="utf-8")
    assert f"\n{row.removesuffix(' |')} | " in page, "run scripts/becn_choices.py --page"


def test_the_map_shows_the_numbers_of_its_table():
    rates, rows = script.gains()
    assert rates == ["10", "30", "100", "300", "1000"]
    assert list(rows) == ["10", "20", "50", "100", "200", "500"]
    (panel,) = script.draw_map().panels
    (image,) = panel.marks
    assert image.rows == list(rows.values())
    shown = [[float(text.replace("−", "-")) for text in row] for row in image.texts]
    assert shown == image.rows
    assert max(map(max, shown)) > 20.0
    assert panel.ticks == list(enumerate(rates))
    assert panel.y_ticks == list(enumerate(rows))


def test_all_scenarios_of_the_page_are_valid_and_linked():
    page = script.BEYOND.read_text(encoding="utf-8")
    for file in (script.DOCS / "becn").glob("*.toml"):
        assert cwnd.check(file) == []
        assert f"(becn/{file.name})" in page
