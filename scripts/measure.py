"""Prints the measures of the tree beside their limits: language, pages, files and bytes.

`make measure` calls it. With `--build` it also measures a clean release build, which takes minutes.
The exit code is 1 if a measure is over its limit.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = language.ROOT
#: Pages below docs/ that are generated, and no part of the manual written by hand.
GENERATED = ("docs/reference/scenario.md", "docs/fuzzing.md")
IMAGES = {".png", ".svg", ".jpg", ".gif"}
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Measure:
    """A number of the tree and its limit."""

    what: str
    value: float
    limit: float
    unit: str = ""

    @property
    def holds(self) -> bool:
        """`True` if the number is within its limit."""
        return self.value <= self.limit

    def __str__(self) -> str:
        """Returns a line of the report."""
        verdict = "" if self.holds else "  OVER"
        return f"{self.what:<44} {self.value:>9.4g} (≤ {self.limit:g}) {self.unit}{verdict}"


def of_language() -> Iterator[Measure]:
    """Yields the measures of code, comments and commit messages."""
    docs, opened, wide = 0, 0, 0
    for path in language.tracked(".rs", ".py", ".c", ".h"):
        name = str(path.relative_to(ROOT))
        found, more, count = language.check_text(name, path.read_text(encoding="utf-8"))
        wide += sum(" columns, at most " in each for each in found)
        opened += len(more)
        docs += count
    share = 100 * opened / docs
    yield Measure("doc comments that open with a question word", share, 3, "%")
    yield Measure(f"lines of code over {language.COLUMNS} columns", wide, 0)
    yield Measure("commits without short subject and body", len([*language.check_commits()]), 0)
    yield Measure("ARCHITECTURE.md", len(lines(ROOT / "ARCHITECTURE.md")), 150, "lines")
    yield Measure("CHANGELOG.md", (ROOT / "CHANGELOG.md").stat().st_size / 1000, 3, "kB")
    yield Measure("scripts/language.py", len(lines(ROOT / "scripts/language.py")), 150, "lines")


def lines(file: Path) -> list[str]:
    """Returns the lines of a text."""
    return file.read_text(encoding="utf-8").splitlines()


def of_tree() -> Iterator[Measure]:
    """Yields numbers of files and bytes of what git tracks."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sizes = {
        name: (ROOT / name).stat().st_size
        for name in listed.split("\0")
        if name and (ROOT / name).is_file() and not (ROOT / name).is_symlink()
    }

    def total(chosen: Callable[[str], bool]) -> float:
        return sum(size for name, size in sizes.items() if chosen(name))

    yield Measure("files", len(sizes), 2000)
    yield Measure("tree", total(lambda _: True) / MEGABYTE, 18, "MB")
    yield Measure("images", total(lambda name: Path(name).suffix in IMAGES) / MEGABYTE, 3, "MB")
    yield Measure("vectors", total(lambda name: name.startswith("vectors/")) / MEGABYTE, 3, "MB")
    manual = total(
        lambda name: name.startswith("docs/") and name.endswith(".md") and name not in GENERATED
    )
    yield Measure("manual written by hand", manual / 1000, 300, "kB")


def of_build() -> Iterator[Measure]:
    """Yields the CPU time of a release build of the extension from nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        build = ["cargo", "build", "--release", "--quiet", "--package", "cwnd-python"]
        subprocess.run([*build, "--target-dir", folder], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    yield Measure("clean release build", spent, 160, "CPU s")


def main() -> int:
    """Prints the measures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true", help="measure a clean release build, too")
    options = parser.parse_args()
    found = [*of_language(), *of_tree(), *(of_build() if options.build else ())]
    print(*found, sep="\n")
    return 0 if all(measure.holds for measure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
