"""Writes the page of comparisons and its figure: `python -m peers PAGE FIGURE`."""

from __future__ import annotations

import sys
from pathlib import Path

from cwnd.figures import Figure
from peers import explicit, explicit_page, transfers, transfers_page, web, web_page
from peers.judge import compare
from peers.page import Others, draw, write
from peers.rows import load_all


def main() -> None:
    """Runs everything, then writes."""
    page, figure = (Path(argument) for argument in sys.argv[1:3])
    found = compare(load_all())
    Figure(draw(found)).save(figure)
    others: Others = [
        (transfers_page.section, transfers.compare(transfers.settings())),
        (web_page.section, web.compare(web.settings())),
        (explicit_page.section, explicit.compare(explicit.settings())),
    ]
    page.write_text(write(found, others), encoding="utf-8")


if __name__ == "__main__":
    main()
