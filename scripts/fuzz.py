"""Runs the fuzz targets; `--page` writes docs/fuzzing.md from the last run of each target.

Called by `make fuzz`, which installs cargo-fuzz and, where it can be had, atheris.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd._core import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "target" / "tools"
BUILT = ROOT / "target" / "fuzz"
CORPUS = ROOT / "fuzz" / "corpus"
PAGE = ROOT / "docs" / "fuzzing.md"
#: Directory into which `make fuzz` installs atheris.
ATHERIS = TOOLS / "python"


@dataclass(frozen=True)
class Target:
    """A fuzz target. `most_bytes` bounds its inputs: longer ones take time and find little.

    Files may be long: what makes a reader slow, or nests too deeply, needs thousands of bytes.
    """

    name: str
    about: str
    most_bytes: int
    python: bool = False
    #: Compares counts of taken edges, too; with many edges that takes half of the time.
    counters: bool = True
    #: Whether libFuzzer puts keys and values of the JSON Schema of scenarios into inputs.
    has_dictionary: bool = False


#: Bytes of a file that is read, at most.
LONG = 1 << 16
#: Longest word of a dictionary, in bytes (libFuzzer's `Word`).
MOST_OF_A_WORD = 64

TARGETS = (
    Target(
        "scenario",
        "scenario files with overrides: reading, errors, writing out",
        LONG,
        counters=False,
        has_dictionary=True,
    ),
    Target("packet", "packets from a device: IPv4, IPv6, TCP, UDP headers", 256),
    Target("capture", "capture files: pcap, pcapng, packed ones, all headers, connections", LONG),
    Target("netlink", "replies of the kernel: rtnetlink, sock_diag", 256),
    Target("keeper", "messages of a link's processes, to the one with rights as well", 256),
    Target("names", "resolv.conf, and queries that no server takes", 256),
    Target("events", "what orders events: queue, heap, calendar, beside a sorted list", 128),
    Target("queue", "queue disciplines under any parameters and operations", 128),
    Target("endpoint", "TCP's two ends over a path that does anything, and forged segments", 256),
    Target("router", "the router's engine with any settings and packets", 256),
    Target("world", "whole simulations: links, routes, faults, flows, up to 2000 events", 64),
    Target("claims", "files of claims (Python)", LONG, python=True),
    Target("graph", "graphs of others: GraphML, GML (Python)", LONG, python=True),
    Target("manifest", "descriptions of results (Python)", LONG, python=True),
)
NAMES = tuple(target.name for target in TARGETS)


@dataclass(frozen=True)
class Outcome:
    """Counts of one run of a target."""

    executions: int
    seconds: float
    edges: int
    #: The day, as in 2026-01-31.
    date: str

    @property
    def rate(self) -> float:
        """Executions a second, the start included."""
        return self.executions / self.seconds


def main() -> int:
    """Builds, runs and reports until a target fails; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument(
        "--page", action="store_true", help="write docs/fuzzing.md from the last run of each target"
    )
    parser.add_argument("--keep", action="store_true", help="add what is new to fuzz/corpus")
    parser.add_argument(
        "--add", type=Path, metavar="FILE", help="add an input that failed to TARGET's corpus, only"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(NAMES)
    if unknown:
        parser.error(f"there is no target {min(unknown)}; there are {', '.join(NAMES)}")
    if arguments.add:
        if len(arguments.targets) != 1:
            parser.error("--add takes one target")
        (name,) = arguments.targets
        pack(name, [*corpus(name), arguments.add.read_bytes()])
        return 0
    chosen = [each for each in TARGETS if not arguments.targets or each.name in arguments.targets]
    if any(not target.python for target in chosen):
        build()
    for target in chosen:
        if target.python and not ATHERIS.is_dir():
            print(f"{target.name}: skipped, atheris is not installed", file=sys.stderr)
            continue
        outcome = run(target, arguments.seconds)
        if outcome is None:
            return 1
        last(target).write_text(json.dumps(asdict(outcome)), encoding="utf-8")
        print(
            f"{target.name}: {outcome.executions:,} executions, {outcome.rate:,.0f}/s,"
            f" {outcome.edges} edges"
        )
        if arguments.keep:
            keep(target)
    if arguments.page:
        PAGE.write_text(page(), encoding="utf-8")
    return 0


def last(target: Target) -> Path:
    """Returns the file with the outcome of a target's last run."""
    return BUILT / f"{target.name}.json"


def build() -> None:
    """Builds all targets that are Rust.

    The sanitizer is left out: nearly nothing here is unsafe. So is the tracing of comparisons,
    which takes more than half of the time.
    """
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    command = [TOOLS / "bin" / "cargo-fuzz", "build", "--sanitizer", "none"]
    command += ["--no-trace-compares", "--target-dir", BUILT]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def command_of(target: Target) -> tuple[list[str], dict[str, str]]:
    """Returns the command that starts a target, and its environment."""
    if target.python:
        path = os.pathsep.join([str(ATHERIS), str(ROOT / "python"), str(ROOT / "python/tests")])
        body = ROOT / "python" / "tests" / "fuzzing.py"
        return [sys.executable, str(body), target.name], {**os.environ, "PYTHONPATH": path}
    (binary,) = BUILT.glob(f"*/release/{target.name}")
    return [str(binary)], dict(os.environ)


def dictionary_of_scenarios() -> str:
    """Keys and values of scenarios as a dictionary of libFuzzer: ASCII, at most 64 bytes."""
    words = set(named(json.loads(json_schema())))
    lines = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words if word.isascii())
    return "".join(f'"{line}"\n' for line in sorted(lines) if 0 < len(line) <= MOST_OF_A_WORD)


