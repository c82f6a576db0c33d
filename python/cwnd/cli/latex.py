"""LaTeX of the tables that commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

#: Characters with a meaning in LaTeX, and those that fonts of pdfLaTeX lack.
_CHARACTERS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{each: f"\\{each}" for each in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "·": r"$\cdot$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "→": r"$\to$",
        "µ": r"$\mu$",
        "α": r"$\alpha$",
        "β": r"$\beta$",
        "γ": r"$\gamma$",
        "δ": r"$\delta$",
        "…": r"\ldots{}",
    }
)
_ALIGNMENTS = {"left": "l", "center": "c", "right": "r"}


def tabular(table: Table) -> str:
    """Writes a table as a `tabular` with the rules of the package `booktabs`.

    Title and caption are comments before it.
    """
    lines = [f"% {line}" for each in (table.title, table.caption) for line in _plain(each)]
    alignments = (_ALIGNMENTS.get(column.justify, "l") for column in table.columns)
    lines += [rf"\begin{{tabular}}{{{''.join(alignments)}}}", r"\toprule"]
    lines += [_row(column.header for column in table.columns), r"\midrule"]
    for row, cells in zip(
        table.rows, zip(*(column.cells for column in table.columns), strict=True), strict=True
    ):
        lines.append(_row(iter(cells)))
        if row.end_section and row is not table.rows[-1]:
            lines.append(r"\midrule")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _row(cells: Iterator[RenderableType]) -> str:
    return " & ".join(map(_cell, cells)) + r" \\"


def _cell(cell: RenderableType) -> str:
    lines = [line.translate(_CHARACTERS) for line in _plain(cell)]
    text = r"\\".join(lines)
    return rf"\shortstack{{{text}}}" if len(lines) > 1 else text


def _plain(cell: RenderableType | None) -> list[str]:
    """Returns the lines of a cell without its style."""
    if cell is None:
        return []
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return text.plain.splitlines()
