"""The Python targets of the fuzzers, on what was found before and on damaged copies of that."""

from __future__ import annotations

import random

import pytest
from conftest import ROOT
from fuzzing import TARGETS
from hypothesis import given
from hypothesis import strategies as st

import fuzz as script

CORPUS = ROOT / "fuzz" / "corpus"
#: What is put in the place of something else: of another kind, or an end too early.
PIECES = [b"1", b"true", b"[]", b"{}", b'""', b"null", b"[1]", b"=", b'"', b"-1e999", b"\xff"]


def corpus(name: str) -> list[bytes]:
    files = sorted((CORPUS / name).iterdir())
    assert len(files) >= 5
    return [file.read_bytes() for file in files]


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
