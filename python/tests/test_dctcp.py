"""The table of DCTCP's page, measured again in part."""

from __future__ import annotations

import dctcp_threshold as script
import page_tables


def test_rows_of_the_page_are_what_the_scenario_gives():
    chosen = {
        "sweep.axis.threshold.values": ["0.02 BDP", "0.17 BDP"],
        "sweep.axis.threshold.labels": ["0.02", "0.17"],
    }
    head, line, *rows = script.table(script.measure(chosen))
    written = page_tables.written(script.PAGE, script.TABLE)
    assert written[:2] == [head, line]
    assert len(rows) == 2
    assert set(rows) <= set(written)
