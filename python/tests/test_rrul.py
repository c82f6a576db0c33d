"""`cwnd rrul`: Flent's test on real programs and simulated, with files of one shape."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import svgs
from conftest import CWND, Cli, real

from cwnd.errors import MachineError
from cwnd.figures import Figure, line_style
from cwnd.link import Rrul, rights, rrul_picture, rrul_tables
from cwnd.link.measuring import REQUIRED, _arrivals, _free_ports, _require_programs, _Test
from cwnd.link.responsiveness import of_run
from cwnd.link.rrul import DSCPS, LEAD_S, PINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Links share a resolver's address.
pytestmark = pytest.mark.xdist_group("links")

_LACKS = [name for name in REQUIRED if shutil.which(name) is None]
needs_programs = pytest.mark.skipif(
    bool(_LACKS), reason=f"{', '.join(_LACKS)} not installed (apt install {' '.join(_LACKS)})"
)
FLENT = Path(sys.executable).with_name("flent")
LINK = ("--rate", "20Mbit/s", "--uplink-rate", "5Mbit/s", "--rtt", "40ms")
LENGTH_S = 4
#: Directions of flows, and those of the link that carries their data.
LINKS = {"download": "downlink", "upload": "uplink"}


REAL = pytest.param("real", marks=[real, needs_programs, pytest.mark.testbed])


@pytest.fixture(scope="module", params=["simulated", REAL])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a short test over FIFO queues of one bandwidth-delay product."""
    place = tmp_path_factory.mktemp(request.param) / request.param
    more = (
        ("--simulated",) if request.param == "simulated" else ("--pcap", place.parent / "packets")
    )
    cli = Cli(place.parent)
    answer = cli.process("rrul", *LINK, "--length", f"{LENGTH_S}s", "-o", place, *more)
    assert answer.code == 0, answer.err
    assert "download" in answer.out
    assert "\nnote: cwnd" in answer.out
    return place


def document(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((place / "rrul.flent.gz").read_bytes()))
    return found


def test_goodputs_are_what_the_link_carried_without_headers(result: Path):
    goodput = json.loads((result / "rrul.json").read_text())["goodput_mbit_s"]
    links = pl.read_parquet(result / "links.parquet").with_columns(pl.col("link").cast(pl.String))
    elapsed_s = LENGTH_S + 10.0
    if result.name == "real":
        elapsed_s = json.loads((result / "link.json").read_text())["elapsed_s"]
    results = document(result)["results"]
    sums = {direction: sum(of.values()) for direction, of in goodput.items()}
    for direction, link in LINKS.items():
        assert list(goodput[direction]) == list(DSCPS)
        assert min(goodput[direction].values()) > 0.1
        (row,) = links.filter(pl.col("link") == link).to_dicts()
        carried = row["utilisation"] * row["rate_bit_s"] / 8 * elapsed_s
        # A packet of 1500 bytes has 1448 of data. The others' ACKs, at most one a packet, have 52
        # bytes and blocks of SACK. Slow start sends some data again, and pings are 0.1 Mbit/s.
        data = sums[direction] * LENGTH_S * 1e6 / 8
        acks = (sums["download"] + sums["upload"] - sums[direction]) * LENGTH_S * 1e6 / 8 / 1448
        assert 1500 / 1448 * data < carried < 1.1 * 1500 / 1448 * data + 80 * acks + 100_000
        # Goodput over time lacks part of the first step, and has what queues held at the end.
        over_time = 0.2 * sum(each or 0 for each in results[f"TCP {direction} sum"])
        assert over_time == pytest.approx(sums[direction] * LENGTH_S, rel=0.08)


