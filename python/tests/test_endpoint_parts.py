"""The table of what each part of preset `linux` does: a row of it is measured again."""

from __future__ import annotations

import endpoint_parts as script
import page_tables


def test_a_row_of_what_each_part_does_is_that_of_the_page():
    one = "CUBIC, FIFO, 200 ms"
    controller, fifo = {"kind": "cubic", "preset": "linux"}, {"kind": "fifo", "limit": "1 BDP"}
    chosen = {
        "sweep.axis.setting.values": [[controller, fifo, "10 Mbit/s", "200 ms"]],
        "sweep.axis.setting.labels": [one],
    }
    head, _, row = script.table(script.measure(chosen))
    page = page_tables.written(script.PAGE, script.TABLE)
    assert {head, row} <= set(page), "run scripts/endpoint_parts.py --page"
