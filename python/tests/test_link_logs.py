"""qlog files and captures on the time axis of a link."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import svgs
from test_link import needs_root

from cwnd.errors import InputError
from cwnd.figures import Panel, line_style
from cwnd.link import presentation, read_logs
from cwnd.link.logs import add_to

if TYPE_CHECKING:
    from conftest import Cli

#: A link that ran for 10 s from 1 January 2026 on.
BEGAN_S = 1_767_225_600.0
LINK = {"began_s": BEGAN_S, "elapsed_s": 10.0, "addresses": ["198.18.0.2"]}
EVENTS = [
    ("recovery:metrics_updated", {"congestion_window": 12000, "latest_rtt": 40.0}),
    ("transport:packet_sent", {}),
    ("recovery:metrics_updated", {"bytes_in_flight": 1200}),
    ("recovery:packet_lost", {}),
    ("recovery:metrics_updated", {"congestion_window": 6000, "ssthresh": 6000}),
]
#: Times of these events since the link began, in ms.
TIMES_MS = [1000.0, 1500.0, 2000.0, 2250.0, 2500.0]
ZERO_MS = BEGAN_S * 1e3


def _events(times: list[float], prefix: str = "") -> list[dict[str, Any]]:
    return [
        {"time": time, "name": prefix + name, "data": data}
        for time, (name, data) in zip(times, EVENTS, strict=True)
    ]


def _whole(common: dict[str, Any], times: list[float]) -> str:
    trace = {"vantage_point": {"type": "server"}, "common_fields": common}
    events = _events(times)
    return json.dumps({"qlog_version": "0.3", "traces": [{**trace, "events": events}]})


def _sequence(common: dict[str, Any], times: list[float]) -> str:
    trace = {"vantage_point": {"type": "server"}, "common_fields": common}
    records = [{"qlog_format": "JSON-SEQ", "trace": trace}, *_events(times)]
    return "".join(f"\x1e{json.dumps(record)}\n" for record in records)


_DELTAS = [1000.0, *(after - before for before, after in itertools.pairwise(TIMES_MS))]
FORMATS = {
    "absolute": _whole({"group_id": "abc"}, [ZERO_MS + time for time in TIMES_MS]),
    "relative": _whole(
        {"group_id": "abc", "time_format": "relative", "reference_time": ZERO_MS - 500},
        [500 + time for time in TIMES_MS],
    ),
    "delta": _whole(
        {"group_id": "abc", "time_format": "delta", "reference_time": ZERO_MS}, _DELTAS
    ),
    "a sequence": _sequence(
        {"group_id": "abc", "time_format": "relative", "reference_time": ZERO_MS}, TIMES_MS
    ),
    "a monotonic clock": _sequence(
        {
            "group_id": "abc",
            "reference_time": {
                "clock_type": "monotonic",
                "epoch": "unknown",
                "wall_clock_time": "2026-01-01T00:00:00.000Z",
            },
        },
        TIMES_MS,
    ),
    "since the event before": _sequence(
        {
            "group_id": "abc",
            "time_format": "relative_to_previous_event",
            "reference_time": {"clock_type": "system", "epoch": "2026-01-01T00:00:00.000Z"},
        },
        _DELTAS,
    ),
    "cut off": _sequence(
        {"group_id": "abc", "time_format": "relative", "reference_time": ZERO_MS}, TIMES_MS
    )
    + '\x1e{"time": 3000, "name": "recov',
}


@pytest.mark.parametrize("form", FORMATS)
def test_each_form_of_qlog_has_the_same_metrics(form: str, tmp_path: Path):
    file = tmp_path / "it.qlog"
    file.write_text(FORMATS[form])
    (found,) = read_logs([file], LINK).connections
    assert found.name == "server abc"
    assert found.metrics["time_s"].to_list() == pytest.approx([1.0, 2.0, 2.5], abs=1e-3)
    assert found.metrics["cwnd_bytes"].to_list() == [12000, 12000, 6000]
    assert found.metrics["bytes_in_flight"].to_list() == [None, 1200, 1200]
    assert found.metrics["rtt_ms"].to_list() == [40, 40, 40]
    assert found.lost_s == pytest.approx([2.25], abs=1e-3)


def test_later_names_of_events_are_read_and_a_log_without_time_of_day_ends_when_written(
    tmp_path: Path,
):
    text = _whole({"time_format": "relative"}, TIMES_MS)
    file = tmp_path / "stem.qlog"
    file.write_text(text.replace("recovery:", "quic:recovery_").replace("_packet_l", ":packet_l"))
    os.utime(file, (BEGAN_S + 4, BEGAN_S + 4))
    logs = read_logs([tmp_path], LINK)
    assert logs.connections[0].metrics["time_s"].to_list() == pytest.approx([2.5, 3.5, 4])
    assert logs.connections[0].lost_s == pytest.approx([3.75])
    assert logs.connections[0].name == "server stem"
    assert logs.notes == [
        "stem.qlog has no time of day: its last event is placed at the time at which the file was"
        " last written"
    ]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "is empty: neither qlog nor a capture"),
        ("<html>", "neither qlog nor a capture"),
        ("[1, 2]", "JSON without `traces`"),
        ('{"traces": [{"event_fields": [], "events": []}]}', "qlog of draft 01"),
        ("\x1e{}\n", "its first record has no `trace`"),
        ('\x1e{"trace": {}}\n\x1e{"a\n\x1e{}\n', "record 2 is damaged"),
        (_whole({}, [ZERO_MS - time for time in TIMES_MS]), "no metrics in it are from the time"),
        ('{"traces": []}', "it has 0, from 0 to 0 s"),
        ("[" * 100_000, "not as qlog has it"),
        ('{"traces": [null]}', "not as qlog has it"),
        ('{"traces": [{"common_fields": [1], "events": []}]}', "not as qlog has it"),
        ('{"traces": [{"events": 5}]}', "not as qlog has it"),
        (_whole({"reference_time": [1]}, TIMES_MS), "not as qlog has it"),
        (_whole({}, [10**400] * 5), "not as qlog has it"),
        (_whole({}, ["now", None, [], {}, float("nan")]), "it has 0, from 0 to 0 s"),
    ],
)
def test_what_is_no_log_of_this_link_is_refused(content: str, error: str, tmp_path: Path):
    file = tmp_path / "it"
    file.write_text(content)
    with pytest.raises(InputError, match=error) as refused:
        read_logs([file], LINK)
    assert str(file) in str(refused.value)
    # The file is closed even while the exception, and with it the frames that read it, is kept.
    assert file not in {descriptor.resolve() for descriptor in Path("/proc/self/fd").iterdir()}


def test_values_that_are_no_numbers_change_no_metric(tmp_path: Path):
    trace = json.loads(FORMATS["absolute"])
    events = trace["traces"][0]["events"]
    odd = [{"congestion_window": value} for value in ("1", [1], None, -5, float("inf"), True)]
    at = {"time": ZERO_MS + 3000, "name": "recovery:metrics_updated"}
    trace["traces"][0]["events"] = [*events, 3, None, [], *({**at, "data": data} for data in odd)]
    file = tmp_path / "it.qlog"
    file.write_text(json.dumps(trace))
    (found,) = read_logs([file], LINK).connections
    assert found.metrics["cwnd_bytes"].to_list() == [12000, 12000, *([6000] * 6), 1]


def test_of_a_directory_what_is_not_of_the_link_is_left_out(tmp_path: Path):
    (tmp_path / "a.qlog").write_text(FORMATS["absolute"])
    (tmp_path / "keys.log").write_text("CLIENT_RANDOM 00 00")
    (tmp_path / "old.qlog").write_text(_whole({}, [ZERO_MS - time for time in TIMES_MS]))
    logs = read_logs([tmp_path], LINK)
    assert [each.name for each in logs.connections] == ["server abc"]
    (note,) = logs.notes
    assert note.startswith(f"left out, 2 of 3 files: {tmp_path / 'keys.log'}: neither qlog nor")
    (tmp_path / "a.qlog").unlink()
    with pytest.raises(InputError, match="neither qlog nor a capture"):
        read_logs([tmp_path], LINK)


def test_captures_of_one_name_are_two_and_their_last_interval_is_short(tmp_path: Path):
    packet = bytes.fromhex("450005dc00000000401100000a000001c6120002") + bytes(1480)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    files = [tmp_path / end / "it.pcap" for end in ("client", "server")]
    # A packet each 10 ms, from before the link began until after it ended.
    times = [(n // 100, n % 100 * 10_000) for n in range(-50, 350)]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(
            header
            + b"".join(
                struct.pack("<IIII", int(BEGAN_S) + s, us, len(packet), len(packet)) + packet
                for s, us in times
            )
        )
    logs = read_logs(files, {**LINK, "elapsed_s": 2.2})
    assert [name for name, *_ in logs.captured] == ["it.pcap", str(files[1])]
    panels = [Panel([]), Panel([])]
    add_to(panels, logs, ("downlink", "uplink"))
    downlink, uplink = (panel.lines for panel in panels)
    for line in downlink:
        assert line.x == pytest.approx([0, 0.5, 1, 1.5, 2, 2.2])
        assert line.y == pytest.approx([1.2] * 6)
    assert [set(line.y) for line in uplink] == [{0.0}] * 2
    assert logs.notes == []
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[: len(whole) - 1])
    logs = read_logs(files, LINK)
    assert logs.notes == [
        "it.pcap ends within a packet, after 3.48 s: its line ends with the last whole interval"
    ]
    panels = [Panel([]), Panel([])]
    add_to(panels, logs, ("downlink", "uplink"))
    for cut_off, complete in (panel.lines for panel in panels):
        assert (cut_off.x[-1], complete.x[-1]) == (3, 10)
        assert cut_off.y == complete.y[: len(cut_off.y)]


def test_of_many_connections_the_figure_shows_a_few_and_says_so(tmp_path: Path):
    for n in range(12):
        (tmp_path / f"connection-{n}.qlog").write_text(
            FORMATS["absolute"].replace('"group_id": "abc"', '"x": 1')
        )
    logs = read_logs([tmp_path], LINK)
    assert len({each.name for each in logs.connections}) == 12
    panels = [Panel([]), Panel([])]
    add_to(panels, logs, ("downlink", "uplink"))
    assert len(panels) == 4
    assert len(panels[3].lines) == 5
    assert logs.notes == ["5 of 12 connections are drawn, those with the most metrics"]


def test_a_link_without_its_time_of_day_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="without its time of day"):
        read_logs([tmp_path], {"elapsed_s": 1.0})


@needs_root
@pytest.mark.testbed
@pytest.mark.xdist_group("links")
def test_a_program_of_quic_is_drawn_on_the_time_axis_of_its_link(cli: Cli):
    size, peer = 3_000_000, Path(__file__).parent / "quic_peer.py"

    def end(role: str, *port: str) -> list[str]:
        return [sys.executable, str(peer), role, f"{role}-logs", str(size), *port]

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(end("server"), cwd=cli.directory, stdout=subprocess.PIPE)
        )
        stack.callback(server.kill)
        assert server.stdout is not None
        port = server.stdout.readline().decode().strip()
        link = ("link", "--rate", "10Mbit/s", "--rtt", "40ms", "--queue", "codel", "-o", "out")
        answer = cli(*link, "--pcap", "it.pcapng", "--", *end("client", port))
        assert answer.code == 0, answer.err
        logs = cli.directory / "server-logs"
        until = time.monotonic() + 30
        # The server writes its log when it has forgotten the connection.
        while not any(logs.iterdir()) and time.monotonic() < until:
            time.sleep(0.1)
    about = json.loads((cli.directory / "out" / "link.json").read_text())
    down = about["directions"]["downlink"]
    files = [cli.directory / name for name in ("server-logs", "it.pcapng")]
    found = read_logs(files, about)
    (connection,) = found.connections
    assert connection.name.startswith("server ")
    # CoDel drops what the sender then finds lost; a drop near the end may be found later.
    assert abs(len(connection.lost_s) - sum(down["drops"].values())) <= 1
    assert connection.lost_s
    # A round trip has 40 ms, the longest wait, and what the machine adds.
    rtts = connection.metrics["rtt_ms"]
    assert rtts.min() == pytest.approx(41, abs=4)
    ((_, capture, _),) = found.captured
    sizes = capture.group_by("link").agg(pl.col("packets", "bytes").sum())
    assert sorted(sizes.iter_rows()) == [
        (name, way["delivered_pkts"], way["delivered_bytes"])
        for name, way in sorted(about["directions"].items())
    ]
    drawn = cli("plot", "out", "--log", "server-logs", "--log", "it.pcapng", "-o", "figures")
    assert drawn.code == 0, drawn.err
    series = pl.read_parquet(cli.directory / "out" / "link_series.parquet")
    picture = presentation.picture(series, found)
    assert picture is not None
    panels = svgs.read(picture)
    windows, trips = panels[2], panels[3]
    path = max(windows.paths[line_style.colour(2)], key=len)
    top = max(windows.at(place)[1] for place in path)
    largest = connection.metrics.select(pl.max_horizontal("cwnd_bytes", "bytes_in_flight").max())
    assert top == pytest.approx(largest.item() / 1e3, rel=0.02)
    (path,) = trips.paths[line_style.colour(2)]
    assert max(trips.at(place)[1] for place in path) == pytest.approx(rtts.max(), rel=0.02)
    shutil.rmtree(cli.directory / "server-logs")
    refused = cli("plot", "out", "--log", "server-logs")
    assert refused.code == 2
    assert "server-logs" in refused.err


@needs_root
@pytest.mark.testbed
@pytest.mark.xdist_group("links")
def test_a_link_has_a_page_and_a_later_one_leaves_nothing_of_it(cli: Cli):
    link = ("link", "-q", "--rate", "1Mbit/s", "-o", "out", "--")
    send = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'1', ('198.18.0.1', 9))"
    assert cli(*link, sys.executable, "-c", send).code == 0
    out = cli.directory / "out"
    for command in (("report", "out", "-o", "page.html"), ("plot", "out")):
        answer = cli(*command)
        assert answer.code == 0, answer.err
    (out / "rrul.svg").write_text("of an earlier measurement")
    assert (out / "plots").exists()
    refused = cli(*link, "touch", "ran")
    assert refused.code == 2
    assert f"out: holds the measurement of `{sys.executable} " in " ".join(refused.err.split())
    assert "--force replaces it" in refused.err
    assert not (cli.directory / "ran").exists()
    assert cli("link", "--force", *link[1:], "true").code == 0
    assert not (out / "plots").exists()
    assert not (out / "rrul.svg").exists()
