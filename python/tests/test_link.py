"""`cwnd link`: programs behind an emulated link. Most tests need root and TUN devices."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
import reachable
from conftest import CWND, wait_until

from cwnd import _core
from cwnd.errors import InputError
from cwnd.infer import infer
from cwnd.link import Direction, Settings, rights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Cli

# They share a resolver's address.
pytestmark = [pytest.mark.testbed, pytest.mark.xdist_group("links")]


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

_DISABLED6 = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
needs_ipv6 = pytest.mark.skipif(
    not _DISABLED6.exists() or _DISABLED6.read_text().strip() != "0", reason="no IPv6 here"
)

#: Command behind a link: fetches bytes from a server; prints their count and the times taken.
#: Linux measures that of the handshake (`tcpi_rtt`): a busy machine runs the command late.
_FETCH = """
import os, socket, sys, time
began = time.monotonic()
with socket.create_connection((os.environ["{caller}"], {port})) as server:
    info = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 72)
    connected = int.from_bytes(info[68:], sys.byteorder) / 1e6
    received = 0
    while data := server.recv(1 << 16):
        received += len(data)
print(received, connected, time.monotonic() - began)
"""


@contextlib.contextmanager
def _server(size: int, address: str = "0.0.0.0") -> Iterator[int]:
    """Sends `size` bytes to each client that connects; yields the port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")
                        connection.sendall(bytes(size))

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def _fetch(port: int, caller: str = "CWND_LINK_CALLER") -> list[str]:
    return [sys.executable, "-c", _FETCH.format(port=port, caller=caller)]


def _is_there(address: str) -> bool:
    """`True` if a device of this machine has the address."""
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
    # The last of them may be on their way when the command ends.
    on_the_way = qdelay["packets"].sum() - down["delivered_pkts"]
    assert 0 <= on_the_way <= down["inside_pkts"]
    assert (cli.directory / "packets.pcapng").read_bytes().count(b"marked: codel") == 0 + sum(
        way["marks"].get("codel", 0) for way in answer.json["directions"].values()
    )


@needs_root
def test_the_router_tells_who_sends_of_marks_and_its_meter_writes(cli: Cli):
    meter = '{ kind = "adpm", identification = "drawn" }'
    with _server(4_000_000) as port:
        answer = cli(
            *("link", "--rate", "10Mbit/s", "--rtt", "40ms", "--queue", "codel", "--ecn"),
            *("--meter", meter, "--messenger", "quench", "--json", "--pcap", "packets.pcapng"),
            *("--", *_fetch(port)),
        )
    assert answer.code == 0, answer.err
    down = answer.json["directions"]["downlink"]
    assert sum(down["marks"].values()) > 3
    # The router sends no quench for a packet that arrived with CE.
    assert 3 < down["quenches"] == down["counted"]["quenches_sent"] <= sum(down["marks"].values())
    assert down["counted"]["packets_identified"] > 1000
    assert down["counted"]["packets_below_load"] > 0
    # In the capture quenches have the source address 192.0.0.8.
    packets = (cli.directory / "packets.pcapng").read_bytes()
    told = answer.json["directions"]["uplink"]["quenches"] + down["quenches"]
    assert packets.count(bytes([192, 0, 0, 8])) == told


@needs_root
def test_a_capture_at_the_command_has_what_arrives_there_a_round_trip_after_it_asked(cli: Cli):
    with _server(300_000) as port:
        answer = cli(
            *("link", "--rate", "20Mbit/s", "--rtt", "80ms", "--loss", "0.02", "--json"),
            *("--reorder", "0.02", "--reorder-delay", "20ms"),
            *("--pcap", "there.pcapng", "--pcap-at", "command", "--", *_fetch(port)),
        )
    assert answer.code == 0, answer.err
    down = answer.json["directions"]["downlink"]
    packets = (cli.directory / "there.pcapng").read_bytes()
    assert packets.count(b"dropped") == 0
    (connection,) = infer(cli.directory / "there.pcapng").connections.iter_rows(named=True)
    assert connection["server_bytes"] >= 300_000
    assert connection["position"] > 0.95
    assert 80 <= connection["rtt_min_ms"] < 90
    assert (
        connection["packets"]
        <= down["delivered_pkts"] + answer.json["directions"]["uplink"]["arrived_pkts"]
    )