def named(schema: object) -> Iterator[str]:
    """Keys and texts that a JSON Schema lists: names, choices, defaults, examples."""
    if isinstance(schema, list):
        for inner in schema:
            yield from named(inner)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        for key in ("const", "default", "enum", "examples"):
            value = schema.get(key)
            texts = value if isinstance(value, list) else [value]
            yield from (text for text in texts if isinstance(text, str))
        for inner in schema.values():
            yield from named(inner)


def run(target: Target, seconds: int) -> Outcome | None:
    """Fuzzes a target; `None` if it failed, which is shown."""
    found = BUILT / "found" / target.name
    found.mkdir(parents=True, exist_ok=True)
    command, environment = command_of(target)
    command += [f"-max_total_time={seconds}", f"-max_len={target.most_bytes}"]
    command += [] if target.counters else ["-use_counters=0"]
    command += ["-timeout=10", "-print_final_stats=1", f"-artifact_prefix={found}-failed-"]
    if target.has_dictionary:
        dictionary = found.with_suffix(".dict")
        dictionary.write_text(dictionary_of_scenarios(), encoding="utf-8")
        command += [f"-dict={dictionary}"]
    command += [str(found), str(unpack(target.name))]
    started = time.monotonic()
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    elapsed = time.monotonic() - started
    if ran.returncode != 0:
        print(ran.stdout[-2000:], ran.stderr[-6000:], sep="\n", file=sys.stderr)
        print(f"{target.name} fails: the input is in {found}-failed-…", file=sys.stderr)
        return None
    (executions,) = re.findall(r"stat::number_of_executed_units: (\d+)", ran.stderr)
    edges = re.findall(r"cov: (\d+) ft:", ran.stderr)[-1]
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return Outcome(int(executions), elapsed, int(edges), date)


def corpus(name: str) -> list[bytes]:
    """Returns the inputs of a target's archive, in the order of their names; none without one."""
    if not (CORPUS / f"{name}.tar.gz").exists():
        return []
    with tarfile.open(CORPUS / f"{name}.tar.gz") as archive:
        files = [archive.extractfile(member) for member in archive.getmembers()]
        return [file.read() for file in files if file is not None]


def pack(name: str, inputs: list[bytes]) -> None:
    """Writes a target's archive: equal inputs once, each named by its SHA-1, as libFuzzer does.

    The bytes depend on the inputs alone.
    """
    files = {hashlib.sha1(data, usedforsecurity=False).hexdigest(): data for data in inputs}
    with (
        (CORPUS / f"{name}.tar.gz").open("wb") as out,
        gzip.GzipFile("", "wb", compresslevel=9, fileobj=out, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for file, data in sorted(files.items()):
            member = tarfile.TarInfo(file)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def unpack(name: str) -> Path:
    """Writes a target's inputs as files, which libFuzzer reads, and returns their folder."""
    folder = BUILT / "corpus" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, data in enumerate(corpus(name)):
        (folder / str(number)).write_bytes(data)
    return folder


def keep(target: Target) -> None:
    """Adds inputs that reach edges that the committed corpus does not reach."""
    command, environment = command_of(target)
    folder = unpack(target.name)
    command += ["-set_cover_merge=1", "-use_counters=0", f"-max_len={target.most_bytes}"]
    command += [str(folder), str(BUILT / "found" / target.name)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    pack(target.name, [file.read_bytes() for file in folder.iterdir()])


def page() -> str:
    """The page, from what was measured last."""
    text = (ROOT / "fuzz" / "page.md").read_text(encoding="utf-8")
    rows = [
        "| target | what is tried | executions | a second | edges | inputs kept | seconds | on |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for target in TARGETS:
        outcome = Outcome(**json.loads(last(target).read_text(encoding="utf-8")))
        kept = len(corpus(target.name))
        rows.append(
            f"| `{target.name}` | {target.about} | {outcome.executions:,} | {outcome.rate:,.0f}"
            f" | {outcome.edges:,} | {kept} | {outcome.seconds:.0f} | {outcome.date} |"
        )
    measured = (
        f"One after the other, on one core of a machine with {os.cpu_count()}"
        f" ({platform.system()}, {platform.machine()})."
    )
    table = "\n".join(rows)
    return (
        "<!-- Written by `make fuzz-page` (scripts/fuzz.py) from fuzz/page.md; do not edit. -->\n"
        + text.replace("@MEASURED@", measured).replace("@TABLE@", table)
    )


if __name__ == "__main__":
    sys.exit(main())
