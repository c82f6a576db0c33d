"""Controllers in Python: facts and decisions, errors, trust, and the commands that run them."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import edit

import cwnd
from cwnd.errors import CodeError, InputError
from cwnd.running import plans

if TYPE_CHECKING:
    from conftest import Cli

pytestmark = pytest.mark.usefixtures("untrusted")

RENO = """
class Reno:
    # NewReno in whole bytes (RFC 5681, RFC 3465), as the built-in one counts.
    def __init__(self, start, beta=0.5):
        self.mss, self.beta = start.mss, beta
        self.window = self.initial = start.initial_window
        self.ssthresh = start.initial_ssthresh
        self.carry, self.limit = 0, 2 * start.mss

    def on_ack(self, path, ack):
        if not ack.grow:
            return
        left = ack.acked_bytes
        if self.ssthresh is None or self.window < self.ssthresh:
            left = min(left, self.limit)
            step = left if self.ssthresh is None else min(left, self.ssthresh - self.window)
            self.window += step
            left -= step
            if self.ssthresh is not None and self.window >= self.ssthresh:
                self.carry, self.limit = 0, 2 * self.mss
            if left == 0:
                return
        self.carry += left
        if self.carry >= self.window:
            self.carry -= self.window
            self.window += self.mss

    def reduce(self, path):
        self.ssthresh = max(int(path.flight_size * self.beta), 2 * self.mss)
        self.carry = 0

    def on_signal(self, path, signal):
        if signal.kind == "reduce":
            self.reduce(path)
            self.window = min(self.window, self.ssthresh)
        elif signal.kind == "timeout":
            if signal.reduces:
                self.reduce(path)
            self.window, self.carry, self.limit = self.mss, 0, self.mss
        elif signal.kind == "idle":
            self.window = min(self.window, signal.keep or self.initial)
"""
SCENARIO = """
schema = 2
name = "own"

[run]
duration = "10 s"

[dumbbell]
rate = "10 Mbit/s"
queue = { kind = "fifo", limit = "50 packets" }

[flow.main]
count = 2
rtt = "40 ms"
stack = "rfc"
controller = { kind = "python", path = "own.py", class = "Reno" }

[sweep]
repeat = 2
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A scenario with a controller of one's own."""
    (tmp_path / "own.py").write_text(RENO)
    (tmp_path / "own.toml").write_text(SCENARIO)
    return tmp_path / "own.toml"


def test_newreno_in_python_is_the_built_in_one(own: Path) -> None:
    mine = cwnd.run(own, trust=True)
    built_in = cwnd.run(own, set={"flow.main.controller": {"kind": "newreno", "preset": "rfc"}})
    columns = ["goodput_bit_s", "cwnd_reductions_loss", "retrans", "rto_count"]
    assert mine.flows.select(columns).equals(built_in.flows.select(columns))


def test_arguments_and_axes_reach_the_constructor(own: Path) -> None:
    edit(own, 'class = "Reno" }', 'class = "Reno", beta = 0.7 }')
    with own.open("a") as file:
        file.write('\n[sweep.axis.beta]\npath = "flow.main.controller.beta"\nvalues = [0.5, 0.9]\n')
    run = cwnd.run(own, trust=True)
    loss = run.summary()["reductions_loss"].to_list()
    assert loss[1] > 1.5 * loss[0] > 0


def test_code_is_refused_until_it_is_trusted(own: Path, cli: Cli, tmp_path: Path) -> None:
    checked = cli("check", own)
    assert checked.code == 0, checked.err
    refused = cli("run", own, "-o", tmp_path / "out")
    assert refused.code == 2
    assert "own.py" in refused.err
    assert "--trust" in refused.err
    assert not (tmp_path / "out").exists()
    assert cli("run", own, "-o", tmp_path / "out", "--trust", "--no-plots").code == 0
    again = cli("run", own, "-o", tmp_path / "out", "--no-plots")
    assert again.code == 0
    assert "2 runs there before" in again.out
    (tmp_path / "own.py").write_text(RENO.replace("beta=0.5", "beta=0.6"))
    assert cli("run", own, "-o", tmp_path / "out").code == 2


def test_another_text_is_another_cell(own: Path) -> None:
    first = cwnd.run(own, trust=True).runs["cell_sha"].to_list()
    edit(own.with_name("own.py"), "whole bytes", "bytes")
    second = cwnd.run(own, trust=True).runs["cell_sha"].to_list()
    assert not set(first) & set(second)


