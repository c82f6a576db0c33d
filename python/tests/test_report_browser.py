"""Reports and notebooks in a browser: drawn without complaint, answering the pointer, printed.

Screenshots are left in pytest's temporary directory (`--basetemp`). A real kernel runs the cells of
the notebook.
"""

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
import numpy as np
import polars as pl
import pytest
import specs
from conftest import SHORT, SWEEP
from PIL import Image
from test_plots import drawn
from test_report import HOSTILE, page_of

import cwnd
from cwnd import report
from cwnd.report.colours import page_colours

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason=f"none of {', '.join(chromium.NAMES)} is installed"
)

#: Every panel of every figure has been drawn.
DRAWN = "[...document.querySelectorAll('.plot')].every((p) => p.querySelector('.marks'))"
#: Script: scrolls through the whole page and back to its top.
SCROLL = """(async () => {
    for (let y = 0; y < document.body.scrollHeight; y += innerHeight / 2) {
        scrollTo(0, y);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
    }
    scrollTo(0, 0);
})()"""
#: Script: the position of the first point of the sweep.
FIRST_POINT = """(() => {
    const box = document.querySelector('#r1-sweep .mark-symbol path').getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
})()"""
#: The numbers at the labelled ticks along x of each panel, and their places.
TICKS = """[...document.querySelectorAll('#r1-timeseries .plot')].map((plot) => {
    const { left, width } = plot.querySelector('.root .background').getBoundingClientRect();
    const labels = [...plot.querySelectorAll('.role-axis-label')][0].querySelectorAll('text');
    return [...labels].filter((text) => text.textContent && text.getAttribute('opacity') !== '0')
        .map((text) => {
            const box = text.getBoundingClientRect();
            return [Number(text.textContent), ((box.left + box.right) / 2 - left) / width];
        });
})"""
#: The ends of x of each panel, read from the labels of its ticks.
RANGES = f"""{TICKS}.map((ticks) => {{
    const [a, p] = ticks[0], [b, q] = ticks.at(-1), each = (b - a) / (q - p);
    return [a - p * each, a + (1 - p) * each].map((v) => Math.round(v * 200) / 200);
}})"""

#: Moves a pointer of a kind over the first panel over time.
DRAG = """(() => {
    const drawing = document.querySelector('#r1-timeseries .drawing');
    drawing.setPointerCapture = () => {};
    const { left, top, width } = drawing.querySelector('.root .background').getBoundingClientRect();
    for (const [type, part] of [['down', 0.2], ['move', 0.5], ['up', 0.8]])
        drawing.dispatchEvent(new PointerEvent(`pointer${type}`, {
            pointerType: '%s', button: 0, clientX: left + part * width, clientY: top + 5,
        }));
})()"""
#: The colours behind the panels.
PAPERS = (
    "new Set([...document.querySelectorAll('.plot svg')].map((svg) => svg.style.backgroundColor))"
)

