"""Tables that scripts write into pages, each between a comment that names it and `<!-- end -->`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_END = "<!-- end -->\n"


def line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def head(cells: Sequence[str]) -> list[str]:
    """The first lines of a table."""
    return [line(cells), line(["---"] * len(cells))]


def interval(mean: float, half_width: float | None, digits: int, sign: str = "") -> str:
    """A mean with its confidence interval, if it has one; `sign` is that of a format, as "+"."""
    half = "" if half_width is None else f" ±{half_width:.{digits}f}"
    return f"{mean:{sign}.{digits}f}{half}"


def written(page: Path, name: str) -> list[str]:
    """The lines of the table of this name that the page has.

    Raises:
        ValueError: There is none.
    """
    return _around(page, name)[1].splitlines()


def write(page: Path, name: str, lines: Sequence[str]) -> None:
    """Puts a table in the place of the one of this name.

    Raises:
        ValueError: There is none.
    """
    before, _, after = _around(page, name)
    table = "".join(f"{each}\n" for each in lines)
    page.write_text(before + table + after, encoding="utf-8")


def _around(page: Path, name: str) -> tuple[str, str, str]:
    text = page.read_text(encoding="utf-8")
    begin = f"<!-- {name} -->\n"
    start = text.index(begin) + len(begin)
    end = text.index(_END, start)
    return text[:start], text[start:end], text[end:]