def test_pings_wait_behind_the_load_and_not_before_or_after_it(result: Path):
    rows = json.loads((result / "rrul.json").read_text())["pings"]
    with_icmp = result.name == "simulated" or shutil.which("ping") is not None
    assert [row["ping"] for row in rows] == [*PINGS[0 if with_icmp else 1 :], "all"]
    for row in rows:
        assert 40 <= row["idle_p50_ms"] < 55
        # Two full queues of 1 BDP would be 80 ms.
        assert 15 < row["increase_ms"] < 90
        assert row["load_p50_ms"] < row["load_p95_ms"] < 200
        # Lost requests of simulated pings are late. A full queue may drop several of 20 real pings.
        if result.name == "simulated":
            assert row["lost_ratio"] is None
        else:
            assert row["lost_ratio"] < (0.2 if row["ping"] == "all" else 0.5)
        if row["ping"] != "all":
            assert 0.9 * LENGTH_S / 0.2 <= row["sent"] <= LENGTH_S / 0.2 + 1
        assert row["jitter_ms"] > 0
        if result.name == "real" and row["ping"] != "ICMP":
            # The two ways of a round trip: 20 ms of delay and a queue of at most 40 ms each.
            assert row["up_p95_ms"] > 20 < row["down_p95_ms"]
            # At most one of 20 is above each: their sum may be below the 95 %, not the median.
            assert row["up_p95_ms"] + row["down_p95_ms"] >= row["load_p50_ms"]
    found = document(result)
    pings = dict(zip(found["x_values"], found["results"]["Ping (ms) avg"], strict=True))
    first = 2.4 if result.name == "simulated" else 0.8
    assert next(t for t, ms in pings.items() if ms) <= first
    after = [ms for t, ms in pings.items() if ms and t > LENGTH_S + 7]
    assert sorted(after)[len(after) // 2] < 55


def test_flent_reads_and_draws_it_as_its_rrul(result: Path, tmp_path: Path):
    found = document(result)
    assert found["metadata"]["NAME"] == "rrul"
    worlds = {"real": "real programs", "simulated": "simulated"}
    assert found["metadata"]["TITLE"] == f"RRUL, {worlds[result.name]}, fifo"
    flows = {f"TCP {way} {dscp}" for way in LINKS for dscp in DSCPS}
    assert flows < set(found["results"])
    assert found["metadata"]["LENGTH"] == LENGTH_S
    file = tmp_path / "read.csv"
    subprocess.run([FLENT, "-i", result / "rrul.flent.gz", "-f", "csv", "-o", file], check=True)
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    for name in (*flows, "TCP download sum", "Ping (ms) UDP EF"):
        values = [float(row[name]) if row[name] else None for row in rows]
        assert values == pytest.approx(found["results"][name])
    for plot in ("all_scaled", "ping_cdf", "box_combine"):
        drawn = subprocess.run(
            [FLENT, "-i", result / "rrul.flent.gz", "-p", plot, "-o", tmp_path / "figure.svg"],
            check=False,
            capture_output=True,
            text=True,
        )
        assert drawn.returncode == 0, drawn.stderr
        assert "WARNING" not in drawn.stderr
        assert (tmp_path / "figure.svg").read_text().count("<path") > 20


def test_the_figure_has_a_panel_of_each_kind_with_all_values(result: Path):
    assert (result / "rrul.svg").read_text().startswith("<svg")
    found = document(result)
    panels = svgs.read(rrul_picture(found))
    assert len(panels) == 3
    begins = ("TCP download", "TCP upload", "Ping (ms) UDP")
    for panel, begin in zip(panels, begins, strict=True):
        for index, dscp in enumerate(DSCPS):
            values = found["results"].get(f"{begin} {dscp}")
            if values is None:
                assert (begin, dscp) == ("Ping (ms) UDP", "CS5")
                continue
            drawn = {
                round(x, 1): y
                for path in panel.paths[line_style.colour(index)]
                for x, y in map(panel.at, path)
            }
            wanted = {round(x, 1): y for x, y in zip(found["x_values"], values, strict=True) if y}
            high = max(wanted.values())
            assert {x: drawn[x] for x in wanted} == pytest.approx(wanted, abs=0.01 * high)


def test_the_page_begins_with_the_tables_and_the_figure_of_the_test(result: Path, cli: Cli):
    page = cli.directory / "page.html"
    answer = cli("report", result, "-o", page)
    assert answer.code == 0, answer.err
    text = re.sub(r"<[^>]+>", " ", page.read_text()[page.read_text().index("<body>") :])
    test, beside = re.split(r"cwnd link ·|\d run ·", text, maxsplit=1)
    test = " ".join(test.split())
    assert "downlink 20Mbit/s, fifo uplink 5Mbit/s, fifo RTT 40 ms" in test
    assert f"load {LENGTH_S} s" in test
    assert ("valid" in test) == (result.name == "real")
    for table in rrul_tables(json.loads((result / "rrul.json").read_text())):
        for row in table.rows:
            assert " ".join(row) in test
    assert "Ping (ms)" in page.read_text()
    assert "increase_p50" not in beside


def test_the_link_as_a_scenario_is_the_test(result: Path, cli: Cli):
    text = (result / "scenario.toml").read_text()
    assert "[flow.upload]" in text
    assert cli("check", result / "scenario.toml").code == 0
    assert cli("verify", result).code == 0


@pytest.mark.parametrize("result", [REAL], indirect=True)
def test_dscps_are_those_of_flent(result: Path):
    packets = (result.parent / "packets").read_bytes()
    # IPv4 headers between the ends of a link, 198.18.0.0/15.
    header = re.compile(
        rb"\x45(.).{7}([\x06\x11])..(?=\xc6[\x12\x13])(....)(?=\xc6[\x12\x13])(....)", re.DOTALL
    )
    counts: dict[tuple[int, bytes, int], int] = {}
    for tos, protocol, source, target in header.findall(packets):
        key = (protocol[0], b"down" if source < target else b"up", tos[0] >> 2)
        counts[key] = counts.get(key, 0) + 1
    for way in (b"up", b"down"):
        for dscp in DSCPS.values():
            assert counts.get((6, way, dscp), 0) > 100
        for name in ("BK", "BE", "EF"):
            assert counts.get((17, way, DSCPS[name]), 0) > 5 * LENGTH_S


def _marked(mark: str) -> list[str]:
    """Commands of running processes with a variable in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def _settled(mark: str) -> list[str]:
    for _ in range(40):
        if not (left := _marked(mark)):
            break
        time.sleep(0.05)
    return left


@pytest.fixture
def marked(cli: Cli) -> Iterator[tuple[str, dict[str, str]]]:
    """A mark, and an environment with it; no process may have it at the end."""
    mark = f"CWND_MARK={cli.directory}"
    name, value = mark.split("=", 1)
    yield mark, {**os.environ, name: value, "TMPDIR": str(cli.directory)}
    assert not _settled(mark)


@real
@needs_programs
@pytest.mark.testbed
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(
    cli: Cli, marked: tuple[str, dict[str, str]], number: signal.Signals
):
    mark, environment = marked
    with subprocess.Popen(
        [CWND, "rrul", *LINK, "-o", "out"],
        cwd=cli.directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        # The last client has begun: the load is there.
        while len([each for each in _marked(mark) if "--client" in each]) < 2 * len(DSCPS):
            assert running.poll() is None, running.stderr and running.stderr.read()
            time.sleep(0.2)
        running.send_signal(number)
        _, errors = running.communicate(timeout=10)
    left = _settled(mark)
    assert not left
    if number == signal.SIGKILL:
        return
    assert running.returncode == 128 + number
    assert "nothing was written" in errors
    assert not list((cli.directory / "out").iterdir())
    assert not list(cli.directory.glob("cwnd-rrul-*"))


@real
@needs_programs
@pytest.mark.testbed
def test_a_program_that_fails_is_named_with_what_it_said(
    cli: Cli, marked: tuple[str, dict[str, str]]
):
    _, environment = marked
    irtt = cli.write(
        "irtt", "#!/bin/sh\n[ $1 = server ] && exec sleep 60\necho no answers\nexit 4\n"
    )
    irtt.chmod(0o755)
    environment["PATH"] = f"{cli.directory}:{environment['PATH']}"
    answer = cli("rrul", *LINK, "-o", "out", "-q", env=environment)
    assert answer.code == 1
    # Which of them ends first is chance.
    said = re.fullmatch(r"error: the client of UDP (\w+) failed: no answers\n", answer.err)
    assert said is not None, answer.err
    assert said[1] in {"BK", "BE", "EF"}
    assert not list((cli.directory / "out").iterdir())


def test_a_program_that_is_missing_is_named_with_its_package(cli: Cli):
    answer = cli("rrul", *LINK, env={**os.environ, "PATH": "/nonexistent"})
    assert answer.code == 3
    assert "`apt install iperf3 irtt`" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rtt", "40ms"), "which rate?"),
        ((*LINK, "--length", "1500ms"), "--length 1500ms: iperf3 sends for whole seconds"),
        ((*LINK, "--length", "0s"), "--length 0s: "),
        ((*LINK, "--length", "long"), "--length long: "),
        (("--rate", "3foo"), "--rate 3foo: unknown unit"),
        (("--rate", "3Mbit/s", "--rtt", "3 foo"), "--rtt 3 foo: unknown unit"),
        ((*LINK, "--queue", "codl"), "--queue codl: unknown queue `codl`, did you mean `codel`?"),
        ((*LINK, "--pcap", "packets"), "--pcap is for real packets"),
        ((*LINK, "--force"), "--force replaces real measurements"),
    ],
)
def test_bad_input_gives_a_sentence(cli: Cli, words: tuple[str, ...], said: str):
    answer = cli.process("rrul", *words, "--simulated", "-o", "out")
    assert (answer.code, said in answer.err) == (2, True), answer.err
    assert not (cli.directory / "out").exists()


def pings_of(rows: list[tuple[str, float, float | None]]) -> pl.DataFrame:
    schema = {
        "ping": pl.String,
        **dict.fromkeys(("sent_s", "rtt_ms", "up_ms", "down_ms"), pl.Float64),
    }
    return pl.DataFrame([(*row, None, None) for row in rows], schema, orient="row")


def test_iperf3_sends_for_at_most_a_day(cli: Cli):
    answer = cli("rrul", *LINK, "--length", "86401s")
    assert answer.code == 2
    assert "--length 86401s: iperf3 sends for at most 86400 s" in answer.err


def test_lost_pings_have_no_delay_and_count_under_load():
    rows: list[tuple[str, float, float | None]] = [("UDP BE", at / 10, 40.0) for at in range(50)]
    rows += [("UDP BE", 5.1 + at / 10, None if at % 4 == 0 else 60.0 + at) for at in range(20)]
    pings = pings_of(rows)
    flows = pl.DataFrame(
        {
            "direction": ["download"] * 3,
            "dscp": ["BE"] * 3,
            "time_s": [5.1, 6.1, 7.1],
            "bits": [0.0, 1e6, 2e6],
        }
    )
    test = Rrul(flows, pings, 2, "", "")
    row, every = test.delays()
    assert {**row, "ping": "all"} == every
    assert row["idle_p50_ms"] == 40
    answered = [60.0 + at for at in range(20) if at % 4]
    assert row["load_p50_ms"] == sorted(answered)[7]
    assert row["increase_ms"] == row["load_p50_ms"] - 40
    assert (row["sent"], row["lost_ratio"]) == (20, 0.25)
    assert row["jitter_ms"] == 1, "of successive answers only"
    assert test.goodputs()["download"]["BE"] == 1.5
    # 1 Mbit/s for a second, then 2; a step of 0.2 s lies across the change.
    rates = dict(zip(test.flent.times, test.flent.flows["download"]["BE"], strict=True))
    assert rates[5.2] is None
    assert rates[5.4] == pytest.approx(1)
    assert rates[6.2] == pytest.approx(1.5)
    assert rates[7.0] == pytest.approx(2)
    assert rates[7.2] is None


def test_the_load_begins_with_the_last_flow_and_each_flow_counts_for_its_own_time():
    flows = pl.DataFrame(
        {
            "direction": ["download"] * 2 + ["upload"] * 3,
            "dscp": ["BE"] * 5,
            "time_s": [6.0, 8.0, 7.0, 9.0, 10.0],
            # The last second of the upload is what a queue held.
            "bits": [0.0, 2e6, 0.0, 1e6, 5e6],
        }
    )
    rtts = {4.9: 40.0, 5.5: 41.0, 6.5: 60.0, 7.0: 80.0, 9.0: 80.0, 9.1: 300.0}
    test = Rrul(flows, pings_of([("UDP BE", at, ms) for at, ms in rtts.items()]), 2, "", "")
    row = test.delays()[0]
    assert (row["idle_p50_ms"], row["load_p50_ms"], row["sent"]) == (40, 80, 2)
    goodputs = test.goodputs()
    assert (goodputs["download"]["BE"], goodputs["upload"]["BE"]) == (1.0, 0.5)


def test_a_test_without_answers_or_data_has_empty_cells_and_flent_reads_it(tmp_path: Path):
    flows = pl.DataFrame(
        schema={"direction": pl.String, "dscp": pl.String, "time_s": pl.Float64, "bits": pl.Float64}
    )
    test = Rrul(flows, pings_of([]), 1, "", "")
    (every,) = test.delays()
    assert every["lost_ratio"] is None
    assert "nan" not in str(rrul_tables(test.to_json())[1].rows)
    (tmp_path / "rrul.flent.gz").write_bytes(test.files()["rrul.flent.gz"])
    found = document(tmp_path)
    assert {len(values) for values in found["results"].values()} <= {len(found["x_values"])}
    assert Figure(rrul_picture(found)).svg().startswith("<svg")
    read = subprocess.run(
        [FLENT, "-i", tmp_path / "rrul.flent.gz", "-p", "all_scaled", "-o", tmp_path / "x.svg"],
        check=False,
    )
    assert read.returncode == 0


def test_lines_that_iperf3_prints_late_do_not_move_their_intervals():
    # The last interval comes with the results of the peer, and a summary follows.
    lines: list[tuple[float, str, str | int]] = [
        (
            at,
            "client",
            f"[  5]  {begin:.2f}-{begin + 0.2:.2f}  sec  244 KBytes  10000 Kbits/sec{who}",
        )
        for at, begin, who in (
            *((100.21, 0.0, ""), (100.4, 0.2, ""), (101.3, 0.4, "")),
            (101.3, 0.4, "  receiver"),
        )
    ]
    times, bits = zip(*_arrivals([*lines, (101.4, "client", 0)], "client"), strict=True)
    assert times == pytest.approx([100.0, 100.2, 100.4, 100.6])
    assert bits == pytest.approx([0, 2e6, 2e6, 2e6])
    assert _arrivals(lines, "server") == []


@pytest.mark.parametrize("how", [(), ("--simulated",)])
def test_a_result_of_something_else_is_not_replaced(cli: Cli, how: tuple[str, ...]):
    (cli.directory / "out").mkdir()
    (cli.directory / "out" / "manifest.json").write_text("{}")
    answer = cli("rrul", "--rate", "1Mbit/s", "--length", "1s", *how, "-o", "out")
    assert answer.code == 2
    assert "out is there and holds something else than a result of `cwnd rrul`" in answer.err


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ((), "out: holds the measurement of `cwnd rrul`, which cannot be repeated; --force"),
        (("--simulated",), "out: holds a result of `cwnd link`, which is not replaced"),
    ],
)
def test_a_real_measurement_is_not_replaced(cli: Cli, how: tuple[str, ...], said: str):
    (cli.directory / "out").mkdir()
    files = {"manifest": '{"kind": "link"}', "link": '{"command": ["cwnd", "rrul"]}', "rrul": "{}"}
    for name, content in files.items():
        (cli.directory / "out" / f"{name}.json").write_text(content)
    answer = cli("rrul", "--rate", "1Mbit/s", "--length", "1s", *how, "-o", "out")
    assert (answer.code, said in answer.err) == (2, True), answer.err


def test_simulated_pings_keep_their_names_if_one_has_no_answer():
    count = 2 * len(PINGS)
    nothing = {"group": pl.String, "time_s": pl.Float64, "delivered": pl.UInt64}
    run = SimpleNamespace(
        flows=pl.DataFrame({"flow_id": range(7, 7 + count), "group": ["ping"] * count}),
        series=pl.DataFrame(schema={"flow_id": pl.Int64, **nothing}),
        # The first flow has no request after its first.
        requests=pl.DataFrame(
            [(7, "ping", 0.35, 0.04)]
            + [(n, "ping", at + 0.05 * n, 0.04) for n in range(8, 7 + count) for at in (0.0, 2.0)],
            schema=["flow_id", "group", "start_s", "response_s"],
            orient="row",
        ),
        manifest=SimpleNamespace(cwnd_version="1"),
    )
    pings = of_run(run, 1, "fifo").pings  # type: ignore[arg-type]
    assert pings["ping"].to_list() == [*PINGS[1:], *PINGS]
    assert pings["sent_s"].is_sorted()


def test_flows_end_when_they_have_stopped_and_their_data_have_arrived(result: Path):
    results, times = document(result)["results"], document(result)["x_values"]
    last = LEAD_S + LENGTH_S
    for name, values in results.items():
        if name.startswith("TCP "):
            end = max(t for t, each in zip(times, values, strict=True) if each is not None)
            assert last - 0.5 < end < last + 3, name


def test_requests_of_ping_without_an_answer_are_lost(tmp_path: Path):
    said = [
        "PING 198.18.0.2 (198.18.0.2) 56(84) bytes of data.",
        "[100.240000] 64 bytes from 198.18.0.2: icmp_seq=2 ttl=64 time=40.0 ms",
        "[100.680000] 64 bytes from 198.18.0.2: icmp_seq=4 ttl=64 time=80 ms",
        "5 packets transmitted, 2 received, 60% packet loss, time 807ms",
    ]
    found = _Test(tmp_path, 1, "fifo", began=100.0)._icmp(said)
    assert [row[2] for row in found] == [None, 40.0, None, 80.0, None]
    assert [row[1] for row in found] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    # The interval is longer than it was to be.
    later = [said[0], said[1], said[2].replace("100.68", "100.70"), said[3]]
    found = _Test(tmp_path, 1, "fifo", began=100.0)._icmp(later)
    assert [row[1] for row in found] == pytest.approx([-0.01, 0.2, 0.41, 0.62, 0.83])
    none = _Test(tmp_path, 1, "fifo")._icmp(
        ["PING 198.18.0.2", "2 packets transmitted, 0 received"]
    )
    assert none == [("ICMP", 0.0, None, None, None), ("ICMP", 0.2, None, None, None)]
    assert _Test(tmp_path, 1, "fifo")._icmp([]) == []


def test_a_failure_is_the_line_about_an_error_if_there_is_one(tmp_path: Path):
    name = "client of download BK"
    said = ("iperf3: error - no such controller", "try again", 1)
    log = [json.dumps([at, name, what]) for at, what in enumerate(said)]
    (tmp_path / "inside.log").write_text("\n".join(log))
    assert _Test(tmp_path, 1, "fifo").failure(1) == f"the {name} failed: {said[0]}"


def test_a_controller_that_the_user_may_not_use_is_refused_before_the_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    allowed = tmp_path / "allowed"
    monkeypatch.setattr("cwnd.link.measuring._ALLOWED", allowed)
    monkeypatch.setattr("cwnd.link.measuring.shutil.which", lambda name: name)
    monkeypatch.setattr("cwnd.link.rights.user", lambda _: pwd.getpwnam("nobody"))
    allowed.write_text("reno cubic\n")
    _require_programs()
    allowed.write_text("reno bbr\n")
    with pytest.raises(MachineError, match=r"nobody may not .*`sysctl -w .*=cubic`"):
        _require_programs()


def test_missing_rights_name_the_command_that_needs_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rights, "is_root", lambda: False)
    monkeypatch.setattr(rights, "has_no_new_privs", lambda: False)
    monkeypatch.setattr(rights.shutil, "which", lambda _: None)
    with pytest.raises(MachineError, match=r"^cwnd rrul needs root.* rrul$"):
        rights.privileged_process("rrul")


def test_free_ports_are_free_for_udp_too(monkeypatch: pytest.MonkeyPatch):
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        used = udp.getsockname()[1]
        create, ports = socket.create_server, [used, 0]
        monkeypatch.setattr(
            "cwnd.link.measuring.socket.create_server",
            lambda address: create((address[0], ports.pop(0))),
        )
        (found,) = _free_ports("127.0.0.1", 1)
    assert found != used
