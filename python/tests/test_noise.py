"""Intervals over seeds on the page of noise, measured again in part."""

from __future__ import annotations

import noise as script
import page_tables


def test_the_table_of_the_page_is_what_the_scenario_gives():
    some = {
        "sweep.axis.rate.values": ["1 Mbit/s", "5 Mbit/s"],
        "sweep.axis.rtt.values": ["40 ms", "100 ms"],
    }
    cells = script.measure(some)
    head, _, *rows = _cells(page_tables.written(script.PAGE, script.TABLE))
    found_head, _, *found = _cells(script.table(cells))
    columns = [head.index(name) for name in found_head]
    rates = {row[1] for row in found}
    assert [[row[i] for i in columns] for row in rows if row[1] in rates] == found
    assert not any(cell.silent for cell in cells)


def _cells(table: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
