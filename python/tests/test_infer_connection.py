"""`cwnd infer --connection`: marks of the graph against the run that was captured, and tshark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl
import pytest
import svgs
from conftest import needs_tshark
from test_infer import AT_RECEIVER
from test_infer import LOSSES as TIMEOUTS
from test_pcap import AGAIN, AT_SENDER, LOSSES, MARKS, run, tshark

from cwnd.errors import InputError
from cwnd.figures import line_style
from cwnd.infer import connection_number, infer, packets, time_sequence

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

    from cwnd.figures import Picture

BLUE, ORANGE, GREEN, RED, _, PURPLE, BLACK = line_style.COLOURS
#: A pixel of a PNG, and the rounding of an SVG, in points.
PIXEL = 0.5


def graph(capture: Path, between: tuple[float, float] | None = None) -> tuple[Picture, float]:
    """Describes the graph of the first connection, and the unit of its positions in bytes."""
    found = infer(capture)
    rows, omitted = packets(capture, found, 0)
    assert omitted == 0
    picture = time_sequence(found, 0, rows, between=between)
    unit = picture.panels[0].y_label.partition("(")[2].rstrip(")")
    return picture, {"kB": 1e3, "MB": 1e6}[unit]


def drawn(picture: Picture, colour: str) -> list[tuple[float, float]]:
    """Returns the markers of a colour as time and position."""
    (panel,) = svgs.read(picture)
    return sorted(panel.at(place) for place in panel.markers.get(colour, []))


@needs_tshark
def test_each_retransmission_has_a_marker_where_tshark_sees_it(tmp_path: Path):
    result, files = run(LOSSES, tmp_path, AT_SENDER)
    picture, unit = graph(files[AT_SENDER])

    analysis = [f"tcp.analysis.{kind}" for kind in AGAIN]
    seen = tshark(files[AT_SENDER], "frame.time_epoch", "tcp.seq", *analysis)
    again = seen.filter(pl.any_horizontal(pl.col(name) != "" for name in analysis))
    first = float(seen["frame.time_epoch"][0])
    # tshark counts the SYN as the first byte.
    truth = [
        (float(time) - first, (int(seq) - 1) / unit)
        for time, seq in again.select("frame.time_epoch", "tcp.seq").iter_rows()
    ]
    found = drawn(picture, RED)
    assert len(found) == result.flows["retrans"].sum() >= 20
    (panel,) = svgs.read(picture)
    for (time, place), (drawn_time, drawn_place) in zip(sorted(truth), found, strict=True):
        assert panel.x.of(drawn_time) == pytest.approx(panel.x.of(time), abs=PIXEL)
        assert panel.y.of(drawn_place) == pytest.approx(panel.y.of(place), abs=PIXEL)


@needs_tshark
def test_data_acknowledgements_and_sack_blocks_are_those_of_tshark(tmp_path: Path):
    _, files = run(LOSSES, tmp_path, AT_SENDER)
    seen = tshark(
        files[AT_SENDER],
        *("frame.time_epoch", "ip.src", "tcp.seq", "tcp.len", "tcp.ack"),
        *("tcp.options.sack_le", "tcp.options.sack_re"),
    )
    time = pl.col("frame.time_epoch").cast(pl.Float64)
    first = float(seen["frame.time_epoch"][0])
    losses = seen.filter(pl.col("tcp.options.sack_le") != "").with_columns(time - first)
    # A second with a loss, in which strokes are longer than a pixel.
    at = losses["frame.time_epoch"][0]
    between = (at - 0.1, at + 0.1)
    picture, unit = graph(files[AT_SENDER], between)
    (panel,) = svgs.read(picture)
    shown = seen.with_columns(time - first).filter(
        pl.col("frame.time_epoch").is_between(at - 0.09, at + 0.09)
    )
    sender = seen["ip.src"][0]

    data = shown.filter((pl.col("ip.src") == sender) & (pl.col("tcp.len") != "0"))
    assert data.height > 50
    for moment, seq, length in data.select("frame.time_epoch", "tcp.seq", "tcp.len").iter_rows():
        for place in (int(seq) - 1, int(seq) - 1 + int(length)):
            point = panel.x.of(moment), panel.y.of(place / unit)
            assert min(panel.distance(colour, point) for colour in (BLUE, RED)) < PIXEL
    acks = shown.filter(pl.col("ip.src") != sender)
    assert acks.height > 25
    for moment, acked in acks.select("frame.time_epoch", "tcp.ack").iter_rows():
        point = panel.x.of(moment), panel.y.of((int(acked) - 1) / unit)
        assert panel.distance(BLACK, point) < PIXEL
    blocks = acks.filter(pl.col("tcp.options.sack_le") != "")
    columns = ("frame.time_epoch", "tcp.options.sack_le", "tcp.options.sack_re")
    assert blocks.height > 5
    for moment, low, high in blocks.select(columns).iter_rows():
        for edge in (low, high):
            point = panel.x.of(moment), panel.y.of((int(edge) - 1) / unit)
            assert panel.distance(GREEN, point) < PIXEL


def test_marks_and_their_echoes_are_those_of_the_run(tmp_path: Path):
    result, files = run(MARKS, tmp_path, f"{AT_SENDER},bottleneck+back")
    marked, _ = graph(files["bottleneck+back"])
    reasons = result.reasons.filter(pl.col("link") == "bottleneck", pl.col("reason") == "codel")
    marks = reasons.filter(pl.col("verdict") == "marked")["packets"].sum()
    lines = {line.label: line for line in marked.panels[0].lines}
    assert marks > 20
    assert len(lines[f"CE ({marks})"].x) == marks
    assert "retransmissions" not in " ".join(map(str, lines))

    at_sender, _ = graph(files[AT_SENDER])
    lines = {line.label: line for line in at_sender.panels[0].lines}
    echoes = result.manifest.activity["ece_acks"]
    assert f"ECE ({echoes})" in lines
    reductions = result.manifest.activity["ecn_reductions"]
    assert {f"CWR ({reductions})", f"CWR ({reductions - 1})"} & lines.keys()
    # Nothing is hidden by another mark of its colour: triangles of CWR alone are orange.
    answers = next(len(line.x) for label, line in lines.items() if str(label).startswith("CWR"))
    assert len(drawn(at_sender, ORANGE)) == answers


def test_a_hundred_thousand_segments_are_a_small_figure_that_shows_each_loss(tmp_path: Path):
    text = LOSSES.replace("10 Mbit/s", "200 Mbit/s").replace("loss = 0.003", "loss = 0.001")
    text = text.replace('duration = "10 s"', 'duration = "60 s"')
    text = text.replace('"newreno"', '"cubic"') + 'endpoint = "linux"\n'
    result, files = run(text, tmp_path, AT_SENDER)
    assert result.flows["segments_sent"].sum() > 100_000
    found = infer(files[AT_SENDER])
    rows, _ = packets(files[AT_SENDER], found, 0)
    picture = time_sequence(found, 0, rows)
    unit = 1e6
    assert picture.panels[0].y_label.endswith("(MB)")

    again = rows.filter(pl.col("novelty").is_in(["fills_hole", "duplicate"]))
    assert again.height == result.flows["retrans"].sum() > 100
    (panel,) = svgs.read(picture)
    markers = panel.markers[RED]
    for time, start in again.select("time_s", "start").iter_rows():
        x, y = panel.x.of(time), panel.y.of(start / unit)
        assert min(abs(x - a) + abs(y - b) for a, b in markers) < 2 * PIXEL
    data = rows.filter((pl.col("end") == "client") & pl.col("start").is_not_null())
    for time, start, past in data.select("time_s", "start", "past").gather_every(500).iter_rows():
        for place in (start, past):
            point = panel.x.of(time), panel.y.of(place / unit)
            assert min(panel.distance(colour, point) for colour in (BLUE, RED)) < 2 * PIXEL
    assert sum(map(len, panel.paths.values())) < 10_000


def test_a_part_has_what_goes_beyond_its_edges(tmp_path: Path):
    _, files = run(TIMEOUTS.read_text(), tmp_path, AT_RECEIVER)
    found = infer(files[AT_RECEIVER])
    timeout = pl.col("kind").cast(pl.String) == "timeout", pl.col("what").cast(pl.String) == "data"
    silence = found.silences.filter(*timeout).sort("waited_ms").row(-1, named=True)
    number = silence["connection"]
    about = found.connections.row(number, named=True)
    rows, _ = packets(files[AT_RECEIVER], found, number)
    ended = silence["ended_s"] - about["began_s"]
    half = silence["waited_ms"] / 2e3
    middle, armed = ended - half, ended - 2 * half
    for between, bar in (
        ((armed - 1, middle), (armed, middle)),
        ((middle, ended + 1), (middle, ended)),
    ):
        picture = time_sequence(found, number, rows, between=between)
        (panel,) = picture.panels
        lines = {str(line.label).partition(" (")[0]: line for line in panel.lines}
        x = lines["timeouts"].x
        bars = zip(x[::3], x[1::3], strict=True)
        assert any(found == pytest.approx(bar, abs=1e-5) for found in bars)
        # The last acknowledgement before the part holds in it.
        assert lines["acknowledged"].x[0] == between[0]

    whole = time_sequence(found, number, rows)
    assert time_sequence(found, number, rows, between=(-1e308, float("inf"))) == whole
    assert whole.panels[0].x_limits == (0.0, about["duration_s"])


def test_the_figure_is_written_and_a_connection_that_is_not_there_is_named(
    cli: Cli, tmp_path: Path
):
    _, files = run(LOSSES, tmp_path, AT_SENDER)
    capture = files[AT_SENDER]
    answer = cli("infer", capture, "-o", "found", "--connection", "0", "--json")
    assert answer.code == 0, answer.err
    names = ["connection-0.png", "connection-0.svg"]
    assert answer.json["figures"] == [f"found/{name}" for name in names]
    assert all((cli.directory / "found" / name).stat().st_size > 10_000 for name in names)

    found = infer(capture)
    row = found.connections.row(0, named=True)
    ends = [f"{row[end]}:{row[f'{end}_port']}" for end in ("client", "server")]
    assert connection_number(found, "-".join(ends)) == 0
    assert connection_number(found, "-".join(ends[::-1])) == 0
    for wanted, said in {
        "7": "1 connections, numbered 0 to 0",
        f"{ends[0]}-10.9.9.9:80": f"the nearest are {'-'.join(ends)}",
        "some": "ADDRESS:PORT-ADDRESS:PORT",
    }.items():
        with pytest.raises(InputError, match="connections") as error:
            connection_number(found, wanted)
        assert said in str(error.value)
    for arguments, said in {
        ("--connection", "0"): "with -o DIR",
        ("-o", "x", "--between", "1", "2"): "beside --connection",
        ("-o", "x", "--connection", "0", "--between", "0", "nan"): "the earlier first",
        ("-o", "x", "--connection", "0", "--between", "50", "60"): "it lasts",
    }.items():
        refused = cli("infer", capture, *arguments)
        assert refused.code == 2
        assert said in " ".join(refused.err.split())
    alike = [cli.directory / os.fsdecode(b"a" + byte + b".pcapng") for byte in (b"\xfe", b"\xff")]
    for copy in alike:
        copy.write_bytes(capture.read_bytes())
    confused = cli("infer", *alike, "-o", "y", "--connection", "0")
    assert confused.code == 2
    assert "differ only in bytes that are not UTF-8" in " ".join(confused.err.split())
    with capture.open("rb") as file:
        piped = cli("infer", "-", "-o", "y", "--connection", "0", stdin=file)
    assert "save it to a file" in " ".join(piped.err.split())
    assert not (cli.directory / "y").exists()
