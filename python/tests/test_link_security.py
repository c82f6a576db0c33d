"""Actions forbidden to COMMAND behind `sudo cwnd link`, and files read with the caller's rights.

Needs root, as test_link does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import reachable
from conftest import CWND, SHORT, Cli, wait_until
from test_link import needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = needs_root

#: User id of the caller of sudo in these tests.
NOBODY = 65534
BY_SUDO = {**os.environ, "SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
PYTHON = ("python3", "-c")


class Room:
    """A directory of the caller's, beside files of root's."""

    def __init__(self, directory: Path) -> None:
        self.root = directory
        directory.chmod(0o755)
        self.own = directory / "own"
        self.own.mkdir()
        os.chown(self.own, NOBODY, NOBODY)
        self.secret = directory / "secret"
        self.secret.write_text("the secret of root\n")
        self.secret.chmod(0o600)
        self.cli = Cli(self.own)

    def link(self, *arguments: object, **options: Any) -> Any:
        options = {"under": reachable.command(), "env": BY_SUDO} | options
        return self.cli("link", *arguments, **options)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*reachable.command(), str(CWND), "link", "-q", *map(str, arguments)],
            cwd=self.own,
            env=BY_SUDO,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def is_untouched(self) -> bool:
        status = self.secret.stat()
        text = self.secret.read_text()
        return (status.st_uid, status.st_mode & 0o777, text) == (0, 0o600, "the secret of root\n")


@pytest.fixture
def room() -> Iterator[Room]:
    # That of pytest is root's alone.
    with tempfile.TemporaryDirectory(prefix="cwnd-room-") as directory:
        yield Room(Path(directory))


def test_records_that_are_replaced_by_links_meanwhile_lead_nowhere(room: Room):
    tables = "links.parquet link_series.parquet qdelay.parquet"
    files = f"scenario.toml link.json {tables} manifest.json SHA256SUMS link.svg"
    replace = f'for f in {files}; do ln -s "$0" records/$f; done; rm p.pcapng; ln -s "$0" p.pcapng'
    answer = room.link(
        *("-q", "--rate", "1Mbit/s", "-o", "records", "--pcap", "p.pcapng"),
        *("--", "sh", "-c", replace, room.secret),
    )
    assert room.is_untouched(), answer.err
    assert answer.code == 0, answer.err
    records = room.own / "records"
    assert not (records / "link.json").is_symlink()
    assert {file.lstat().st_uid for file in records.iterdir()} == {NOBODY}


def test_a_folder_of_records_that_is_moved_away_is_written_where_it_went(room: Room):
    target = room.root / "of-root"
    target.mkdir()
    move = 'mv records elsewhere; ln -s "$0" records'
    answer = room.link("-q", "-o", "records", "--", "sh", "-c", move, target)
    assert answer.code == 0, answer.err
    assert list(target.iterdir()) == []
    assert target.stat().st_uid == 0
    assert (room.own / "elsewhere" / "link.json").exists()


def test_a_capture_into_a_file_of_root_is_refused(room: Room):
    answer = room.link("-q", "--pcap", room.secret, "--", "touch", "ran")
    assert answer.code == 2, answer.err
    assert "permission denied" in answer.err
    assert room.is_untouched()
    assert not (room.own / "ran").exists()


def test_a_capture_through_a_symbolic_link_is_refused(room: Room):
    (room.own / "mine").write_text("kept")
    (room.own / "p.pcapng").symlink_to("mine")
    answer = room.link("-q", "--pcap", "p.pcapng", "--", "touch", "ran")
    assert answer.code == 2, answer.err
    assert "is a symbolic link" in answer.err
    assert (room.own / "mine").read_text() == "kept"


def test_records_below_a_folder_of_root_are_refused(room: Room):
    answer = room.link("-q", "-o", room.root / "records", "--", "touch", "ran")
    assert answer.code != 0
    assert not (room.root / "records").exists()
    assert not (room.own / "ran").exists()


def test_an_error_in_a_trace_reveals_nothing_of_a_file_of_root(room: Room):
    answer = room.link("-q", "--trace", room.secret, "--", "touch", "ran")
    assert answer.code == 2
    assert "the secret" not in answer.err
    assert not (room.own / "ran").exists()


def test_who_called_sudo_runs_commands_as_himself_only(room: Room):
    for user in ("root", "0", "daemon"):
        answer = room.link("-q", "--user", user, "--", "touch", "ran")
        assert answer.code == 2
        assert "sudo -i" in answer.err
    assert not (room.own / "ran").exists()


def _status(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name: value.strip() for name, _, value in lines}


def test_the_command_has_no_rights_and_can_gain_none(room: Room):
    show = "cat /proc/self/status; ulimit -Hn; ulimit -Hr"
    limits = ("prlimit", "--nofile=100:200", "--rtprio=0:0")
    answer = room.link("-q", "--", "bash", "-c", show, under=(*reachable.command(), *limits))
    assert answer.code == 0, answer.err
    told = _status(answer.out)
    for line in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(told[line], 16) == 0, line
    assert told["NoNewPrivs"] == "1"
    assert set(told["Uid"].split()) == set(told["Gid"].split()) == {str(NOBODY)}
    assert told["Groups"] == str(NOBODY)
    assert answer.out.split()[-2:] == ["200", "0"], "limits are the caller's"


def test_only_who_asks_for_it_may_gain_rights(room: Room):
    show = ("sh", "-c", "cat /proc/self/status")
    told = _status(room.link("-q", "--allow-sudo", "--", *show).out)
    assert told["NoNewPrivs"] == "0"
    assert int(told["CapEff"], 16) == 0
    assert int(told["CapBnd"], 16) != 0


def test_the_command_sees_only_its_own_processes_and_ends_no_others(room: Room):
    attack = """
