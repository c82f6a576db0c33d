"""The tables of the page on source quenches that a script makes: some rows are measured again."""

from __future__ import annotations

import importlib.util

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("choices", ROOT / "scripts/becn_choices.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_measured_again_are_those_of_the_page(script):
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
