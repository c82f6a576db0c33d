"""Our results beside those of ns-2, ns-3 and Linux."""

import re
from pathlib import Path

import pytest
from peers.explain import EXPLANATIONS
from peers.judge import Comparison, compare
from peers.page import fingerprint
from peers.rows import load_all

PAGE = Path(__file__).resolve().parents[2] / "docs" / "peers.md"


@pytest.fixture(scope="module")
def judged() -> list[Comparison]:
    found = compare(row for row in load_all() if row.by_value)
    assert not [c.row.key for c in found if c.missing]
    return found


def test_the_rows_that_do_not_hold_are_those_that_are_explained(judged: list[Comparison]) -> None:
    explained = {key for explanation in EXPLANATIONS for key in explanation.rows}
    assert {c.row.key for c in judged if not c.holds} == explained


def test_the_page_says_what_the_runs_give(judged: list[Comparison]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"inputs {fingerprint()} " in page, "docs/peers.md is stale; run make docs"
    verdicts = re.findall(r"^\| \d+ \|.*\| (holds|differs: .*) \|$", page, re.MULTILINE)
    assert verdicts == ["holds" if c.holds else "differs: " + ", ".join(c.differs) for c in judged]
