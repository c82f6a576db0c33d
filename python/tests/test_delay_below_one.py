"""Repeats part of the measurements of the page about windows below one segment."""

from __future__ import annotations

import tomllib

import delay_below_one as script
import page_tables


def cells(table: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]


def test_the_table_of_the_page_is_what_the_scenario_gives():
    number = tomllib.loads(script.SCENARIO.read_text(encoding="utf-8"))["sweep"]["axis"]["number"]
    some = [number["values"][i] for i in (2, 5)]
    found = script.table(
        script.measure(
            {"sweep.axis.number.values": some, "sweep.axis.buffer.values": ["150 packets"]}
        )
    )
    head, _, *rows = cells(page_tables.written(script.PAGE, script.TABLE))
    columns = [head.index(name) for name in cells(found)[0]]
    of_the_page = [[row[i] for i in columns] for row in rows if row[1] == "150 packets"]
    assert of_the_page == cells(found)[2:]
