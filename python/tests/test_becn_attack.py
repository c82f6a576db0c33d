"""The table of goodput under forged source quenches: some of its cells are measured again."""

from __future__ import annotations

import becn_attack as script
import page_tables


def cells(lines: list[str]) -> dict[tuple[str, str], str]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    (_, *rates), _, *body = rows
    return {
        (row[0], rate): value for row in body for rate, value in zip(rates, row[1:], strict=True)
    }


def test_cells_measured_again_are_those_of_the_page():
    page = cells(page_tables.written(script.PAGE, script.TABLE))
    assert len(page) == 6 * 7
    some = {"sweep.axis.rate.values": [10.0, 10_000.0], "sweep.axis.rate.labels": ["10", "10,000"]}
    run = script.measured(some)
    again = cells(script.table(run))
    assert again == {key: page[key] for key in again}, "run scripts/becn_attack.py --page"
    (panel,) = script.draw(run).panels
    drawn = {
        (line.label, rate): f"{mean:.2f}"
        for line in panel.lines
        for rate, mean in zip(["10", "10,000"], line.y, strict=True)
    }
    assert drawn == again
    assert all(line.x == [10, 10_000] for line in panel.lines)
    for kind in ("png", "svg"):
        assert (script.IMAGES / f"attack.{kind}").stat().st_size > 1000


def test_who_is_stopped_changes_nothing_and_who_is_not_leaves_a_segment_a_round_trip():
    page = cells(page_tables.written(script.PAGE, script.TABLE))
    untouched = page["blind", "1"]
    for rate in ("1", "1,000", "1,000,000"):
        assert page["blind", rate] == page["knows the ports", rate] == untouched
    for attacker in ("on the path", "knows the ports, all believed"):
        assert 0.1 < float(page[attacker, "1,000,000"]) < 0.2
