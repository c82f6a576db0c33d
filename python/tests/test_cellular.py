"""Repeats part of the measurements of the page about cellular links."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp

import pytest

import cellular as script
import page_tables


def cells(table: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]


def test_the_table_of_the_page_is_what_the_scenario_gives():
    codel = {"sweep.axis.queue.values": ["codel"], "sweep.axis.queue.labels": ["CoDel"]}
    found = cells(script.table(script.measure(codel)))
    head, _, *rows = cells(page_tables.written(script.PAGE, script.TABLE))
    columns = [head.index(name) for name in found[0]]
    assert [[row[i] for i in columns] for row in rows] == found[2:]


def test_a_trace_is_a_poisson_process_whose_rate_stays_within_its_bounds():
    still = replace(script.LINKS["fast"], sigma=0.0)
    passes = still.trace(60)
    # 30,000 are expected, and √30,000 more or less.
    assert len(passes) == pytest.approx(30_000, abs=4 * 30_000**0.5)
    assert passes == sorted(passes)
    # Gaps are exponential, of 2 ms in the mean: three milliseconds or more, from anywhere in one.
    long = sum(after - before >= 3 for before, after in pairwise(passes)) / len(passes)
    assert long == pytest.approx(2 * exp(-1.5) * (exp(0.5) - 1), abs=4 * (0.29 / 30_000) ** 0.5)
    moved = replace(still, sigma=1e6).trace(60)
    most = max(sum(at // 1000 == second for at in moved) for second in range(60))
    assert most < 1000 + 4 * 1000**0.5
