"""Short scenarios, and the command line as a user types it."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import cwnd
from cwnd.cli import main, output
from cwnd.files import checksums
from cwnd.machine import kernel_helper
from cwnd.store import read
from cwnd.study import registry

if TYPE_CHECKING:
    from collections.abc import Callable

#: One flow for two seconds: long enough to leave slow start, short enough to run in milliseconds.
SHORT = """\
schema = 1
name = "short"

[run]
duration = "2 s"
sample = "50 ms"

[dumbbell]
rate = "10 Mbit/s"
queue = "codel"

[flow.main]
rtt = "20 ms"
start = "uniform(0 ms, 100 ms)"
controller = { kind = "newreno", preset = "abe" }
endpoint = { ecn = true }
"""

#: `SHORT` with a router that sends source quenches, and a flow that obeys them.
QUENCHED = (
    SHORT.replace('"abe"', '"becn"')
    .replace("ecn = true", 'preset = "becn"')
    .replace('queue = "codel"', 'queue = { kind = "codel", ecn = true }\nmessenger = "quench"')
)

#: Two arms at three RTTs with three seeds.
SWEEP = (
    SHORT.replace('"short"', '"sweep"')
    + """
[sweep]
repeat = 3

[sweep.axis.arm]
path = "flow.main.controller"
values = [{ kind = "newreno" }, { kind = "newreno", preset = "abe" }]
labels = ["NewReno", "NewReno+ABE"]

[sweep.axis.rtt]
path = "flow.main.rtt"
values = ["10 ms", "20 ms", "40 ms"]
"""
)


def _group(name: str, count: int, more: str = "") -> str:
    return f"""
[flow.{name}]
count = {count}
rtt = "20 ms"
start = "uniform(0 ms, 100 ms)"
controller = {{ kind = "cubic"{more} }}
endpoint = {{ ecn = true }}
"""


#: Two groups of unequal size, two rates, three seeds.
HALF = (
    SHORT.split("[flow.main]", maxsplit=1)[0]
    .replace('"short"', '"half"')
    .replace('duration = "2 s"', 'duration = "2 s"\nwarmup = "500 ms"')
    + _group("cubic", 2)
    + _group("abe", 1, ', preset = "abe"')
    + """
[sweep]
repeat = 3

[sweep.axis.rate]
path = "dumbbell.rate"
values = ["5 Mbit/s", "10 Mbit/s"]
"""
)

#: Simulates for minutes, so that it can be interrupted.
LONG = (
    SHORT.replace('"short"', '"long"').replace('"2 s"', '"100000 s"').replace('"50 ms"', '"10 s"')
)

#: Controller with router feedback → the meter of each link and the echo of ACKs that it requires.
NEEDED = {
    "xcp": ("xcp", "sum"),
    "rcp": ("rcp", "last"),
    "dctcp": ("step", "changes"),
    "vcp": ("vcp", "changes"),
    "mlcp": ("mlcp", "level"),
    "bmcc": ("adpm", "load"),
}

ROOT = Path(__file__).resolve().parents[2]
CWND = Path(sys.executable).with_name("cwnd")
#: Whether tests run all that they can, for minutes (`make test-long`).
IS_LONG = bool(os.environ.get("LONG"))
# How long an example takes depends on what else runs: benches measure time.
settings.register_profile("cwnd", deadline=None, derandomize=not IS_LONG)
settings.load_profile("cwnd")
# Code that tests trust is not trusted by their user.
_SETTINGS = tempfile.TemporaryDirectory(prefix="cwnd-settings-")
os.environ["XDG_CONFIG_HOME"] = _SETTINGS.name

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed (apt install tshark)"
)
#: `True` if tests can run on real Linux, which those with kernel controllers need, too.
_CAN_RUN = os.geteuid() == 0 and Path("/dev/net/tun").exists()
real = pytest.mark.skipif(not _CAN_RUN, reason="needs root and /dev/net/tun")
with_kernel = pytest.mark.skipif(
    not _CAN_RUN or kernel_helper() is None, reason="needs root and cwnd-kernel (make kernel)"
)


#: Marks of tests that do not run beside the others.
_APART = ("testbed", "real_time")


@cache
def _writes(file: Path, mark: str) -> bool:
    return f"mark.{mark}" in file.read_text(encoding="utf-8")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Imports the files with these marks alone if `-m` asks for them: all take 6 s per process."""
    asked = config.option.markexpr.split(" ")[0]
    if asked not in _APART or collection_path.suffix != ".py":
        return None
    return None if _writes(collection_path, asked) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file stay together where several processes share the work.

    So what they share is made once. A test that says `xdist_group` itself stays with those; tests
    with the mark `testbed` share nothing, and each is a group of its own.
    First, because the plugin that shares the work reads the marks in a hook of the same name.
    """
    for number, item in enumerate(items):
        if not item.get_closest_marker("xdist_group"):
            own = f"-{number}" if item.get_closest_marker("testbed") else ""
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}{own}"))
        for mark in _APART:
            if item.get_closest_marker(mark) and not _writes(item.path, mark):
                raise pytest.UsageError(f"{item.path}: write pytest.mark.{mark} in this file")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups that fell apart cost minutes and fail no test: pytest 9.2 did it."""
    shared = getattr(session.config.option, "loadgroup", False)
    if shared and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("tests are not in their groups: pytest-xdist does not fit pytest")