def test_an_endless_loop_ends_after_its_time(own: Path) -> None:
    loop = "while True:\n            try: left = 0\n            except Exception: pass"
    edit(own.with_name("own.py"), "left = ack.acked_bytes", loop)
    with pytest.raises(CodeError) as raised:
        cwnd.run(own, trust=True, set={"sweep.repeat": 1})
    text = str(raised.value)
    assert "TimeoutError: `Reno.on_ack` did not return for 5 s\nat 0." in text
    assert re.search(r'File "own.py", line \d+, in on_ack', text)


def test_time_in_a_debugger_does_not_count(own: Path) -> None:
    class Stopped:
        has_stopped = False

        def __init__(self, start: Any) -> None:
            self.window = start.initial_window

        def on_ack(self, path: Any, ack: Any) -> None:
            if not Stopped.has_stopped:
                Stopped.has_stopped = True
                # As `breakpoint` does.
                sys._getframe().f_trace = lambda *_: None
                end = time.monotonic() + 7
                while time.monotonic() < end:
                    pass

        def on_signal(self, path: Any, signal: Any) -> None:
            pass

    controller = {"kind": "stopped"}
    changed = {"flow.main.controller": controller, "sweep.repeat": 1, "run.duration": "1 s"}
    run = cwnd.run(own, set=changed, controllers={"stopped": Stopped})
    assert Stopped.has_stopped
    assert run.flows["controller"].unique().to_list() == ["python:Stopped"]


def test_an_exception_has_the_users_lines_and_the_simulated_time(
    own: Path, cli: Cli, tmp_path: Path
) -> None:
    edit(own.with_name("own.py"), "left = ack.acked_bytes", "left = ack.acked_byte")
    with pytest.raises(CodeError) as raised:
        cwnd.run(own, trust=True)
    text = str(raised.value)
    number = RENO.splitlines().index("        left = ack.acked_bytes") + 1
    assert f'File "own.py", line {number}, in on_ack' in text
    assert "left = ack.acked_byte" in text
    assert re.search(r"at 0\.\d{6} s of simulated time", text)
    failed = cli("run", own, "-o", tmp_path / "out", "--no-plots")
    assert failed.code == 1
    assert "'cwnd._core.Ack' object has no attribute 'acked_byte'" in failed.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class Reno", "class Vegas", "own.py has no class `Reno`"),
        ("beta=0.5", "gamma=0.5, *, must", "missing 1 required keyword-only argument: 'must'"),
        ("def on_signal", "def on_signals", "the class has no method `on_signal`"),
        ("self.window = self.initial", "self.windw = self.initial", "no attribute `window`"),
        ("self.window += self.mss", "self.window = float('nan')", "`window` is nan, not a number"),
        ("            return\n        left", "            return 3\n        left", "returned 3"),
        ("self.mss, self.beta", "self.mss, self.beta =", "invalid syntax"),
        ("            return\n        left", "            import os; os._exit(1)\n        left",
         "the process of own.py ended"),
    ],
)  # fmt: skip
def test_wrong_code_is_a_sentence(own: Path, old: str, new: str, message: str) -> None:
    edit(own.with_name("own.py"), old, new)
    with pytest.raises(CodeError, match=re.escape(message)):
        cwnd.run(own, trust=True)


