"""`cwnd kernel` hands over to `cwnd-kernel`; that itself is tested in crates/linux/kernel."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cwnd.cli import kernel

if TYPE_CHECKING:
    from conftest import Cli

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
