"""A result in a notebook: a real kernel runs the cells, and a browser shows what came of them."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chromium
import pytest
from conftest import SWEEP

if TYPE_CHECKING:
    from collections.abc import Iterator

CELLS = (
    'import cwnd\nr = cwnd.run("sweep.toml")',
    "r",
    "r.plot()",
    "r.flows",
    'two = cwnd.run("groups.toml")\ntwo',
)
#: Another group of flows; they bring a table of their own.
GROUPS = (
    SWEEP.replace("[flow.main]", "[flow.first]").replace("flow.main", "flow.first")
    + '\n[flow.second]\nrtt = "20 ms"\n'
)

#: Script: the outputs that each cell of the notebook shows.
SHOWN = """[...document.querySelectorAll('.jp-CodeCell')].map((cell) => ({
    outputs: cell.querySelectorAll('.jp-OutputArea-output').length,
    tables: cell.querySelectorAll('.jp-OutputArea table').length,
    listings: cell.querySelectorAll('.jp-OutputArea pre').length,
    pictures: [...cell.querySelectorAll('.jp-OutputArea img')].map((picture) => ({
        loaded: picture.complete && picture.naturalWidth > 0,
        width: picture.getBoundingClientRect().width,
        natural: picture.naturalWidth,
    })),
}))"""
#: Script: positions of the texts in the result's table, row by row. A cell's own box is as wide as
#: its column, whatever it contains.
TEXTS = """[...document.querySelectorAll('.jp-CodeCell')[1].querySelectorAll('tr')].map((row) =>
    [...row.cells].map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        const { left, right } = range.getBoundingClientRect();
        return { text: cell.innerText, left, right, heading: cell.tagName === 'TH' };
    }))"""

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason=f"none of {', '.join(chromium.NAMES)} is installed"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    directory = tmp_path_factory.mktemp("notebook")
    (directory / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    (directory / "groups.toml").write_text(GROUPS, encoding="utf-8")
    (directory / "look.ipynb").write_text(json.dumps(_notebook()), encoding="utf-8")
    with chromium.Chromium(directory / "profile") as browser:
        browser.show_as(1200, 900)
        browser.open(_executed(directory))
        browser.screenshot(directory / "look.png")
        yield browser


def _notebook() -> dict[str, Any]:
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "source": source,
            "metadata": {},
            "execution_count": None,
            "outputs": [],
        }
        for number, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _executed(directory: Path) -> Path:
    """The notebook after all its cells ran, as JupyterLab shows it."""
    # Nothing of the user's own Jupyter is asked, and nothing of it is changed.
    homes = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "look.ipynb"],
        cwd=directory,
        env={**os.environ, **{name: str(directory / name.lower()) for name in homes}},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file = directory / "look.html"
    # Scripts of other sites set formulas; there are none.
    html = re.sub(r"<script[^>]* src=.*?</script>", "", file.read_text("utf-8"), flags=re.DOTALL)
    file.write_text(html, encoding="utf-8")
    return file


def test_a_result_is_shown_once_as_one_table_and_one_picture(page: chromium.Chromium):
    quiet, result, picture, frame, groups = page.evaluate(SHOWN)
    assert quiet["outputs"] == 0, "running says nothing"
    assert (result["outputs"], result["tables"], result["listings"]) == (1, 1, 0)
    assert [each["loaded"] for each in result["pictures"]] == [True]
    assert (picture["outputs"], picture["tables"], len(picture["pictures"])) == (1, 0, 1)
    assert (frame["outputs"], frame["tables"], len(frame["pictures"])) == (1, 1, 0)
    assert (groups["outputs"], groups["tables"], len(groups["pictures"])) == (1, 2, 1)


def test_pictures_are_as_large_in_a_result_as_by_themselves_and_not_blown_up(
    page: chromium.Chromium,
):
    _, result, picture, *_ = page.evaluate(SHOWN)
    sizes = {each["pictures"][0]["width"] for each in (result, picture)}
    assert len(sizes) == 1
    assert all(400 < size < each["natural"] for size in sizes for each in picture["pictures"])


def test_the_columns_of_the_table_line_up(page: chromium.Chromium):
    rows = page.evaluate(TEXTS)
    assert [len(row) for row in rows] == [len(rows[0])] * 7, "a heading and six points"
    assert [cell["text"] for cell in rows[1]][:2] == ["NewReno", "10 ms"]
    columns = list(zip(*rows, strict=True))
    for index, column in enumerate(columns):
        # What says which row it is stands left, numbers right: headings, too.
        side = "left" if index < 2 else "right"
        edges = [cell[side] for cell in column]
        assert max(edges) - min(edges) < 1, (side, column)
        assert all(cell["text"] for cell in column)
    for before, after in itertools.pairwise(columns):
        assert max(cell["right"] for cell in before) < min(cell["left"] for cell in after)
