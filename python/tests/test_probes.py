"""The recorder of probes: what it writes, and that this kernel still does what was recorded."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import real

import record_probes as script
from probes import recording, wire
from probes.connection import Event, Left, Options
from probes.families import all_probes
from probes.kernel import State
from probes.path import Receiver

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
    there = recording.header(script.TIMES).replace(os.uname().release, release)
    assert FILE.read_text().startswith(there)


def test_an_event_is_written_with_what_left_joined():
    data = [Left(2000, 3000, 2, cwr=False, capable=False)]
    data += [Left(n, n + 1000, 1, cwr=False, capable=True) for n in (20_000, 21_000)]
    data += [
        Left(22_000, 23_000, 1, cwr=True, capable=True),
        Left(5, 5, 0, cwr=False, capable=False),
    ]
    events = [Event(5.2, "ack 2000 sack 3000:6000 echo 0#1 ece", data, STATE)]
    text = recording.text_of("a/probe-reno", str(Options(ecn=True)), events)
    assert text.splitlines() == [
        "probe a/probe-reno reno sack ts ecn",
        "+5.2 ack 2000 sack 3000:6000 echo 0#1 ece | 2000:3000 20000:22000e 22000:23000we probe "
        "| recovery 11 7 16 3 1 1 1 268 66.5 13.1",
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
    texts, left_out = script.record(names)
    assert not left_out
    found = recorded()
    for name in names:
        assert recording.same_lines(texts[name], found[name]), texts[name]
