"""Crates of users: built as pip builds them, and installed into a folder."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, Cli

#: Folder of what cargo compiles, shared by all tests.
TARGET = ROOT / "target" / "extension"


def build(crate: Path) -> Path:
    """Builds the wheel of a crate without a network, by the backend that pip calls."""
    wheels = crate / "dist"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "CARGO_NET_OFFLINE": "true"}
    words = [sys.executable, "-m", "maturin", "build", "--release", "--quiet"]
    done = subprocess.run(
        [*words, "--manifest-path", crate / "Cargo.toml", "--out", wheels],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.glob("*.whl")
    return wheel


def install(wheel: Path, site: Path) -> None:
    """Installs a wheel into a folder."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


def install_library(library: Path, kind: str, site: Path) -> None:
    """Installs a library as a package of version 1.0 with one controller."""
    about = f"{kind}-1.0.dist-info"
    files = {
        f"{kind}/lib{kind}.so": library.read_bytes(),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {kind}\nVersion: 1.0\n".encode(),
        f"{about}/entry_points.txt": f"[cwnd.controllers]\n{kind} = {kind}\n".encode(),
    }
    record = ""
    for name, content in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    (site / about / "RECORD").write_text(record)


def use(site: Path, patch: pytest.MonkeyPatch) -> None:
    """Makes the packages of a folder those of this process, and of processes that it starts."""
    patch.syspath_prepend(site)
    patch.setenv("PYTHONPATH", str(site))


def template(name: str, folder: Path, cli: Cli) -> Path:
    """Writes the crate of `cwnd new`."""
    answer = cli("new", "controller", folder / name, "--rust")
    assert answer.code == 0, answer.err
    return folder / name
