"""`cwnd link`: programs behind an emulated link. Needs root and TUN devices; elsewhere skipped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import CWND

from cwnd.link import Direction, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Cli

    from cwnd.scenario import Scenario


def _lacking() -> str | None:
    if sys.platform != "linux":
        return "no Linux"
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/net/tun").exists():
        return "no /dev/net/tun"
    tried = subprocess.run(
        [CWND, "link", "--", "true"], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else tried.stderr.strip()


_REASON = _lacking()
needs_root = pytest.mark.skipif(_REASON is not None, reason=f"no links here: {_REASON}")

#: What a command behind a link does: asks the server for so many bytes, and says how long it took.
_FETCH = """
import os, socket, time
began = time.monotonic()
with socket.create_connection((os.environ["CWND_LINK_CALLER"], {port})) as server:
    connected = time.monotonic() - began
    received = 0
    while data := server.recv(1 << 16):
        received += len(data)
print(received, connected, time.monotonic() - began)
"""


@contextlib.contextmanager
def _server(size: int) -> Iterator[int]:
    """Sends so many bytes to everyone who comes; its port."""
    with socket.create_server(("0.0.0.0", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")
                        connection.sendall(bytes(size))

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def _fetch(port: int) -> list[str]:
    return [sys.executable, "-c", _FETCH.format(port=port)]


def _is_there(address: str) -> bool:
    """Whether a device of this machine has the address."""
    with socket.socket() as tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
        return True


@needs_root
def test_a_transfer_takes_the_time_that_its_rate_and_round_trip_allow(cli: Cli):
    size = 2_000_000
    with _server(size) as port:
        answer = cli(
            "link", "--rate", "20Mbit/s", "--rtt", "50ms", "--queue", "codel", "--", *_fetch(port)
        )
    assert answer.code == 0, answer.err
    received, connected, took = map(float, answer.out.split())
    assert received == size
    # A handshake is one round trip, not two; 1500 bytes on the line carry 1448.
    assert 0.050 <= connected < 0.100
    least = size * 8 / 20e6 * 1500 / 1448 + 0.050
    assert least <= took < least + 0.6
    # Which of the two depends on what else this machine does.
    assert ("\nvalid: the router waited" in answer.err) != ("\ninvalid: " in answer.err)


@needs_root
def test_queues_mark_connections_that_ask_for_ecn_and_drop_none(cli: Cli):
    with _server(4_000_000) as port:
        answer = cli(
            *("link", "--rate", "10Mbit/s", "--rtt", "40ms", "--queue", "codel", "--ecn"),
            *("--json", "-o", "records", "--pcap", "packets.pcapng", "--", *_fetch(port)),
        )
    assert answer.code == 0, answer.err
    down = answer.json["directions"]["downlink"]
    assert down["marks"]["codel"] > 3
    assert down["drops"] == {}
    assert down["largest_bytes"] == 1500
    assert down["malformed_pkts"] == 0
    late = [way["late_p99_us"] > 1000 for way in answer.json["directions"].values()]
    assert sum("left late" in flaw for flaw in answer.json["flaws"]) == sum(late)
    assert answer.json["valid"] == (answer.json["flaws"] == [])
    records = cli.directory / "records"
    assert json.loads((records / "link.json").read_text()) == answer.json
    series = pl.read_parquet(records / "link_series.parquet")
    assert series["mark"].max() == down["marks"]["codel"]
    assert (records / "link.svg").read_text().startswith("<svg")
    qdelay = pl.read_parquet(records / "qdelay.parquet").filter(pl.col("link") == "downlink")
    assert qdelay["packets"].sum() == down["delivered_pkts"]
    assert (cli.directory / "packets.pcapng").read_bytes().count(b"marked: codel") == 0 + sum(
        way["marks"].get("codel", 0) for way in answer.json["directions"].values()
    )


@needs_root
def test_without_ecn_the_same_queue_drops(cli: Cli):
    with _server(4_000_000) as port:
        answer = cli(
            *("link", "--rate", "10Mbit/s", "--rtt", "40ms", "--queue", "codel", "--no-ecn"),
            *("--json", "--", *_fetch(port)),
        )
    down = answer.json["directions"]["downlink"]
    assert down["drops"]["codel"] > 3
    assert down["marks"] == {}


@needs_root
def test_a_link_in_a_link_adds_its_round_trip_and_both_are_in_the_way(cli: Cli):
    with _server(1) as port:
        # The inner command asks the outermost machine, whose address is that of the outer link.
        outer = ("link", "--rtt", "30ms", "--rate", "50Mbit/s", "--")
        ask = _FETCH.replace('os.environ["CWND_LINK_CALLER"]', 'os.environ["OUTERMOST"]')
        inner = f'OUTERMOST=$CWND_LINK_CALLER {CWND} link --rtt 40ms -q -- "$@"'
        answer = cli(*outer, "sh", "-c", inner, "sh", sys.executable, "-c", ask.format(port=port))
    assert answer.code == 0, answer.err
    connected = float(answer.out.split()[1])
    assert 0.070 <= connected < 0.140


@needs_root
@pytest.mark.parametrize("code", [0, 1, 7, 125])
def test_the_exit_code_is_that_of_the_command(cli: Cli, code: int):
    assert cli("link", "-q", "--", "sh", "-c", f"exit {code}").code == code


@needs_root
def test_a_command_that_a_signal_ends_is_told_as_a_shell_tells_it(cli: Cli):
    assert cli("link", "-q", "--", "sh", "-c", "kill -USR1 $$").code == 128 + signal.SIGUSR1


@needs_root
def test_a_command_that_is_not_there_is_told_as_a_shell_tells_it(cli: Cli):
    answer = cli("link", "-q", "--", "no-such-command")
    assert answer.code == 127
    assert "no-such-command: command not found" in answer.err
    assert cli("link", "-q", "--", "/etc/passwd").code == 126


@needs_root
def test_signals_go_on_to_the_command(cli: Cli):
    trap = "import os, signal, sys, time\n"
    trap += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n"
    trap += "print(os.environ['CWND_LINK_CALLER'], flush=True)\ntime.sleep(60)"
    with cli.start("link", "-q", "--", sys.executable, "-c", trap) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert _is_there(address)
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == 42
    assert not _is_there(address)


@needs_root
def test_kill_9_leaves_nothing_behind(cli: Cli):
    sleep = "import os, time\nprint(os.getpid(), os.environ['CWND_LINK_CALLER'], flush=True)\n"
    sleep += "time.sleep(60)"
    start = cli.start("link", "-q", "--rate", "1Mbit/s", "--", sys.executable, "-c", sleep)
    with start as running:
        assert running.stdout is not None
        command, address = running.stdout.readline().split()
        assert _is_there(address)
        behind = Path(f"/proc/{command}/ns/net").readlink()
        assert behind != Path("/proc/self/ns/net").readlink()
        running.kill()
        running.wait(10)
    assert _until(lambda: not Path(f"/proc/{command}").exists()), "the command is gone, too"
    assert _until(lambda: not _is_there(address))
    assert behind not in _namespaces()


@needs_root
def test_the_command_is_the_user_who_called_sudo(cli: Cli):
    nobody = "65534"
    who = ("sh", "-c", "id -u; id -ru; id -G; echo $USER; echo 1 > /proc/sys/net/ipv4/tcp_ecn")
    environment = {**os.environ, "SUDO_UID": nobody, "SUDO_GID": nobody}
    answer = cli("link", "-q", "--", *who, env=environment)
    assert answer.out.split("\n")[:4] == [nobody, nobody, nobody, "nobody"]
    assert "ermission denied" in answer.err, "it has no rights over its network"
    # Who asks for it stays root.
    assert cli("link", "-q", "--user", "root", "--", "id", "-u", env=environment).out == "0\n"


@needs_root
def test_two_links_at_once_have_addresses_of_their_own(cli: Cli):
    say = "echo $CWND_LINK_ADDRESS; read line"
    both = [
        subprocess.Popen(
            [CWND, "link", "-q", "--", "sh", "-c", say],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    addresses = {each.stdout.readline() for each in both if each.stdout is not None}
    for each in both:
        each.communicate("end\n", timeout=10)
    assert len(addresses) == 2


#: Root is nobody without these rights.
_UNPRIVILEGED = ("setpriv", "--bounding-set=-sys_admin,-net_admin") if os.geteuid() == 0 else ()


@pytest.mark.skipif(sys.platform != "linux", reason="no Linux")
def test_without_the_rights_it_says_so_and_returns_3(cli: Cli):
    answer = cli("link", "--rate", "1Mbit/s", "--", "touch", "ran", under=_UNPRIVILEGED)
    assert answer.code == 3, answer.err
    assert "needs root" in answer.err or "/dev/net/tun" in answer.err
    assert not (cli.directory / "ran").exists()


def test_what_is_wrong_in_an_option_is_told_as_in_a_scenario(cli: Cli):
    answer = cli("link", "--rate", "10mbps", "--", "true")
    assert answer.code == 2
    assert "ambiguous" in answer.err
    answer = cli("link", "--rate", "1Mbit/s", "--queue", "codl", "--", "true")
    assert answer.code == 2
    assert "codel" in answer.err
    answer = cli("link", "--rate", "1Mbit/s", "--queue", "{ kind = ", "--", "true")
    assert answer.code == 2
    assert cli("link", "--rate", "1Mbit/s").code == 2


@needs_root
def test_a_capture_file_that_can_not_be_written_is_an_input_error(cli: Cli):
    answer = cli("link", "--pcap", "nowhere/packets.pcapng", "--", "touch", "ran")
    assert answer.code == 2
    assert "nowhere/packets.pcapng: no such file or directory" in answer.err
    assert not (cli.directory / "ran").exists()


def test_a_directory_with_something_else_in_it_is_left_alone(cli: Cli):
    other = cli.directory / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    answer = cli("link", "-o", other, "--", "true")
    assert answer.code == 2
    assert [file.name for file in other.iterdir()] == ["thesis.tex"]


def test_options_become_the_scenario_of_both_directions():
    settings = Settings(
        downlink=Direction(rate="10 Mbit/s", queue="codel", buffer="1 BDP", loss=0.01),
        uplink=Direction(rate="1 Mbit/s", queue='{ kind = "pie", target = "10 ms" }'),
        rtt="100 ms",
        ecn=False,
    )
    link = _sections(settings.scenario())["link"]
    assert link["downlink"]["queue"] == {"kind": "codel", "limit": "1 BDP", "ecn": False}
    assert link["uplink"]["queue"] == {"kind": "pie", "target": "10 ms", "ecn": False}
    assert (link["downlink"]["from"], link["downlink"]["to"]) == ("caller", "command")
    assert (link["downlink"]["loss"], link["uplink"]["loss"]) == (0.01, 0.0)


def _sections(scenario: Scenario) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(scenario.to_toml())


def _until(happened: Any) -> bool:
    for _ in range(100):
        if happened():
            return True
        time.sleep(0.05)
    return False


def _namespaces() -> set[Path]:
    found = set()
    for process in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            found.add(process.readlink())
    return found
