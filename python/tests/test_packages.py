"""Packages: wheels, systems other than Linux, workflows, and the vectors for others' tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Cli

from cwnd import _core

#: Makes Python on Linux like that on Windows: without POSIX's modules and calls, with locks of byte
#: ranges, and with a file system that keeps open files where they are and opens no directories.
#: Libraries are those of Linux, and may use what Linux has while they are imported.
WINDOWS = """
import errno, fcntl, os, pathlib, shutil, signal, struct, sys, types
import cyclopts, duckdb, jinja2, loky, networkx, numpy, polars, rich.table, vl_convert

def locking(descriptor, mode, count):
    is_read = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    kind = fcntl.F_RDLCK if is_read else fcntl.F_WRLCK
    start = os.lseek(descriptor, 0, os.SEEK_CUR)
    # These locks belong to the open file, as on Windows, and not to the process.
    region = struct.pack("hhqqixxxx", kind, os.SEEK_SET, start, count, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, region)

def refuse_open(call, whole):
    def checked(path, *others, **named):
        names = [os.path.realpath(each) for each in (path, *others[:1]) if whole or each is path]
        for entry in os.listdir("/proc/self/fd"):
            try:
                opened = os.readlink(f"/proc/self/fd/{entry}")
            except OSError:
                continue
            if any(opened == name or opened.startswith(name + "/") for name in names):
                raise PermissionError(errno.EACCES, "another process uses the file", str(path))
        return call(path, *others, **named)
    return checked

def open_file(path, flags, *others, open=os.open, **named):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)
    return open(path, flags, *others, **named)

def synchronise(descriptor):
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")

def rename(path, target, call=refuse_open(os.rename, True)):
    if os.path.exists(target):
        raise FileExistsError(errno.EEXIST, "File exists", str(target))
    call(path, target)

for name, call in {
    "unlink": refuse_open(os.unlink, False), "remove": refuse_open(os.remove, False),
    "replace": refuse_open(os.replace, True), "rename": rename,
    "open": open_file, "fsync": synchronise,
}.items():
    setattr(os, name, call)
for name in (
    "geteuid getuid getegid getgid setuid setgid setgroups chown fork fdatasync pwrite pread"
    " sched_getaffinity sysconf uname statvfs getpgid killpg O_CLOEXEC O_NONBLOCK O_DIRECTORY"
    " O_NOFOLLOW"
).split():
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
shutil._use_fd_functions = False
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules.pop(name, None)
"""

MODULES = """
import importlib, pkgutil
import cwnd
skipped = []
for found in pkgutil.walk_packages(cwnd.__path__, "cwnd."):
    if ".studies." in found.name or found.name.endswith("__main__"):
        continue
    importlib.import_module(found.name)
    skipped.append(found.name)
assert len(skipped) > 100, skipped
import cwnd.__main__
"""

#: The simulator, its results, figures and report; a sweep goes on, is replaced and is compared.
WORK = """
import cwnd
from cwnd.cli import main

def command(*words):
    try:
        main(words)
    except SystemExit as left:
        return left.code

run = cwnd.run("short.toml")
run.save("short")
run.save("short", plots=False)
assert cwnd.Run.load("short").flows.equals(run.flows)
assert command("run", "sweep.toml", "--no-plots", "-q") == 0
assert command("run", "sweep.toml", "--no-plots", "-q", "--again") == 0
assert command("run", "sweep.toml", "-q", "--shard", "1/2", "-o", "parts") == 0
assert command("run", "sweep.toml", "-q", "--shard", "2/2", "-o", "parts") == 0
assert command("compare", "out/sweep", "parts", "--fail-if", "goodput < 0 %") == 0
assert command("verify", "out/sweep", "parts") == 0
assert command("plot", "out/sweep") == 0
assert command("report", "out/sweep", "-o", "page.html") == 0
assert command("doctor") in (0, 3)
import contextlib, io, os, platform, types
from cwnd.machine import facts
facts.platform = types.SimpleNamespace(**{**vars(platform), "system": lambda: "Windows"})
for words, what in {
    ("link", "--", "true"): "cwnd link",
    ("kernel", "status"): "cwnd kernel",
    ("run", "short.toml", "--on", "linux"): "a run with real endpoints",
    ("agree", "short.toml"): "a run with real endpoints",
    ("testbed", "calibrate"): "a run with real endpoints",
}.items():
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        assert command(*words) == 3, words
    assert f"{what} needs Linux, and this is Windows" in told.getvalue(), told.getvalue()
left = [name for name in os.listdir() if name.startswith(".")]
assert left == [], left
"""

#: Two writers of one sweep.
LOCKS = """
import sys
from pathlib import Path
from cwnd.errors import InputError
from cwnd.store.activity import Shard, session, sessions

root = Path("sweep")
with session(root, Shard(1, 2)), session(root, Shard(2, 2)):
    assert [each.live for each in sessions(root)] == [True, True]
    for shard in (None, Shard(1, 2)):
        try:
            with session(root, shard):
                raise AssertionError("two writers")
        except InputError as error:
            assert "another sweep is writing there" in str(error)
with session(root, None):
    pass
assert [each.live for each in sessions(root)] == [False] * 3
"""


def windows(directory: Path, script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS + script],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", [MODULES, WORK, LOCKS], ids=["import", "simulate", "locks"])
def test_nothing_but_cwnd_link_and_its_kin_needs_posix(cli: Cli, script: str):
    windows(cli.directory, script)


def block(page: str, language: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_a_wheel_is_for_every_python_from_3_11_on():
    assert _core.__file__ is not None
    assert Path(_core.__file__).suffixes[0] == ".abi3"


def test_the_workflow_of_the_recipe_is_safe():
    workflow = block("docs/how-to/compare-controllers.md", "yaml")
    program = Path(sys.executable).with_name("zizmor")
    done = subprocess.run(
        [program, "--offline", "--quiet", "-"], input=workflow, text=True, check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize(("language", "command"), [("py", [sys.executable]), ("go", ["go", "run"])])
def test_vectors_are_read_as_their_readme_says(language: str, command: list[str], tmp_path: Path):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    program = tmp_path / f"reader.{language}"
    program.write_text(block("vectors/README.md", language), encoding="utf-8")
    subprocess.run([*command, program], cwd=ROOT / "vectors", check=True, timeout=120)
