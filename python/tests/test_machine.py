"""`cwnd doctor`, and `cwnd kernel`, which hands over to `cwnd-kernel` (crates/linux/kernel)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cwnd.cli import kernel
from cwnd.machine import doctor

if TYPE_CHECKING:
    from conftest import Cli


def test_doctor_lists_what_there_is_and_how_to_get_the_rest(cli: Cli):
    answer = cli("doctor")
    assert answer.code == 0, answer.err
    for name in ("Python", "Rust extension", "TUN", "BTF", "cwnd-kernel", "tshark"):
        assert name in answer.out
    assert "simulator: ready" in answer.out


def test_doctor_in_json_says_what_each_check_is_needed_for(cli: Cli):
    document = cli("doctor", "--json").json
    assert document["able"]["simulator"] is True
    for check in document["checks"]:
        assert check["needed_for"] in doctor.PURPOSES
        assert (check["status"] == "ok") == (check["fix"] == "")


def test_what_is_required_and_lacking_returns_3(cli: Cli):
    # A path without any program: tshark cannot be found on it.
    answer = cli("doctor", "--require", "capture", env={"PATH": "/nonexistent"})
    assert answer.code == 3
    assert "tshark" in answer.out
    assert "capture: lacks something\n" in answer.out
    assert cli("doctor", "--require", "simulator").code == 0


def test_a_tool_that_does_not_work_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = tmp_path / "tshark"
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (check,) = [each for each in doctor.examine() if each.name == "tshark"]
    assert check.status == "missing"
    assert "does not work" in check.found


def test_the_version_of_a_tool_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = tmp_path / "tshark"
    tool.write_text("#!/bin/sh\necho TShark 4.2\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (check,) = [each for each in doctor.examine() if each.name == "tshark"]
    assert (check.status, check.found) == ("ok", "TShark 4.2")


def test_doctor_lists_controllers_that_the_kernel_has_as_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "6.12.1" / "kernel/net/ipv4"
    folder.mkdir(parents=True)
    for name in ("tcp_vegas.ko.xz", "tcp_htcp.ko", "tcp_diag.ko", "tcp_cubic.ko", "tunnel4.ko"):
        (folder / name).touch()
    monkeypatch.setattr(doctor, "_MODULES", tmp_path)
    monkeypatch.setattr(doctor.platform, "release", lambda: "6.12.1")
    check = next(one for one in doctor.examine() if one.name == "Kernel controllers")
    assert check.found.endswith("; as modules: htcp, vegas")
    monkeypatch.setattr(doctor, "_MODULES", tmp_path / "none")
    check = next(one for one in doctor.examine() if one.name == "Kernel controllers")
    assert "modules" not in check.found


BUILT = shutil.which("cwnd-kernel", path=str(Path(kernel.sys.executable).parent))


#: Starts the command line as if its interpreter were elsewhere, no such program beside it.
ELSEWHERE = (
    sys.executable,
    "-c",
    "import sys; sys.executable = '/nowhere/python'; del sys.argv[0];"
    " from cwnd.__main__ import main; main()",
)


def test_what_is_asked_for_reaches_the_program_and_its_exit_code_comes_back(cli: Cli):
    program = cli.directory / "bin" / "cwnd-kernel"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n")
    program.chmod(0o755)
    fake = {**os.environ, "PATH": f"{program.parent}:/usr/bin:/bin"}
    answer = cli(
        *("kernel", "load", "abe_cubic", "--beta-ecn", "0.85", "--mode", "always"),
        *("--name", "abe", "--pin"),
        under=ELSEWHERE,
        env=fake,
    )
    assert answer.code == 7
    options = "--name abe --beta-ecn 0.85 --mode always --pin"
    assert answer.out.split() == ["load", "abe_cubic", *options.split()]
    answer = cli(
        *("kernel", "load", "becn_reno", "--interface", "eth0", "--interface", "eth1"),
        *("--beta-quench", "0.7", "--rest", "never", "--guesses", "0"),
        under=ELSEWHERE,
        env=fake,
    )
    options = "--beta-quench 0.7 --rest never --guesses 0 --interface eth0 --interface eth1"
    assert answer.out.split() == ["load", "becn_reno", *options.split()]
    for arguments in (["unload", "abe"], ["status", "--json"]):
        answer = cli("kernel", *arguments, under=ELSEWHERE, env=fake)
        assert answer.out.split() == arguments


def test_without_the_program_it_is_said_how_to_get_it(cli: Cli):
    nowhere = {**os.environ, "PATH": str(cli.directory)}
    answer = cli("kernel", "status", under=ELSEWHERE, env=nowhere)
    assert answer.code == 3
    assert "make kernel" in answer.err


def test_a_controller_that_there_is_not_is_a_usage_error(cli: Cli):
    answer = cli("kernel", "load", "abe_bbr")
    assert answer.code == 2
    assert "abe_cubic" in answer.err


@pytest.mark.skipif(BUILT is None, reason="cwnd-kernel is not built (make kernel)")
def test_a_factor_that_is_none_is_a_usage_error(cli: Cli):
    answer = cli("kernel", "load", "abe_reno", "--beta-ecn", "1.5")
    assert answer.code == 2
    assert "between 0 and 1" in answer.err


@pytest.mark.skipif(BUILT is None, reason="cwnd-kernel is not built (make kernel)")
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_status_tells_programs_what_is_loaded(cli: Cli):
    answer = cli("kernel", "status", "--json")
    assert answer.code == 0
    assert isinstance(json.loads(answer.out), list)