def test_code_never_has_roots_rights(own: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has rights to give up")
    edit(
        own.with_name("own.py"),
        "class Reno:",
        "import os\nif os.geteuid() == 0: raise RuntimeError('root')\n\n\nclass Reno:",
    )
    cwnd.run(own, trust=True)


def test_a_checked_run_takes_the_same_steps(own: Path, cli: Cli, tmp_path: Path) -> None:
    checked = cli("run", own, "-o", tmp_path / "out", "--trust", "--check", "--no-plots", "--json")
    assert checked.code == 0, checked.err
    hashes = json.loads(checked.out)["results"][0]["manifest"]["steps_hashes"]
    assert len(hashes) == 2
    edit(own.with_name("own.py"), "class Reno:", "import random\n\n\nclass Reno:")
    edit(own.with_name("own.py"), "+= self.mss", "+= self.mss + random.randrange(9)")
    differs = cli("run", own, "-o", tmp_path / "other", "--trust", "--check", "--no-plots")
    assert differs.code == 1
    assert "2 cells failed, the first with DivergedError" in differs.err


def test_captures_are_in_the_result(own: Path, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    captured = cli(
        *("run", own, "-o", out, "--trust", "--pcap", "all", "--qlog", "all", "--no-plots")
    )
    assert captured.code == 0, captured.err
    assert len(list((out / "pcap").glob("*/bottleneck.pcapng"))) == 2
    assert len(list((out / "qlog").glob("*/main-*.sqlog"))) == 4
    assert {path.owner() for path in out.rglob("*")} == {out.owner()}


def test_nothing_but_captures_and_logs_leaves_the_process_of_code(own: Path, tmp_path: Path):
    if os.geteuid() != 0:
        pytest.skip("only root's code has a directory of its own")
    edit(
        own.with_name("own.py"),
        "class Reno:",
        "import contextlib, glob, pathlib, tempfile\n\n"
        "for place in map(pathlib.Path, glob.glob(f'{tempfile.gettempdir()}/cwnd-*/tmp*/')):\n"
        # Another run may be at its end.
        "    with contextlib.suppress(OSError):\n"
        "        if not (place / 'other.txt').exists():\n"
        "            (place / 'other.txt').touch()\n"
        "            (place / 'link.sqlog').symlink_to('other.txt')\n\n\n"
        "class Reno:",
    )
    cwnd.run(own, trust=True, qlog="main", qlog_dir=tmp_path / "qlog")
    names = {path.name for path in (tmp_path / "qlog").glob("*/*")}
    assert names == {"main-0.sqlog", "main-1.sqlog"}


def test_a_result_is_verified_without_its_file(own: Path, cli: Cli, tmp_path: Path) -> None:
    cwnd.sweep(own, tmp_path / "out", trust=True)
    own.with_name("own.py").unlink()
    verified = cli("verify", tmp_path / "out")
    assert verified.code == 0, verified.out
    assert "2 computed again" in verified.out
    (tmp_path / "config" / "cwnd" / "trusted").unlink()
    refused = cli("verify", tmp_path / "out")
    assert refused.code == 2
    assert "--trust" in refused.err


@pytest.mark.parametrize("command", [["agree"], ["run", "--on", "linux"]])
def test_linux_has_no_code_of_the_simulator(own: Path, cli: Cli, command: list[str]) -> None:
    refused = cli(command[0], own, *command[1:], "-o", own.parent / "out")
    assert refused.code != 0
    assert "own.py" in refused.err or "Linux has no controller `python`" in refused.err


def test_new_writes_a_controller_that_runs(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    written = cli("new", "controller", file)
    assert written.code == 0, written.err
    assert written.out.split() == [str(file), str(tmp_path / "mine.toml")]
    assert "class Mine:" in file.read_text()
    assert cli("check", tmp_path / "mine.toml").code == 0
    again = cli("new", "controller", file)
    assert again.code == 2
    assert "--force" in again.err
    with pytest.raises(InputError):
        cwnd.run(tmp_path / "mine.toml", set={"run.duration": "9 s"})


def test_an_undone_reduction_gives_window_and_threshold_back(own: Path) -> None:
    edit(own, 'stack = "rfc"', 'stack = "linux"')
    edit(own, "count = 2", 'count = 1\nstart = "0 s"')
    edit(own, 'rate = "10 Mbit/s"', 'rate = "10 Mbit/s"\nreorder = 0.01\nreorder_delay = "30 ms"')
    edit(
        own.with_name("own.py"),
        'if signal.kind == "reduce":',
        'self.before = self.window, self.ssthresh\n        if signal.kind == "reduce":',
    )
    edit(
        own.with_name("own.py"),
        "        if not ack.grow:",
        "        if getattr(self, 'before', None) and self.window == self.before[0]:\n"
        "            raise RuntimeError(f'undone: {self.ssthresh == self.before[1]}')\n"
        "        if not ack.grow:",
    )
    with pytest.raises(CodeError, match="undone: True"):
        cwnd.run(own, trust=True)


@pytest.mark.parametrize("how", ["axis", "override"])
def test_code_that_only_a_part_of_the_sweep_names_needs_trust_too(own: Path, how: str) -> None:
    named = '{ kind = "python", path = "own.py", class = "Reno" }'
    edit(own, f"controller = {named}", 'controller = "newreno"')
    plain = plans.plan(own)
    assert not plain.scenario.may_have_code
    assert plain.code == []
    if how == "axis":
        with own.open("a") as file:
            file.write(
                '\n[sweep.axis.who]\npath = "flow.main.controller"\n'
                f'values = ["newreno", {named}]\nlabels = ["built-in", "own"]\n'
            )
        found = plans.plan(own)
    else:
        found = plans.plan(own, overrides=[f"flow.main.controller={named}"])
    assert [source.name for source in found.code] == ["own.py"]