import ctypes, os, signal
others = [int(p) for p in os.listdir("/proc") if p.isdecimal() and int(p) != os.getpid()]
assert others == [1], others
assert ctypes.CDLL(None).ptrace(16, 1, None, None) == -1, "attached"
try:
    print(os.listdir("/proc/1/fd"))
    raise SystemExit("its parent's files are open to it")
except PermissionError:
    pass
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
    os.kill(1, number)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    os.kill(-1, signal.SIGTERM)
except ProcessLookupError:
    pass
print("done")
"""
    answer = room.link("-q", "--", *PYTHON, attack)
    assert answer.code == 0, answer.err
    assert answer.out == "done\n"


def _family(process: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def test_while_the_command_runs_no_process_of_the_link_has_rights(room: Room):
    with room.start("--rate", "1Mbit/s", "--", "sh", "-c", "echo on; exec sleep 60") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "on\n"
        family = _family(running.pid)
        assert len(family) == 4, "cwnd link, its keeper, the command's parent, the command"
        for process in family:
            for thread in Path(f"/proc/{process}/task").iterdir():
                told = _status((thread / "status").read_text())
                assert "0" not in told["Uid"].split() + told["Gid"].split()
                assert int(told["CapPrm"], 16) == int(told["CapEff"], 16) == 0
        # Other processes of the caller can't look into those that hold devices.
        for process in family[:3]:
            assert Path(f"/proc/{process}/mem").stat().st_uid == 0
        running.terminate()


def test_kill_9_ends_even_what_went_into_the_background(room: Room):
    mark = f"7{os.getpid()}.5"
    away = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
        f"  os.execvp('sleep', ['sleep', '{mark}'])\n os._exit(0)\n"
        "print('on', flush=True)\ntime.sleep(60)"
    )
    with room.start("--", *PYTHON, away) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "on\n"
        wait_until(lambda: _runs(mark))
        family = _family(running.pid)
        running.kill()
        running.wait(10)
    wait_until(lambda: not _runs(mark))
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in family))


def test_the_end_of_the_command_is_the_end_of_what_it_left_running(room: Room):
    mark = f"8{os.getpid()}.5"
    assert room.link("-q", "--", "sh", "-c", f"setsid sleep {mark} & sleep 0.2").code == 0
    wait_until(lambda: not _runs(mark))


def _runs(mark: str) -> bool:
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if line.read_bytes() == f"sleep\0{mark}\0".encode():
                return True
    return False


def test_a_module_that_appears_meanwhile_is_not_imported_with_rights(room: Room):
    modules = room.own / "modules"
    modules.mkdir()
    os.chown(modules, NOBODY, NOBODY)
    text = f"import os; open({str(room.own / 'imported')!r}, 'a').write(f'{{os.geteuid()}} ')"
    names = "polars rich json cwnd.link.presentation vl_convert"
    plant = f'for name in {names}; do echo "$0" >$1/$name.py; done'
    # As if sudo kept it.
    environment = {**BY_SUDO, "PYTHONPATH": str(modules)}
    room.link("-o", "records", "--", "sh", "-c", plant, text, modules, env=environment)
    imported = room.own / "imported"
    assert not imported.exists() or "0" not in imported.read_text().split()


def _at_terminal(
    arguments: list[str], typed: list[tuple[str, bytes]], room: Room
) -> tuple[int, str, int]:
    """Runs a link at a terminal; types each answer when the text before it is seen.

    Returns its exit code, what was shown, and the mode in which it left the terminal.
    """
    ours, theirs = os.openpty()
    running = subprocess.Popen(
        [*reachable.command(), str(CWND), "link", "-q", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=room.own,
        env=BY_SUDO,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    shown = b""
    os.set_blocking(ours, False)
    until = time.monotonic() + 20
    while running.poll() is None and time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            shown += os.read(ours, 4096)
        if typed and typed[0][0].encode() in shown:
            os.write(ours, typed.pop(0)[1])
        time.sleep(0.02)
    running.kill()
    with contextlib.suppress(BlockingIOError):
        shown += os.read(ours, 65536)
    mode = termios.tcgetattr(theirs)[3]
    os.close(ours)
    os.close(theirs)
    return running.wait(), shown.decode(), mode


#: Lines are edited, and shown as they are typed; keys send signals.
_COOKED = termios.ICANON | termios.ECHO | termios.ISIG

_TYPE_AHEAD = """
import fcntl, os, termios
for path in ("/dev/stdin", "/dev/tty", "/proc/1/fd/0"):
    try:
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
        for byte in b"touch owned\\n":
            fcntl.ioctl(terminal, termios.TIOCSTI, bytes([byte]))
    except OSError as error:
        print(error)
