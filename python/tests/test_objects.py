"""Objects and texts of results that somebody else wrote, with hashes that fit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from cwnd.errors import DamageError
from cwnd.files import Sums, read_object

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "1", '{"a": ', "[" * 100_000, '{"a":' * 100_000, '{"a": "\\ud800"}', b"\xff{}"],
)
def test_what_is_no_object_is_told(text: str | bytes):
    with pytest.raises(ValueError, match=r"."):
        read_object(text)


def test_an_object_is_read():
    assert read_object('{"a": ["ä", "\\ud83d\\ude00"]}') == {"a": ["ä", "😀"]}


def test_a_text_that_is_none_is_damage(tmp_path: Path):
    (tmp_path / "scenario.toml").write_bytes(b"\xda\xff")
    sums = Sums(tmp_path, {"scenario.toml": hashlib.sha256(b"\xda\xff").hexdigest()}, "run it")
    with pytest.raises(DamageError, match="no text in UTF-8; run it"):
        sums.text("scenario.toml")
