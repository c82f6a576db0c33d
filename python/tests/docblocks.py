"""The blocks of the pages: found with their places, and run as a reader would run them.

A page is read from top to bottom in one directory, so that what one block writes is there for the
next. A comment right before a fence, which no reader sees, says what a test has to know:

    <!-- test: file first.toml -->                the block is this file; if not said, the one that
                                                  is named just before it, or `scenario.toml`
    <!-- test: onto first.toml -->                a part of a scenario: it is added to this file
    <!-- test: given FILE: PATH=VALUE, … -->      a file of the repository, with these changes
    <!-- test: swap curl http://… => true -->     in the block
    <!-- test: needs root -->                     or a program, or a module of Python
    <!-- test: not run "pip install": REASON -->  lines that begin so
    <!-- test: serves some.data -->               there is a web server at $PORT with this file

A comment of several lines has one of them in each. What has blanks at its ends stands in quotes.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from conftest import ROOT, Cli

from cwnd.errors import REPORT

#: Patterns of the files of pages.
PAGES = ("*.md", *(f"{folder}/**/*.md" for folder in ("docs", "vectors", "scenarios")))
PAGES += ("crates/**/*.md", "tests/**/*.md", "benches/**/*.md", "fuzz/**/*.md", "python/**/*.md")
#: Languages of blocks: of the shell, and all that are run.
SHELL = ("sh", "bash", "console")
RUN = ("toml", "python", *SHELL)
#: Scenario that a part of one is added to, on a page that has no whole scenario.
SMALLEST = "scenarios/fifo-one-flow.toml"
#: `my.toml` of the pages: a sweep over RTT and β.
MY = """\
schema = 1
run = { duration = "2 s", sample = "100 ms" }
dumbbell = { rate = "10 Mbit/s", queue = "codel" }
flow.main = { rtt = "20 ms", endpoint = { ecn = true }, start = "uniform(0 s, 0.1 s)" }
sweep.repeat = 2
sweep.axis.rtt = { path = "flow.main.rtt", values = ["10 ms", "40 ms"] }
sweep.axis.beta = { path = "flow.main.controller.beta", values = [0.5, 0.7] }
"""
#: PATH as Debian's sudo resets it; it follows the directory of our own `make` and `sudo`.
SECURE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Timeout of a block.
PATIENCE_S = 600

_FENCE = re.compile(r"^( *)(```+|~~~+) *([\w+-]*)[^`]*$")
_COMMENT = re.compile(r"<!-- test:((?:(?!-->).)*)-->\s*\Z", re.DOTALL)
_NAMED = re.compile(r"`([\w-]+\.toml)`")
_NOT_RUN = re.compile(r'not run "([^"]+)": (.+)', re.DOTALL)
# A run whose figure fails warns, and its exit code is 0.
_FAILED = f"Traceback|panicked|could not be drawn|{re.escape(REPORT)}"


class BlockError(AssertionError):
    """A block that does not do what it says."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    #: Number of its first line behind the fence.
    line: int
    language: str
    text: str
    #: Instructions of the comment before it.
    orders: tuple[str, ...] = ()
    #: The scenario file that is named just before it.
    named: str | None = None

    @property
    def place(self) -> str:
        """Returns `PAGE:LINE`, as in messages of compilers."""
        return f"{self.page}:{self.line}"

    def told(self, order: str) -> list[str]:
        """Returns the texts of its instructions of one kind."""
        return [each.removeprefix(order).strip() for each in self.orders if _is(each, order)]

    @property
    def not_run(self) -> dict[str, str]:
        """The lines that are not run, by how they begin, with the reasons."""
        matches = [_NOT_RUN.fullmatch(each) for each in self.orders if _is(each, "not run")]
        return {match[1]: " ".join(match[2].split()) for match in matches if match}

    @property
    def needs(self) -> list[str]:
        """`root`, programs, and modules of Python."""
        return " ".join(self.told("needs")).replace(",", " ").split()

    @property
    def lacks(self) -> str | None:
        """Returns the first requirement that this machine does not meet, if there is one."""
        for need in self.needs:
            if need == "root":
                there = os.geteuid() == 0 and Path("/dev/net/tun").exists()
            else:
                there = shutil.which(need, path=_path()) is not None or _is_module(need)
            if not there:
                return need
        return None


def _is(order: str, kind: str) -> bool:
    return order == kind or order.startswith(f"{kind} ")


