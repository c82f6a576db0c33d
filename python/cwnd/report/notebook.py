"""HTML view of a result in a notebook: tables, notes and a figure."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

from cwnd.results import group_table, result_table

if TYPE_CHECKING:
    from cwnd.results import Run, TextTable

#: Maximum number of rows of a table.
_MAX_ROWS = 200
#: Styles are attributes of each element: notebooks have different rules for tables, and some remove
#: `style` elements.
_TABLE = (
    "border-collapse: collapse; table-layout: auto; margin: 0; font-variant-numeric: tabular-nums"
)
_CELL = "padding: 0.15em 0.8em 0.15em 0; vertical-align: bottom; border: none"
_LINE = "border-top: 1px solid currentColor"


def html(run: Run) -> str:
    """Formats the tables of results, the notes and the default figure as HTML.

    Raises:
        InputError: The result has nothing to draw.
    """
    text_tables = [result_table(run), group_table(run)]
    tables = "".join(
        _table(text_table.cut(_MAX_ROWS)) for text_table in text_tables if text_table is not None
    )
    notes = "".join(f"<p><b>Note:</b> {escape(note)}</p>" for note in run.notes)
    figure = run.plot()
    picture = base64.b64encode(figure.png()).decode()
    return (
        f'{tables}{notes}<img alt="{escape(run.name)}" width="{figure.notebook_width}" '
        f'src="data:image/png;base64,{picture}"/>'
    )


def _table(text_table: TextTable) -> str:
    """Formats a table as an HTML table, whose columns line up in any font."""
    # Line breaks of a heading are kept.
    headings = [escape(heading).replace("\n", "<br/>") for heading in text_table.headings]
    rows = [_row(text_table, "th", headings)]
    for index, cells in enumerate(text_table.rows):
        line = index == 0 or text_table.starts_block(index)
        rows.append(_row(text_table, "td", [escape(cell) for cell in cells], line=line))
    caption = f'<p style="margin: 0.3em 0; opacity: 0.7">{escape(text_table.caption)}</p>'
    return (
        f'<p style="margin: 0.3em 0"><b>{escape(text_table.title)}</b></p>'
        f'<div style="overflow-x: auto"><table style="{_TABLE}">'
        f"<thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table></div>"
        f"{caption if text_table.caption_parts else ''}"
    )


def _row(text_table: TextTable, element: str, cells: list[str], *, line: bool = False) -> str:
    """Formats a row; keys are aligned left, numbers right."""
    written = []
    for index, cell in enumerate(cells):
        align = "left" if index < text_table.keys else "right"
        look = f"{_CELL}; text-align: {align}; white-space: nowrap{f'; {_LINE}' if line else ''}"
        written.append(f'<{element} style="{look}">{cell}</{element}>')
    return f"<tr>{''.join(written)}</tr>"
