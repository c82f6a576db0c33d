"""Controllers in C in this machine's kernel: loading, errors, runs; skipped without root."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import reachable
from conftest import with_kernel
from test_c_controllers import PARTS, RENO, SCENARIO, edit

import cwnd
from cwnd.errors import CodeError, InputError, MachineError
from cwnd.running import compiling

if TYPE_CHECKING:
    from conftest import Cli

pytestmark = [pytest.mark.testbed, with_kernel]

CLI = [sys.executable, "-m", "cwnd"]
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
#: A name that no other test run uses.
NAME = f"own_{os.getpid():x}"
#: An empty function, and one that writes what the kernel lets no controller write.
EMPTY = "*sk)\n{\n}"
WRITE = "*sk)\n{\n\ttcp_sk(sk)->srtt_us = 1;\n}"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source file with a header, beside a scenario; nothing is trusted."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "own.bpf.c").write_text(RENO)
    (tmp_path / "parts.h").write_text(PARTS)
    (tmp_path / "own.toml").write_text(SCENARIO.replace("10 s", "5 s"))
    return tmp_path / "own.bpf.c"


def test_a_file_is_loaded_while_the_command_runs(own: Path, cli: Cli) -> None:
    command = [*CLI, "kernel", "load", str(own), "--name", NAME, "--set", "divisor=4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(f"{NAME} is loaded")
            (row,) = json.loads(cli("kernel", "status", NAME, "--json").out)
            assert (row["controller"], row["sockets"], row["registered"]) == ("c", None, True)
            assert row["set"] == "divisor=4"
            assert "divisor=4" in cli("kernel", "status", NAME).out
            with socket.socket() as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME.encode())
            taken = cli("kernel", "load", own, "--name", NAME)
            assert taken.code == 1
            assert f"something named {NAME} already" in taken.err
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
    assert process.returncode == 0
    assert NAME not in AVAILABLE.read_text().split()


def test_a_file_is_pinned_until_it_is_unloaded(own: Path) -> None:
    script = (
        f"set -e; mount -t bpf bpf /sys/fs/bpf; {' '.join(CLI)} kernel load {own} --name {NAME}_p"
        f" --pin; {' '.join(CLI)} kernel status {NAME}_p; {' '.join(CLI)} kernel unload {NAME}_p"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{NAME}_p is unloaded" in done.stdout
    assert f"{NAME}_p" not in AVAILABLE.read_text().split()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("/ divisor)", "/ divisors)", (1, "own.bpf.c:21:")),
        ('"parts.h"', '"/etc/passwd"', (1, "`/etc/passwd` is no header in its folder")),
        ("tcp_reno_undo", "tcp_renoir_undo", (3, "has no function `tcp_renoir_undo_cwnd`")),
        (EMPTY, WRITE, (1, "no write support")),
        ("\t.undo_cwnd = (void *)own_undo_cwnd,\n", "",
         (2, "is no complete `tcp_congestion_ops`")),
        ("const volatile", 'SEC("kprobe/f") int f(void *c) { return 0; }\nconst volatile',
         (2, "a program `f` in section `kprobe/f`, which belongs to no controller")),
        ("struct tcp_congestion_ops own", "struct bpf_ops { int x; } other = {};\n"
         'SEC(".struct_ops")\nstruct tcp_congestion_ops own',
         (2, "`other` of the file is no `tcp_congestion_ops`")),
    ],
)  # fmt: skip
def test_wrong_code_is_a_sentence(
    own: Path, cli: Cli, old: str, new: str, error: tuple[int, str]
) -> None:
    edit(own, old, new)
    answer = cli("kernel", "load", own)
    code, message = error
    assert answer.code == code, answer.err
    assert answer.err.startswith("error: ")
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert "own" not in AVAILABLE.read_text().split()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "gain=2"), "has no `const volatile` variable `gain`"),
        (("--set", "divisor=-1"), "has a variable `divisor`, which -1 does not fit"),
        (("--table", "other"), "has no controller `other`; it has own"),
        (("--beta-ecn", "0.5"), "a controller in C has no --beta-ecn"),
        (("--name", "sixteen__letters"), "1 to 15 letters"),
    ],
)
def test_wrong_options_are_a_sentence(
    own: Path, cli: Cli, words: tuple[str, str], message: str
) -> None:
    answer = cli("kernel", "load", own, *words)
    assert answer.code == 2
    assert message in answer.err


def test_the_compiler_has_no_rights_of_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        clang = Path(folder, "clang")
        clang.write_text("#!/bin/sh\nid -u >&2; grep CapEff /proc/self/status >&2; exit 1\n")
        clang.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        with pytest.raises(CodeError) as refused:
            compiling.kernel_object("x.c", "int x;")
    _, user, capabilities = str(refused.value).splitlines()
    assert user != "0"
    assert set(capabilities.split()[1]) == {"0"}


#: Becomes a caller of sudo who runs a scenario on Linux, and simulates code that shows its rights.
SIMULATED = """
import cwnd
from cwnd import _core
_core.keep_network_rights(65534)
controller = {"kind": "python", "path": "own.py", "class": "Own"}
flow = {"main": {"rtt": "40 ms", "controller": controller}}
link = {"rate": "10 Mbit/s"}
try:
    cwnd.run(cwnd.Scenario(schema=2, run={"duration": "1 s"}, dumbbell=link, flow=flow), trust=True)
