"""LaTeX of the tables that commands print."""

from __future__ import annotations

import re
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
        "\N{ZERO WIDTH SPACE}": "{}",
        "∞": r"$\infty$",
        "²": "$^2$",
        "³": "$^3$",
        "½": r"$\frac{1}{2}$",
        "°": r"$^\circ$",
        "ε": r"$\epsilon$",
        "η": r"$\eta$",
        "κ": r"$\kappa$",
        "λ": r"$\lambda$",
        "ξ": r"$\xi$",
        "π": r"$\pi$",
        "ρ": r"$\rho$",
        "σ": r"$\sigma$",
        "τ": r"$\tau$",
        "φ": r"$\phi$",
        "Δ": r"$\Delta$",
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
    row = " & ".join(map(_cell, cells)) + r" \\"
    # An argument of the line before it, otherwise.
    return "{}" + row if row.startswith(("[", "*")) else row


def _cell(cell: RenderableType) -> str:
    lines = [_escaped(line.strip()) for line in _plain(cell)]
    text = r"\\".join(lines)
    return rf"\shortstack{{{text}}}" if len(lines) > 1 else text


def _escaped(text: str) -> str:
    # Two hyphens, as of an option, would become a dash.
    text = re.sub(r"(?<![\w-])-(?=\d)", "−", text).replace("--", "-\N{ZERO WIDTH SPACE}-")
    return text.translate(_CHARACTERS)


def _plain(cell: RenderableType | None) -> list[str]:
    """Returns the lines of a cell without its style."""
    if cell is None:
        return []
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return text.plain.splitlines()
