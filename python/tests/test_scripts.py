"""Programs of scripts/ and benches/: fuzz targets, the check of the language, probes, a figure."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT, real
from fuzzing import TARGETS
from hypothesis import given
from hypothesis import strategies as st

import fuzz
import language
import record_probes
from probes import recording, wire
from probes.connection import Event, Left, Options
from probes.families import all_probes
from probes.kernel import State
from probes.probe import Receiver

#: Replacements for parts of an input: values of other types, and unbalanced ends.
PIECES = [b"1", b"true", b"[]", b"{}", b'""', b"null", b"[1]", b"=", b'"', b"-1e999", b"\xff"]


def corpus(name: str) -> list[bytes]:
    inputs = fuzz.corpus(name)
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
    for _ in range(500):
        data = bytearray(valid)
        for _ in range(draw.randint(1, 3)):
            start = draw.randrange(len(data) + 1)
            data[start : start + draw.choice([0, 1, 2, 8, 40])] = draw.choice(PIECES)
        TARGETS[name](bytes(data))


@given(st.sampled_from(sorted(TARGETS)), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(name: str, data: bytes):
    TARGETS[name](data)


def test_the_dictionary_of_scenarios_has_keys_and_values():
    words = fuzz.dictionary_of_scenarios().splitlines()
    assert {'"device_queue"', '"codel"', '"100 ms"', '"linux"'} <= set(words)


def test_an_archive_holds_each_input_once_and_depends_on_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path)
    monkeypatch.setattr(fuzz, "BUILT", tmp_path / "built")
    archive = tmp_path / "queue.tar.gz"
    assert fuzz.corpus("queue") == []
    fuzz.pack("queue", [b"\xff\x00", b"", b"\xff\x00"])
    first = archive.read_bytes()
    assert sorted(fuzz.corpus("queue")) == [b"", b"\xff\x00"]
    (tmp_path / "failed").write_bytes(b"new")
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "queue", "--add", str(tmp_path / "failed")])
    assert fuzz.main() == 0
    assert sorted(fuzz.corpus("queue")) == [b"", b"new", b"\xff\x00"]
    files = sorted(file.read_bytes() for file in fuzz.unpack("queue").iterdir())
    assert files == [b"", b"new", b"\xff\x00"]
    fuzz.pack("queue", [b"", b"\xff\x00"])
    assert archive.read_bytes() == first


def test_openings_widths_and_words_are_found_in_rust():
    text = "/// Whether it is on.\nlet on = 1; // it is told so\n" + "/// Bytes.\n" + "a" * 101
    found, opened, docs = language.check_text("a.rs", text)
    assert opened == ["a.rs:1: opens with a question word: Whether it is on."]
    assert docs == 2
    assert found == [
        "a.rs:4: 101 columns, at most 100",
        "a.rs:2: “is told”: write is reported, is given",
    ]


def test_openings_and_words_are_found_in_python():
    lines = ['"""How it works.', "", 'As Linux has it."""', "#: Which file.", "FILE = 1"]
    found, opened, docs = language.check_text("a.py", "\n".join(lines))
    assert [each.partition(": ")[0] for each in opened] == ["a.py:1", "a.py:4"]
    assert docs == 2
    assert found == ["a.py:3: “As Linux has it”: write as in"]


def test_pragmas_of_linters_do_not_count():
    line = "x = " + "1" * 90 + "  # type: ignore[assignment]"
    assert language.check_text("a.py", line) == ([], [], 0)


FILE = Path(__file__).parents[2] / "crates/tcp/tests/probes/linux-6.18.txt"
STATE = State("recovery", 11, 7, 16, 3, 1, 1, 1, 268.0, 66.5, 13.1)


def recorded() -> dict[str, str]:
    text = FILE.read_text()
    blocks = text.split("probe ")[1:] if text.startswith("probe ") else text.split("\nprobe ")[1:]
    return {block.split(" ", 1)[0]: f"probe {block.rstrip()}\n" for block in blocks}


def test_the_recording_is_of_probes_that_there_are_and_reads_as_the_recorder_writes():
    options = {probe.name: str(probe.options) for probe in all_probes()}
    found = recorded()
    assert len(found) > 170
    for name, text in found.items():
        first, *events = text.splitlines()
        assert first == f"probe {name} {options[name]}"
        assert len(events) > 2
        for line in events:
            assert recording.LINE.fullmatch(line), line


def test_the_header_says_what_the_columns_are():
    release = FILE.read_text().split(":", 1)[0].removeprefix("# Linux ")
    there = recording.header(record_probes.TIMES).replace(os.uname().release, release)
    assert FILE.read_text().startswith(there)


def test_an_event_is_written_with_what_left_joined():
    data = [Left(2000, 3000, 2, cwr=False, capable=False)]
    data += [Left(n, n + 1000, 1, cwr=False, capable=True) for n in (20_000, 21_000)]
    data += [
        Left(22_000, 23_000, 1, cwr=True, capable=True),
        Left(5, 5, 0, cwr=False, capable=False),
    ]
    events = [Event(5.2, "ack 2 sack 3:6 echo 0#1 ece", data, STATE)]
    text = recording.text_of("a/probe-reno", str(Options(ecn=True)), events)
    assert text.splitlines() == [
        "probe a/probe-reno reno sack ts ecn",
        "+5.2 ack 2 sack 3:6 echo 0#1 ece|2:3 20:22e 22:23we probe"
        "|recovery 11 7 16 268 66.5 13.1 1 1 1 3",
    ]
    assert recording.LINE.fullmatch(text.splitlines()[1])


def test_takes_are_alike_if_only_times_differ_a_little():
    one = [Event(5.0, "pause", [], STATE), Event(40.0, "timer", [], STATE)]
    late = [one[0], Event(44.0, "timer", [], replace(STATE, rtt=67.0))]
    assert recording.differ(one, late) == ""
    assert "after" in recording.differ(one, [Event(9.0, "pause", [], STATE), one[1]])
    assert "recovery" in recording.differ(
        one, [one[0], Event(40.0, "timer", [], replace(STATE, cwnd=12))]
    )
    assert recording.differ(one, one[:1]) == "2 events and 1"


def test_a_packet_that_is_written_reads_as_it_was():
    peer, kernel = (bytes([10, 1, 0, 1]), 4000), (bytes([10, 0, 0, 1]), 33_000)
    answer = wire.Answer(7, 2**32 + 9, wire.ACK | wire.ECE, 80_000, (5, 6), ((1, 2),))
    packet = wire.write(answer, peer, kernel)
    assert wire.checksum(packet[:20]) == 0
    sent = wire.read(packet)
    assert sent is not None
    assert (sent.seq, sent.ack, sent.flags) == (7, 9, wire.ACK | wire.ECE)
    assert (sent.length, sent.stamp, sent.source) == (0, 5, peer)


def test_the_receiver_reports_blocks_the_newest_first_and_what_arrived_twice():
    receiver = Receiver()
    assert not receiver.take(0, "0#1")
    assert receiver.take(2, "2#1")
    assert receiver.take(4, "4#1")
    assert receiver.above == [(4, 5), (2, 3)]
    assert receiver.take(2, "2#2")
    assert receiver.duplicate == (2, 3)
    assert receiver.take(1, "1#2")
    assert (receiver.next, receiver.above) == (3, [(4, 5)])


@real
@pytest.mark.testbed
def test_this_kernel_does_what_was_recorded():
    if not os.uname().release.startswith("6.18."):
        pytest.skip("recorded on Linux 6.18")
    names = ["holes/one-reno", "slow-start/an-ack-for-two-reno", "undo/by-echo-reno"]
    texts, left_out = record_probes.record(names)
    assert not left_out
    found = recorded()
    for name in names:
        assert recording.same_lines(texts[name], found[name]), texts[name]


def test_growth_is_drawn_by_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import growth

    points = [growth.Point(1, 1000, 130.0, 10**6), growth.Point(100, 1000, 125.0, 10**7)]
    (panel,) = growth.draw({"flows": points, "hops": points[:1]}).panels
    assert [(line.label, line.x, line.y) for line in panel.lines] == [
        ("flows", [1, 100], [130.0, 125.0]),
        ("hops", [1], [130.0]),
    ]
    assert panel.x_log
    assert panel.y_log
