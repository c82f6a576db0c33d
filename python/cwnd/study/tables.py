"""Tables in Markdown, and the blocks of a page that hold them.

A block stands between `<!-- table NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.study.toml_table import meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_BLOCK = re.compile(r"^<!-- table ([^\n]+) -->\n(.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE)
_START = re.compile(r"<!-- table ([^\n]+) -->$")
_END = "<!-- end -->"
_IMAGE = re.compile(r"!\[[^\]]*\]\(images/([^)\s]+)\)")


def line(cells: Iterable[str]) -> str:
    """Formats a line of a table."""
    return f"| {' | '.join(cells)} |"


def head(cells: Sequence[str]) -> list[str]:
    """Formats the first two lines of a table."""
    return [line(cells), line(["---"] * len(cells))]


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Formats a table."""
    return [*head(columns), *map(line, rows)]


def as_lines(made: Any) -> list[str]:
    """Returns the lines of a table that a function made.

    Raises:
        InputError: It is neither a text nor a list of texts.
    """
    if isinstance(made, str):
        return made.splitlines()
    if isinstance(made, list | tuple) and all(isinstance(each, str) for each in made):
        return list(made)
    raise InputError(
        "a table is a list of lines, as `cwnd.study.table(columns, rows)` makes it, not"
        f" {made!r:.80}"
    )


def interval(mean: float, half_width: float | None, digits: int, sign: str = "") -> str:
    """Formats a mean with its confidence interval, if it has one; `sign` is that of a format."""
    half = "" if half_width is None else f" ±{half_width:.{digits}f}"
    return f"{mean:{sign}.{digits}f}{half}"


def page_faults(file: Path, text: str, names: Sequence[str]) -> list[str]:
    """Faults of the blocks of a page, which has one for each of these tables and no others."""
    found = []
    there = set()
    block = ""
    for number, each in enumerate(text.splitlines(), 1):
        start, end = _START.match(each), each == _END
        if end and not block:
            found.append(f"{file}:{number}: `{_END}` ends no block")
        if start and block:
            found.append(f"{block} has no `{_END}` on a line of its own")
        if start:
            name = start[1]
            there.add(name)
            block = f"{file}:{number}: block `{name}`"
            if name not in names:
                found.append(
                    f"{block} has no table{meant(name, names)}; add `[table.{name}]` to"
                    " study.toml, or remove the block"
                )
        elif end:
            block = ""
    if block:
        found.append(f"{block} has no `{_END}` on a line of its own")
    return found + [
        f"{file}: table `{name}` has no block; add the lines `<!-- table {name} -->` and `{_END}`"
        for name in names
        if name not in there
    ]


def page_text(file: Path, names: Iterable[str]) -> str:
    """Reads the page of a study.

    Raises:
        InputError: There is none.
    """
    if file.is_file():
        return file.read_text(encoding="utf-8")
    lines = "".join(f"\n<!-- table {name} -->\n{_END}" for name in names)
    raise InputError(
        f"{file} is not there; write it: a heading, your text"
        + (f", and a block for each table:{lines}" if lines else "")
    )


def blocks(page: str) -> dict[str, list[str]]:
    """Lines of the blocks of a page, by name."""
    return {name: text.splitlines() for name, text in _BLOCK.findall(page)}


def images(page: str) -> list[str]:
    """Names of the images that a page shows."""
    return list(dict.fromkeys(_IMAGE.findall(page)))


def replaced(page: str, tables: dict[str, list[str]]) -> str:
    """Returns the page with these blocks."""

    def block(match: re.Match[str]) -> str:
        if match[1] not in tables:
            return match[0]
        text = "".join(f"{each}\n" for each in tables[match[1]])
        return f"<!-- table {match[1]} -->\n{text}<!-- end -->"

    return _BLOCK.sub(block, page)


def differences(found: Sequence[str], stands: Sequence[str], *, part: bool) -> list[str]:
    """Compares lines with those of a page's block, and returns the lines that it lacks.

    Args:
        found: Computed lines.
        stands: Lines of the page.
        part: `True` if the computed tables may have a part of the page's rows and columns. Lines
            outside of tables are then not compared.
    """
    if not part:
        return [each for each in found if each not in stands]
    known = [dict(zip(columns, cells, strict=False)) for columns, cells in _rows(stands)]
    wrong = []
    for columns, cells in _rows(found):
        row = dict(zip(columns, cells, strict=False))
        if not any(row.items() <= each.items() for each in known):
            wrong.append(line(f"{column}: {cell}" for column, cell in row.items()))
    return wrong


def _rows(lines: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Rows of all tables, each with the columns of its table; those of one text are numbered."""
    found: list[tuple[list[str], list[str]]] = []
    columns: list[str] | None = None
    for text in lines:
        if not text.startswith("|"):
            columns = None
            continue
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        if columns is None:
            columns = [
                f"{cell} {cells[:i].count(cell) + 1}" if cell in cells[:i] else cell
                for i, cell in enumerate(cells)
            ]
        elif any(cell.strip("-: ") for cell in cells) or not cells:
            found.append((columns, cells))
    return found
