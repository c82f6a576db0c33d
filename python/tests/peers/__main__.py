"""Writes the page of comparisons and its figure: `python -m peers PAGE FIGURE`."""

from __future__ import annotations

import sys
from pathlib import Path

from peers import transfers, web
from peers import explicit, transfers
from peers.judge import compare
from peers.page import draw, write
from peers.rows import load_all


def main() -> None:
    """Runs everything, then writes."""
    page, figure = (Path(argument) for argument in sys.argv[1:3])
    found = compare(load_all())
    draw(found, figure)
    fetched = transfers.compare(transfers.settings())
    browsed = web.compare(web.settings())
    page.write_text(write(found, fetched, browsed), encoding="utf-8")
    page.write_text(write(found, fetched, explicit.compare(explicit.settings())), encoding="utf-8")


if __name__ == "__main__":
    main()
