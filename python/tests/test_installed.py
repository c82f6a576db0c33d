"""Parts of one's own as their pages say, with an installed wheel in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import docblocks
import pytest
from conftest import ROOT, SHORT

pytestmark = [
    # Tests that build crates use one folder of cargo's.
    pytest.mark.xdist_group("crates"),
    pytest.mark.skipif(sys.platform != "linux", reason="wheels of this machine are for Linux"),
]

PAGE = "docs/how-to/write-a-controller.md"
LEARNING = "docs/how-to/reinforcement-learning.md"

Shell = Callable[[str], str]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the wheel of this tree, and with nothing of the tree."""
    place = tmp_path_factory.mktemp("wheel")
    bin_ = Path(sys.executable).parent
    maturin = [bin_ / "maturin", "build", "--release", "--quiet", "--out", place]
    subprocess.run(maturin, cwd=ROOT, check=True, env=_environment(bin_))
    (wheel,) = place.glob("*.whl")
    uv = ROOT / "scripts" / "uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place / "venv"], check=True)
    python = place / "venv" / "bin" / "python"
    # Versions of the lock: newer ones may differ from day to day.
    locked = place / "locked.txt"
    export = [uv, "export", "--quiet", "--frozen", "--all-extras", "--all-groups", "--no-hashes"]
    subprocess.run([*export, "--no-emit-project", "-o", locked], cwd=ROOT, check=True)
    install = [uv, "pip", "install", "--quiet", "--python", python, "--constraints", locked]
    wanted = (f"{wheel}[gym]", "pytest", "pip", "cffi", "maturin")
    subprocess.run([*install, *wanted], check=True)
    return python.parent


def _environment(programs: Path) -> dict[str, str]:
    """The variables of a user: programs, what Rust needs, and the folder of what cargo compiles."""
    kept = ("HOME", "CARGO_HOME", "RUSTUP_HOME", "CARGO_PROFILE_DEV_DEBUG", "CARGO_INCREMENTAL")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PATH": f"{programs}:{os.environ['PATH']}",
    }


@pytest.fixture
def shell(programs: Path, tmp_path: Path) -> Shell:
    """Runs commands in an empty folder; they must succeed. Returns what they print."""
    environment = {
        **_environment(programs),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "CARGO_TARGET_DIR": str(ROOT / "target" / "extension"),
        "CARGO_NET_OFFLINE": "true",
    }
    folder = tmp_path / "empty"
    folder.mkdir()

    def run(script: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def commands(begins: str) -> str:
    """The commands of the block of the page that begins so."""
    blocks = [each for each in docblocks.blocks(PAGE) if each.text.startswith(f"$ {begins}")]
    (block,) = blocks
    return "\n".join(line.removeprefix("$ ") for line in block.text.splitlines())


def test_the_wheel_is_what_runs(shell: Shell):
    place = shell("python -c 'import cwnd; print(cwnd.__file__)'")
    assert str(ROOT) not in place
    shell("cwnd new scenario s.toml; cwnd run s.toml --quiet --no-plots")
    assert "15" in shell("cwnd query out/s 'select count(*) as n from runs'")


def test_a_controller_in_python(shell: Shell, tmp_path: Path):
    out = shell(commands("cwnd new controller mine.py"))
    assert "mine (1)" in out
    assert "1 passed" in out
    assert list((tmp_path / "empty" / "out" / "mine" / "plots").glob("*.svg"))


def test_a_controller_in_c(shell: Shell, tmp_path: Path):
    assert "mine (1)" in shell(commands("cwnd new controller mine.bpf.c"))


def test_a_controller_in_rust(shell: Shell, tmp_path: Path):
    script = commands("cwnd new controller mine --rust")
    # The tools that build it are installed; a user's pip fetches them.
    script = script.replace("pip install", "pip install --quiet --no-build-isolation --no-deps")
    assert "mine (1)" in shell(script)


def test_an_agent(shell: Shell, tmp_path: Path):
    block = next(each for each in docblocks.blocks(LEARNING) if each.language == "python")
    (tmp_path / "empty" / "agent.py").write_text(block.text)
    (tmp_path / "empty" / "my.toml").write_text(SHORT)
    shell("python agent.py")


def test_a_whole_stack(shell: Shell):
    script = commands("cwnd new endpoint mystack").replace(" --release", "")
    rows = shell(script).splitlines()
    header = rows.index("seed  flow  Mbit/s  lost")
    goodputs = [float(row.split()[2]) for row in rows[header + 1 :]]
    # A window of 60 datagrams of 1,200 B; CUBIC fills the buffer of one BDP beside it.
    assert 60 * 1200 * 8 / 0.08 / 1e6 < goodputs[0] < 60 * 1200 * 8 / 0.04 / 1e6
    assert 18 < sum(goodputs) < 20
