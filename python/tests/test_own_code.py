"""The commands with a controller of one's own: the table of `docs/how-to/write-a-controller.md`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import crates
import pytest
from conftest import ROOT, Cli, with_kernel

# Tests that build crates use one folder of cargo's.
pytestmark = pytest.mark.xdist_group("crates")

PAGE = ROOT / "docs" / "how-to" / "write-a-controller.md"
#: A controller of each language: its file, or none for a package; and how a scenario names it.
LANGUAGES = {
    "Python": ("aimd.py", '{ kind = "python", path = "aimd.py", class = "Aimd" }'),
    "C": ("mine.bpf.c", '{ kind = "c", path = "mine.bpf.c", divisor = 2 }'),
    "Rust": (None, '{ kind = "mine", gain = 2.0 }'),
}
SCENARIO = """
schema = 2
name = "own"

[run]
duration = "5 s"
sample = "100 ms"

[dumbbell]
rate = "10 Mbit/s"
queue = "codel"

[flow.main]
rtt = "40 ms"
controller = CONTROLLER

[sweep]
repeat = 2
"""


@dataclass(frozen=True)
class Own:
    """A scenario with a controller of one's own, and the commands."""

    scenario: Path
    cli: Cli

    def does(self, *words: object) -> str:
        """Runs a command that must succeed; returns its output."""
        answer = self.cli(*words)
        assert answer.code == 0, answer.out + answer.err
        return str(answer.out)

    @property
    def out(self) -> Path:
        return self.scenario.with_suffix("")

    def run(self, *words: object) -> str:
        return self.does("run", self.scenario, "-o", self.out, "--trust", *words)


def resumes(own: Own) -> None:
    own.run("--no-plots")
    own.scenario.write_text(own.scenario.read_text().replace("repeat = 2", "repeat = 3"))
    assert "2 runs there before" in own.run("--no-plots", "--replan")


def captures(own: Own) -> None:
    own.run("--pcap", "all", "--qlog", "all", "--no-plots", "--force")
    assert list(own.out.glob("**/*.pcapng"))
    assert list(own.out.glob("**/*.sqlog"))


def runs_on_ray(own: Own) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'cwnd[ray]'")
    own.run("--on", "ray", "--no-plots", "--force")


def draws(own: Own) -> None:
    own.run("--force")
    assert list((own.out / "plots").iterdir())
    own.does("plot", own.out)


#: Commands in the order of the table.
COMMANDS: dict[str, Callable[[Own], object]] = {
    "check": lambda own: own.does("check", own.scenario),
    "run": lambda own: own.run("--no-plots"),
    "run again, with more seeds": resumes,
    "run --check": lambda own: own.run("--check", "--no-plots", "--force"),
    "run --pcap all": captures,
    "run --on ray": runs_on_ray,
    "plot": draws,
    "report": lambda own: own.does("report", own.out, "-o", own.out.with_suffix(".html")),
    "compare": lambda own: own.does("compare", own.out, own.out),
    "query": lambda own: own.does("query", own.out, "select count(*) from flows"),
    "cell": lambda own: own.does("cell", own.out, "0"),
    "status": lambda own: own.does("status", own.out),
    "verify": lambda own: own.does("verify", own.out),
    "run --on linux": lambda own: own.run("--on", "linux", "--force"),
    "agree": lambda own: own.does(
        "agree", own.scenario, "-o", own.out.with_suffix(".agree"), "--trust"
    ),
}
#: Those that send real packets.
ON_LINUX = ["run --on linux", "agree"]


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    """A language with a column in the table."""
    return str(request.param)


@pytest.fixture
def own(language: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Own:
    """A scenario with the controller of a language, which is not trusted yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    file, controller = LANGUAGES[language]
    if language == "C":
        assert cli("new", "controller", tmp_path / file).code == 0
    elif file is not None:
        (tmp_path / file).write_bytes((ROOT / "benches" / "own" / file).read_bytes())
    else:
        wheel = crates.build(crates.template("mine", tmp_path, cli))
        crates.install(wheel, tmp_path / "site")
        crates.use(tmp_path / "site", monkeypatch)
    own = Own(tmp_path / "own.toml", cli)
    own.scenario.write_text(SCENARIO.replace("CONTROLLER", controller))
    return own


@pytest.mark.filterwarnings("default")
def test_the_table_of_commands(own: Own, language: str) -> None:
    expected = stated(language)
    assert list(expected) == list(COMMANDS)
    for command in COMMANDS:
        if command not in ON_LINUX:
            check(own, command, expected[command])


@with_kernel
@pytest.mark.testbed
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("command", ON_LINUX)
def test_the_table_of_commands_on_linux(own: Own, language: str, command: str) -> None:
    check(own, command, stated(language)[command])


def check(own: Own, command: str, expected: str) -> None:
    """Checks that a command works, or is refused by a sentence, as the table states."""
    if expected == "yes":
        COMMANDS[command](own)
        return
    with pytest.raises(AssertionError) as refused:
        COMMANDS[command](own)
    assert "error: " in str(refused.value), command
    assert "Traceback" not in str(refused.value), command


def stated(language: str) -> dict[str, str]:
    """Returns the column of a language in the page's table."""
    rows = re.findall(r"^\| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [row.split(" | ") for row in rows]
    (head,) = (row for row in cells if row[0] == "`cwnd …`")
    table = cells[cells.index(head) + 1 :][: len(COMMANDS)]
    return {row[0].strip("`"): row[head.index(language)] for row in table}