print("tried")
"""


def test_the_command_can_not_type_into_the_terminal_of_its_caller(room: Room):
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [*reachable.command(), str(CWND), "link", "-q", "--", *PYTHON, _TYPE_AHEAD],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=room.own,
        env=BY_SUDO,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    assert running.wait(20) == 0
    assert b"tried" in os.read(ours, 65536)
    os.set_blocking(theirs, False)
    with pytest.raises(BlockingIOError):
        os.read(theirs, 100)
    os.close(ours)
    os.close(theirs)


def test_at_a_terminal_ctrl_c_ends_the_command_and_the_terminal_is_as_before(room: Room):
    code, shown, mode = _at_terminal(
        ["--", "sh", "-c", "tty; echo on; exec sleep 60"], [("on", b"\x03")], room
    )
    assert code == 128 + signal.SIGINT, shown
    assert "/dev/pts/" in shown
    assert mode & _COOKED == _COOKED


def test_what_is_typed_reaches_the_command(room: Room):
    ask = "stty size; echo name?; read name; echo $name there"
    code, shown, mode = _at_terminal(["--", "sh", "-c", ask], [("name?", b"hello\r")], room)
    assert (code, "hello there" in shown) == (0, True), shown
    assert mode & _COOKED == _COOKED


@contextlib.contextmanager
def _sudo(room: Room, *, grants: bool) -> Iterator[dict[str, str]]:
    """A `sudo` that has this process, which is root, run what it is asked for."""
    asked, answered = room.root / "asked", room.root / "answered"
    programs = room.root / "bin"
    programs.mkdir()
    for fifo in (asked, answered):
        os.mkfifo(fifo)
        fifo.chmod(0o666)
    program = programs / "sudo"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{asked}\nexit $(cat {answered})\n')
    program.chmod(0o755)

    def serve() -> None:
        words = asked.read_text().splitlines()
        words = [*reachable.command(), *words]
        done = (
            subprocess.run(
                words, env={"SUDO_UID": str(NOBODY), "PATH": "/usr/bin:/bin"}, check=False
            )
            if grants
            else None
        )
        answered.write_text(str(done.returncode if done else 1))

    threading.Thread(target=serve, daemon=True).start()
    yield {**os.environ, "PATH": f"{programs}:/usr/bin:/bin"}


AS_NOBODY = (
    *("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"),
    "--bounding-set=-all",
)


def test_who_has_no_rights_asks_for_them_and_says_so(room: Room):
    under = (*reachable.command(), *AS_NOBODY)
    with _sudo(room, grants=True) as environment:
        show = ("sh", "-c", "id -u; pwd; echo $MARK; grep NoNew /proc/self/status; exit 5")
        answer = room.link("-q", "--", *show, under=under, env={**environment, "MARK": "mine"})
    assert answer.code == 5, answer.err
    user, directory, mark, *_, barred = answer.out.split()
    assert (user, directory, mark, barred) == (str(NOBODY), str(room.own), "mine", "1")
    (line,) = answer.err.splitlines()
    assert line.startswith("cwnd link asks for the rights it needs: /")
    assert " -I -S " in line
    assert "keeper.py @" in line


def test_rights_that_are_not_granted_are_an_error_that_says_what_works(room: Room):
    under = (*reachable.command(), *AS_NOBODY)
    with _sudo(room, grants=False) as environment:
        answer = room.link("-q", "--", "touch", "ran", under=under, env=environment)
    assert answer.code == 3
    assert 'sudo "$(command -v cwnd)" link' in answer.err.replace("\n", " ")
    nowhere = (*under, "env", f"PATH={room.own}")
    touch = shutil.which("touch") or ""
    answer = room.link("-q", "--", touch, "ran", under=nowhere, env=dict(os.environ))
    assert answer.code == 3
    assert "no sudo here" in answer.err
    assert not (room.own / "ran").exists()


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3")
def test_iperf3_in_a_loop_finds_its_server_free_each_time(room: Room):
    command = ["iperf3", "-s", "-p", "5999", "--forceflush"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(server.kill)
        assert server.stdout is not None
        assert any("listening" in line for line in server.stdout)
        client = "iperf3 -c $CWND_LINK_CALLER -p 5999 -n 300K"
        for number in range(5):
            answer = room.link(
                "-q", "--rtt", "100ms", "--rate", "5Mbit/s", "--", "sh", "-c", client
            )
            assert answer.code == 0, (number, answer.out, answer.err)


GRAPH = """graph [
  node [ id 0 label "a" ]
  node [ id 1 label "b" ]
  edge [ source 0 target 1 ]
]
"""
START = 'start = "uniform(0 ms, 100 ms)"'
#: Name of a case → the arguments of a command that reads the secret.
READERS = {
    "run": ("run", "secret"),
    "run sizes": ("run", "sizes.toml"),
    "run rows": ("run", "rows.toml"),
    "run rate": ("run", "rate.toml"),
    "sweep": ("sweep", "secret"),
    "check": ("check", "secret"),
    "infer": ("infer", "secret"),
    "topology": ("topology", "import", "secret.gml"),
    "matrix": ("topology", "import", "graph.gml", "--matrix", "secret"),
    "link": ("link", "--trace", "secret", "--", "true"),
    "agree": ("agree", "secret"),
    "run on Linux": ("run", "--on=linux", "secret"),
}


def _fill(room: Room) -> None:
    files = {
        "graph.gml": GRAPH,
        "sizes.toml": SHORT.replace(
            START,
            'workload = { kind = "bytes", size = "cdf(../secret.csv)" }\narrivals = "poisson"',
        ),
        "rows.toml": SHORT.replace(
            START,
            'workload = { kind = "bytes", size = "10 kB" }\n'
            'arrivals = { kind = "list", rows = "../secret.csv" }',
        ),
        "rate.toml": SHORT.replace('"10 Mbit/s"', '{ trace = "../secret" }'),
    }
    for name, text in files.items():
        (room.own / name).write_text(text)
    for name in ("secret.csv", "secret.gml"):
        (room.root / name).write_text("the secret of root\n")
        (room.root / name).chmod(0o600)


@pytest.mark.parametrize("name", READERS)
def test_no_file_that_the_caller_may_not_read_is_read(room: Room, name: str) -> None:
    _fill(room)
    arguments = [f"../{word}" if word.startswith("secret") else word for word in READERS[name]]
    answer = room.cli(*arguments, under=reachable.command(), env=BY_SUDO)
    assert answer.code in {1, 2}, answer.err
    assert "the secret" not in answer.out + answer.err
    assert "ermission denied" in answer.err
    assert room.is_untouched()
    # As root each of them is read.
    answer = room.cli(*arguments)
    assert "ermission denied" not in answer.err


def test_what_is_written_is_the_callers(room: Room) -> None:
    (room.own / "short.toml").write_text(SHORT)
    by_nobody = {"under": reachable.command(), "env": BY_SUDO}
    assert room.cli("run", "short.toml", "--no-plots", **by_nobody).code == 0
    owners = {file.stat().st_uid for file in (room.own / "out").rglob("*")}
    assert owners == {NOBODY}
    refused = room.cli("run", "short.toml", "--no-plots", "-o", room.root / "out", **by_nobody)
    assert refused.code == 1
    assert "ermission denied" in refused.err
    assert not (room.root / "out").exists()


def test_an_installation_that_the_caller_cannot_read_is_named_at_once(room: Room) -> None:
    hide = (
        "mount -t tmpfs -o mode=700 none /mnt && mkdir /mnt/python"
        ' && mount --bind "$0" /mnt/python && exec "$@"'
    )
    start = f"import sys; sys.path[:0] = {sys.path}; from cwnd.__main__ import main; main()"
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", hide, sys.base_prefix),
            *("/mnt/python/bin/python3", "-c", start, "link", "--rtt", "10ms", "--", "true"),
        ],
        cwd=room.own,
        env=BY_SUDO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "error: nobody may not read /mnt/python/" in done.stderr
    assert "/opt/cwnd/bin/pip install ." in done.stderr
