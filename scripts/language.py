"""Checks how the tree is written: openings of doc comments, words, widths and commit messages.

`make lint` calls it. A finding is a line `FILE:LINE: message` or `commit HASH: message`; the exit
code is 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
#: Columns of a line of code, comments included.
COLUMNS = 100
#: Share of doc comments that may open with a question word.
OPENINGS = 0.03
OPENING = re.compile(r"(What|Whether|Which|How|Who|Whom|Whose|Where|When|Why)\b")
#: Words that a transport engineer would not use, with the field's word.
WORDS = {
    r"\b(is|are|was|were|be|been|gets?) told\b": "is reported, is given",
    r"\bby lot\b|\bdraws? lots\b|\bone lot\b": "at random, a random draw",
    r"\b(comes?|came) to (nothing|the same|an end|\d)": "results in, gives",
    r"\bof today\b": "current",
    r"\bis not said\b": "is not stated",
    r"\bas (?:RFC \d+|Linux|ns-[23]|it|they) (?:has|have) it\b": "as in",
    r"\bof (?:its|their) own accord\b": "unasked",
    r"\bwhom\b": "a noun",
    r"\bhouse\b|\bshelf\b|\bdoors?\b": "module, crate, registry, interface",
}
#: Files whose texts are not ours to shape: generated, recorded, or lists of words like this one.
EXEMPT = re.compile(r"scripts/language\.py|/golden/|/data/|reference/arrivals/|\.pyi$")
#: Words for linters, which do not count as columns.
PRAGMA = re.compile(r"  # (noqa|type: ignore).*$")
SUBJECT_CHARACTERS = 72


def tracked(*endings: str) -> list[Path]:
    """Returns the existing files that git tracks with one of these endings, but `EXEMPT`."""
    command = ["git", "ls-files", "-z", *(f"*{ending}" for ending in endings)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and not EXEMPT.search(name)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def rust_docs(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and first line of each doc comment of Rust."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*//[/!] ?(.*)", line)
        if match and not inside:
            yield number, match[1]
        inside = match is not None


def python_docs(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and first line of each docstring and of each comment `#:`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=True)
            if doc:
                yield node.body[0].lineno, doc.splitlines()[0]
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*#: ?(.*)", line)
        if match and not inside:
            yield number, match[1]
        inside = match is not None


def comments(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of comments and docstrings; not of a comment on a line with a `"`."""
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                for offset, line in enumerate(str(node.value.value).splitlines()):
                    yield node.lineno + offset, line
    mark = "#" if name.endswith(".py") else "//"
    for number, line in enumerate(text.splitlines(), 1):
        _, found, comment = line.partition(mark)
        if found and '"' not in line:
            yield number, comment


def check_text(name: str, text: str) -> tuple[list[str], list[str], int]:
    """Returns findings, doc comments that open with a question word, and the number of all."""
    found, opened, docs = [], [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if (columns := len(PRAGMA.sub("", line))) > COLUMNS:
            found.append(f"{name}:{number}: {columns} columns, at most {COLUMNS}")
    for number, line in comments(name, text):
        for word, better in WORDS.items():
            if match := re.search(word, line, re.IGNORECASE):
                found.append(f"{name}:{number}: “{match[0].strip()}”: write {better}")
    for number, line in python_docs(text) if name.endswith(".py") else rust_docs(text):
        docs += 1
        if OPENING.match(line):
            opened.append(f"{name}:{number}: opens with a question word: {line}")
    return found, opened, docs


def check_files() -> Iterator[str]:
    """Yields the findings in code."""
    docs, opened = 0, []
    for path in tracked(".rs", ".py", ".c", ".h"):
        name = str(path.relative_to(ROOT))
        found, more, count = check_text(name, path.read_text(encoding="utf-8"))
        yield from found
        opened += more
        docs += count
    if len(opened) > OPENINGS * docs:
        yield from opened
        yield f"{len(opened)} of {docs} doc comments open with a question word, at most 3 %"


def check_commits() -> Iterator[str]:
    """Yields the findings in the messages of the commits after the one that added this file."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    added = git("log", "--diff-filter=A", "--format=%H", "--", "scripts/language.py").split()
    for commit in git("rev-list", "--no-merges", f"{added[-1]}..HEAD").split() if added else ():
        subject, _, body = git("log", "-1", "--format=%B", commit).partition("\n")
        if len(subject) > SUBJECT_CHARACTERS:
            yield f"commit {commit[:8]}: {len(subject)} characters of subject, at most 72"
        if not body.strip():
            yield f"commit {commit[:8]}: no body that says why: {subject}"


def main() -> int:
    """Prints the findings; returns the exit code."""
    if not (ROOT / ".git").exists():
        print("skipped: language: this is no clone, whose files git lists", file=sys.stderr)
        return 0
    findings = [*check_files(), *check_commits()]
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