def _is_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def pages() -> list[str]:
    """All pages, from the root of the repository."""
    found = {path.relative_to(ROOT) for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(str(path) for path in found if "target" not in path.parts)


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    return list(blocks_of((ROOT / page).read_text(encoding="utf-8"), page))


def blocks_of(text: str, page: str) -> Iterator[Block]:
    """The fenced blocks of a text."""
    lines = text.splitlines(keepends=True)
    opened: tuple[int, re.Match[str]] | None = None
    for number, line in enumerate(lines, 1):
        match = _FENCE.match(line.rstrip("\n"))
        if match is None:
            continue
        if opened is None:
            opened = (number, match)
        elif match[2].startswith(opened[1][2]) and not match[3]:
            first, fence = opened
            body = textwrap.dedent("".join(lines[first : number - 1]))
            above = "".join(lines[: first - 1])
            comment = _COMMENT.search(above)
            said = [] if comment is None else comment[1].splitlines()
            orders = tuple(each.strip() for each in said if each.strip())
            paragraph = above[: comment.start() if comment else None].rstrip().split("\n\n")[-1]
            names = _NAMED.findall(paragraph)
            named = names[-1] if names else None
            yield Block(page, first + 1, fence[3], body, orders, named)
            opened = None
    if opened is not None:
        raise BlockError(f"{page}:{opened[0]}: the fence is not closed")


@dataclass
class Reader:
    """Somebody who does what a page says, in a directory of their own."""

    directory: Path
    page: str
    _done: set[int] = field(default_factory=set)
    #: The scenario that the page built last.
    _scenario: str | None = None

    def __post_init__(self) -> None:
        (self.directory / "out").mkdir()
        (self.directory / "my.toml").write_text(MY, encoding="utf-8")
        for name in ("scenarios", "docs", "schema"):
            (self.directory / name).symlink_to(ROOT / name)
        (self.directory / ".venv").symlink_to(Path(sys.executable).parents[1])
        shims = self.directory / "shims"
        shims.mkdir()
        for name, script in {"make": _MAKE, "sudo": _SUDO}.items():
            (shims / name).write_text(script, encoding="utf-8")
            (shims / name).chmod(0o755)

    def through(self, block: Block) -> None:
        """Does a block, and before it those that it needs: all that stand above it."""
        for each in blocks(self.page):
            if each.language not in RUN or each.line > block.line or each.line in self._done:
                continue
            self._done.add(each.line)
            if each.lacks is not None:
                continue
            if each == block:
                self.do(each)
            else:
                # It fails in a test of its own.
                with contextlib.suppress(BlockError):
                    self.do(each)

    def do(self, block: Block) -> None:
        """Does a block."""
        for given in block.told("given"):
            self._give(given)
        if block.language == "toml":
            self._run_scenario(block)
        elif block.language == "python":
            self._run_python(block)
        else:
            self._run_shell(block)

    def _give(self, order: str) -> None:
        """A file of the repository, with changes, in the place where the page expects it."""
        name, _, changes = order.partition(":")
        document = tomllib.loads((ROOT / name).read_text(encoding="utf-8"))
        for path, value in re.findall(r"([\w.]+)=(.+?)(?:, (?=[\w.]+=)|$)", changes):
            _set(document, path.split("."), tomllib.loads(f"value = {value}")["value"])
        target = self.directory / name
        top = self.directory / Path(name).parts[0]
        if top.is_symlink():
            source = top.readlink()
            top.unlink()
            shutil.copytree(source, top)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(tomli_w.dumps(document), encoding="utf-8")

    def _run_scenario(self, block: Block) -> None:
        """Runs a whole scenario, or a part of one completed by what the page said before."""
        whole = "schema" in tomllib.loads(block.text)
        said = block.told("file") or block.told("onto")
        if not said:
            said = [(block.named if whole else self._scenario) or "scenario.toml"]
        name = said[0]
        file = self.directory / name
        if whole:
            file.write_text(block.text, encoding="utf-8")
        else:
            before = file if file.exists() else ROOT / SMALLEST
            document = tomllib.loads(before.read_text(encoding="utf-8"))
            file.write_text(tomli_w.dumps(added(document, block.text)), encoding="utf-8")
        self._scenario = name
        out = f"out/{file.stem}"
        # The run draws the figures that `cwnd plot` draws.
        for words in (
            ("check", name),
            ("run", name, "-q", "-o", out, "--trust"),
            ("report", out, "-o", "page.html"),
        ):
            answer = Cli(self.directory)(*words)
            said = answer.out + answer.err
            if answer.code or re.search(_FAILED, said):
                raise BlockError(f"{block.place}: failed: cwnd {' '.join(words)}\n\n{said}")

    def _run_python(self, block: Block) -> None:
        head = "import cwnd\nimport polars as pl\n"
        script = head + "\n" * max(0, block.line - 1 - head.count("\n")) + block.text
        for name in ("block.py", *block.told("file")):
            (self.directory / name).write_text(script, encoding="utf-8")
        self._shell(block.place, "python -W error block.py")

    def _run_shell(self, block: Block) -> None:
        text = block.text
        if block.language == "console":
            lines = [line for line in text.splitlines() if line.startswith(("$ ", "# "))]
            text = "".join(f"{line[2:]}\n" for line in lines)
        for swap in block.told("swap"):
            old, new = (each.strip('"') for each in swap.split(" => "))
            if old not in text:
                raise BlockError(f"{block.place}: {old!r}, which the test swaps, is not there")
            text = text.replace(old, new)
        kept = text.splitlines()
        for start in block.not_run:
            if not any(line.startswith(start) for line in kept):
                raise BlockError(f"{block.place}: {start!r}, which is not to be run, is not there")
            kept = ["" if line.startswith(start) else line for line in kept]
        # A line of the script has the number that it has on the page.
        script = "\n" * (block.line - 1) + "\n".join(kept) + "\n"
        with contextlib.ExitStack() as stack:
            served = block.told("serves")
            port = stack.enter_context(_server(self.directory, served[0])) if served else None
            self._shell(block.page, script, port=port)

    def _shell(self, place: str, script: str, *, port: int | None = None) -> None:
        """Runs a script, with what we built on the path."""
        file = self.directory / "block.sh"
        file.write_text(script, encoding="utf-8")
        trap = f"trap 'echo \"{place}:$LINENO: failed: $BASH_COMMAND\" >&2' ERR"
        environment = {
            **os.environ,
            "PATH": f"{self.directory / 'shims'}:{_path()}",
            "ROOT": str(ROOT),
            "PORT": str(port),
            "MPLBACKEND": "agg",
            "COLUMNS": "120",
        }
        running = subprocess.Popen(
            ["bash", "-c", f"set -eEo pipefail; {trap}; . ./block.sh"],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = running.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as late:
            # Whatever it started goes with it.
            os.killpg(running.pid, signal.SIGKILL)
            said, _ = running.communicate()
            message = f"{place}: not done after {PATIENCE_S} s\n{script.strip()}\n\n{said}"
            raise BlockError(message) from late
        if running.returncode or re.search(_FAILED, said):
            code = running.returncode
            raise BlockError(f"{place}: exit code {code}\n{script.strip()}\n\n{said}")


def added(document: dict[str, Any], part: str) -> dict[str, Any]:
    """A scenario with a part added: keys of a section that it has already are replaced."""
    for header, body in _sections(part):
        table = document
        for name in header:
            table = table.setdefault(name, {})
        table.update(tomllib.loads(body))
    return document


def _sections(text: str) -> Iterator[tuple[list[str], str]]:
    pieces = re.split(r"^\[([^\[\]]+)\].*\n", text, flags=re.MULTILINE)
    if pieces[0].strip():
        yield [], pieces[0]
    for header, body in zip(pieces[1::2], pieces[2::2], strict=True):
        yield [name.strip('"') for name in header.split(".")], body


def _set(document: dict[str, Any], path: list[str], value: Any) -> None:
    *way, last = path
    for name in way:
        document = document[name]
    document[last] = value


@contextlib.contextmanager
def _server(directory: Path, name: str) -> Iterator[int]:
    """A web server with one file, at all of this machine's addresses."""
    served = directory / "served"
    served.mkdir(exist_ok=True)
    (served / name).write_bytes(bytes(300_000))
    handler = functools.partial(_Quiet, directory=str(served))
    with http.server.ThreadingHTTPServer(("", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


#: `make run` is the command that the Makefile says, here; of other targets it is tried that there
#: are such: this very test is one of them.
_MAKE = """\
#!/bin/sh
PATH=${PATH#*:}
said=$(make --no-print-directory -n -C "$ROOT" "$@") || exit
case $1 in run) exec sh -c "$(echo "$said" | tail -n 1)" ;; esac
"""
#: Stand-in for sudo for tests that run as root, with the PATH that sudo sets.
_SUDO = f"""\
#!/bin/sh
PATH=${{PATH%%:*}}:{SECURE_PATH} exec "$@"
"""