@needs_root
def test_a_capture_has_the_time_of_day(cli: Cli):
    connects = (
        "import os, socket, time; at = time.time();"
        " socket.create_connection((os.environ['CWND_LINK_CALLER'], {port})); print(at)"
    )
    with _server(1) as port:
        answer = cli(
            *("link", "--rtt", "50ms", "--quiet", "--pcap", "there.pcapng", "--pcap-at", "command"),
            *("--", sys.executable, "-c", connects.format(port=port)),
        )
    assert answer.code == 0, answer.err
    (began,) = infer(cli.directory / "there.pcapng").connections["began_s"]
    # It sends its SYN when it connects; how soon is up to the machine.
    assert -0.001 < began - float(answer.out) < 1.0


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
        inner = f'OUTERMOST=$CWND_LINK_CALLER {CWND} link --rtt 40ms -q -- "$@"'
        answer = cli(*outer, "sh", "-c", inner, "sh", *_fetch(port, "OUTERMOST"))
    assert answer.code == 0, answer.err
    connected = float(answer.out.split()[1])
    assert 0.070 <= connected < 0.140


@needs_root
@needs_ipv6
def test_connections_over_ipv6_take_the_link_and_its_marks(cli: Cli):
    with _server(4_000_000, "::") as port:
        answer = cli(
            *("link", "--rate", "10Mbit/s", "--rtt", "40ms", "--queue", "codel", "--ecn"),
            *("--json", "--", *_fetch(port, "CWND_LINK_CALLER6")),
        )
    assert answer.code == 0, answer.err
    received, connected, _ = map(float, answer.err.split()[-3:])
    assert received == 4_000_000
    assert 0.040 <= connected < 0.090
    down = answer.json["directions"]["downlink"]
    assert down["marks"]["codel"] > 3
    assert down["drops"] == {}
    assert down["largest_bytes"] == 1500


