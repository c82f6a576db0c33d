"""The check of how the tree is written finds what it is for."""

from __future__ import annotations

import language as script


def test_openings_widths_and_words_are_found_in_rust():
    text = "/// Whether it is on.\nlet on = 1; // it is told so\n" + "/// Bytes.\n" + "a" * 101
    found, opened, docs = script.check_text("a.rs", text)
    assert opened == ["a.rs:1: opens with a question word: Whether it is on."]
    assert docs == 2
    assert found == [
        "a.rs:4: 101 columns, at most 100",
        "a.rs:2: “is told”: write is reported, is given",
    ]


def test_openings_and_words_are_found_in_python():
    lines = ['"""How it works.', "", 'As Linux has it."""', "#: Which file.", "FILE = 1"]
    found, opened, docs = script.check_text("a.py", "\n".join(lines))
    assert [each.partition(": ")[0] for each in opened] == ["a.py:1", "a.py:4"]
    assert docs == 2
    assert found == ["a.py:3: “As Linux has it”: write as in"]


def test_pragmas_of_linters_do_not_count():
    line = "x = " + "1" * 90 + "  # type: ignore[assignment]"
    assert script.check_text("a.py", line) == ([], [], 0)