#: Script: the state of a page that is printed.
AT_PRINT = """(() => {
    const plots = [...document.querySelectorAll('.plot')];
    const { left, width } = document.body.getBoundingClientRect();
    const right = (element) => element.getBoundingClientRect().right - left;
    return {
        drawn: plots.every((plot) => plot.querySelector('.marks')),
        papers: [...PAPERS],
        width,
        widest: Math.max(...[...document.querySelectorAll('svg.marks, table')].map(right)),
        closed: document.querySelectorAll('details:not([open])').length,
    };
})()""".replace("PAPERS", PAPERS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    with chromium.Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def file(sweep: cwnd.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.write([sweep], tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def page(browser: chromium.Chromium, file: Path) -> Iterator[chromium.Chromium]:
    """The report on a screen, drawn from top to bottom."""
    shown(browser, file, 1280, 900)
    yield browser
    assert browser.complaints() == []


#: Texts of a drawing that leave it, or cover each other by more than a pixel.
COVERED = """((root) => {
    const outer = root.getBoundingClientRect();
    const texts = [...root.querySelectorAll('text')].filter((text) => text.textContent.trim());
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()])
        .filter(([, box]) => box.width > 0);
    const found = boxes.filter(([, box]) => box.left < outer.left - 1 || box.right > outer.right + 1
        || box.top < outer.top - 1 || box.bottom > outer.bottom + 1).map(([text]) => text);
    boxes.forEach(([one, a], index) => boxes.slice(index + 1).forEach(([other, b]) => {
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
            found.push(`${one} | ${other}`);
    }));
    return found;
})"""


def long_labels(tmp_path: Path) -> cwnd.Run:
    """A sweep over an axis whose values are called as long as those of two paths are."""
    values = [f'["uniform(10 ms, {n} ms)", "uniform(20 ms, {n} ms)"]' for n in range(40, 45)]
    groups = "".join(
        f'[flow.{name}]\nrtt = "20 ms"\n'
        for name in ("short", "a-group-with-a-name-that-is-as-long-as-people-write-them")
    )
    axis = f"""{groups}
[sweep.axis.rtts]
path = ["flow.short.rtt", "flow.a-group-with-a-name-that-is-as-long-as-people-write-them.rtt"]
values = [{", ".join(values)}]
[sweep.axis.queue]
path = "dumbbell.queue"
values = ["codel", {{ kind = "pie", target = "10 ms" }}]
"""
    (tmp_path / "labels.toml").write_text(SHORT.split("[flow.main]")[0] + axis)
    return cwnd.run(tmp_path / "labels.toml")


def test_texts_of_figures_and_reports_can_be_read_in_a_browser(
    browser: chromium.Chromium, tmp_path: Path
):
    run = long_labels(tmp_path)
    browser.show_as(1000, 1400)
    for figure in drawn(run, tmp_path):
        browser.open(figure)
        assert browser.evaluate(f"{COVERED}(document.documentElement)") == [], figure.name
    for width in (1280, 390):
        shown(browser, report.write([run], tmp_path / "report.html"), width, 900)
        found = browser.evaluate(f"[...document.querySelectorAll('.plot svg')].flatMap({COVERED})")
        assert found == []
        labels = "[...document.querySelectorAll('#r1-sweep .role-axis-label text')]"
        marks = f"{labels}.map((mark) => mark.textContent)"
        assert any("uniform" in mark for mark in browser.evaluate(marks)), browser.evaluate(marks)


def shown(browser: chromium.Chromium, file: Path, width: int, height: int, **how: Any) -> None:
    browser.events.clear()
    browser.show_as(width, height, **how)
    browser.open(file)
    browser.until("document.documentElement.dataset.figures === 'ready'")
    browser.evaluate(SCROLL)
    browser.until(DRAWN)


def rgb(scheme: str) -> str:
    """The colour of a page as a browser writes it."""
    paper = page_colours(scheme)["paper"]
    return f"rgb({', '.join(str(int(paper[i : i + 2], 16)) for i in (1, 3, 5))})"


def pixels(png: Path) -> np.ndarray:
    return np.asarray(Image.open(png).convert("RGB")).astype(int)


def has_colour(picture: np.ndarray, colour: str) -> bool:
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return bool((abs(picture - wanted).max(axis=2) <= 2).any())


def test_every_figure_is_drawn(page: chromium.Chromium, sweep: cwnd.Run):
    panels = {
        name: page.evaluate(f"document.querySelectorAll('#r1-{name} svg.marks').length")
        for name in ("sweep", "timeseries", "windows", "qdelay")
    }
    assert panels == {"sweep": 3, "timeseries": 3, "windows": 3, "qdelay": 3}
    assert page.evaluate("document.getElementById('failure').hidden")
    # A mean of each of the three RTTs and the two arms.
    assert page.evaluate("document.querySelectorAll('#r1-sweep .mark-symbol path').length") == 3 * 6
    # Where all seeds give the same value there is no interval.
    drawn = page.evaluate("document.querySelectorAll('#r1-sweep .mark-rule.role-mark line').length")
    panels = page_of(sweep).figures["r1-sweep"]["choices"][0]["panels"]
    assert 0 < drawn == sum(len(rows) for p in panels for rows in specs.intervals(p).values())


def test_a_point_says_its_value_where_the_pointer_is(page: chromium.Chromium, sweep: cwnd.Run):
    first = sweep.summary().filter(pl.col("arm") == "NewReno", pl.col("rtt") == "10 ms")
    page.move_to(*page.evaluate(FIRST_POINT))
    text = page.until("document.querySelector('#r1-sweep .bubble[style*=block]').textContent")
    assert "NewReno" in text
    assert "rtt 10 ms" in text
    said = text.partition("Goodput: ")[2]
    value, unit = said.partition(" ")[0], said.partition("Mbit/s")[1]
    assert unit == "Mbit/s"
    assert float(value) == pytest.approx(first["goodput_bit_s"][0] / 1e6, rel=1e-3)
    page.move_to(0, 0)


def test_a_line_over_time_says_all_values_of_a_moment(page: chromium.Chromium):
    box = page.evaluate(
        "(() => { const p = document.querySelector('#r1-timeseries .plot');"
        "p.scrollIntoView({block: 'center'});"
        "const b = p.querySelector('.root .background').getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    page.move_to(*box)
    text = page.until("document.querySelector('#r1-timeseries .bubble[style*=block]').textContent")
    assert "cwnd" in text
    assert "ssthresh" in text
    page.move_to(0, 0)


def test_a_drag_zooms_all_panels_of_the_figure_and_a_double_click_zooms_back(
    page: chromium.Chromium,
):
    whole = page.evaluate(RANGES)
    x, y, width = page.evaluate(
        "(() => { const p = document.querySelector('#r1-timeseries .plot');"
        "p.scrollIntoView({block: 'center'});"
        "const b = p.querySelector('.root .background').getBoundingClientRect();"
        "return [b.x, b.y + b.height / 2, b.width]; })()"
    )
    mouse = {"button": "left", "clickCount": 1}
    start, end = x + width * 0.25, x + width * 0.75
    page.move_to(start, y)
    page.call("Input.dispatchMouseEvent", type="mousePressed", x=start, y=y, **mouse)
    for part in range(1, 6):
        at = start + (end - start) * part / 5
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=at, y=y, buttons=1, **mouse)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=end, y=y, **mouse)
    page.until(f"JSON.stringify({RANGES}) !== {str(whole).replace(' ', '')!r}")
    page.until(f"new Set({RANGES}.map((r) => r.join())).size === 1")
    low, high = page.evaluate(RANGES)[0]
    assert (high - low) / (whole[0][1] - whole[0][0]) == pytest.approx(0.5, abs=0.02)
    # The part that was dragged over.
    assert low == pytest.approx(whole[0][0] + (whole[0][1] - whole[0][0]) / 4, abs=0.02)
    for count in (1, 2):
        click = {"x": start, "y": y, "button": "left", "clickCount": count}
        page.call("Input.dispatchMouseEvent", type="mousePressed", **click)
        page.call("Input.dispatchMouseEvent", type="mouseReleased", **click)
    page.until(f"{RANGES}.every((r) => r[1] - r[0] >= {0.99 * (whole[0][1] - whole[0][0])})")


def test_the_keyboard_zooms_moves_and_chooses(page: chromium.Chromium):
    whole = page.evaluate(RANGES)
    page.evaluate("document.querySelector('#r1-timeseries .plot').focus()")

    def press(key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key=key)

    press("+")
    page.until(f"{RANGES}.every((r) => r[1] < {whole[0][1]} && r[0] > {whole[0][0]})")
    zoomed = page.evaluate(RANGES)[0]
    press("ArrowRight")
    page.until(f"{RANGES}.every((r) => r[0] > {zoomed[0]})")
    press("0")
    page.until(f"{RANGES}.every((r) => r[1] >= {whole[0][1]} - 0.001)")

    # A button of the legend hides its line in all panels.
    lines = "document.querySelectorAll('#r1-sweep .mark-line path').length"
    assert page.evaluate(lines) == 6
    page.evaluate("document.querySelector('#r1-sweep .legend button').focus()")
    press_space = {"key": " ", "code": "Space", "text": " ", "windowsVirtualKeyCode": 32}
    page.call("Input.dispatchKeyEvent", type="keyDown", **press_space)
    page.call("Input.dispatchKeyEvent", type="keyUp", **press_space)
    page.until(f"{lines} === 3")
    pressed = "document.querySelector('#r1-sweep .legend button').getAttribute('aria-pressed')"
    assert page.evaluate(pressed) == "false"


def test_another_metric_and_another_run_can_be_chosen(page: chromium.Chromium):
    choose = (
        "(() => { const s = document.querySelector('#%s select');"
        "s.value = [...s.options].find((o) => o.textContent === '%s').value;"
        "s.dispatchEvent(new Event('change')); })()"
    )
    page.evaluate(choose % ("r1-sweep", "Marks"))
    page.until("document.querySelectorAll('#r1-sweep .plot').length === 1")
    titles = "[...document.querySelectorAll('#r1-sweep .role-axis-title')]"
    assert page.evaluate(f"{titles}.at(-1).textContent") == "Marks"
    path = "document.querySelector('#r1-timeseries .mark-line path')?.getAttribute('d')"
    before = page.evaluate(path)
    page.evaluate(choose % ("r1-timeseries", "NewReno, rtt = 40 ms"))
    page.until(f"{DRAWN} && {path}")
    assert page.evaluate(path) != before


def test_nothing_offers_to_send_results_away(page: chromium.Chromium):
    buttons = page.evaluate(
        "[...new Set([...document.querySelectorAll('.plot button')].map((b) => b.title))]"
    )
    assert buttons == ["Zoom in", "Zoom out", "Show all", "Save as PNG"]
    # vega-embed's menu would open an editor in the network.
    assert page.evaluate("document.querySelectorAll('.plot a, .vega-actions').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_legible_in_light_and_in_the_dark(
    browser: chromium.Chromium, file: Path, pictures: Path, scheme: str
):
    shown(browser, file, 1280, 900, scheme=scheme)
    browser.screenshot(pictures / f"{scheme}.png")
    picture = pixels(pictures / f"{scheme}.png")
    palette = page_colours(scheme)
    # The page, the text, and both arms, in the colours whose contrast is tested elsewhere.
    for name in ("paper", "ink", "muted", "rule", "0", "1"):
        assert has_colour(picture, palette[name]), name
    assert browser.complaints() == []


def test_a_change_of_scheme_draws_again_and_stays_zoomed(page: chromium.Chromium):
    page.evaluate("document.querySelector('#r1-timeseries .plot button').click()")
    page.until(f"{RANGES}.every((r) => r[1] - r[0] < 1.5)")
    zoomed = page.evaluate(RANGES)
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    page.call("Emulation.setEmulatedMedia", features=[feature])
    page.until(f"[...{PAPERS}].join() === '{rgb('dark')}'")
    assert page.evaluate(RANGES) == zoomed


def test_a_page_fits_a_phone(browser: chromium.Chromium, file: Path, pictures: Path):
    shown(browser, file, 390, 844, mobile=True)
    browser.screenshot(pictures / "phone.png")
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    lefts = "[...document.querySelectorAll('.plot')].map((p) => p.getBoundingClientRect().x)"
    assert len(set(browser.evaluate(lefts))) == 1
    # A finger that moves over a figure scrolls.
    before = browser.evaluate(RANGES)
    browser.evaluate(DRAG % "touch")
    assert browser.evaluate(RANGES) == before
    browser.evaluate(DRAG % "mouse")
    browser.until(f"JSON.stringify({RANGES}) !== {str(before).replace(' ', '')!r}")
    assert browser.complaints() == []


def test_paper_gets_all_figures_in_light(browser: chromium.Chromium, file: Path, pictures: Path):
    # From a dark screen, and from the top: nothing below was ever drawn.
    browser.events.clear()
    browser.show_as(1280, 900, scheme="dark")
    browser.open(file)
    browser.until("document.documentElement.dataset.figures === 'ready'")
    browser.evaluate(f"addEventListener('beforeprint', () => {{ window.atPrint = {AT_PRINT}; }})")
    browser.pdf(pictures / "paper.pdf")
    at_print = browser.evaluate("window.atPrint")
    assert at_print["drawn"]
    assert at_print["papers"] == [rgb("light")]
    assert at_print["closed"] == 0
    # Within 210 mm of A4 without the margins of 12 mm, at 96 pixels an inch.
    assert at_print["widest"] <= at_print["width"] + 1 <= 186 / 25.4 * 96
    printed = (pictures / "paper.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000
    # The screen is as it was.
    assert browser.evaluate("document.querySelectorAll('details[open]').length") == 0
    browser.until(f"[...{PAPERS}].join() === '{rgb('dark')}'")
    assert browser.complaints() == []


def test_what_a_scenario_says_is_never_run(browser: chromium.Chromium, tmp_path: Path):
    label = "<img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>"
    text = SWEEP.replace("[run]", f"description = '''{HOSTILE}'''\n\n[run]")
    (tmp_path / "hostile.toml").write_text(text.replace('"NewReno+ABE"]', f'"{label}"]'))
    run = cwnd.run(tmp_path / "hostile.toml")
    shown(browser, report.write([run], tmp_path / "report.html"), 1280, 900)
    browser.move_to(*browser.evaluate(FIRST_POINT))
    browser.until("document.querySelector('#r1-sweep .bubble[style*=block]').textContent")
    assert browser.evaluate("window.hacked") is None
    legend = "[...document.querySelectorAll('#r1-sweep .legend button')].at(-1).textContent.trim()"
    assert browser.evaluate(legend) == label
    assert browser.evaluate("document.querySelector('.question').textContent") == HOSTILE
    assert browser.complaints() == []


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


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
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


def test_a_result_is_shown_once_as_one_table_and_one_picture(notebook: chromium.Chromium):
    quiet, result, picture, frame, groups = notebook.evaluate(SHOWN)
    assert quiet["outputs"] == 0, "running says nothing"
    assert (result["outputs"], result["tables"], result["listings"]) == (1, 1, 0)
    assert [each["loaded"] for each in result["pictures"]] == [True]
    assert (picture["outputs"], picture["tables"], len(picture["pictures"])) == (1, 0, 1)
    assert (frame["outputs"], frame["tables"], len(frame["pictures"])) == (1, 1, 0)
    assert (groups["outputs"], groups["tables"], len(groups["pictures"])) == (1, 2, 1)


def test_pictures_are_as_large_in_a_result_as_by_themselves_and_not_blown_up(
    notebook: chromium.Chromium,
):
    _, result, picture, *_ = notebook.evaluate(SHOWN)
    sizes = {each["pictures"][0]["width"] for each in (result, picture)}
    assert len(sizes) == 1
    assert all(400 < size < each["natural"] for size in sizes for each in picture["pictures"])


def test_the_columns_of_the_table_line_up(notebook: chromium.Chromium):
    rows = notebook.evaluate(TEXTS)
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