@needs_root
@needs_ipv6
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_curl_in_a_link_in_a_link_reaches_this_machine_over_ipv6(cli: Cli):
    (cli.directory / "page").write_text("behind two links")
    server = ("-m", "http.server", "--bind", "::", "--directory", cli.directory, "0")
    with (
        subprocess.Popen(
            [sys.executable, "-u", *server],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as web,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(web.kill)
        assert web.stdout is not None
        # "Serving HTTP on :: port 40123 (http://[::]:40123/) ..."
        port = web.stdout.readline().split(" port ")[1].split()[0]
        inner = f'OUTERMOST=$CWND_LINK_CALLER6 {CWND} link --rtt 40ms -q -- sh -c "$1"'
        curl = f'curl -sS -g -w " %{{time_connect}}\\n" "http://[$OUTERMOST]:{port}/page"'
        ask = f"{curl} && {curl} && {curl}"
        answer = cli("link", "--rtt", "30ms", "--", "sh", "-c", inner, "sh", ask)
    assert answer.code == 0, answer.err
    pages, connected = zip(*(line.rsplit(" ", 1) for line in answer.out.splitlines()), strict=True)
    assert set(pages) == {"behind two links"}
    # A busy machine adds to the time of one connection or another.
    assert 0.070 <= min(map(float, connected)) < 0.140


#: Address that neither systemd-resolved nor another resolver uses.
_RESOLVER = "127.0.0.153"
#: Runs what follows with the first argument as `/etc/resolv.conf`, which nobody else sees.
_WITH_RESOLVER = (
    *("unshare", "--mount", "sh", "-c"),
    'mount --bind "$0" /etc/resolv.conf && exec "$@"',
)
_LOOK_UP = """
import socket, time
began = time.monotonic()
found = socket.getaddrinfo("behind.example.", 80, socket.AF_INET, socket.SOCK_STREAM)
print(found[0][4][0], time.monotonic() - began)
"""


@contextlib.contextmanager
def _resolver(host: str, port: int, address: str) -> Iterator[int]:
    """Answers every DNS query with this address; yields the port."""
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                query, client = listener.recvfrom(512)
                # RFC 1035 § 4.1: a question, and an answer of type A that refers to its name.
                question = query[12 : query.index(0, 12) + 5]
                head = query[:2] + bytes.fromhex("8180 0001 0001 0000 0000")
                answer = bytes.fromhex("c00c 0001 0001 00000001 0004")
                listener.sendto(head + question + answer + socket.inet_aton(address), client)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((host, port))
        listener.settimeout(0.1)
        server = threading.Thread(target=serve)
        server.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            server.join()


@needs_root
@pytest.mark.parametrize("links", [1, 2])
def test_names_of_a_resolver_on_loopback_are_found_through_the_link(cli: Cli, links: int):
    (cli.directory / "resolv.conf").write_text(f"nameserver {_RESOLVER}\n")
    under = (*_WITH_RESOLVER, "resolv.conf")
    nested = (CWND, "link", "-q", "--rtt", "30ms", "--") * (links - 1)
    with _resolver(_RESOLVER, 53, "192.0.2.7"):
        answer = cli(
            *("link", "-q", "--rtt", "30ms", "--", *nested, sys.executable, "-c", _LOOK_UP),
            under=under,
        )
    assert answer.code == 0, answer.err
    address, took = answer.out.split()
    assert address == "192.0.2.7"
    assert 0.030 * links <= float(took) < 0.030 * links + 0.5


@needs_root
def test_another_server_is_asked_for_names_where_one_is_given(cli: Cli):
    # The system's server is one that is not there.
    (cli.directory / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    with _resolver("127.0.0.1", 0, "192.0.2.8") as port:
        answer = cli(
            *("link", "-q", "--dns", f"127.0.0.1:{port}", "--", sys.executable, "-c", _LOOK_UP),
            under=(*_WITH_RESOLVER, "resolv.conf"),
        )
    assert answer.out.split()[:1] == ["192.0.2.8"], answer.err


@needs_root
def test_a_server_for_names_that_is_no_address_is_an_input_error(cli: Cli):
    answer = cli("link", "--dns", "dns.example", "--", "touch", "ran")
    assert answer.code == 2
    assert "dns.example is no address of a server" in answer.err
    assert not (cli.directory / "ran").exists()


@needs_root
@pytest.mark.parametrize("code", [0, 1, 7, 125])
def test_the_exit_code_is_that_of_the_command(cli: Cli, code: int):
    assert cli("link", "-q", "--", "sh", "-c", f"exit {code}").code == code


@needs_root
def test_a_command_that_a_signal_ends_is_told_as_a_shell_tells_it(cli: Cli):
    assert cli("link", "-q", "--", "sh", "-c", "kill -USR1 $$").code == 128 + signal.SIGUSR1


@needs_root
def test_a_command_that_is_not_there_is_told_as_a_shell_tells_it(cli: Cli):
    answer = cli("link", "-o", "out", "--", "no-such-command")
    assert answer.code == 127
    assert answer.err.endswith("no-such-command: command not found\n")
    assert not (cli.directory / "out").exists()
    assert cli("link", "-q", "--", "/etc/passwd").code == 126
    assert cli("link", "-q", "--", "/etc").code == 126


@needs_root
def test_records_that_cannot_be_written_come_after_the_table(cli: Cli):
    # `links.parquet` is larger than 15 blocks of 512 bytes.
    limited = ("sh", "-c", 'ulimit -f 15; exec "$@"', "sh")
    answer = cli("link", "-o", "out", "--", "true", under=limited)
    assert answer.code == 1
    assert "valid: the router waited" in answer.err
    assert answer.err.endswith("error: out/links.parquet: file too large\n")


@needs_root
def test_signals_go_on_to_the_command(cli: Cli):
    trap = "import os, signal, sys, time\n"
    trap += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n"
    trap += "print(os.environ['CWND_LINK_CALLER'], flush=True)\ntime.sleep(60)"
    with cli.start("link", "-q", "--", sys.executable, "-c", trap) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert _is_there(address)
        # A thread that did not block it would take the signal, and the command would hear nothing.
        assert all(
            _blocks(task, signal.SIGTERM) for task in Path(f"/proc/{running.pid}/task").iterdir()
        )
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == 42
    assert not _is_there(address)


def _blocks(thread: Path, number: signal.Signals) -> bool:
    status = (thread / "status").read_text(encoding="utf-8")
    mask = int(status.split("SigBlk:")[1].split()[0], 16)
    return bool(mask >> (number - 1) & 1)


@needs_root
def test_kill_9_leaves_nothing_behind(cli: Cli):
    sleep = "import os, time\nnetwork = os.readlink('/proc/self/ns/net')\n"
    sleep += "print(network, os.environ['CWND_LINK_CALLER'], flush=True)\ntime.sleep(60)"
    start = cli.start("link", "-q", "--rate", "1Mbit/s", "--", sys.executable, "-c", sleep)
    with start as running:
        assert running.stdout is not None
        behind, address = running.stdout.readline().split()
        assert _is_there(address)
        assert Path(behind) != Path("/proc/self/ns/net").readlink()
        assert Path(behind) in _namespaces()
        running.kill()
        running.wait(10)
    # The command is gone, too.
    wait_until(lambda: Path(behind) not in _namespaces())
    wait_until(lambda: not _is_there(address))


def test_a_user_without_an_entry_is_an_input_error(monkeypatch: pytest.MonkeyPatch):
    def absent(_uid: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", absent)
    with pytest.raises(InputError, match=r"user id \d+ is not in /etc/passwd"):
        rights.user(None)


@needs_root
def test_the_command_is_the_user_who_called_sudo(cli: Cli):
    nobody = "65534"
    who = ("sh", "-c", "id -u; id -ru; id -G; echo $USER; echo 1 > /proc/sys/net/ipv4/tcp_ecn")
    environment = {**os.environ, "SUDO_UID": nobody, "SUDO_GID": nobody}
    answer = cli("link", "-q", "--", *who, env=environment, under=reachable.command())
    assert answer.out.split("\n")[:4] == [nobody, nobody, nobody, "nobody"]
    assert "ermission denied" in answer.err, "it has no rights over its network"
    # Root itself may choose.
    asked = cli("link", "-q", "--user", "nobody", "--", "id", "-u", under=reachable.command())
    assert asked.out == f"{nobody}\n", asked.err


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
    answer = cli("link", "--rate", "1Mbit/s", "--messenger", "post", "--", "true")
    assert answer.code == 2
    assert "quench" in answer.err
    assert cli("link", "--rate", "1Mbit/s").code == 2


#: A queue with a limit of its own that is wrong.
LIMITED = '{ kind = "fifo", limit = "3 foo" }'


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(Direction(queue=LIMITED), Direction(queue=LIMITED)), f"--queue {LIMITED}"),
        (Settings(Direction(buffer="3 foo"), Direction(buffer="3 foo")), "--buffer 3 foo"),
        (Settings(Direction(), Direction(buffer="3 foo")), "--uplink-buffer 3 foo"),
        (Settings(seed=-4), "--seed -4"),
        (Settings(sample="3 foo"), "run.sample"),
        (Settings(rtt="3 foo"), "--rtt 3 foo"),
        (Settings(Direction("1 foo"), Direction("1 Mbit/s")), "--rate 1 foo"),
    ],
)
def test_an_error_names_the_option_that_is_concerned(settings: Settings, said: str):
    with pytest.raises(_core.ScenarioError) as caught:
        _core.parse(settings.scenario().to_toml(), name="the link")
    (line,) = settings.explain(caught.value).splitlines()
    assert line.startswith(f"{said}: ")


@needs_root
@pytest.mark.parametrize("meter", ["xcp", "rcp", "mlcp"])
def test_a_meter_that_fills_headers_which_no_host_sends_is_refused_by_name(cli: Cli, meter: str):
    answer = cli("link", "--rate", "1Mbit/s", "--meter", meter, "--", "touch", "ran")
    assert answer.code == 2
    assert f"packets of real hosts have no header that `{meter}` could fill" in answer.err
    assert "`adpm`" in answer.err
    assert not (cli.directory / "ran").exists()


@needs_root
def test_a_capture_file_that_can_not_be_written_is_an_input_error(cli: Cli):
    answer = cli("link", "--pcap", "nowhere/packets.pcapng", "--", "touch", "ran")
    assert answer.code == 2
    assert "nowhere/packets.pcapng: no such file or directory" in answer.err
    assert not (cli.directory / "ran").exists()


def _namespaces() -> set[Path]:
    found = set()
    for process in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            found.add(process.readlink())
    return found