@dataclass(frozen=True)
class Answer:
    """Exit code and outputs of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def _checked(answer: Answer) -> Answer:
    for text in (answer.out, answer.err):
        for word in ("Traceback", "panicked", "PanicException"):
            assert word not in text, text
    return answer


#: Commands that send real packets, or become another program.
_PROCESSES = ("agree", "kernel", "link", "rrul", "testbed")


class Cli:
    """Types commands into a shell in a directory of its own."""

    def __init__(self, directory: Path):
        self.directory = directory

    def __call__(self, *arguments: object, under: tuple[str, ...] = (), **options: Any) -> Answer:
        """Runs a command: in this process, unless it needs one of its own.

        An interpreter takes half a second to start, the library of figures as long again.
        """
        words = [str(each) for each in arguments]
        own = under or options or words[0] in _PROCESSES or "linux" in words
        return self.process(*words, under=under, **options) if own else self._here(words)

    def process(self, *arguments: object, under: tuple[str, ...] = (), **options: Any) -> Answer:
        """Runs a command in a process of its own."""
        done = subprocess.run(
            [*under, CWND, *map(str, arguments)],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            **options,
        )
        return _checked(Answer(done.returncode, done.stdout, done.stderr))

    def _here(self, words: list[str]) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        with (
            contextlib.chdir(self.directory),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
            pytest.MonkeyPatch.context() as patch,
            pytest.raises(SystemExit) as left,
        ):
            patch.setattr(sys, "argv", [str(CWND), *words])
            # A process has its own, and loses them at its end.
            patch.setattr(output, "interrupt_message", output.interrupt_message)
            patch.setattr(checksums, "_verified", set())
            patch.setattr(read, "_warned", set())
            main(words)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        # A command freezes what it leaves to the end of its process.
        gc.unfreeze()
        return _checked(Answer(int(left.value.code or 0), out.getvalue(), err.getvalue()))

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [CWND, *map(str, arguments)],
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As a shell starts what it runs in the foreground.
            process_group=0,
        )

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path


@pytest.fixture
def untrusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of a user who has trusted no code, whatever other tests trust."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def wait_until(happened: Callable[[], bool]) -> None:
    """Waits for another process or thread; the limit guards against a hang."""
    limit = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.02)


def edit(file: Path, old: str, new: str) -> None:
    """Replaces a part of a text file, which must be there."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    new = Cli(tmp_path)
    new.write("short.toml", SHORT)
    new.write("sweep.toml", SWEEP)
    new.write("long.toml", LONG)
    return new


@pytest.fixture
def saved(cli: Cli, short: cwnd.Run, sweep: cwnd.Run) -> Cli:
    """Command line with results in `short` and `sweep`, as `cwnd run --no-plots` writes them."""
    for run in (short, sweep):
        run.save(cli.directory / run.name, plots=False)
    return cli


@pytest.fixture(scope="session")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("scenarios")
    for name, text in {"short": SHORT, "sweep": SWEEP, "long": LONG}.items():
        (directory / f"{name}.toml").write_text(text)
    return directory


@pytest.fixture(scope="session")
def short(scenarios: Path) -> cwnd.Run:
    return cwnd.run(scenarios / "short.toml")


@pytest.fixture(scope="session")
def sweep(scenarios: Path) -> cwnd.Run:
    return cwnd.run(scenarios / "sweep.toml")


@pytest.fixture(scope="session")
def half(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    path = tmp_path_factory.mktemp("half") / "half.toml"
    path.write_text(HALF)
    return cwnd.run(path)


#: Draws the figures of a paper that is made for a test.
_FIGURES = """
from cwnd.figures import Panel, Picture
from cwnd.study import ONE_PANEL, curve


def goodput(run):
    values = run.per_run()["goodput_bit_s"]
    return Picture([Panel([curve(range(len(values)), values, 0)])], *ONE_PANEL)


FIGURES = dict.fromkeys(("fig01", "fig02", "fig03"), goodput)
"""


@pytest.fixture
def make_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], Path]:
    """Makes a paper of claims and measures, the only one that there is then; gives its folder.

    Its scenarios are missing.
    """
    monkeypatch.setattr(registry, "STUDIES", tmp_path)

    def make(name: str, claims: str, measures: str) -> Path:
        folder = tmp_path / "papers" / name
        folder.mkdir(parents=True)
        texts = {"study.toml": claims, "measures.py": measures, "figures.py": _FIGURES}
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        return folder

    return make


@pytest.fixture
def selftests(tmp_path: Path) -> Path:
    """A folder with the kernel's own selftests, which `make selftests` unpacks."""
    found = list((ROOT / "target" / "selftests").glob("*.[ch]"))
    if not found:
        pytest.skip("the kernel's selftests are not there: make selftests")
    for file in found:
        shutil.copy(file, tmp_path)
    return tmp_path