except cwnd.CwndError as error:
    print(error)
"""
SHOWS_RIGHTS = """
class Own:
    def __init__(self, start):
        raise ValueError(open("/proc/self/status").read())
"""


def test_code_is_simulated_without_the_capabilities_of_runs_on_linux() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        Path(folder, "own.py").write_text(SHOWS_RIGHTS)
        done = subprocess.run(
            [*reachable.command(), sys.executable, "-c", SIMULATED],
            cwd=folder, env=os.environ | {"XDG_CONFIG_HOME": folder},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    found = dict(re.findall(r"^Cap(Prm|Eff|Inh|Amb):\s*(\w+)$", done.stdout, re.MULTILINE))
    assert found == dict.fromkeys(("Inh", "Prm", "Eff", "Amb"), "0" * 16), done.stdout


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match="apt install clang libbpf-dev"):
        compiling.kernel_object("y.c", "int x;")


def test_a_trusted_controller_acts_in_the_kernel_as_in_the_simulator(own: Path) -> None:
    scenario = own.with_name("own.toml")
    with scenario.open("a") as file:
        file.write(
            '\n[sweep.axis.divisor]\npath = "flow.main.controller.divisor"\nvalues = [2, 8]\n'
        )
    with pytest.raises(InputError, match="--trust"):
        cwnd.run(scenario, on="linux")
    real = cwnd.run(scenario, on="linux", trust=True).flows["goodput_bit_s"]
    simulated = cwnd.run(scenario).flows["goodput_bit_s"]
    assert real[1] < 0.95 * real[0]
    assert real.to_list() == pytest.approx(simulated.to_list(), rel=0.1)


@pytest.mark.usefixtures("untrusted")
def test_receivers_echo_marks_by_the_controller(selftests: Path) -> None:
    meter = '{ kind = "step", threshold = "10 packets" }'
    text = SCENARIO.replace("12 Mbit/s", "50 Mbit/s").replace("10 s", "5 s")
    text = text.replace('60 packets" }', f'500 packets" }}\nmeter = {meter}')
    text = text.replace("60 ms", "10 ms").replace("own.bpf.c", "bpf_dctcp.c")
    scenario = selftests / "dctcp.toml"
    scenario.write_text(text.replace("ecn = true", 'ecn = true, echo = "changes"'))
    run = cwnd.run(scenario, on="linux", trust=True)
    # The queue has 2 ms; 67 ms with receivers that have another controller.
    assert run.links["marked_pkts"][0] > 100
    assert run.links["qdelay_mean_us"][0] < 10_000


def test_what_the_verifier_refuses_fails_the_run(own: Path) -> None:
    edit(own, EMPTY, WRITE)
    with pytest.raises(
        CodeError, match=r"(?s)^own.bpf.c: the kernel refused to load .*no write support"
    ):
        cwnd.run(own.with_name("own.toml"), on="linux", trust=True)
