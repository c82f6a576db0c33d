"""A result as a notebook shows it: a table and a picture."""

from __future__ import annotations

import base64
import html as escape
import io
from typing import TYPE_CHECKING

from rich.console import Console

from cwnd.plots import style
from cwnd.table import result_table

if TYPE_CHECKING:
    from cwnd.results import Run

#: Wide enough for the table of any sweep; the browser scrolls.
_COLUMNS = 200


def html(run: Run) -> str:
    """The table of results, the notes and the overview figure."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), color_system="truecolor")
    console.print(result_table(run))
    text = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    notes = "".join(f"<p><b>Note:</b> {escape.escape(note)}</p>" for note in run.notes)
    picture = base64.b64encode(style.png(run.plot())).decode()
    return (
        f'{text}{notes}<img alt="{escape.escape(run.name)}" src="data:image/png;base64,{picture}"/>'
    )
