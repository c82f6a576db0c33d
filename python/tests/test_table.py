"""Tables on terminals of 60 to 200 columns."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from cwnd.results.table import TextTable

CELLS = ["0", "12.5", "9.31 ±0.25", "1234567"]


@st.composite
def text_tables(draw: st.DrawFn) -> TextTable:
    keys, metrics = draw(st.integers(0, 3)), draw(st.integers(1, 12))
    letters = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1)
    label = letters.map(lambda text: text[:80]) | st.integers(1, 80).map("m".__mul__)
    rows = [
        (
            *(draw(label) for _ in range(keys)),
            *(draw(st.sampled_from(CELLS)) for _ in range(metrics)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    headings = [*(f"axis {n}" for n in range(keys)), *(f"metric {n}\nms" for n in range(metrics))]
    return TextTable("a title", ["about [it]"], keys, headings, rows)


def shown(text_table: TextTable, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        for table in text_table.fitting(width):
            console.print(table)
    return captured.get().splitlines()


@settings(max_examples=150, derandomize=True)
@given(text_tables(), st.sampled_from([60, 80, 200]))
def test_no_column_is_pushed_out_and_no_number_is_cut(text_table: TextTable, width: int):
    lines = shown(text_table, width)
    text = "\n".join(lines)
    assert max(map(cell_len, lines)) <= width
    assert "…" not in text
    words = text.split()
    for row in text_table.rows:
        for cell in row[text_table.keys :]:
            assert cell in text
    for number in range(len(text_table.headings) - text_table.keys):
        assert f"metric {number}" in text
    # Each letter of a label is there, however it is broken.
    letters = {
        letter for row in text_table.rows for key in row[: text_table.keys] for letter in key
    }
    assert letters - set(" ") <= set("".join(words))


def test_a_label_that_is_too_long_is_broken_into_lines():
    label = "uniform(10 ms, 40 ms), uniform(10 ms, 41 ms)"
    row = (label, *(["95.8"] * 12))
    headings = ["rtts", *(f"number {n}" for n in range(12))]
    text_table = TextTable("title", ["after the warm-up"], 1, headings, [row])
    lines, parts = shown(text_table, 80), len(text_table.fitting(80))
    assert parts > 1
    first = " ".join(line[:44].strip() for line in lines[4:8])
    assert "uniform(10 ms, 40 ms)," in first
    assert sum("rtts" in line for line in lines) == parts, "each part says what it is of"
    assert sum("after the warm-up" in line for line in lines) == 1


def test_a_table_that_fits_is_one():
    text_table = TextTable("title", [], 1, ["arm", "goodput"], [("[bold]x[/]", "9.5")])
    assert len(text_table.fitting(80)) == 1
    assert any("[bold]x[/]" in line for line in shown(text_table, 80)), "a label is no markup"
