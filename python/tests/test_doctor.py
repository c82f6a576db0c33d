"""`cwnd doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.machine import doctor

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
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
