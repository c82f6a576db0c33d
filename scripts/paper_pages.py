"""Reproduces papers and writes their pages, with small copies of the figures under docs.

`scripts/paper_pages.py` does all of them, `scripts/paper_pages.py becn` one. With `--linux` it runs
nothing, and writes only the last part of a page again, from what is kept of Linux (in the paper's
folder `linux`, by `scripts/agreement_page.py becn`) and from the texts of `claims.toml`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import reproduce
from cwnd.reproduce.page import markdown, with_linux
from cwnd.running import bar

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
#: Directory of the small copies of figures.
IMAGES = ROOT / "docs" / "images" / "papers"


def main() -> int:
    """Writes the pages; runs that are there from before are not simulated again."""
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or reproduce.papers()
    for name in names:
        if "--linux" in sys.argv:
            write_linux(name)
            continue
        found = reproduce.reproduce(name, directory=ROOT / "out" / "reproduce" / name, progress=bar)
        copy_pngs(found.figures, IMAGES / name)
        page = found.paper.folder / "README.md"
        page.write_text(markdown(found, images_of(name)), encoding="utf-8")
        sys.stderr.write(f"{page}\n")
    return 0


def write_linux(name: str) -> None:
    """Writes the last part of a paper's page again, from what is kept of Linux."""
    paper = reproduce.paper(name)
    page = paper.folder / "README.md"
    written = page.read_text(encoding="utf-8")
    page.write_text(with_linux(written, paper, images_of(name)), encoding="utf-8")


def images_of(name: str) -> str:
    """Returns the path from a paper's page to the small copies of its figures."""
    return f"../../../../docs/images/papers/{name}"


def copy_pngs(files: Iterable[Path], place: Path) -> None:
    """Puts small copies of figures into a folder."""
    place.mkdir(parents=True, exist_ok=True)
    for file in files:
        if file.suffix == ".png":
            shutil.copyfile(file, place / file.name)


if __name__ == "__main__":
    sys.exit(main())
