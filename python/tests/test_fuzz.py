"""The Python targets of the fuzzers, on what was found before and on damaged copies of that."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest
from fuzzing import TARGETS
from hypothesis import given
from hypothesis import strategies as st

import fuzz as script

if TYPE_CHECKING:
    from pathlib import Path

#: Replacements for parts of an input: values of other types, and unbalanced ends.
PIECES = [b"1", b"true", b"[]", b"{}", b'""', b"null", b"[1]", b"=", b'"', b"-1e999", b"\xff"]


def corpus(name: str) -> list[bytes]:
    inputs = script.corpus(name)
    assert len(inputs) >= 5
    return inputs


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_tried_is_read_or_refused(name: str):
    for data in corpus(name):
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_copies_are_read_or_refused(name: str):
    draw = random.Random(name)
    valid = max(corpus(name), key=len)
    for _ in range(2000):
        data = bytearray(valid)
        for _ in range(draw.randint(1, 3)):
            start = draw.randrange(len(data) + 1)
            data[start : start + draw.choice([0, 1, 2, 8, 40])] = draw.choice(PIECES)
        TARGETS[name](bytes(data))


@given(st.sampled_from(sorted(TARGETS)), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(name: str, data: bytes):
    TARGETS[name](data)


def test_the_dictionary_of_scenarios_has_keys_and_values():
    (target,) = (target for target in script.TARGETS if target.name == "scenario")
    words = script.words_of(target.schema).splitlines()
    assert {'"device_queue"', '"codel"', '"100 ms"', '"linux"'} <= set(words)


def test_an_archive_holds_each_input_once_and_depends_on_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(script, "CORPUS", tmp_path)
    monkeypatch.setattr(script, "BUILT", tmp_path / "built")
    archive = tmp_path / "queue.tar.gz"
    assert script.corpus("queue") == []
    script.pack("queue", [b"\xff\x00", b"", b"\xff\x00"])
    first = archive.read_bytes()
    assert sorted(script.corpus("queue")) == [b"", b"\xff\x00"]
    (tmp_path / "failed").write_bytes(b"new")
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "queue", "--add", str(tmp_path / "failed")])
    assert script.main() == 0
    assert sorted(script.corpus("queue")) == [b"", b"new", b"\xff\x00"]
    files = sorted(file.read_bytes() for file in script.unpack("queue").iterdir())
    assert files == [b"", b"new", b"\xff\x00"]
    script.pack("queue", [b"", b"\xff\x00"])
    assert archive.read_bytes() == first
